"""publisher: what fails holds up nothing else; a cluster in memory and virtual time."""

from __future__ import annotations

from typing import Any

import kubernetes.client
import pytest

from dra_core import layout
from dra_core.errors import ApiConflict, ApiForbidden, ApiInvalid, ApiUnavailable
from dra_core.model.devices import Device
from dra_core.model.slices import Pool
from dra_core.names import DeviceName, PoolName
from dra_driver.adapters.kube import KubeApi
from dra_driver.adapters.kube_slices import KubeSlices
from dra_driver.pacing import ASKED_LONGEST, RETRY_FIRST
from dra_driver.ports import Changed, Scope
from dra_driver.slice_watch import Relisted
from dra_testing.memory_slices import DRIVER, NODE, MemoryStand


def device(name: str, **fields: Any) -> Device:
    return Device(DeviceName(name), **fields)


def pool(name: str, *devices: Device) -> Pool:
    return Pool(PoolName(name), devices)


@pytest.fixture
def stand() -> MemoryStand:
    return MemoryStand()


def test_a_pool_that_rests_is_not_held_up_by_one_that_fails(stand: MemoryStand) -> None:
    stand.api.faults["a"] = [ApiInvalid("no")]
    for _ in range(10):
        stand.publish(pool("a", device("x")), pool("b", device("y")))
    store = stand.api._store

    def slow(verb: str, body: Any) -> Any:
        stand.now += float(body["spec"]["pool"]["name"] == "b")
        return store(verb, body)

    stand.api._store = slow  # type: ignore[method-assign]
    stand.publish(pool("a", device("x")), pool("b", device("y", attributes={"serial": 1})))
    wait = stand.publish(pool("a", device("x")), pool("b", device("y", attributes={"serial": 2})))
    assert wait is not None
    assert wait == 1.0, "as long as the change of b took"


def test_the_first_failure_of_a_pool_is_tried_again_soon(stand: MemoryStand) -> None:
    stand.api.faults["a"] = [ApiInvalid("no")]
    for _ in range(10):
        stand.publish(pool("a", device("x")), pool("b", device("y")))
    stand.api.faults["b"] = [ApiUnavailable("once"), None]
    wait = stand.publish(pool("a", device("x")), pool("b", device("z")))
    assert wait is not None
    assert wait <= RETRY_FIRST


def test_a_server_that_asks_for_time_gets_it_whatever_the_driver_finds(stand: MemoryStand) -> None:
    stand.api.faults["a"] = [ApiUnavailable("busy", 20.0), None]
    assert stand.publish(pool("a", device("x"))) == 20.0
    stand.now += 5.0
    assert stand.publish(pool("a", device("y"))) == 15.0
    assert "busy" in stand.publisher.trouble
    stand.now += 15.0
    assert stand.publisher._converge() is None
    assert stand.api.devices("a") == ["y"]
    stand.api.faults["a"] = [ApiUnavailable("busy", 90_000.0), None]
    assert stand.publish(pool("a", device("x"))) == ASKED_LONGEST


def losing(stand: MemoryStand, number: int) -> None:
    """The answer to the write with this number, counted from now on, gets lost."""
    store, lost = stand.api._store, len(stand.api.writes) + number

    def stored(verb: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = store(verb, body)
        if len(stand.api.writes) == lost:
            raise ApiUnavailable("the answer broke off")
        return answer

    stand.api._store = stored  # type: ignore[method-assign]


def test_a_slice_whose_creation_had_no_answer_is_known_before_the_next_plan(
    stand: MemoryStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any news from the watch."""
    monkeypatch.setattr(layout, "MAX_DEVICES", 1)
    losing(stand, 2)
    assert stand.publish(pool("a", device("x"), device("y"))) is not None
    first = min(stand.api.items)
    deleted = stand.api.items.pop(first)
    stand.publisher._take(Changed("DELETED", deleted))
    moments: list[list[str]] = []
    store = stand.api._store

    def seen(verb: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = store(verb, body)
        pools = [item["spec"]["pool"] for item in stand.api.items.values()]
        newest = [p for p in pools if p["generation"] == max(q["generation"] for q in pools)]
        if len(newest) == newest[0]["resourceSliceCount"]:
            moments.append(stand.api.devices("a"))
        return answer

    stand.api._store = seen  # type: ignore[method-assign]
    stand.publish(pool("a", device("v"), device("w")))
    assert moments == [["v", "w"]]


def test_withdrawing_finds_what_was_created_without_an_answer(stand: MemoryStand) -> None:
    losing(stand, 1)
    assert stand.publish(pool("a", device("x"))) is not None
    assert len(stand.api.items) == 1
    stand.publisher.withdraw()
    stand.publisher._converge()
    assert stand.api.items == {}


class Conflicting(KubeApi):
    """Answers everything with 409."""

    def __init__(self) -> None:
        super().__init__(kubernetes.client.Configuration())

    def request(self, *_: object, **__: object) -> dict[str, Any]:
        raise ApiConflict("try again")


def test_a_deletion_that_met_a_conflict_is_not_taken_for_done(stand: MemoryStand) -> None:
    stand.publish(pool("a", device("x")), pool("b", device("y")))
    kube_slices = KubeSlices(Conflicting(), DRIVER, NODE)
    kept, stand.api.delete = stand.api.delete, kube_slices.delete  # type: ignore[method-assign]
    assert stand.publish(pool("b", device("y"))) is not None
    assert stand.publisher.trouble
    stand.api.delete = kept  # type: ignore[method-assign]
    assert stand.publisher._converge() is None
    assert len(stand.api.items) == 1


def test_withdrawing_is_tried_again_soon_after_pools_that_failed(stand: MemoryStand) -> None:
    stand.api.faults["a"] = [ApiInvalid("no")]
    for _ in range(10):
        stand.publish(pool("a", device("x")), pool("b", device("y")))

    def fails(name: str, uid: str) -> None:
        raise ApiUnavailable("once")

    stand.api.delete = fails  # type: ignore[method-assign]
    stand.publisher.withdraw()
    wait = stand.publisher._converge()
    assert wait is not None
    assert wait <= RETRY_FIRST


def test_what_a_server_asked_before_does_not_stall_withdrawing(stand: MemoryStand) -> None:
    stand.publish(pool("a", device("x")))
    stand.api.faults["a"] = [ApiUnavailable("later", 100.0)]
    assert stand.publish(pool("a", device("y"))) == 100.0
    kept = stand.api.delete

    def fails(name: str, uid: str) -> None:
        raise ApiConflict("others were faster")

    stand.api.delete = fails  # type: ignore[method-assign]
    stand.publisher.withdraw()
    wait = stand.publisher._converge()
    assert wait is not None
    assert wait <= RETRY_FIRST
    stand.api.delete = kept  # type: ignore[method-assign]
    stand.publisher._converge()
    assert stand.api.items == {}


@pytest.mark.parametrize("withdrawing", [False, True])
@pytest.mark.parametrize("kept", "abc")
def test_a_slice_that_is_not_deleted_holds_up_no_other(
    stand: MemoryStand, kept: str, *, withdrawing: bool
) -> None:
    stand.publish(*(pool(name, device(name)) for name in "abc"))
    delete = stand.api.delete

    def refuses(name: str, uid: str) -> None:
        if stand.api.items[name]["spec"]["pool"]["name"] == kept:
            raise ApiForbidden("a policy")
        delete(name, uid)

    stand.api.delete = refuses  # type: ignore[method-assign]
    if withdrawing:
        stand.publisher.withdraw()
        assert stand.publisher._converge() is not None
    else:
        assert stand.publish() is not None
    assert [i["spec"]["pool"]["name"] for i in stand.api.items.values()] == [kept]
    assert "a policy" in stand.publisher.trouble
    assert not stand.publisher.withdrawn.is_set()


@pytest.mark.parametrize("odd", [{}, {"metadata": {}}, {"metadata": {"name": "s", "uid": "u"}}])
def test_an_odd_event_does_not_end_the_publishing_thread(
    stand: MemoryStand, odd: dict[str, Any]
) -> None:
    stand.publish(pool("a", device("x")))
    stand.publisher.take(Changed("ADDED", odd))
    stand.publisher.take(Relisted(Scope.SHARED, (odd,)))
    stand.publisher._gather(0.0)
    assert stand.publish(pool("a", device("y"))) is None
    assert stand.api.devices("a") == ["y"]

"""discovery and publisher: what drivers may do with the pools that they return."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from dra_core.model.devices import Counter, CounterConsumption, Device, RawAttribute
from dra_core.model.slices import CounterSet, Pool
from dra_core.model.taints import DeviceTaint
from dra_core.names import DeviceName, PoolName
from dra_core.quantity import Quantity
from dra_driver.discovery import Discovery, Found
from dra_testing.cases import case
from dra_testing.memory_slices import MemoryStand
from dra_testing.polling import until


def device(name: str, **fields: Any) -> Device:
    return Device(DeviceName(name), **fields)


def pool(name: str, *devices: Device, **fields: Any) -> Pool:
    return Pool(PoolName(name), devices, **fields)


@pytest.fixture
def stand() -> MemoryStand:
    return MemoryStand()


class Asked:
    """A discovery in a thread."""

    def __init__(self, ask: Callable[[], Sequence[Pool]]) -> None:
        self.found: list[Found] = []
        self.discovery = Discovery(ask, self.found.append, rescan=0.1)
        self.thread = threading.Thread(target=self.discovery.run)
        self.thread.start()

    def end(self) -> None:
        self.discovery.stop()
        self.thread.join(10.0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError()], ids=repr)
@case("PUB-04")
def test_a_driver_that_would_end_the_thread_is_asked_again(error: BaseException) -> None:
    answers: list[BaseException] = [error]

    def ask() -> Sequence[Pool]:
        if answers:
            raise answers.pop()
        return [pool("a")]

    asked = Asked(ask)
    try:
        until("asked again", lambda: len(asked.found) > 1, timeout=5.0)
    finally:
        asked.end()
    assert type(error).__name__ in asked.found[0].trouble
    assert asked.found[1].pools == (pool("a"),)


@pytest.mark.parametrize("odd", [None, 5, "ab", {"a": 1}, [None], [pool("a"), "b"]], ids=repr)
def test_an_answer_that_is_no_pools_is_a_failure(odd: Any) -> None:
    asked = Asked(lambda: odd)
    until("asked", lambda: bool(asked.found), timeout=5.0)
    asked.end()
    assert "discovery failed" in asked.found[0].trouble


def discovered(*pools: Pool) -> tuple[Pool, ...]:
    """As the publisher gets them."""
    return Discovery(lambda: pools, lambda _: None, rescan=1.0)._found().pools


def test_a_device_that_its_driver_changes_in_place_is_written(stand: MemoryStand) -> None:
    attributes: dict[str, Any] = {"health": "good"}
    counters = {"memory": Counter(Quantity.parse("1"))}
    sets = [CounterSet("c", counters)]
    mine = pool("a", device("x", attributes=attributes), shared_counters=sets)
    stand.publish(*discovered(mine))
    attributes["health"] = "bad"
    counters["memory"] = Counter(Quantity.parse("2"))
    stand.publish(*discovered(mine))
    devices = [d for i in stand.api.items.values() for d in i["spec"].get("devices", ())]
    assert devices == [{"name": "x", "attributes": {"health": {"string": "bad"}}}]
    shared = [s for i in stand.api.items.values() for s in i["spec"].get("sharedCounters", ())]
    assert shared == [{"name": "c", "counters": {"memory": {"value": "2"}}}]


def test_lists_instead_of_tuples_are_not_written_again_after_a_restart(stand: MemoryStand) -> None:
    consumed = [CounterConsumption("c", {"m": Counter(Quantity.parse("1"))})]
    lists = Pool(
        PoolName("a"),
        [device("x", consumes_counters=consumed, taints=[DeviceTaint("a.b/c", "None")])],  # type: ignore[arg-type]
        [CounterSet("c", {"m": Counter(Quantity.parse("1"))})],  # type: ignore[arg-type]
    )
    stand.publish(*discovered(lists))
    assert stand.api.devices("a") == ["x"]
    writes = len(stand.api.writes)
    stand.start()
    stand.publish(*discovered(lists))
    assert len(stand.api.writes) == writes


def test_what_did_not_change_is_the_same_object() -> None:
    one = pool("a", *(device(f"d-{n}", attributes={"a": 1}) for n in range(3)))
    discovery = Discovery(lambda: [one], lambda _: None, rescan=1.0)
    first, second = discovery._found().pools, discovery._found().pools
    assert all(a is b for a, b in zip(first[0].devices, second[0].devices, strict=True))
    assert first == (one,)


def test_an_empty_map_that_is_filled_in_place_is_written(stand: MemoryStand) -> None:
    attributes: dict[str, Any] = {}
    mine = pool("a", device("x", attributes=MappingProxyType(attributes)))
    discovery = Discovery(lambda: [mine], lambda _: None, rescan=1.0)
    stand.publish(*discovery._found().pools)
    attributes["health"] = "bad"
    stand.publish(*discovery._found().pools)
    devices = [d for i in stand.api.items.values() for d in i["spec"]["devices"]]
    assert devices == [{"name": "x", "attributes": {"health": {"string": "bad"}}}]


def odd_pools() -> list[Callable[[], Pool]]:
    """Those that can be read once are made anew for each question."""
    wrong: Any = None
    return [
        lambda: Pool(PoolName("a"), (d for d in (wrong, device("y")))),  # type: ignore[arg-type]
        lambda: Pool(PoolName("a"), (device("y"),), fallbacks=["DRADeviceTaints"]),  # type: ignore[arg-type]
        lambda: Pool(PoolName("a"), (device("y", attributes={"a": RawAttribute("b")}),)),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("odd", odd_pools(), ids=["generator", "fallbacks", "raw"])
def test_a_pool_that_cannot_be_copied_stays_and_holds_up_no_other(
    stand: MemoryStand, odd: Callable[[], Pool]
) -> None:
    right = pool("a", device("x"))
    answers = [[right, pool("b")], [odd(), pool("b", device("z"))]]
    discovery = Discovery(lambda: answers.pop(0), lambda _: None, rescan=1.0)
    for _ in range(2):
        stand.publisher._take(discovery._found())
        stand.publisher._converge()
    assert stand.api.devices("a") == ["x"]
    assert stand.api.devices("b") == ["z"]
    assert "pool 'a' cannot be read" in stand.publisher.trouble


def test_a_pool_that_was_odd_is_copied_again_once_it_is_right(stand: MemoryStand) -> None:
    attributes: dict[str, Any] = {"health": "good"}
    wrong: Any = None
    right = pool("a", device("x", attributes=attributes))
    answers = [[pool("a", wrong)], [right], [right]]
    discovery = Discovery(lambda: answers.pop(0), lambda _: None, rescan=1.0)
    for health in ("good", "good", "bad"):
        attributes["health"] = health
        stand.publisher._take(discovery._found())
        stand.publisher._converge()
    devices = [d for i in stand.api.items.values() for d in i["spec"]["devices"]]
    assert devices == [{"name": "x", "attributes": {"health": {"string": "bad"}}}]


def test_what_a_fallback_gives_can_change_in_place(stand: MemoryStand) -> None:
    attributes: dict[str, Any] = {"health": "good"}

    def instead(given: Device) -> Device:
        given.attributes.pop("mine")  # type: ignore[attr-defined]
        return device("x", attributes=attributes)

    def drops(body: Any) -> Any:
        devices = [{k: v for k, v in d.items() if k != "taints"} for d in body["spec"]["devices"]]
        return body | {"spec": body["spec"] | {"devices": devices}}

    stand.api.try_out = drops  # type: ignore[method-assign]
    tainted = device("x", taints=(DeviceTaint("a.b/c", "NoSchedule"),), attributes={"mine": 1})
    mine = pool("a", tainted, fallbacks={"DRADeviceTaints": instead})
    for health in ("good", "bad"):
        attributes["health"] = health
        assert stand.publish(mine) is None
    devices = [d for i in stand.api.items.values() for d in i["spec"]["devices"]]
    assert devices == [{"name": "x", "attributes": {"health": {"string": "bad"}}}]

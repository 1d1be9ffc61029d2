"""publisher: what it says as Events, and how often; slices that would not go with their Node."""

from __future__ import annotations

from typing import Any

import pytest

from dra_core.errors import ApiUnavailable
from dra_core.model.devices import Device
from dra_core.model.slices import Pool
from dra_core.model.taints import DeviceTaint
from dra_core.names import DeviceName, PoolName
from dra_driver.capabilities import DROPPED_AGAIN
from dra_driver.discovery import Found
from dra_driver.news import APART, BURST
from dra_driver.ports import Changed
from dra_testing.cases import case
from dra_testing.memory_slices import MemoryStand, copied

WRONG: dict[str, Any] = {"attributes": {"a": 1.5}}


def pool(*names: str, name: str = "a", **fields: Any) -> Pool:
    return Pool(PoolName(name), tuple(Device(DeviceName(n), **fields) for n in names))


@pytest.fixture
def stand() -> MemoryStand:
    return MemoryStand()


def fails(stand: MemoryStand, why: str) -> None:
    stand.publisher._take(Found(trouble=f"discovery failed: {why}"))
    stand.publisher._converge()


@case("PUB-04")
def test_a_failed_discovery_is_told_once_also_before_anything_is_published(
    stand: MemoryStand,
) -> None:
    for _ in range(3):
        fails(stand, "no module")
    note = "DiscoveryFailed: discovery failed: no module; what was published stays"
    assert stand.said.notes == [note]
    fails(stand, "no right")
    assert len(stand.said.notes) == 2, "it is another one"
    stand.publish(pool("x"))
    fails(stand, "no right")
    assert len(stand.said.notes) == 3, "it is there again"
    assert stand.api.devices("a") == ["x"]


def test_thousands_of_devices_make_one_event(stand: MemoryStand) -> None:
    names = [f"d-{n}" for n in range(2000)]
    for _ in range(3):
        stand.publish(pool(*names, **WRONG))
    (note,) = stand.said.notes
    assert note.startswith("DevicesLeftOut: 2000 devices of pool 'a' left out; 'd-0': ")


def test_a_reason_that_is_another_one_each_time_floods_nobody(stand: MemoryStand) -> None:
    for n in range(200):
        stand.now += 0.2
        stand.publish(pool("x", attributes={"temperature": 40.5 + n}))
    assert len(stand.said.notes) == BURST
    stand.now += APART
    stand.publish(pool("x", attributes={"temperature": 40.5 + n}))
    assert f"{40.5 + n}" in stand.said.notes[-1], "the newest"
    stand.publish(pool("x", attributes={"temperature": 40}))
    assert len(stand.said.notes) == BURST + 1


def test_what_a_pool_loses_is_told(stand: MemoryStand) -> None:
    stand.in_use = {"x"}
    stand.publish(pool("x", "y"))
    for _ in range(3):
        stand.publish(pool("y"))
    stand.publish(pool("y", "y"))
    stand.publish(pool("y", "y"))
    stand.publish(pool("x"), pool("y"))
    stand.publish(pool("x"), pool("y"))
    assert [n.split(" of pool")[0] for n in stand.said.notes[:1]] == ["DevicesVanished: a device"]
    assert "tainted" in stand.said.notes[0]
    assert "two devices named 'y'" in stand.said.notes[1]
    assert "two pools named 'a'" in stand.said.notes[2]
    assert len(stand.said.notes) == 3
    stand.in_use = set()
    stand.publish(pool("y"))
    stand.publish()
    stand.publish(pool("y", "y"))
    stand.publish()
    stand.publish(pool("y", "y"))
    assert len(stand.said.notes) == 5, "a pool that went has taken its trouble with it"


def test_an_event_waits_until_it_can_be_said_what_it_is_about(stand: MemoryStand) -> None:
    stand.api.no_owner = ApiUnavailable("no answer")
    fails(stand, "no module")
    assert stand.said.notes == []
    stand.api.no_owner = None
    fails(stand, "no module")
    fails(stand, "no module")
    assert len(stand.said.notes) == 1
    stand.api.no_owner = ApiUnavailable("no answer")
    fails(stand, "no right")
    stand.publisher._take(Found((pool(),)))
    stand.api.no_owner = None
    stand.publisher._converge()
    assert len(stand.said.notes) == 1, "what is over before it could be told is not told"


def test_a_slice_that_lost_its_owner_gets_it_back(stand: MemoryStand) -> None:
    """Else it would stay when its Node goes."""
    stand.publish(pool("x"))
    (item,) = stand.api.items.values()
    item["metadata"].pop("ownerReferences")
    item["metadata"]["resourceVersion"] = "100"
    stand.api._version = 100
    assert stand.publisher._take(Changed("MODIFIED", copied(item))) is not None, "it wakes"
    writes = len(stand.api.writes)
    assert stand.publisher._converge() is None
    (item,) = stand.api.items.values()
    assert [o["uid"] for o in item["metadata"]["ownerReferences"]] == ["u"]
    assert item["spec"]["pool"]["generation"] == 1
    assert stand.publisher._converge() is None
    assert len(stand.api.writes) == writes + 1


def test_an_owner_that_the_server_takes_away_is_not_written_for_ever(stand: MemoryStand) -> None:
    store = stand.api._store

    def strips(verb: str, body: Any) -> Any:
        metadata = {k: v for k, v in body["metadata"].items() if k != "ownerReferences"}
        return store(verb, body | {"metadata": metadata})

    stand.api._store = strips  # type: ignore[method-assign]
    stand.publish(pool("x"))
    stand.start()
    for _ in range(3):
        stand.now += 60.0
        assert stand.publish(pool("x")) is None
    assert len(stand.api.writes) == 2, "once after the start"


def test_a_feature_that_is_tried_again_in_vain_says_nothing(
    stand: MemoryStand, capsys: pytest.CaptureFixture[str]
) -> None:
    def drops(body: Any) -> Any:
        devices = [{k: v for k, v in d.items() if k != "taints"} for d in body["spec"]["devices"]]
        stand.api.tries += 1
        return body | {"spec": body["spec"] | {"devices": devices}}

    stand.api.try_out = drops  # type: ignore[method-assign]
    for _ in range(4):
        stand.now += DROPPED_AGAIN + 1
        stand.publish(pool("x", taints=(DeviceTaint("a.b/c", "NoSchedule"),)))
    assert stand.api.tries == 4
    said = capsys.readouterr().out
    assert said.count("pool is not published as it is") == 1
    assert "as it is again" not in said
    stand.publish(pool("x"))
    assert "as it is again" in capsys.readouterr().out

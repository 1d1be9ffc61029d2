"""publisher: odd answers of drivers and of servers; a cluster in memory and virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from dra_core import features, layout
from dra_core.errors import ApiError, ApiForbidden, ApiInvalid
from dra_core.model.devices import Counter, CounterConsumption, Device
from dra_core.model.slices import CounterSet, Pool
from dra_core.model.taints import DeviceTaint
from dra_core.names import DeviceName, PoolName
from dra_core.quantity import Quantity
from dra_driver.refusals import AGAIN
from dra_testing.cases import case
from dra_testing.memory_slices import MemoryStand, copied


def device(name: str, **fields: Any) -> Device:
    return Device(DeviceName(name), **fields)


def pool(name: str, *devices: Device, **fields: Any) -> Pool:
    return Pool(PoolName(name), devices, **fields)


def numbered(count: int, serial: int = 0) -> list[Device]:
    return [device(f"d-{n}", attributes={"serial": serial}) for n in range(count)]


@pytest.fixture
def stand() -> MemoryStand:
    return MemoryStand()


@pytest.mark.parametrize(
    "odd",
    [
        Pool(PoolName(5), ()),  # type: ignore[arg-type]
        Pool(PoolName("a"), None),  # type: ignore[arg-type]
        Pool(PoolName("a"), (None,)),  # type: ignore[arg-type]
        Pool(PoolName("a"), (device("x", attributes=None),)),
        Pool(PoolName("a"), (device("x", taints=(None,)),)),
        Pool(PoolName("a"), (device("x"),), None),  # type: ignore[arg-type]
        Pool(PoolName("a"), (device("x"),), (), "everywhere"),  # type: ignore[arg-type]
    ],
    ids=lambda odd: repr(odd)[:60],
)
def test_an_odd_pool_takes_neither_others_nor_the_driver_down(
    stand: MemoryStand, odd: Pool
) -> None:
    stand.publish(pool("a", device("old")))
    stand.publish(odd, pool("b", device("y")))
    assert stand.api.devices("b") == ["y"]
    assert stand.publisher.trouble or "devices_left_out" in stand.measures.text()


@case("PUB-04")
def test_a_pool_that_is_wrong_from_the_start_stays_as_it_was_published(stand: MemoryStand) -> None:
    stand.publish(pool("a", device("x"), device("y")), pool("gone", device("z")))
    stand.start()
    stand.in_use = {"x"}
    stand.publish(pool("a", device("z"), device("z")))
    assert stand.api.devices("a") == ["x", "y"]
    assert len(stand.api.items) == 1
    assert "two devices named 'z'" in stand.publisher.trouble
    stand.publish(pool("a", device("z")))
    stand.in_use = set()
    stand.publish(pool("a", device("z")))
    assert stand.api.devices("a") == ["z"]


@pytest.mark.parametrize("more", [0, 1], ids=["two", "three"])
def test_of_pools_with_one_name_none_is_published(stand: MemoryStand, more: int) -> None:
    stand.publish(pool("a", device("x")))
    stand.start()
    twice = [pool("a", device(f"y-{n}")) for n in range(2 + more)]
    for _ in range(2):
        stand.publish(*twice, pool("b", device("z")))
        assert stand.api.devices("a") == ["x"]
        assert stand.api.devices("b") == ["z"]
        assert "two pools named 'a'" in stand.publisher.trouble


# -- refusals


def refusing(stand: MemoryStand, *names: str) -> None:
    """The server refuses devices with these names, from now on no others."""

    def check(body: Any) -> None:
        devices = body["spec"].get("devices", ())
        causes = [(f"spec.devices[{i}]", "no") for i, d in enumerate(devices) if d["name"] in names]
        if causes:
            raise ApiInvalid("refused", tuple(causes))

    stand.api.check = check


def test_refusals_in_many_slices_are_all_worked_off(
    stand: MemoryStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MAX_DEVICES", 2)
    refusing(stand, *(f"d-{n}" for n in range(0, 40, 2)))
    assert stand.publish(pool("a", *numbered(40))) is None
    assert stand.api.devices("a") == [f"d-{n}" for n in range(1, 40, 2)]
    assert stand.publisher.trouble == ""


def test_a_refused_device_is_tried_again_after_a_while_and_nobody_sees_it(
    stand: MemoryStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a dry run: as a real write it would leave the pool incomplete for a moment."""
    monkeypatch.setattr(layout, "MAX_DEVICES", 2)
    refusing(stand, "d-2")
    stand.publish(pool("a", *numbered(6)))
    left = [f"d-{n}" for n in (0, 1, 3, 4, 5)]
    assert stand.api.devices("a") == left
    writes = len(stand.api.writes)
    stand.now += AGAIN - 1
    stand.relist()
    assert stand.publisher._converge() is None
    assert stand.api.tries == 0
    stand.now += 2
    for _ in range(2):
        assert stand.publisher._converge() is None
        assert len(stand.api.writes) == writes
        assert stand.api.tries == 1, "once, then after a while again"
    refusing(stand)
    stand.now += AGAIN + 1
    assert stand.publisher._converge() is None
    assert stand.api.devices("a") == [f"d-{n}" for n in range(6)]
    assert 'devices_left_out{by="server",pool="a"} 0' in stand.measures.text()
    tries = stand.api.tries
    stand.publish(pool("a", *numbered(6, serial=1)))
    assert stand.api.tries == tries, "that is over"


def test_a_device_that_is_refused_again_is_not_told_again(
    stand: MemoryStand, capsys: pytest.CaptureFixture[str]
) -> None:
    refusing(stand, "x", "y")
    stand.publish(pool("a", *map(device, "xz")))
    stand.now += AGAIN / 2
    stand.publish(pool("a", *map(device, "xyz")))
    assert len(stand.said.notes) == 2
    for _ in range(6):
        stand.now += AGAIN / 2 + 1
        stand.publisher._converge()
    assert stand.api.tries >= 4
    assert len(stand.said.notes) == 2
    assert capsys.readouterr().out.count("device left out") == 2


def test_devices_that_are_offered_no_more_are_forgotten(stand: MemoryStand) -> None:
    for n in range(50):
        refusing(stand, f"d-{n}")
        stand.publish(pool("a", device(f"d-{n}"), device("x")))
        stand.now += AGAIN
    assert len(stand.offer.refusals._refused) <= 3


@pytest.mark.parametrize("error", [ApiInvalid("a policy"), ApiForbidden("a webhook")], ids=repr)
def test_a_device_that_is_refused_again_in_other_words_holds_up_nothing(
    stand: MemoryStand, error: ApiError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MAX_DEVICES", 2)
    refusing(stand, "d-4")
    same = {"attributes": {"serial": 0}}
    stand.publish(pool("a", *numbered(5)))

    def check(body: Any) -> None:
        if any(d["name"] == "d-4" for d in body["spec"]["devices"]):
            raise error

    stand.api.check = check
    for serial in (1, 2):
        stand.now += AGAIN + 1
        assert stand.publish(pool("a", *numbered(4, serial), device("d-4", **same))) is None
        assert stand.api.tries == serial
        assert stand.api.devices("a") == [f"d-{n}" for n in range(4)]


def test_another_version_of_the_server_may_take_what_was_refused(stand: MemoryStand) -> None:
    refusing(stand, "x")
    stand.publish(pool("a", device("x"), device("y")))
    refusing(stand)
    stand.relist()
    stand.publisher._converge()
    assert stand.api.devices("a") == ["y"]
    stand.api.minor = 36
    stand.relist()
    stand.publisher._converge()
    assert stand.api.devices("a") == ["x", "y"]


def test_plans_without_an_end_are_trouble(
    stand: MemoryStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stand.publisher._pools, "_carry_out", lambda _: False)
    assert stand.publish(pool("a", device("x"))) is not None
    assert "pool 'a'" in stand.publisher.trouble


def test_a_device_that_is_right_again_is_no_longer_counted_as_refused(stand: MemoryStand) -> None:
    refusing(stand, "x")
    stand.publish(pool("a", device("x"), device("y")))
    assert 'devices_left_out{by="server",pool="a"} 1' in stand.measures.text()
    stand.publish(pool("a", device("y")))
    assert 'devices_left_out{by="server",pool="a"} 0' in stand.measures.text()


def test_what_comes_back_is_said_again(
    stand: MemoryStand, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = device("x", attributes={"a": 1.5})
    for devices in ([wrong], [wrong], [device("x")], [wrong]):
        stand.publish(pool("a", *devices))
    assert capsys.readouterr().out.count("device left out") == 2
    stand.in_use = {"v"}
    for devices in ([device("v")], [], [], [device("v")], []):
        stand.publish(pool("a", *devices))
    assert capsys.readouterr().out.count("device vanished") == 2


def test_numbers_of_a_pool_go_with_it(stand: MemoryStand) -> None:
    stand.publish(pool("a", device("x", attributes={"a": 1.5})), pool("b"))
    stand.publish(pool("b"))
    assert 'pool="a"' not in stand.measures.text()
    assert 'pool="b"' in stand.measures.text()
    assert list(stand.offer._soundness._known) == ["b"]


def test_nothing_is_kept_of_pools_that_are_gone(stand: MemoryStand) -> None:
    refusing(stand, "x")
    stand.publisher.capabilities._miss(features.TAINTS, "off", 600.0)
    withheld = device("y", taints=(DeviceTaint("a.b/c", "NoSchedule"),))
    stand.publish(pool("a", device("x"), withheld))
    offer = stand.offer
    assert offer.refusals._refused
    assert offer._left_out
    assert offer._notes
    stand.publish(pool("b", device("z")))
    assert not offer.refusals._refused
    assert {name for name, _ in offer._left_out} == {"b"}
    assert set(offer._notes) <= {"b"}


# -- the cluster


def test_an_odd_answer_to_a_write_is_not_kept(stand: MemoryStand) -> None:
    store = stand.api._store

    def odd(verb: str, body: Any) -> Any:
        return {"metadata": store(verb, body)["metadata"]}

    stand.api._store = odd  # type: ignore[method-assign]
    assert stand.publish(pool("a", device("x"))) is not None
    stand.api._store = store  # type: ignore[method-assign]
    assert stand.publish(pool("a", device("y"))) is None
    assert stand.api.devices("a") == ["y"]


def test_the_version_stays_known_after_a_list_that_brings_nothing_new(stand: MemoryStand) -> None:
    stand.publish(pool("a", device("x")))
    stand.relist()
    assert stand.publisher.version == "Kubernetes 1.37"
    stand.api.minor = 38
    stand.publisher._converge()
    assert stand.publisher.version == "Kubernetes 1.38", "it is asked for again"


def test_what_others_keep_in_the_metadata_of_a_slice_survives(stand: MemoryStand) -> None:
    stand.publish(pool("a", device("x")))
    (item,) = stand.api.items.values()
    kept = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e.f/g"]}
    item["metadata"] |= kept
    stand.relist()
    item["metadata"]["resourceVersion"] = "77"
    stand.relist()
    stand.publish(pool("a", device("y")))
    (item,) = stand.api.items.values()
    assert stand.api.devices("a") == ["y"]
    assert {k: item["metadata"].get(k) for k in kept} == kept


def test_a_used_device_that_somebody_published_twice_holds_up_nobody(stand: MemoryStand) -> None:
    stand.publish(pool("a", device("x")), pool("b", device("y")))
    twice = next(i for i in stand.api.items.values() if i["spec"]["pool"]["name"] == "a")
    stand.api.items["00001-twice"] = copied(twice)
    stand.api.items["00001-twice"]["metadata"] |= {"name": "00001-twice", "uid": "t"}
    stand.relist()
    stand.in_use = {"x"}
    stand.publish(pool("a", device("w")), pool("b", device("y"), device("z")))
    assert stand.api.devices("b") == ["y", "z"]
    assert stand.api.devices("a") == ["w", "x"]
    assert stand.publisher.trouble == ""


@case("PUB-04")
def test_used_devices_keep_the_counters_that_vanish_with_them(stand: MemoryStand) -> None:
    sets = tuple(CounterSet(f"gpu-{n}", {"m": Counter(Quantity.parse("2"))}) for n in range(2))
    devices = [
        device(
            f"part-{n}",
            consumes_counters=(CounterConsumption(f"gpu-{n}", sets[0].counters),),
        )
        for n in range(2)
    ]
    stand.publish(pool("a", *devices, shared_counters=sets))
    stand.in_use = {"part-1"}
    stand.publish(pool("a", devices[0], shared_counters=sets[:1]))
    assert stand.api.devices("a") == ["part-0", "part-1"]
    stand.publish()
    assert stand.api.devices("a") == ["part-1"]
    specs = [item["spec"] for item in stand.api.items.values()]
    assert [s["name"] for spec in specs for s in spec.get("sharedCounters", ())] == ["gpu-1"]

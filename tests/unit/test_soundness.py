"""soundness: a bad device is left out with a reason, the others are published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dra_core.errors import InvalidValue
from dra_core.model.devices import (
    AllocatableMapping,
    Capacity,
    Counter,
    CounterConsumption,
    Device,
    NodeAllocatable,
    Version,
)
from dra_core.model.nodes import NodeSelector
from dra_core.model.slices import CounterSet, Nodes, Pool
from dra_core.model.taints import DeviceTaint
from dra_core.names import DeviceName, DriverName, NodeName, PoolName
from dra_core.quantity import Quantity
from dra_core.soundness import Soundness
from dra_core.validation.servers import Server

GOOD = Device(DeviceName("good"), {"model": "x"}, {"memory": Capacity.of("1Gi")})
ONE = Quantity.parse("1")
SETS = (CounterSet("set", {"slots": Counter(ONE)}),)


@pytest.fixture
def soundness() -> Soundness:
    return Soundness(DriverName("gpu.example.com"), NodeName("n1"))


def named(name: str, **parts: Any) -> Device:
    return Device(DeviceName(name), **parts)


def consuming(counter_set: str, counter: str) -> dict[str, Any]:
    return {"consumes_counters": (CounterConsumption(counter_set, {counter: Counter(ONE)}),)}


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (named("b", attributes={"m": b"x"}), "attribute 'm' is b'x'; use str, int, bool"),
        (named("b", attributes={"m": 1.5}), "attribute 'm' is 1.5; use str, int, bool"),
        (named("b", attributes={"m": None}), "attribute 'm' is None; use str, int, bool"),
        (named("b", attributes={"m": (1, "a")}), "all of them of one type"),
        (named("b", attributes={"m": (1, True)}), "all of them of one type"),
        (named("b", attributes={"m": ()}), "a list needs a value"),
        (named("b", attributes={"m": Version("535.104")}), "attributes[m].version: "),
        (named("b", attributes={"m": "x" * 65}), "attributes[m].string: "),
        (named("b", attributes={"m": 2**63}), "a whole number of at most 64 bits"),
        (named("b", attributes={"1a": 1}), "attributes: '1a' "),
        (named("b", attributes={f"a{i}": i for i in range(33)}), ": 33 "),
        (named("b", attributes={"a": tuple(range(49))}), ": 49 "),
        (named("b", capacity={"memory": "80Gi"}), "use Capacity.of('80Gi')"),
        (named("b", taints=(DeviceTaint("k", "Evict"),)), "taints[0].effect: 'Evict' "),
        (named("b", binding_conditions=("a",)), "bindingFailureConditions: "),
        (named("b", all_nodes=True), "perDeviceNodeSelection"),
        (named("b", taints="k"), "cannot be written as JSON"),
        (named("Bad_"), "name: 'Bad_' "),
        (named("b", **consuming("other", "slots")), "counter set 'other', which the pool does"),
        (named("b", **consuming("set", "cores")), "counter 'cores', which counter set 'set'"),
        (
            named("b", node_allocatable={"cpu": NodeAllocatable(AllocatableMapping("cores"))}),
            "mapping.capacityMultiplier: ",
        ),
    ],
)
def test_a_bad_device_is_left_out_with_its_reason(
    soundness: Soundness, device: Device, reason: str
) -> None:
    found = soundness.check(Pool(PoolName("rack/n1"), (GOOD, device), SETS))
    assert [d.name for d in found.pool.devices] == ["good"]
    (fault,) = found.faults.values()
    assert reason in fault
    assert "spec.devices" not in fault, "the path is that of the device"


def test_a_good_pool_is_as_it_was(soundness: Soundness) -> None:
    partition = named("p", attributes={"kind": "half"}, **consuming("set", "slots"))
    pool = Pool(
        PoolName("rack/n1"),
        (GOOD, partition),
        SETS,
        partition_type_attribute="gpu.example.com/kind",
        skip_node_operations=("*",),
    )
    assert soundness.check(pool).pool == pool
    assert soundness.check(pool).faults == {}


def test_a_partition_without_its_type_is_left_out(soundness: Soundness) -> None:
    partition = named("p", **consuming("set", "slots"))
    pool = Pool(
        PoolName("n1"), (GOOD, partition), SETS, partition_type_attribute="gpu.example.com/kind"
    )
    found = soundness.check(pool)
    assert [d.name for d in found.pool.devices] == ["good"]
    assert "partitionTypeAttribute" in found.faults["p"]


@pytest.mark.parametrize(
    ("pool", "reason"),
    [
        (Pool(PoolName("a//b"), ()), "pool name 'a//b' is not valid"),
        (Pool(PoolName("p"), (GOOD, GOOD)), "two devices named 'good'"),
        (Pool(PoolName("p"), (), (*SETS, *SETS)), "two counter sets named 'set'"),
        (Pool(PoolName("p"), (), (CounterSet("A_", {}),)), "sharedCounters"),
        (Pool(PoolName("p"), (), nodes=NodeSelector(())), "nodeSelector"),
        (Pool(PoolName("p"), (), skip_node_operations=("Sleep",)), "'Sleep'"),
    ],
)
def test_a_pool_that_is_wrong_itself_is_refused(
    soundness: Soundness, pool: Pool, reason: str
) -> None:
    with pytest.raises(InvalidValue, match=reason):
        soundness.check(pool)


def test_each_device_says_where_it_is_if_the_pool_says_so(soundness: Soundness) -> None:
    devices = (named("here", node_name="n1"), named("everywhere", all_nodes=True), named("lost"))
    found = soundness.check(Pool(PoolName("p"), devices, nodes=Nodes.EACH_DEVICE))
    assert [d.name for d in found.pool.devices] == ["here", "everywhere"]


def test_the_verdict_is_remembered_while_nothing_changes(soundness: Soundness) -> None:
    pool = Pool(PoolName("p"), (GOOD, replace(GOOD, name=DeviceName("Bad_"))))
    assert soundness.check(pool) == soundness.check(pool)
    mended = replace(pool, devices=(GOOD, replace(GOOD, name=DeviceName("bad"))))
    assert soundness.check(mended).faults == {}
    assert soundness.check(replace(mended, nodes=Nodes.EACH_DEVICE)).faults.keys() == {
        "good",
        "bad",
    }


def test_the_verdict_is_that_of_the_server(soundness: Soundness) -> None:
    """1.36 knows no list attributes while their gate is off: it drops them and finds no value."""
    listed = named("l", attributes={"ports": (1, 2)})
    assert soundness.check(Pool(PoolName("p"), (listed,))).faults == {}
    soundness.server = Server(36)
    assert "attributes[ports]" in soundness.check(Pool(PoolName("p"), (listed,))).faults["l"]

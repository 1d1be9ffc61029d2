"""features: which gates a slice depends on, what a server dropped, what to publish instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra_core import features
from dra_core.model.devices import (
    AllocatableMapping,
    Capacity,
    Counter,
    CounterConsumption,
    Device,
    NodeAllocatable,
    RequestPolicy,
)
from dra_core.model.slices import CounterSet, Fallback, Nodes, Pool, PublishedSlice
from dra_core.model.taints import DeviceTaint
from dra_core.names import DeviceName, PoolName
from dra_core.quantity import Quantity

ONE = Quantity.parse("1")
PLAIN = Device(DeviceName("plain"), {"model": "x"}, {"memory": Capacity.of("1Gi")})
CONSUMES = CounterConsumption("set", {"slots": Counter(ONE)})
SHARED = Capacity(ONE, RequestPolicy(default=ONE))

#: A device for each gate, and what it becomes without.
BY_GATE = {
    "DRADeviceTaints": replace(PLAIN, taints=(DeviceTaint("k", "NoSchedule"),)),
    "DRAPartitionableDevices": replace(PLAIN, consumes_counters=(CONSUMES,)),
    "DRADeviceBindingConditions": replace(
        PLAIN, binding_conditions=("ready",), binding_failure_conditions=("failed",)
    ),
    "DRAConsumableCapacity": replace(PLAIN, allow_multiple_allocations=True),
    "DRANodeAllocatableResources": replace(
        PLAIN, node_allocatable={"cpu": NodeAllocatable(AllocatableMapping(device_multiplier=ONE))}
    ),
    "DRAListTypeAttributes": replace(PLAIN, attributes={"model": "x", "nodes": (0, 1)}),
}
GROUPED = replace(PLAIN, consumes_counters=(replace(CONSUMES, compatibility_groups=("mig",)),))
WITHHELD = [
    "DRADeviceTaints",
    "DRAPartitionableDevices",
    "DRADeviceBindingConditions",
    "DRAConsumableCapacity",
]


def pool(*devices: Device, **more: object) -> Pool:
    return Pool(PoolName("p"), devices, **more)  # type: ignore[arg-type]


def published(*devices: Device, **more: object) -> PublishedSlice:
    return PublishedSlice("00000-x", PoolName("p"), 1, 1, devices, **more)  # type: ignore[arg-type]


def names(found: features.Adapted) -> list[str]:
    assert found.pool is not None
    return [device.name for device in found.pool.devices]


@pytest.mark.parametrize("gate", BY_GATE)
def test_a_gate_is_used_dropped_and_named(gate: str) -> None:
    sent = published(PLAIN, replace(BY_GATE[gate], name=DeviceName("special")))
    assert features.used(sent) == {gate}
    assert features.dropped(sent, sent) == set()
    stored = published(PLAIN, replace(PLAIN, name=DeviceName("special")))
    assert features.dropped(sent, stored) == {gate}
    assert features.fields_of(gate)


def test_what_the_slice_itself_uses() -> None:
    sets = (CounterSet("set", {"slots": Counter(ONE)}),)
    for gate, sent in {
        "DRAPartitionableDevices": published(shared_counters=sets),
        "DRAPartitionableDevicesType": published(PLAIN, partition_type_attribute="d/x"),
        "DRAOptionalNodeOperations": published(PLAIN, skip_node_operations=("*",)),
    }.items():
        assert features.used(sent) == {gate}
        assert features.dropped(sent, published(*sent.devices)) == {gate}
        assert features.fields_of(gate)
    everywhere = published(nodes=Nodes.EACH_DEVICE)
    assert features.used(everywhere) == {"DRAPartitionableDevices"}


def test_a_gate_dropped_from_one_device_of_many_is_noticed() -> None:
    sick = BY_GATE["DRADeviceTaints"]
    sent = published(sick, replace(sick, name=DeviceName("b")))
    stored = published(sick, replace(PLAIN, name=DeviceName("b")))
    assert features.dropped(sent, stored) == {"DRADeviceTaints"}


@pytest.mark.parametrize("gate", BY_GATE)
def test_devices_whose_meaning_would_change_are_withheld(gate: str) -> None:
    special = replace(BY_GATE[gate], name=DeviceName("special"))
    found = features.adapt(pool(PLAIN, special), [gate])
    if gate in WITHHELD:
        assert names(found) == ["plain"]
        assert found.withheld == {"special": gate}
        assert found.without == {}
    else:
        assert names(found) == ["plain", "special"]
        assert found.withheld == {}
        assert found.without == {gate: 1}
    assert found.pool is not None
    assert features.used(published(*found.pool.devices)) == set()
    assert features.adapt(pool(PLAIN, special), []).pool == pool(PLAIN, special)


@pytest.mark.parametrize("gate", BY_GATE)
def test_a_vendor_may_say_otherwise(gate: str) -> None:
    special = BY_GATE[gate]
    kept = features.adapt(pool(special, fallbacks={gate: Fallback.PUBLISH_WITHOUT}), [gate])
    assert kept.pool is not None
    assert kept.pool.devices == (replace(PLAIN, attributes=PLAIN.attributes),), (
        "without the fields of the gate, and with everything else"
    )
    gone = features.adapt(pool(special, fallbacks={gate: Fallback.WITHHOLD}), [gate])
    assert names(gone) == []
    other = replace(PLAIN, name=DeviceName("other"))
    replaced = features.adapt(pool(special, fallbacks={gate: lambda _: other}), [gate])
    assert names(replaced) == ["other"]
    refused = features.adapt(pool(special, fallbacks={gate: lambda _: None}), [gate])
    assert names(refused) == []


def test_a_replacement_that_still_uses_the_gate_is_stripped() -> None:
    special = BY_GATE["DRADeviceTaints"]
    found = features.adapt(
        pool(special, fallbacks={"DRADeviceTaints": lambda d: d}), ["DRADeviceTaints"]
    )
    assert found.pool is not None
    assert found.pool.devices[0].taints == ()


def test_a_taint_that_only_informs_does_not_matter() -> None:
    marked = replace(PLAIN, taints=(DeviceTaint("k", "None"),))
    found = features.adapt(pool(marked), ["DRADeviceTaints"])
    assert names(found) == ["plain"]


def test_a_list_of_one_value_is_that_value() -> None:
    listed = replace(PLAIN, attributes={"numaNode": (3,), "ports": ("a", "b")})
    found = features.adapt(pool(listed), ["DRAListTypeAttributes"])
    assert found.pool is not None
    assert found.pool.devices[0].attributes == {"numaNode": 3}


def test_a_policy_alone_goes_without_its_device() -> None:
    device = replace(PLAIN, capacity={"memory": SHARED})
    found = features.adapt(pool(device), ["DRAConsumableCapacity"])
    assert found.pool is not None
    assert found.pool.devices[0].capacity == {"memory": Capacity(ONE)}


def test_groups_matter_and_counters_stay_without_them_if_the_vendor_says_so() -> None:
    gate = "DRADeviceCompatibilityGroups"
    assert features.used(published(GROUPED)) == {gate, "DRAPartitionableDevices"}
    assert features.adapt(pool(GROUPED), [gate]).withheld == {"plain": gate}
    found = features.adapt(pool(GROUPED, fallbacks={gate: Fallback.PUBLISH_WITHOUT}), [gate])
    assert found.pool is not None
    assert found.pool.devices == (replace(PLAIN, consumes_counters=(CONSUMES,)),)


def test_counter_sets_go_with_partitions() -> None:
    sets = (CounterSet("set", {"slots": Counter(ONE)}),)
    offered = pool(PLAIN, shared_counters=sets, partition_type_attribute="d/x")
    found = features.adapt(offered, ["DRAPartitionableDevices"])
    assert found.pool == pool(PLAIN)
    assert found.without == {"DRAPartitionableDevices": 0}


def test_a_pool_whose_devices_are_nowhere_is_not_published() -> None:
    device = replace(PLAIN, all_nodes=True)
    offered = pool(device, nodes=Nodes.EACH_DEVICE)
    assert features.adapt(offered, ["DRAPartitionableDevices"]).pool is None


def test_what_the_slice_alone_uses_goes() -> None:
    offered = pool(PLAIN, partition_type_attribute="d/x", skip_node_operations=("*",))
    missing = ["DRAPartitionableDevicesType", "DRAOptionalNodeOperations"]
    found = features.adapt(offered, missing)
    assert found.pool == pool(PLAIN)
    assert found.without == dict.fromkeys(missing, 0)

"""Node-allocatable resources: 1.36 and 1.37 say the same in two shapes."""

from __future__ import annotations

import pytest

from dra_core import wire
from dra_core.model.devices import (
    AllocatableMapping,
    AllocatableOverhead,
    Device,
    NodeAllocatable,
    NodeAllocatableMapping136,
)
from dra_core.model.slices import Pool
from dra_core.names import DeviceName, PoolName
from dra_core.node_allocatable import Shaped, accounting, in_shape_of, to_136, to_137
from dra_core.quantity import Quantity

ONE, TWO = Quantity.parse("1"), Quantity.parse("2")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (NodeAllocatableMapping136(), AllocatableMapping(device_multiplier=ONE)),
        (
            NodeAllocatableMapping136("cores"),
            AllocatableMapping(capacity_key="cores", capacity_multiplier=ONE),
        ),
        (NodeAllocatableMapping136(None, TWO), AllocatableMapping(device_multiplier=TWO)),
        (
            NodeAllocatableMapping136("cores", TWO),
            AllocatableMapping(capacity_key="cores", capacity_multiplier=TWO),
        ),
    ],
)
def test_a_missing_multiplier_is_one_and_without_a_key_it_counts_devices(
    older: NodeAllocatableMapping136, newer: AllocatableMapping
) -> None:
    assert to_137(older) == NodeAllocatable(newer)
    back = to_136(NodeAllocatable(newer))
    assert back is not None
    assert to_137(back) == NodeAllocatable(newer)


def test_overhead_has_no_form_in_136() -> None:
    overhead = AllocatableOverhead(per_pod=ONE)
    assert to_136(NodeAllocatable(overhead=overhead)) is None
    mapped = NodeAllocatable(AllocatableMapping(device_multiplier=TWO), overhead)
    assert to_136(mapped) == NodeAllocatableMapping136(None, TWO)


def sockets(**resources: NodeAllocatable) -> Pool:
    return Pool(PoolName("p"), (Device(DeviceName("s0"), node_allocatable=resources),))


BOTH = NodeAllocatable(
    AllocatableMapping("cores", Quantity.parse("2")),
    AllocatableOverhead(per_pod=Quantity.parse("1")),
)


@pytest.mark.parametrize("minor", [35, 36, 37, 38])
def test_one_description_has_the_shape_of_its_version(minor: int) -> None:
    (device,) = in_shape_of(sockets(cpu=BOTH), minor).pool.devices
    data = wire.device_to_json(device)
    del data["name"]
    if minor >= 37:
        mapping: object = {"capacityKey": "cores", "capacityMultiplier": "2"}
        newer = {"mapping": mapping, "overhead": {"perPod": "1"}}
        assert data == {"nodeAllocatableResources": {"cpu": newer}}
    elif minor == 36:
        cpu = {"capacityKey": "cores", "allocationMultiplier": "2"}
        assert data == {"nodeAllocatableResourceMappings": {"cpu": cpu}}
    else:
        assert data == {}


def test_what_a_version_cannot_say_is_named() -> None:
    assert in_shape_of(sockets(cpu=BOTH), 37).lost == ()
    assert in_shape_of(sockets(cpu=BOTH), 36).lost == (
        "Kubernetes 1.36 knows no overhead (resource 'cpu')",
    )
    (lost,) = in_shape_of(sockets(cpu=BOTH), 35).lost
    assert "1.35 does not count" in lost
    plain = Pool(PoolName("p"), (Device(DeviceName("d")),))
    assert in_shape_of(plain, 35) == Shaped(plain)


def test_the_older_description_works_on_the_newer_server() -> None:
    older = {"cpu": NodeAllocatableMapping136("cores")}
    pool = Pool(PoolName("p"), (Device(DeviceName("d"), node_allocatable_136=older),))
    (device,) = in_shape_of(pool, 37).pool.devices
    assert device.node_allocatable_136 == {}
    assert device.node_allocatable["cpu"].mapping == AllocatableMapping(
        "cores", Quantity.parse("1")
    )


def test_who_counts() -> None:
    assert accounting(35) == "inactive: Kubernetes 1.35 does not have it"
    assert accounting(36).startswith("scheduler only")
    assert accounting(37) == "scheduler and kubelet"
    assert accounting(37, "the gate is off") == "inactive: the gate is off"

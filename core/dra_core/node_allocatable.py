"""Node-allocatable resources of a device in the shapes of 1.37 and 1.36.

1.37 (``nodeAllocatableResources``) tells apart a multiplier of consumed capacity, a multiplier of
the number of devices, and overhead. 1.36 (``nodeAllocatableResourceMappings``) has one multiplier,
which is 1 if it is not given and counts devices where there is no ``capacityKey``; it knows no
overhead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dra_core.model.devices import (
    AllocatableMapping,
    Device,
    NodeAllocatable,
    NodeAllocatableMapping136,
)
from dra_core.model.slices import Pool
from dra_core.quantity import Quantity

_ONE: Final = Quantity.parse("1")
#: Minor versions of Kubernetes 1 in which the fields came and changed their shape.
_FIRST, _FIRST_137 = 36, 37


def to_137(mapping: NodeAllocatableMapping136) -> NodeAllocatable:
    """The same in the shape of 1.37, its multiplier written out."""
    multiplier = mapping.allocation_multiplier or _ONE
    if mapping.capacity_key is None:
        return NodeAllocatable(AllocatableMapping(device_multiplier=multiplier))
    return NodeAllocatable(
        AllocatableMapping(capacity_key=mapping.capacity_key, capacity_multiplier=multiplier)
    )


def to_136(allocatable: NodeAllocatable) -> NodeAllocatableMapping136 | None:
    """The mapping in the shape of 1.36; None if there is overhead only, which 1.36 cannot say."""
    mapping = allocatable.mapping
    if mapping is None:
        return None
    if mapping.capacity_key is None:
        return NodeAllocatableMapping136(None, mapping.device_multiplier)
    return NodeAllocatableMapping136(mapping.capacity_key, mapping.capacity_multiplier)


@dataclass(frozen=True, slots=True)
class Shaped:
    """A pool in the shape of a version; ``lost`` says what that version cannot express."""

    pool: Pool
    lost: tuple[str, ...] = ()


def in_shape_of(pool: Pool, minor: int) -> Shaped:
    """The vendor's one description as Kubernetes 1.``minor`` has it.

    1.37 and newer: ``nodeAllocatableResources``. 1.36: ``nodeAllocatableResourceMappings``. Older
    ones count nothing.
    """
    if not any(d.node_allocatable or d.node_allocatable_136 for d in pool.devices):
        return Shaped(pool)
    lost: dict[str, None] = {}
    devices = tuple(_device(device, minor, lost) for device in pool.devices)
    return Shaped(replace(pool, devices=devices), tuple(lost))


def _device(device: Device, minor: int, lost: dict[str, None]) -> Device:
    given = {k: to_137(m) for k, m in device.node_allocatable_136.items()}
    given |= device.node_allocatable
    if not given:
        return device
    if minor >= _FIRST_137:
        return replace(device, node_allocatable=given, node_allocatable_136={})
    if minor < _FIRST:
        lost[f"Kubernetes 1.{minor} does not count node resources of devices at all"] = None
        return replace(device, node_allocatable={}, node_allocatable_136={})
    older = {}
    for name, resource in given.items():
        if resource.overhead is not None:
            lost[f"Kubernetes 1.{minor} knows no overhead (resource {name!r})"] = None
        mapping = to_136(resource)
        if mapping is not None:
            older[name] = mapping
    return replace(device, node_allocatable={}, node_allocatable_136=older)


def accounting(minor: int, off: str = "") -> str:
    """Who counts node resources of devices there; ``off`` says why nobody does."""
    if off:
        return f"inactive: {off}"
    if minor < _FIRST:
        return f"inactive: Kubernetes 1.{minor} does not have it"
    if minor < _FIRST_137:
        return f"scheduler only: in Kubernetes 1.{minor} the kubelet sets no cgroup"
    return "scheduler and kubelet"

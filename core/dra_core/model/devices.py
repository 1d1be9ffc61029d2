"""Devices as a driver publishes them: ``ResourceSlice.spec.devices[]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from dra_core.model.defaults import empty_map
from dra_core.model.nodes import NodeSelector
from dra_core.model.taints import DeviceTaint
from dra_core.names import DeviceName
from dra_core.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Version:
    """The value of a ``version`` attribute (semver.org 2.0.0)."""

    text: str


@dataclass(frozen=True, slots=True)
class RawAttribute:
    """An attribute of a type that this release does not know, as JSON."""

    data: Mapping[str, Any]


Scalar = str | int | bool | Version
#: The value of an attribute: one of the API's ``string``, ``int``, ``bool``, ``version``, or a
#: tuple of values of one type for ``strings``, ``ints``, ``bools``, ``versions``.
AttributeValue = (
    Scalar
    | tuple[str, ...]
    | tuple[int, ...]
    | tuple[bool, ...]
    | tuple[Version, ...]
    | RawAttribute
)


@dataclass(frozen=True, slots=True)
class RequestRange:
    """Allowed amounts: from ``minimum`` in steps of ``step`` up to ``maximum``."""

    minimum: Quantity | None = None
    maximum: Quantity | None = None
    step: Quantity | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """How requests consume a capacity that is shared; at most one of values and range."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: RequestRange | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a device has, and how requests share it."""

    value: Quantity
    request_policy: RequestPolicy | None = None
    unknown: Mapping[str, Any] = empty_map()

    @classmethod
    def of(cls, text: str) -> Capacity:
        """``Capacity.of("80Gi")``."""
        return cls(Quantity.parse(text))


@dataclass(frozen=True, slots=True)
class Counter:
    """How much of a counter there is, or is consumed."""

    value: Quantity
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class CounterConsumption:
    """What a device takes from one counter set of its pool, and with which devices it may stand."""

    counter_set: str
    counters: Mapping[str, Counter] = empty_map()
    compatibility_groups: tuple[str, ...] = ()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class AllocatableMapping:
    """1.37: ``capacity_key`` with ``capacity_multiplier``, or ``device_multiplier``."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class AllocatableOverhead:
    """1.37: what a device costs the node besides, for each pod and for each container."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class NodeAllocatable:
    """1.37: how a device translates into a resource of the node (cpu, memory, hugepages-*)."""

    mapping: AllocatableMapping | None = None
    overhead: AllocatableOverhead | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class NodeAllocatableMapping136:
    """1.36's shape; a missing multiplier means 1, a missing key the number of devices."""

    capacity_key: str | None = None
    allocation_multiplier: Quantity | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One instance of hardware.

    ``attributes`` and ``capacity`` are keyed by name, with or without a domain. ``unknown`` keeps
    the fields this release has no name for, as JSON, so that reading and writing loses nothing.
    """

    name: DeviceName
    attributes: Mapping[str, AttributeValue] = empty_map()
    capacity: Mapping[str, Capacity] = empty_map()
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable: Mapping[str, NodeAllocatable] = empty_map()
    node_allocatable_136: Mapping[str, NodeAllocatableMapping136] = empty_map()
    unknown: Mapping[str, Any] = empty_map()

    def __eq__(self, other: object) -> bool:
        """Equal names, values and types: ``int: 1`` is not ``bool: true``."""
        if not isinstance(other, Device):
            return NotImplemented
        return self is other or (
            _values(self) == _values(other)
            and all(_kind(v) == _kind(other.attributes[k]) for k, v in self.attributes.items())
        )

    def __hash__(self) -> int:
        return hash(self.name)


_values = attrgetter(*(field.name for field in fields(Device)))


def _kind(value: AttributeValue) -> tuple[type, ...]:
    return tuple(type(v) for v in value) if isinstance(value, tuple) else (type(value),)


def is_advanced(device: Device) -> bool:
    """Whether a slice with this device takes 64 devices instead of 128.

    Source: ``ResourceSliceMaxDevicesWithTaintsOrConsumesCounters`` and, in 1.37.2, its use for list
    attributes.
    """
    return bool(device.taints or device.consumes_counters) or any(
        is_list(value) for value in device.attributes.values()
    )


def is_list(value: AttributeValue) -> bool:
    """Whether this is one of ``strings``, ``ints``, ``bools``, ``versions``."""
    if isinstance(value, RawAttribute):
        return any(key.endswith("s") for key in value.data)
    return isinstance(value, tuple)

"""Which fields of a ResourceSlice a server with given feature gates drops, as data.

A field whose gate is off is dropped from what is written, unless the stored object uses one of the
gate's fields already: then all of them stay, so that an update after a downgrade loses nothing.
Source: the strategy of resourceslices in kube-apiserver (what happens before create and update).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dra_core.errors import InvalidObject
from dra_core.validation.servers import Server
from dra_core.validation.slice_fields import (
    JSON,
    SPEC,
    Node,
    Scalar,
    Struct,
    decode,
    encode,
    field_of,
)


@dataclass(frozen=True, slots=True)
class Gated:
    """Fields of the spec that need all of ``gates``; ``[]`` means every item of a list or map.

    An empty list or map does not count as use, except where ``empty_counts``.
    """

    gates: tuple[str, ...]
    fields: tuple[str, ...]
    empty_counts: bool = False


#: In the order in which the server drops.
GATED: Final = (
    Gated(("DRADeviceTaints",), ("devices[].taints",)),
    Gated(
        ("DRAPartitionableDevices",),
        (
            "sharedCounters",
            "perDeviceNodeSelection",
            "devices[].consumesCounters",
            "devices[].nodeName",
            "devices[].nodeSelector",
            "devices[].allNodes",
        ),
    ),
    Gated(
        ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
        (
            "devices[].bindingConditions",
            "devices[].bindingFailureConditions",
            "devices[].bindsToNode",
        ),
    ),
    Gated(
        ("DRAConsumableCapacity",),
        ("devices[].allowMultipleAllocations", "devices[].capacity[].requestPolicy"),
    ),
    Gated(("DRADeviceCompatibilityGroups",), ("devices[].consumesCounters[].compatibilityGroups",)),
    Gated(
        ("DRANodeAllocatableResources",),
        ("devices[].nodeAllocatableResources", "devices[].nodeAllocatableResourceMappings"),
    ),
    Gated(
        ("DRAListTypeAttributes",),
        (
            "devices[].attributes[].bools",
            "devices[].attributes[].ints",
            "devices[].attributes[].strings",
            "devices[].attributes[].versions",
        ),
        empty_counts=True,
    ),
    Gated(("DRAPartitionableDevicesType",), ("partitionTypeAttribute",)),
    Gated(("DRAOptionalNodeOperations",), ("skipNodeOperations",)),
)


def decoded_spec(obj: JSON, server: Server) -> JSON:
    """The spec as the server reads it; InvalidObject where it refuses the JSON itself."""
    spec = obj.get("spec")
    if spec is None:
        spec = {}
    result: JSON = decode(spec, SPEC[server.minor], "spec")
    return result


def keep_enabled(spec: JSON, old: JSON | None, server: Server) -> JSON:
    """A decoded spec without the fields whose gate is off and which ``old`` does not use."""
    for gated in GATED:
        if all(server.has(gate) for gate in gated.gates):
            continue
        if old is not None and _in_use(old, gated, server):
            continue
        for field in gated.fields:
            for holder, name in _holders(spec, field):
                holder.pop(name, None)
    return spec


def drop_disabled(obj: JSON, old: JSON | None, server: Server, *, now: str | None = None) -> JSON:
    """What the server would store as spec after a create, or after an update of ``old``.

    Unknown fields and those whose gate is off are gone, quantities and times are canonical, empty
    optional fields are left out. ``now`` (RFC 3339) becomes ``timeAdded`` of taints without one, as
    the server does it; without ``now`` they stay without.
    """
    before = None if old is None else decoded_spec(old, server)
    spec = keep_enabled(decoded_spec(obj, server), before, server)
    if now is not None:
        for device in spec.get("devices", []):
            for taint in device.get("taints", []):
                taint.setdefault("timeAdded", now)
    return {**obj, "spec": encode(spec, SPEC[server.minor])}


def _in_use(spec: JSON, gated: Gated, server: Server) -> bool:
    return any(
        _set(holder.get(name), _node(field, server), empty_counts=gated.empty_counts)
        for field in gated.fields
        for holder, name in _holders(spec, field)
    )


def _set(value: Any, node: Node | None, *, empty_counts: bool) -> bool:
    if value is None or isinstance(node, Scalar | Struct) or empty_counts:
        return value is not None
    return bool(value)


def _node(field: str, server: Server) -> Node | None:
    """What the version knows the field as, if it does."""
    node: Node = SPEC[server.minor]
    for step in field.split("."):
        name = step.removesuffix("[]")
        if not isinstance(node, Struct) or name not in node.fields:
            return None
        node = node.fields[name]
        if step != name:
            node = field_of(node, "")
    return node


def _holders(spec: JSON, field: str) -> Iterator[tuple[JSON, str]]:
    """The objects in which the field may stand, and its name there."""
    *steps, name = field.split(".")
    found: list[Any] = [spec]
    for step in steps:
        found = [item for holder in found for item in _items(holder.get(step[:-2]))]
    for holder in found:
        if not isinstance(holder, dict):
            raise InvalidObject(f"spec.{field}: {holder!r} is no object")
        yield holder, name


def _items(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else list(value or [])

"""What a server of one version and with certain gates keeps of a claim, class, template or rule.

A field whose gate is off is dropped before validation, unless the stored object already uses the
gate: then everything of that gate stays, so that an unrelated update does not lose it. Which
fields those are is data (:mod:`dra_core.validation.claim_shapes`); here is the small walk over it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dra_core.validation import claim_shapes
from dra_core.validation.problems import Path, Problem
from dra_core.validation.servers import GATES, Server
from dra_core.validation.shapes import JSON, ListOf, MapOf, Reader, Shape, Struct

#: Driver, pool, device and shareID.
DeviceKey = tuple[str, str, str, str]


def on(server: Server, gate: str) -> bool:
    """Whether a gate is on; what a version does not list as a gate cannot be turned off there."""
    return bool(server.gates.get(gate, GATES[server.minor].get(gate, True)))


def read(kind: str, obj: Mapping[str, Any], server: Server) -> tuple[JSON, list[Problem]]:
    """Spec and status as the server decodes them, and what has a wrong type (it answers 400)."""
    reader = Reader(server.minor)
    shape = claim_shapes.KINDS[kind]
    value = reader.read(shape, {n: obj.get(n) for n in shape.fields}, Path())
    reader.read(claim_shapes.METADATA, obj.get("metadata"), Path("metadata"))
    return value, reader.problems


def metadata_of(obj: Mapping[str, Any]) -> JSON:
    """The metadata of an object, as far as rules look at it."""
    found: JSON = Reader(0).read(claim_shapes.METADATA, obj.get("metadata"), Path())
    return found


def comparable(shape: Shape, value: Any, server: Server) -> Any:
    """A value that is equal to another one exactly where the API server says so."""
    return Reader(server.minor, comparing=True).read(shape, value, Path())


def drop_disabled(
    kind: str,
    obj: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    server: Server,
    *,
    subresource: str = "",
) -> JSON:
    """The object as it would be stored, were it valid; ``metadata`` stays as given.

    ``old`` is the stored object for an update, None for a create; ``subresource`` is ``status`` for
    an update of the status. ``spec.taint.timeAdded`` of a rule is left out where the server
    puts its own clock.
    """
    new, _ = read(kind, obj, server)
    before, _ = read(kind, old, server) if old is not None else ({}, [])
    shape = claim_shapes.KINDS[kind]
    if subresource == "status":
        new = {**new, "spec": before.get("spec", {})}
        used = _used(shape, before)
    else:
        if "status" in new:
            new = {**new, "status": before.get("status", {})}
        used = _used(shape, {"spec": before.get("spec", {})})
    part = subresource or "spec"
    disabled = frozenset(g for g in _gates(shape) if not on(server, g)) - used
    _drop(shape.fields[part].shape, new[part], disabled)
    if kind == "ResourceClaim" and subresource == "status":
        _drop_deallocated(new["status"], before.get("status", {}))
    if kind == "DeviceTaintRule" and old is not None and not subresource:
        _bump(new["spec"]["taint"], before["spec"]["taint"])
    return {**obj, **new}


def device_key(device: Mapping[str, Any]) -> DeviceKey:
    """What tells devices of an allocation apart, in results and in ``status.devices``."""
    return device["driver"], device["pool"], device["device"], device.get("shareID") or ""


def allocated(status: Mapping[str, Any]) -> set[DeviceKey]:
    """The devices that a claim status allocates."""
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or []
    return {device_key(result) for result in results}


def _drop_deallocated(status: JSON, before: Mapping[str, Any]) -> None:
    """Deallocating a device takes its ``status.devices`` entry along (claim status strategy)."""
    gone = allocated(before) - allocated(status)
    kept = [d for d in status.pop("devices", []) if device_key(d) not in gone]
    if kept:
        status["devices"] = kept


def _bump(taint: JSON, before: Mapping[str, Any]) -> None:
    """A new effect gets a new time, unless the update brings one (``spec.taint.timeAdded``)."""
    if taint["effect"] != before["effect"] and taint.get("timeAdded") == before.get("timeAdded"):
        taint.pop("timeAdded", None)


def _gates(shape: Shape) -> Iterator[str]:
    if isinstance(shape, ListOf | MapOf):
        yield from _gates(shape.item)
    elif isinstance(shape, Struct):
        for field in shape.fields.values():
            if field.gate:
                yield field.gate
            yield from _gates(field.shape)


def _used(shape: Shape, value: Any) -> frozenset[str]:
    """The gates of which a stored object uses something."""
    if isinstance(shape, ListOf):
        return frozenset().union(*(_used(shape.item, item) for item in value))
    if not isinstance(shape, Struct):
        return frozenset()
    found: set[str] = set()
    for name, field in shape.fields.items():
        if name in value:
            found |= {field.gate} if field.gate else set()
            found |= _used(field.shape, value[name])
    return frozenset(found)


def _drop(shape: Shape, value: Any, disabled: frozenset[str]) -> None:
    if isinstance(shape, ListOf):
        for item in value:
            _drop(shape.item, item, disabled)
    elif isinstance(shape, Struct):
        for name, field in shape.fields.items():
            if field.gate in disabled:
                value.pop(name, None)
            elif name in value:
                _drop(field.shape, value[name], disabled)

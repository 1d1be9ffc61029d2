"""A ResourceSlice as the API server judges it on create and on update.

Objects are JSON data of ``resource.k8s.io/v1``. What a server drops because a gate is off (see
:mod:`.slice_gates`) it drops before it judges, so a wrong value in a dropped field is no problem.
"""

from __future__ import annotations

from typing import Any, Final

from dra_core.errors import InvalidObject
from dra_core.validation import (
    counters,
    device_parts,
    devices,
    field_rules,
    metadata,
    names,
    node_selectors,
)
from dra_core.validation.claim_shapes import METADATA
from dra_core.validation.problems import (
    Path,
    Problem,
    forbidden,
    invalid,
    required,
    too_many,
    unique,
)
from dra_core.validation.servers import Server
from dra_core.validation.shapes import Reader
from dra_core.validation.slice_fields import SPEC, equal, field_of
from dra_core.validation.slice_gates import decoded_spec, keep_enabled

JSON = dict[str, Any]

DEVICES_MAX: Final = 128
#: Where any device has taints, consumes counters or has a list attribute.
ADVANCED_DEVICES_MAX: Final = 64
_ANY_NODE: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_SPEC: Final = Path("spec")
#: From this minor version on the declarative rules count.
_DECLARATIVE: Final = 37


def validate_create(obj: JSON, server: Server) -> list[Problem]:
    """What the server would object to in a new slice.

    Raises InvalidObject where it would refuse the JSON itself (400: a value of the wrong type).
    """
    spec = keep_enabled(decoded_spec(obj, server), None, server)
    found = metadata.created_metadata(_metadata(obj), server)
    found += _spec(spec, None, server)
    if server.minor >= _DECLARATIVE:
        found += _declared_spec(spec, None, server)
    return unique(found)


def validate_update(new: JSON, old: JSON, server: Server) -> list[Problem]:
    """What the server would object to in replacing ``old``, as stored, by ``new``."""
    before = decoded_spec(old, server)
    spec = keep_enabled(decoded_spec(new, server), before, server)
    found = metadata.updated_metadata(_metadata(new), _metadata(old), server)
    found += _immutable(spec, before)
    found += _spec(spec, before, server)
    if server.minor >= _DECLARATIVE:
        found += _declared_spec(spec, before, server)
    return unique(found)


def _metadata(obj: JSON) -> JSON:
    reader = Reader(0)
    found: JSON = reader.read(METADATA, obj.get("metadata"), Path("metadata"))
    if reader.problems:
        raise InvalidObject(str(reader.problems[0]))
    return found


def _immutable(spec: JSON, old: JSON) -> list[Problem]:
    found: list[Problem] = []
    if spec["pool"]["name"] != old["pool"]["name"]:
        found.append(_changed(_SPEC.child("pool", "name"), old["pool"]["name"]))
    changed = [f for f in ("driver", "nodeName") if spec.get(f) != old.get(f)]
    found += [_changed(_SPEC.child(field), old.get(field)) for field in changed]
    return found


def _changed(path: Path, old: object) -> Problem:
    return invalid(path, old, "cannot be changed: delete the slice and create another one")


def _spec(spec: JSON, old: JSON | None, server: Server) -> list[Problem]:
    found = names.driver_name(spec["driver"], _SPEC.child("driver"))
    found += _pool(spec["pool"], _SPEC.child("pool"))
    found += node_selectors.node_choice(spec, _SPEC, _ANY_NODE, node_selectors.slice_node_selector)
    if "sharedCounters" in spec and "devices" in spec:
        detail = "has sharedCounters and devices: put them into slices of their own"
        found.append(invalid(_SPEC, ["sharedCounters", "devices"], detail))
    found += _devices(spec, old, server)
    found += counters.counter_sets(spec.get("sharedCounters", []), _SPEC.child("sharedCounters"))
    found += _partition_type(spec)
    skipped = spec.get("skipNodeOperations", [])
    found += device_parts.paired_operations(skipped, _SPEC.child("skipNodeOperations"))
    return found


def _pool(pool: JSON, path: Path) -> list[Problem]:
    found = names.pool_name(pool["name"], path.child("name"))
    if pool["resourceSliceCount"] <= 0:
        where = path.child("resourceSliceCount")
        found.append(invalid(where, pool["resourceSliceCount"], "must be 1 or more"))
    if pool["generation"] < 0:
        found.append(invalid(path.child("generation"), pool["generation"], "must be 0 or more"))
    return found


def _devices(spec: JSON, old: JSON | None, server: Server) -> list[Problem]:
    items, path = spec.get("devices", []), _SPEC.child("devices")
    limit = ADVANCED_DEVICES_MAX if _advanced(items) else DEVICES_MAX
    if len(items) > limit:
        return [too_many(path, len(items), limit)]
    before: dict[str, JSON] = {}
    for device in (old or {}).get("devices", []):
        before.setdefault(device["name"], device)
    found = list(field_rules.distinct([d["name"] for d in items], path))
    per_device = bool(spec.get("perDeviceNodeSelection"))
    for i, device in enumerate(items):
        known = before.get(device["name"])
        found += devices.device(device, known, path.index(i), per_device=per_device, server=server)
    return found


def _advanced(items: list[JSON]) -> bool:
    return any(
        device.get("taints")
        or device.get("consumesCounters")
        or any(kind in a for a in device.get("attributes", {}).values() for kind in devices.LISTS)
        for device in items
    )


def _partition_type(spec: JSON) -> list[Problem]:
    """``partitionTypeAttribute`` names a string that every device with counters has (1.37).

    Such an attribute may also be written without the domain where that is the driver's own name.
    """
    name = spec.get("partitionTypeAttribute")
    if name is None:
        return []
    consuming = [(i, d) for i, d in enumerate(spec.get("devices", [])) if d.get("consumesCounters")]
    where = _SPEC.child("partitionTypeAttribute")
    if not consuming:
        return [invalid(where, name, "needs devices that consume counters in the same slice")]
    if names.fully_qualified_name(name, where):
        return []  # the declarative rules report it
    bare = name.removeprefix(f"{spec['driver']}/")
    found: list[Problem] = []
    for i, device in consuming:
        attributes = device.get("attributes", {})
        at = _SPEC.child("devices").index(i).child("attributes").key(name)
        attribute = attributes.get(name, attributes.get(bare))
        if attribute is None:
            found.append(required(at, "must be set: partitionTypeAttribute names it"))
        elif "string" not in attribute:
            detail = "must be a string: partitionTypeAttribute names it"
            found.append(invalid(at, attribute, detail))
    return found


def _declared_spec(spec: JSON, old: JSON | None, server: Server) -> list[Problem]:
    """The declarative rules of 1.37; a field that is as before is not looked at."""

    def changed(field: str) -> bool:
        node = field_of(SPEC[server.minor], field)
        return old is None or not equal(old.get(field), spec.get(field), node)

    found: list[Problem] = []
    if changed("devices"):
        for i, device in enumerate(spec.get("devices", [])):
            found += devices.declared_device(device, _SPEC.child("devices").index(i))
    if changed("sharedCounters"):
        sets, before = spec.get("sharedCounters", []), (old or {}).get("sharedCounters", [])
        found += counters.new_keys(sets, before, _SPEC.child("sharedCounters"))
    if changed("partitionTypeAttribute"):
        found += _declared_partition_type(spec.get("partitionTypeAttribute"), server)
    if changed("skipNodeOperations"):
        skipped, before = (s.get("skipNodeOperations", []) for s in (spec, old or {}))
        found += device_parts.operations(skipped, _SPEC.child("skipNodeOperations"), before)
    return found


def _declared_partition_type(name: str | None, server: Server) -> list[Problem]:
    where = _SPEC.child("partitionTypeAttribute")
    if name is None:
        return []
    if not server.has("DRAPartitionableDevicesType"):
        detail = "cannot be changed while DRAPartitionableDevicesType is off: leave it or remove it"
        return [forbidden(where, detail)]
    return names.lower_case_qualified_name(name, where)

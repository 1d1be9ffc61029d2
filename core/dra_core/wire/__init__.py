"""``resource.k8s.io`` objects as JSON data <-> values.

The only place that knows field names and versions. Objects of older versions are read as v1
(:mod:`dra_core.wire.versions`); writing is v1. Reading keeps fields it has no name for; what the
API server guarantees and an object lacks anyway is an :class:`~dra_core.errors.InvalidObject`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_core.errors import InvalidObject
from dra_core.model.claims import Claim, ClaimTemplate
from dra_core.model.devices import Device
from dra_core.model.requests import DeviceClass
from dra_core.model.slices import PublishedSlice, ResourceSlice
from dra_core.model.taints import DeviceTaintRule
from dra_core.names import DriverName, NodeName
from dra_core.wire import tables
from dra_core.wire.codec import JSON, Record
from dra_core.wire.versions import V1, from_v1, to_v1

__all__ = [
    "API_VERSION",
    "JSON",
    "AnyObject",
    "claim_from_json",
    "device_from_json",
    "device_to_json",
    "from_v1",
    "published_slice",
    "read",
    "slice_to_json",
    "to_v1",
    "write",
]

API_VERSION: Final = V1

AnyObject = ResourceSlice | Claim | ClaimTemplate | DeviceClass | DeviceTaintRule


def read(data: Mapping[str, Any]) -> AnyObject:
    """The value of an object in any known version; raises InvalidObject that names it."""
    v1 = to_v1(data)
    found: AnyObject = _read(tables.OBJECTS[v1["kind"]], v1)
    return found


def write(value: AnyObject) -> JSON:
    """The object in v1."""
    kind = next(k for k, record in tables.OBJECTS.items() if record.make is type(value))
    return {"apiVersion": V1, "kind": kind} | tables.OBJECTS[kind].write(value)


def _read(record: Record[Any], data: Mapping[str, Any]) -> Any:
    body = {k: v for k, v in data.items() if k not in ("apiVersion", "kind")}
    try:
        return record.read(body, "")
    except InvalidObject as error:
        raise InvalidObject(f"{data.get('kind', 'object')} {_name_of(data)}: {error}") from error


def _name_of(data: Mapping[str, Any]) -> str:
    metadata = data.get("metadata")
    return repr(metadata.get("name")) if isinstance(metadata, Mapping) else "without metadata"


def device_to_json(device: Device) -> JSON:
    """``ResourceSlice.spec.devices[]``, without empty fields, as the server gives it back."""
    return tables.DEVICE.write(device)


def device_from_json(data: Mapping[str, Any]) -> Device:
    """The inverse of :func:`device_to_json`."""
    return tables.DEVICE.read(data, "device")


def claim_from_json(data: Mapping[str, Any]) -> Claim:
    """A ResourceClaim of v1, whether or not it says so (items of a list do not)."""
    found: Claim = _read(tables.OBJECTS["ResourceClaim"], {"kind": "ResourceClaim", **data})
    return found


def published_slice(data: Mapping[str, Any]) -> PublishedSlice:
    """What planning needs of a ResourceSlice of v1, whether or not it says so."""
    found = _read(tables.OBJECTS["ResourceSlice"], {"kind": "ResourceSlice", **data})
    pool = found.spec.pool
    return PublishedSlice(
        name=found.metadata.name,
        pool=pool.name,
        generation=pool.generation,
        slice_count=pool.slice_count,
        devices=found.spec.devices,
    )


def slice_to_json(
    published: PublishedSlice, driver: DriverName, node: NodeName, owner: Mapping[str, Any] | None
) -> JSON:
    """A node-local ResourceSlice. ``owner`` is an owner reference (the Node), or None."""
    metadata: JSON = {"name": published.name}
    if owner is not None:
        metadata["ownerReferences"] = [dict(owner)]
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceSlice",
        "metadata": metadata,
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {
                "name": published.pool,
                "generation": published.generation,
                "resourceSliceCount": published.slice_count,
            },
            "devices": [device_to_json(device) for device in published.devices],
        },
    }

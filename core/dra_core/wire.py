"""``resource.k8s.io/v1`` objects as JSON data <-> values.

The only place that knows field names. Reading keeps fields it has no name for; what the API server
guarantees and an object lacks anyway is an :class:`~dra_core.errors.InvalidObject`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_core.errors import DraError, InvalidObject
from dra_core.model.claims import AllocationResult, Claim, ClaimReference
from dra_core.model.devices import AttributeValue, Device, Version
from dra_core.model.slices import PublishedSlice
from dra_core.names import ClaimUID, DeviceName, DriverName, NodeName, PoolName
from dra_core.quantity import Quantity

API_VERSION: Final = "resource.k8s.io/v1"

JSON = dict[str, Any]


def _attribute_to_json(value: AttributeValue) -> JSON:
    if isinstance(value, bool):  # before int, which bool is a kind of
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    if isinstance(value, Version):
        return {"version": value.text}
    return {"string": value}


def _attribute_from_json(data: Mapping[str, Any]) -> AttributeValue | None:
    """The value, or None for a kind of attribute that this release has no type for."""
    match dict(data):
        case {"bool": bool(value), **rest} if not rest:
            return value
        case {"int": int(number), **rest} if not rest:
            return number
        case {"string": str(text), **rest} if not rest:
            return text
        case {"version": str(text), **rest} if not rest:
            return Version(text)
    return None


def device_to_json(device: Device) -> JSON:
    """``ResourceSlice.spec.devices[]``, without empty fields, as the server gives it back."""
    data: JSON = {"name": device.name}
    unknown = dict(device.unknown)
    attributes = {k: _attribute_to_json(v) for k, v in device.attributes.items()}
    attributes.update(unknown.pop("attributes", {}))
    capacity: JSON = {k: {"value": str(v)} for k, v in device.capacity.items()}
    capacity.update(unknown.pop("capacity", {}))
    if attributes:
        data["attributes"] = attributes
    if capacity:
        data["capacity"] = capacity
    return data | unknown


def device_from_json(data: Mapping[str, Any]) -> Device:
    """The inverse of :func:`device_to_json`."""
    unknown = {k: v for k, v in data.items() if k not in ("name", "attributes", "capacity")}
    attributes: dict[str, AttributeValue] = {}
    for name, raw in (data.get("attributes") or {}).items():
        value = _attribute_from_json(raw)
        if value is None:
            unknown.setdefault("attributes", {})[name] = raw
        else:
            attributes[name] = value
    capacity: dict[str, Quantity] = {}
    for name, raw in (data.get("capacity") or {}).items():
        if set(raw) == {"value"}:
            capacity[name] = Quantity.parse(str(raw["value"]))
        else:
            unknown.setdefault("capacity", {})[name] = raw
    return Device(DeviceName(data["name"]), attributes, capacity, unknown)


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


def slice_from_json(data: Mapping[str, Any]) -> PublishedSlice:
    """A ResourceSlice; shared counters and node selection are not read by this release."""
    try:
        pool = data["spec"]["pool"]
        return PublishedSlice(
            name=data["metadata"]["name"],
            pool=PoolName(pool["name"]),
            generation=int(pool["generation"]),
            slice_count=int(pool["resourceSliceCount"]),
            devices=tuple(device_from_json(d) for d in data["spec"].get("devices") or ()),
        )
    except (KeyError, TypeError, ValueError, AttributeError, DraError) as error:
        raise InvalidObject(f"ResourceSlice {_name_of(data)} cannot be read: {error!r}") from error


def claim_from_json(data: Mapping[str, Any]) -> Claim:
    """A ResourceClaim, reduced to its identity and allocation results."""
    try:
        metadata = data["metadata"]
        reference = ClaimReference(
            metadata.get("namespace", ""), metadata["name"], ClaimUID(metadata["uid"])
        )
        allocation = (data.get("status") or {}).get("allocation")
        if allocation is None:
            return Claim(reference, None)
        results = (allocation.get("devices") or {}).get("results") or ()
        return Claim(reference, tuple(_result_from_json(r) for r in results))
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidObject(f"ResourceClaim {_name_of(data)} cannot be read: {error!r}") from error


def _result_from_json(data: Mapping[str, Any]) -> AllocationResult:
    return AllocationResult(
        request=data["request"],
        driver=DriverName(data["driver"]),
        pool=PoolName(data["pool"]),
        device=DeviceName(data["device"]),
        admin_access=bool(data.get("adminAccess") or False),
        share_id=data.get("shareID"),
    )


def _name_of(data: Mapping[str, Any]) -> str:
    metadata = data.get("metadata")
    return repr(metadata.get("name")) if isinstance(metadata, Mapping) else "without metadata"

"""``resource.k8s.io`` objects as JSON data <-> values.

The only place that knows field names and versions. Objects of older versions are read as v1
(:mod:`dra_core.wire.versions`); writing is v1. Reading keeps fields it has no name for; what the
API server guarantees and an object lacks anyway is an :class:`~dra_core.errors.InvalidObject`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dra_core.errors import InvalidObject, InvalidValue
from dra_core.model.claims import Claim, ClaimReference, ClaimTemplate, DeviceStatus
from dra_core.model.devices import Device
from dra_core.model.nodes import NodeSelector
from dra_core.model.objects import Metadata
from dra_core.model.requests import DeviceClass
from dra_core.model.slices import (
    Nodes,
    PublishedSlice,
    ResourcePool,
    ResourceSlice,
    SliceSpec,
)
from dra_core.model.taints import DeviceTaintRule
from dra_core.names import DriverName, NodeName
from dra_core.wire import tables
from dra_core.wire.codec import JSON, Record
from dra_core.wire.versions import GROUP, V1, from_v1, to_v1

__all__ = [
    "API_VERSION",
    "GROUP",
    "JSON",
    "AnyObject",
    "claim_from_json",
    "device_conditions_patch",
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


def device_conditions_patch(
    claim: ClaimReference, resource_version: str, entries: Iterable[DeviceStatus], version: str
) -> JSON:
    """The body of a server-side apply of ``resourceclaims/status`` that says no more than this.

    With the claim's UID and ``resource_version`` in it the server answers 409 if the claim is
    another one, or has changed since it was read. ``version`` is that of the path, e.g. v1.
    """
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "ResourceClaim",
        "metadata": {
            "name": claim.name,
            "namespace": claim.namespace,
            "uid": claim.uid,
            "resourceVersion": resource_version,
        },
        "status": {"devices": [tables.DEVICE_STATUS.write(entry) for entry in entries]},
    }


def published_slice(data: Mapping[str, Any]) -> PublishedSlice:
    """What planning needs of a ResourceSlice of v1, whether or not it says so."""
    found = _read(tables.OBJECTS["ResourceSlice"], {"kind": "ResourceSlice", **data})
    spec: SliceSpec = found.spec
    nodes: Nodes | NodeSelector = Nodes.THIS
    if spec.node_selector is not None:
        nodes = spec.node_selector
    elif spec.all_nodes:
        nodes = Nodes.ALL
    elif spec.per_device_node_selection:
        nodes = Nodes.EACH_DEVICE
    return PublishedSlice(
        name=found.metadata.name,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        slice_count=spec.pool.slice_count,
        devices=spec.devices,
        shared_counters=spec.shared_counters,
        nodes=nodes,
        partition_type_attribute=spec.partition_type_attribute,
        skip_node_operations=spec.skip_node_operations,
    )


def slice_to_json(
    published: PublishedSlice,
    driver: DriverName,
    node: NodeName | None,
    owner: Mapping[str, Any] | None,
) -> JSON:
    """A ResourceSlice to be written. ``owner`` is an owner reference (the Node), or None.

    ``node`` is what ``Nodes.THIS`` means; raises InvalidValue for that where there is none.
    """
    nodes = published.nodes
    if nodes is Nodes.THIS and node is None:
        raise InvalidValue(f"pool {published.pool!r} is on this node, but there is no node here")
    spec = SliceSpec(
        driver=driver,
        pool=ResourcePool(published.pool, published.generation, published.slice_count),
        node_name=node if nodes is Nodes.THIS else None,
        node_selector=nodes if isinstance(nodes, NodeSelector) else None,
        all_nodes=True if nodes is Nodes.ALL else None,
        per_device_node_selection=True if nodes is Nodes.EACH_DEVICE else None,
        devices=published.devices,
        shared_counters=published.shared_counters,
        partition_type_attribute=published.partition_type_attribute,
        skip_node_operations=published.skip_node_operations,
    )
    owners = {} if owner is None else {"ownerReferences": [dict(owner)]}
    return write(ResourceSlice(Metadata(name=published.name, unknown=owners), spec))

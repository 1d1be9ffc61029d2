"""Objects reduced on arrival to what taints and evictions need; the rest is never kept.

``resource.k8s.io`` objects may be of any version that :mod:`dra_core.wire.versions` knows. Reading
raises :class:`~dra_core.errors.InvalidObject` like the rest of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from dra_core.model import usage
from dra_core.model.claims import Claim
from dra_core.model.nodes import NodeSelector
from dra_core.model.objects import Metadata
from dra_core.model.taints import DeviceTaintRule
from dra_core.names import ClaimUID, DeviceName, DriverName, PodUID
from dra_core.wire import tables
from dra_core.wire.codec import INT, JSON, STRING, TIME, ListOf, wrong
from dra_core.wire.versions import to_v1

_METADATA: Final = ("name", "namespace", "uid", "generation", "creationTimestamp")
#: Annotation of a DeviceTaintRule whose evictions somebody has confirmed, however many they are.
CONFIRMED: Final = "dragoman/confirmed"
_RESULT: Final = (
    *("request", "driver", "pool", "device", "adminAccess", "tolerations", "shareID"),
    *("bindingConditions", "bindingFailureConditions"),
)
_DEVICE: Final = ("driver", "pool", "device", "shareID", "conditions")
_TAINTS: Final = ListOf(tables.TAINT)
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


def claim(data: Mapping[str, Any]) -> usage.ClaimInUse:
    """A ResourceClaim."""
    v1 = to_v1(data)
    metadata = _metadata(v1)
    status = _object(v1.get("status"), "status")
    allocation = _object(status.get("allocation"), "status.allocation")
    devices = _object(allocation.get("devices"), "status.allocation.devices")
    results = [_only(result, _RESULT) for result in _list(devices.get("results"), "results")]
    allocated: JSON | None = {"devices": {"results": results}} if allocation else None
    reduced = {"allocation": allocated, "reservedFor": status.get("reservedFor")}
    if allocated is not None and any(result.get("bindingConditions") for result in results):
        allocated |= _only(allocation, ("allocationTimestamp", "nodeSelector"))
        found = _list(status.get("devices"), "status.devices")
        reduced["devices"] = [_only(device, _DEVICE) for device in found]
    read: Claim = tables.OBJECTS["ResourceClaim"].read(
        {"metadata": {}, "spec": {"devices": {}}, "status": reduced}, ""
    )
    made = read.status.allocation if read.status else None
    return usage.ClaimInUse(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=ClaimUID(metadata.uid),
        results=read.results or (),
        reserved_for=read.status.reserved_for if read.status else (),
        controller=_controller(v1),
        node=single_node(made.node_selector) if made else "",
        allocated_at=made.allocation_timestamp if made else None,
        devices=read.status.devices if read.status else (),
    )


def single_node(selector: NodeSelector | None) -> str:
    """The node that a selector names by ``metadata.name In [node]``; empty if it does otherwise."""
    if selector is None or len(selector.terms) != 1:
        return ""
    named = [
        requirement.values[0]
        for requirement in selector.terms[0].match_fields
        if requirement.key == "metadata.name"
        and requirement.operator == "In"
        and len(requirement.values) == 1
    ]
    return named[0] if named else ""


def resource_slice(data: Mapping[str, Any]) -> usage.SliceTaints:
    """A ResourceSlice."""
    v1 = to_v1(data)
    metadata = _metadata(v1)
    spec = _object(v1.get("spec"), "spec")
    pool = tables.POOL.read(spec.get("pool"), "spec.pool")
    devices, taints = set(), {}
    for index, device in enumerate(_list(spec.get("devices"), "spec.devices")):
        where = f"spec.devices[{index}]"
        name = DeviceName(STRING.read(_object(device, where).get("name"), f"{where}.name"))
        devices.add(name)
        if device.get("taints"):
            taints[name] = _TAINTS.read(device["taints"], f"{where}.taints")
    return usage.SliceTaints(
        name=metadata.name,
        uid=metadata.uid,
        driver=DriverName(STRING.read(spec.get("driver"), "spec.driver")),
        pool=pool.name,
        generation=pool.generation,
        slice_count=pool.slice_count,
        devices=frozenset(devices),
        taints=taints,
    )


def rule(data: Mapping[str, Any]) -> DeviceTaintRule:
    """A DeviceTaintRule without its status; of its annotations only :data:`CONFIRMED`."""
    v1 = to_v1(data)
    whole = _object(v1.get("metadata"), "metadata")
    annotations = _object(whole.get("annotations"), "metadata.annotations")
    metadata = _only(whole, _METADATA) | {"annotations": _only(annotations, (CONFIRMED,))}
    found: DeviceTaintRule = tables.OBJECTS["DeviceTaintRule"].read(
        {"metadata": metadata, "spec": v1.get("spec")}, ""
    )
    return found


def pod(data: Mapping[str, Any]) -> usage.Pod:
    """A Pod; its claims are found in all three places that name them.

    ``spec.resourceClaims`` (with ``status.resourceClaimStatuses`` for templates) and
    ``status.extendedResourceClaimStatus``. A claim that is not made yet, or that turned out not to
    be needed, has no name and is left out.
    """
    metadata = _metadata(data)
    spec = _object(data.get("spec"), "spec")
    status = _object(data.get("status"), "status")
    group = _object(spec.get("schedulingGroup"), "spec.schedulingGroup").get("podGroupName")
    priority = spec.get("priority")
    deleting = _object(data.get("metadata"), "metadata").get("deletionTimestamp") is not None
    return usage.Pod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=PodUID(metadata.uid),
        claims=_pod_claims(spec, status),
        node=spec.get("nodeName") or "",
        priority=0 if priority is None else INT.read(priority, "spec.priority"),
        created=metadata.creation_timestamp,
        deleting=deleting,
        finished=status.get("phase") in _FINISHED,
        group=group or "",
        starting=_starting(spec, status),
    )


def _starting(spec: JSON, status: JSON) -> datetime | None:
    if status.get("phase") != "Pending" or not spec.get("nodeName") or not status.get("startTime"):
        return None
    return TIME.read(status["startTime"], "status.startTime")


def has_claims(data: Mapping[str, Any]) -> bool:
    """Whether a Pod names any claims, or may do so: cheap, for all pods of a cluster."""
    spec, status = data.get("spec") or {}, data.get("status") or {}
    return bool(spec.get("resourceClaims") or status.get("extendedResourceClaimStatus"))


def _pod_claims(spec: JSON, status: JSON) -> tuple[usage.PodClaim, ...]:
    statuses = _list(status.get("resourceClaimStatuses"), "status.resourceClaimStatuses")
    made = {item.get("name"): item.get("resourceClaimName") for item in statuses}
    found = []
    for item in _list(spec.get("resourceClaims"), "spec.resourceClaims"):
        if name := item.get("resourceClaimName"):
            found.append(usage.PodClaim(name))
        elif name := made.get(item.get("name")):
            found.append(usage.PodClaim(name, made=True))
    extended = _object(status.get("extendedResourceClaimStatus"), "extendedResourceClaimStatus")
    if name := extended.get("resourceClaimName"):
        found.append(usage.PodClaim(name, made=True))
    return tuple(found)


def _controller(data: JSON) -> usage.Controller | None:
    metadata = _object(data.get("metadata"), "metadata")
    for owner in _list(metadata.get("ownerReferences"), "metadata.ownerReferences"):
        if owner.get("controller"):
            group, slash, _ = str(owner.get("apiVersion", "")).partition("/")
            return usage.Controller(
                api_group=group if slash else "",
                kind=str(owner.get("kind", "")),
                name=str(owner.get("name", "")),
                uid=str(owner.get("uid", "")),
            )
    return None


def _metadata(data: Mapping[str, Any]) -> Metadata:
    wanted = _only(_object(data.get("metadata"), "metadata"), _METADATA)
    return tables.METADATA.read(wanted, "metadata")


def _only(data: Mapping[str, Any], names: tuple[str, ...]) -> JSON:
    return {name: data[name] for name in names if name in data}


def _object(data: object, where: str) -> JSON:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise wrong(where, data, "an object")
    return dict(data) if type(data) is not dict else data


def _list(data: object, where: str) -> list[JSON]:
    if data is None:
        return []
    if not isinstance(data, list) or not all(isinstance(item, Mapping) for item in data):
        raise wrong(where, data, "a list of objects")
    return data

"""Claims, claim templates, device classes and device taint rules as data.

Fields, presence, defaults and order follow k8s.io/api/resource/v1; ``since`` and ``gate`` are what
the strategies of the API server look at. A gate that a version no longer lets anybody turn off is
named all the same: the server description decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra_core.validation.shapes import (
    JSON,
    STRINGS,
    Field,
    Leaf,
    ListOf,
    MapOf,
    Presence,
    Shape,
    Struct,
)

#: Versions: 1.36 is the oldest that is known here.
_V137: Final = 37


def _always(shape: Shape) -> Field:
    return Field(shape, Presence.ALWAYS)


def _pointer(shape: Shape, gate: str = "") -> Field:
    return Field(shape, Presence.POINTER, gate=gate)


def _fill_count(request: JSON) -> None:
    """One device unless said otherwise (``allocationMode``, ``count``)."""
    request.setdefault("allocationMode", "ExactCount")
    if request["allocationMode"] == "ExactCount":
        request.setdefault("count", 1)


_TEXT: Final = Field(Leaf.STRING)
_NAME: Final = _always(Leaf.STRING)

TOLERATION: Final = Struct(
    {
        "key": _TEXT,
        "operator": Field(Leaf.STRING, default="Equal"),
        "value": _TEXT,
        "effect": _TEXT,
        "tolerationSeconds": _pointer(Leaf.INTEGER),
    }
)
SELECTOR: Final = Struct({"cel": _pointer(Struct({"expression": _NAME}))})
OPAQUE: Final = _pointer(Struct({"driver": _NAME, "parameters": _always(Leaf.JSON)}))
CONDITION: Final = Struct(
    {
        "type": _NAME,
        "status": _NAME,
        "observedGeneration": Field(Leaf.INTEGER),
        "lastTransitionTime": _always(Leaf.TIME),
        "reason": _NAME,
        "message": _NAME,
    }
)
_ASKED: Final[Mapping[str, Field]] = {
    "deviceClassName": _NAME,
    "selectors": Field(ListOf(SELECTOR)),
    "allocationMode": _TEXT,
    "count": Field(Leaf.INTEGER),
    "tolerations": Field(ListOf(TOLERATION), gate="DRADeviceTaints"),
    "capacity": _pointer(
        Struct({"requests": Field(MapOf(Leaf.QUANTITY))}), gate="DRAConsumableCapacity"
    ),
    "derivedAttributes": Field(
        ListOf(Struct({"name": _NAME, "expression": _NAME})),
        since=_V137,
        gate="DRADerivedAttributes",
    ),
}
REQUEST: Final = Struct(
    {
        "name": _NAME,
        "exactly": _pointer(
            Struct(
                {**_ASKED, "adminAccess": _pointer(Leaf.BOOLEAN, gate="DRAAdminAccess")},
                _fill_count,
            )
        ),
        "firstAvailable": Field(
            ListOf(Struct({"name": _NAME, **_ASKED}, _fill_count)), gate="DRAPrioritizedList"
        ),
    }
)
CONSTRAINT: Final = Struct(
    {
        "requests": Field(STRINGS),
        "matchAttribute": _pointer(Leaf.STRING),
        "distinctAttribute": _pointer(Leaf.STRING, gate="DRAConsumableCapacity"),
    }
)
CLAIM_SPEC: Final = Struct(
    {
        "devices": Field(
            Struct(
                {
                    "requests": _always(ListOf(REQUEST)),
                    "constraints": Field(ListOf(CONSTRAINT)),
                    "config": Field(ListOf(Struct({"requests": Field(STRINGS), "opaque": OPAQUE}))),
                }
            )
        )
    }
)
_REQUIREMENT: Final = Struct({"key": _NAME, "operator": _NAME, "values": Field(STRINGS)})
NODE_SELECTOR: Final = Struct(
    {
        "nodeSelectorTerms": _always(
            ListOf(
                Struct(
                    {
                        "matchExpressions": Field(ListOf(_REQUIREMENT)),
                        "matchFields": Field(ListOf(_REQUIREMENT)),
                    }
                )
            )
        )
    }
)
RESULT: Final = Struct(
    {
        "request": _NAME,
        "driver": _NAME,
        "pool": _NAME,
        "device": _NAME,
        "adminAccess": _pointer(Leaf.BOOLEAN, gate="DRAAdminAccess"),
        "tolerations": Field(ListOf(TOLERATION)),
        "bindingConditions": Field(STRINGS, gate="DRADeviceBindingConditions"),
        "bindingFailureConditions": Field(STRINGS, gate="DRADeviceBindingConditions"),
        "shareID": _pointer(Leaf.STRING, gate="DRAConsumableCapacity"),
        "consumedCapacity": Field(MapOf(Leaf.QUANTITY), gate="DRAConsumableCapacity"),
        "skipNodeOperations": Field(STRINGS, since=_V137, gate="DRAOptionalNodeOperations"),
    }
)
ALLOCATION: Final = Struct(
    {
        "devices": Field(
            Struct(
                {
                    "results": Field(ListOf(RESULT)),
                    "config": Field(
                        ListOf(
                            Struct({"source": _NAME, "requests": Field(STRINGS), "opaque": OPAQUE})
                        )
                    ),
                }
            )
        ),
        "nodeSelector": _pointer(NODE_SELECTOR),
        "allocationTimestamp": _pointer(Leaf.TIME),
    }
)
DEVICE_STATUS: Final = Struct(
    {
        "driver": _NAME,
        "pool": _NAME,
        "device": _NAME,
        "shareID": _pointer(Leaf.STRING, gate="DRAConsumableCapacity"),
        "conditions": _always(ListOf(CONDITION)),
        "data": _pointer(Leaf.JSON),
        "networkData": _pointer(
            Struct({"interfaceName": _TEXT, "ips": Field(STRINGS), "hardwareAddress": _TEXT})
        ),
    }
)
_CONSUMER: Final = Struct({"apiGroup": _TEXT, "resource": _NAME, "name": _NAME, "uid": _NAME})
CLAIM_STATUS: Final = Struct(
    {
        "allocation": _pointer(ALLOCATION),
        "reservedFor": Field(ListOf(_CONSUMER)),
        "devices": Field(ListOf(DEVICE_STATUS), gate="DRAResourceClaimDeviceStatus"),
    }
)
CLASS_SPEC: Final = Struct(
    {
        "selectors": Field(ListOf(SELECTOR)),
        "config": Field(ListOf(Struct({"opaque": OPAQUE}))),
        "extendedResourceName": _pointer(Leaf.STRING, gate="DRAExtendedResource"),
    }
)
RULE_SPEC: Final = Struct(
    {
        "deviceSelector": _pointer(
            Struct(
                {
                    "driver": _pointer(Leaf.STRING),
                    "pool": _pointer(Leaf.STRING),
                    "device": _pointer(Leaf.STRING),
                }
            )
        ),
        "taint": Field(
            Struct(
                {"key": _NAME, "value": _TEXT, "effect": _NAME, "timeAdded": _pointer(Leaf.TIME)}
            )
        ),
    }
)
#: Of the metadata of objects: what rules look at.
METADATA: Final = Struct(
    {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
        "resourceVersion": _TEXT,
        "generation": Field(Leaf.INTEGER),
        "creationTimestamp": Field(Leaf.TIME),
        "deletionTimestamp": _pointer(Leaf.TIME),
        "deletionGracePeriodSeconds": _pointer(Leaf.INTEGER),
        "labels": Field(MapOf(Leaf.STRING)),
        "annotations": Field(MapOf(Leaf.STRING)),
        "ownerReferences": Field(
            ListOf(
                Struct(
                    {
                        "apiVersion": _NAME,
                        "kind": _NAME,
                        "name": _NAME,
                        "uid": _NAME,
                        "controller": _pointer(Leaf.BOOLEAN),
                        "blockOwnerDeletion": _pointer(Leaf.BOOLEAN),
                    }
                )
            )
        ),
        "finalizers": Field(STRINGS),
        "managedFields": Field(ListOf(Struct({}))),
    }
)

#: Of the metadata of a template's claims: the same, but an empty list counts as set.
TEMPLATE_METADATA: Final = Struct(
    {
        **METADATA.fields,
        **{
            name: _pointer(METADATA.fields[name].shape)
            for name in ("ownerReferences", "finalizers", "managedFields")
        },
    }
)

#: Spec and status of each kind; what has no status here has none.
KINDS: Final[Mapping[str, Struct]] = {
    "ResourceClaim": Struct({"spec": Field(CLAIM_SPEC), "status": Field(CLAIM_STATUS)}),
    "ResourceClaimTemplate": Struct(
        {"spec": Field(Struct({"metadata": Field(TEMPLATE_METADATA), "spec": Field(CLAIM_SPEC)}))}
    ),
    "DeviceClass": Struct({"spec": Field(CLASS_SPEC)}),
    "DeviceTaintRule": Struct(
        {
            "spec": Field(RULE_SPEC),
            "status": Field(Struct({"conditions": Field(ListOf(CONDITION))})),
        }
    ),
}

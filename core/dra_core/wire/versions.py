"""Objects of older API versions as resource.k8s.io/v1, and back.

v1beta2 has the shape of v1. v1beta1 has a device's fields below ``basic`` and those of ``exactly``
directly in the request. DeviceTaintRule has had the same fields since v1alpha3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_core.errors import InvalidObject
from dra_core.wire.codec import JSON

GROUP: Final = "resource.k8s.io"
V1: Final = f"{GROUP}/v1"

#: Kinds, with the versions in which they are read, newest first.
VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "DeviceClass": ("v1", "v1beta2", "v1beta1"),
    "DeviceTaintRule": ("v1", "v1beta2", "v1alpha3"),
    "ResourceClaim": ("v1", "v1beta2", "v1beta1"),
    "ResourceClaimTemplate": ("v1", "v1beta2", "v1beta1"),
    "ResourceSlice": ("v1", "v1beta2", "v1beta1"),
}


def version_of(data: Mapping[str, Any]) -> str:
    """``v1`` … of an object of a known kind; raises InvalidObject naming what is known."""
    kind, api = str(data.get("kind")), data.get("apiVersion")
    if kind not in VERSIONS:
        raise InvalidObject(f"kind {kind!r} is not one of: {', '.join(VERSIONS)}")
    group, _, version = str(api).partition("/")
    if group != GROUP or version not in VERSIONS[kind]:
        known = ", ".join(f"{GROUP}/{v}" for v in VERSIONS[kind])
        raise InvalidObject(f"apiVersion {api!r} of a {kind} is not one of: {known}")
    return version


def to_v1(data: Mapping[str, Any]) -> JSON:
    """The same object in v1; what is not where it should be stays as it is."""
    if version_of(data) == "v1beta1":
        data = _each(data, _device_to_v1, _request_to_v1)
    return dict(data) | {"apiVersion": V1}


def from_v1(data: Mapping[str, Any], version: str) -> JSON:
    """An object of v1 in ``version``."""
    kind = str(data.get("kind"))
    if version not in VERSIONS.get(kind, ()):
        raise InvalidObject(f"there is no {kind} in {GROUP}/{version}")
    if version == "v1beta1":
        data = _each(data, _device_from_v1, _request_from_v1)
    return dict(data) | {"apiVersion": f"{GROUP}/{version}"}


Change = Callable[[JSON], JSON]


def _each(data: Mapping[str, Any], device: Change, request: Change) -> JSON:
    """A copy with each device of a slice, and each request of a claim or template, changed."""
    kind = data["kind"]
    if kind == "ResourceSlice":
        return dict(_at(data, ("spec", "devices"), device))
    if kind == "ResourceClaim":
        return dict(_at(data, ("spec", "devices", "requests"), request))
    if kind == "ResourceClaimTemplate":
        return dict(_at(data, ("spec", "spec", "devices", "requests"), request))
    return dict(data)


def _at(data: Any, path: tuple[str, ...], change: Change) -> Any:
    if not path:
        if not isinstance(data, list):
            return data
        return [change(dict(item)) if isinstance(item, Mapping) else item for item in data]
    if not isinstance(data, Mapping) or path[0] not in data:
        return data
    return dict(data) | {path[0]: _at(data[path[0]], path[1:], change)}


def _device_to_v1(device: JSON) -> JSON:
    basic = device.pop("basic", None)
    return device | dict(basic) if isinstance(basic, Mapping) else device


def _device_from_v1(device: JSON) -> JSON:
    name = {"name": device.pop("name")} if "name" in device else {}
    return {**name, "basic": device}


_OUTER: Final = ("name", "firstAvailable")


def _request_to_v1(request: JSON) -> JSON:
    outer = {key: request.pop(key) for key in _OUTER if key in request}
    return outer | ({"exactly": request} if request else {})


def _request_from_v1(request: JSON) -> JSON:
    exactly = request.pop("exactly", None)
    return request | dict(exactly) if isinstance(exactly, Mapping) else request

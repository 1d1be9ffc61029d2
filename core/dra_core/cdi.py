"""Container Device Interface (CDI) specifications as data.

A specification is JSON that the container runtime reads; a *device* in it is a set of edits to a
container. Source: the CDI specification (cncf-tags/container-device-interface), SPEC.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from dra_core import names
from dra_core.errors import InvalidValue
from dra_core.model.claims import AllocationResult
from dra_core.names import ClaimUID, DriverName

#: The oldest version that has everything which :class:`ContainerEdits` can say.
_BASE_VERSION: Final = "0.3.0"
#: Names of devices may start with a digit.
_DIGIT_FIRST: Final = "0.5.0"


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device node that the runtime makes in the container; nothing need exist on the host.

    ``path`` is in the container; ``kind`` is 'c' or 'b'; ``permissions`` are for the device cgroup
    (r, w, m); ``file_mode`` is the mode of the node.
    """

    path: str
    kind: str
    major: int
    minor: int
    permissions: str = "rw"
    file_mode: int = 0o666


@dataclass(frozen=True, slots=True)
class Mount:
    """A bind mount from the host, read-only unless said otherwise."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ("ro", "nosuid", "nodev", "bind")


@dataclass(frozen=True, slots=True)
class ContainerEdits:
    """What a device adds to each container that references its request."""

    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()


def kind_of(driver: DriverName) -> str:
    """The CDI kind (vendor/class) of the devices of claims that ``driver`` prepared."""
    return names.check_cdi_kind(f"k8s.{driver}/claim")


def device_name(claim: ClaimUID, index: int, result: AllocationResult) -> str:
    """Name of the ``index``-th result of a claim: unique, also where a device comes twice."""
    parts = [claim, str(index), result.request.replace("/", "."), result.device]
    return names.check_cdi_device("_".join(parts))


def file_name(driver: DriverName, claim: ClaimUID) -> str:
    """Name of the one file that belongs to a claim."""
    return f"{_prefix(driver)}{names.check_uid('claim UID', claim)}.json"


def claim_of_file(driver: DriverName, name: str) -> ClaimUID | None:
    """The inverse of :func:`file_name`; None for files that are not of this driver's claims."""
    prefix = _prefix(driver)
    if not (name.startswith(prefix) and name.endswith(".json")):
        return None
    return ClaimUID(name.removeprefix(prefix).removesuffix(".json"))


def _prefix(driver: DriverName) -> str:
    return f"k8s.{driver}-claim_"


def document(kind: str, devices: Sequence[tuple[str, ContainerEdits]]) -> bytes:
    """The specification of one claim; the same input gives the same bytes."""
    names.check_cdi_kind(kind)
    version = _BASE_VERSION
    entries = []
    for name, edits in devices:
        names.check_cdi_device(name)
        if name[0].isdigit():
            version = _DIGIT_FIRST
        entries.append({"name": name, "containerEdits": _edits(name, edits)})
    spec = {"cdiVersion": version, "kind": kind, "devices": entries}
    return (json.dumps(spec, indent=2) + "\n").encode()


def devices_of(document: bytes) -> frozenset[str]:
    """The DRA devices that a document of :func:`document` is about, whatever else it may hold."""
    try:
        listed = json.loads(document)["devices"]
        # See device_name: neither a claim's UID nor a request nor a device has an underscore.
        return frozenset(str(item["name"]).rpartition("_")[2] for item in listed)
    except (ValueError, KeyError, TypeError):
        return frozenset()


def _edits(device: str, edits: ContainerEdits) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if edits.env:
        data["env"] = [_variable(device, key, value) for key, value in edits.env.items()]
    if edits.device_nodes:
        data["deviceNodes"] = [_node(device, node) for node in edits.device_nodes]
    if edits.mounts:
        data["mounts"] = [_mount(device, mount) for mount in edits.mounts]
    if not data:
        # The specification wants at least one edit in every device.
        data["env"] = [f"DRA_DEVICE_{''.join(c if c.isalnum() else '_' for c in device)}=1"]
    return data


def _variable(device: str, key: str, value: str) -> str:
    if not key or "=" in key or "\0" in key + value:
        raise InvalidValue(
            f"CDI device {device!r}: environment variable {key!r} is not valid: "
            "the name must not be empty or hold '=', neither part a NUL"
        )
    return f"{key}={value}"


def _absolute(device: str, what: str, path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise InvalidValue(
            f"CDI device {device!r}: {what} {path!r} must be an absolute path without '..'"
        )
    return path


def _node(device: str, node: DeviceNode) -> dict[str, Any]:
    if node.kind not in ("b", "c") or node.major < 0 or node.minor < 0:
        raise InvalidValue(
            f"CDI device {device!r}: device node {node.path!r} needs kind 'b' or 'c' and numbers "
            f"of at least 0, not {node.kind!r} {node.major}:{node.minor}"
        )
    return {
        "path": _absolute(device, "device node", node.path),
        "type": node.kind,
        "major": node.major,
        "minor": node.minor,
        "fileMode": node.file_mode,
        "permissions": node.permissions,
    }


def _mount(device: str, mount: Mount) -> dict[str, Any]:
    return {
        "hostPath": _absolute(device, "host path", mount.host_path),
        "containerPath": _absolute(device, "container path", mount.container_path),
        "options": list(mount.options),
    }

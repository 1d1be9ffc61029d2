"""Names and their syntax: DNS labels and subdomains, pools, attributes, CDI, sockets, slices.

Sources: RFC 1123 as Kubernetes reads it; resource.k8s.io field rules; the CDI specification
(vendor, class, device name); unix(7) for the length of socket paths.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NewType

from dra_core import formats
from dra_core.errors import InvalidName

NodeName = NewType("NodeName", str)
DriverName = NewType("DriverName", str)
PoolName = NewType("PoolName", str)
DeviceName = NewType("DeviceName", str)
ClaimUID = NewType("ClaimUID", str)
PodUID = NewType("PodUID", str)

#: Bytes that ``sockaddr_un.sun_path`` takes on Linux, less the closing NUL.
SOCKET_PATH_MAX: Final = 107

_CDI_VENDOR: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_CDI_CLASS: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?")
_CDI_DEVICE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_UID: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


def _check(what: str, value: str, fits: bool, rule: str) -> None:
    if not fits:
        shown = value if len(value) <= 80 else value[:77] + "..."
        raise InvalidName(f"{what} {shown!r} is not valid: {rule}")


def check_dns_label(what: str, value: str) -> str:
    """RFC 1123 label: at most 63 of a-z, 0-9 and '-', alphanumeric at both ends."""
    _check(
        what,
        value,
        formats.is_dns_label(value),
        "use a DNS label, at most 63 of a-z, 0-9 and '-', e.g. 'gpu-0'",
    )
    return value


def check_dns_subdomain(what: str, value: str, limit: int = 253) -> str:
    """RFC 1123 subdomain: labels (here without the limit of 63) joined by dots."""
    rule = f"use a DNS subdomain in lower case of at most {limit} characters, e.g. 'node-1.example'"
    _check(what, value, formats.is_dns_subdomain(value, limit), rule)
    return value


def check_driver_name(value: str) -> DriverName:
    """``ResourceSlice.spec.driver``: a DNS subdomain of at most 63 characters."""
    rule = "use a DNS subdomain of at most 63 characters that ends in a domain of the vendor"
    _check(
        "driver name", value, formats.is_dns_subdomain(value, 63), f"{rule}, e.g. 'gpu.example.com'"
    )
    return DriverName(value)


def check_node_name(value: str) -> NodeName:
    """``ResourceSlice.spec.nodeName``: the name of a Node object."""
    return NodeName(check_dns_subdomain("node name", value))


def check_pool_name(value: str) -> PoolName:
    """``ResourceSlice.spec.pool.name``: DNS subdomains joined by '/', 253 characters together."""
    fits = 0 < len(value) <= 253 and all(
        formats.is_dns_subdomain(part) for part in value.split("/")
    )
    _check("pool name", value, fits, "use DNS subdomains joined by '/', at most 253 characters")
    return PoolName(value)


def check_qualified_name(what: str, value: str) -> str:
    """Attribute or capacity name: C identifier of at most 32, perhaps behind ``domain/`` (63)."""
    domain, slash, identifier = value.rpartition("/")
    fits = len(identifier) <= 32 and formats.is_c_identifier(identifier)
    if slash:
        fits = fits and formats.is_dns_subdomain(domain, 63)
    rule = "use a C identifier of at most 32 characters, optionally after '<domain>/'"
    _check(what, value, fits, rule)
    return value


def check_uid(what: str, value: str) -> str:
    """A Kubernetes UID, as it becomes part of file names: no '/', no leading '.'."""
    fits = len(value) <= 128 and bool(_UID.fullmatch(value))
    _check(what, value, fits, "expected the UID of a Kubernetes object")
    return value


def check_cdi_kind(value: str) -> str:
    """``vendor/class`` of a CDI specification."""
    vendor, _, klass = value.partition("/")
    fits = bool(_CDI_VENDOR.fullmatch(vendor)) and bool(_CDI_CLASS.fullmatch(klass))
    rule = "CDI wants vendor/class, each starting with a letter, e.g. 'k8s.gpu.example.com/claim'"
    _check("CDI kind", value, fits, rule)
    return value


def check_cdi_device(value: str) -> str:
    """Name of a device in a CDI specification; letters and digits at both ends."""
    rule = "CDI allows letters, digits, '_', '-', '.' and ':', with a letter or digit at both ends"
    _check("CDI device", value, bool(_CDI_DEVICE.fullmatch(value)), rule)
    return value


def _digest(text: str, length: int = 8) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def check_socket_path(what: str, path: str) -> str:
    """A path that the kernel takes for a unix socket: at most 107 bytes."""
    size = len(path.encode())
    rule = (
        f"it has {size} bytes, a unix socket path at most {SOCKET_PATH_MAX}; "
        "choose a shorter folder or driver name"
    )
    if size > SOCKET_PATH_MAX:
        raise InvalidName(f"{what} {path!r} is too long: {rule}")
    return path


def service_socket_name(pod_uid: PodUID | None, room: int) -> str:
    """File name of the DRA service socket in the plugin's own folder.

    With a pod UID (rolling updates, kubelet 1.33 or newer) two instances of a driver have names of
    their own and can serve side by side. ``room`` is what the path limit leaves for the name, in
    bytes; where the pod UID does not fit, a hash of it takes its place.
    """
    return _socket_name("dra", pod_uid, ".sock", room)


def registration_socket_name(driver: DriverName, pod_uid: PodUID | None, room: int) -> str:
    """File name of the registration socket in the kubelet's registry folder; as above."""
    return _socket_name(driver, pod_uid, "-reg.sock", room)


def _socket_name(prefix: str, pod_uid: PodUID | None, suffix: str, room: int) -> str:
    if not pod_uid:
        return f"{prefix}{suffix}"
    name = f"{prefix}-{pod_uid}{suffix}"
    return name if len(name) <= room else f"{prefix}-{_digest(pod_uid, 12)}{suffix}"


def is_registration_socket(driver: DriverName, name: str) -> bool:
    """Whether ``name`` is one that :func:`registration_socket_name` gives to ``driver``."""
    pod = re.fullmatch(re.escape(driver) + r"(-(?P<pod>[0-9a-f-]{12,36}))?-reg\.sock", name)
    return pod is not None


def slice_name(index: int, owner: str, driver: DriverName, pool: PoolName, attempt: int = 0) -> str:
    """Name of the ``index``-th slice of a pool.

    The allocator sorts the slices of a pool by name and takes the first device that fits, so the
    index comes first, in at least five hex digits. The name depends on nothing but its arguments:
    a create whose answer got lost cannot leave a second copy behind. ``attempt`` gives another name
    where somebody else's object has taken this one. ``owner`` is the node, "" for a publisher that
    has none: no Node has that name.
    """
    suffix = _digest(f"{driver}\n{pool}\n{owner}\n{attempt}")
    middle = (f"{owner}-{driver}" if owner else str(driver))[:200].rstrip("-.")
    return f"{index:05x}-{middle}-{suffix}"


def slice_index(name: str) -> int | None:
    """The index in front of a slice name, or None if it does not start with one."""
    match = re.match(r"([0-9a-f]{5,})-", name)
    return int(match.group(1), 16) if match else None

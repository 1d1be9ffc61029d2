"""``status`` of a ResourceClaim: allocation, reservations, and what drivers say of devices."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_core.validation import (
    claim_gates,
    claim_shapes,
    claims,
    configurations,
    device_parts,
    field_rules,
    metadata,
    names,
    requests,
)
from dra_core.validation.field_rules import Problems
from dra_core.validation.node_selectors import node_selector
from dra_core.validation.problems import (
    Path,
    Problem,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    unique,
)
from dra_core.validation.servers import Server

RESERVED_MAX: Final = 256
RESULTS_MAX: Final = 32
CONFIG_MAX: Final = 64
IPS_MAX: Final = 16
INTERFACE_MAX: Final = 256
HARDWARE_MAX: Final = 128
SOURCES: Final = ["FromClaim", "FromClass"]
_STATUS: Final = Path("status")

Object = Mapping[str, Any]


def validate_status_update(
    new: Object, old: Object, server: Server, *, admin_namespace: bool = False
) -> list[Problem]:
    """What the API server says to an update of a claim's status; spec and metadata stay.

    Leave is not asked for: who may write which part is a matter of authorization.
    """
    if wrong := claims.wrong_types(claims.CLAIM, {**new, "spec": None}, old, server=server):
        return wrong
    stored = claim_gates.drop_disabled(claims.CLAIM, new, old, server, subresource="status")
    status, spec = stored["status"], stored["spec"]
    before = claim_gates.read(claims.CLAIM, old, server)[0]["status"]
    meta = claim_gates.metadata_of(old)
    known = requests.references(spec["devices"])
    return unique(
        [
            *_admin_access(status, before, admin_namespace),
            *metadata.updated_metadata(meta, meta, server),
            *_reserved(status, before, deleted=bool(meta.get("deletionTimestamp"))),
            *_devices(status, server),
            *_allocation(status, before, known, server),
        ]
    )


def _admin_access(status: Object, before: Object, allowed: bool) -> Problems:
    if allowed or any(result.get("adminAccess") for result in _results(before)):
        return
    for number, result in enumerate(_results(status)):
        if result.get("adminAccess"):
            path = _STATUS.child("allocation", "devices", "results").index(number)
            rule = f"needs the label {claims.ADMIN_LABEL}: 'true' on the namespace"
            yield forbidden(path.child("adminAccess"), rule)
            return


def _results(status: Object) -> Sequence[Object]:
    results: Sequence[Object] = status.get("allocation", {}).get("devices", {}).get("results", ())
    return results


def _reserved(status: Object, before: Object, *, deleted: bool) -> Problems:
    """``reservedFor``: the pods (at most 256) that may use an allocated claim."""
    path = _STATUS.child("reservedFor")
    consumers = status.get("reservedFor", ())

    def check(consumer: Object, at: Path) -> Problems:
        for name in ("resource", "name", "uid"):
            if not consumer[name]:
                yield required(at.child(name))

    yield from field_rules.each(consumers, path, check, RESERVED_MAX)
    yield from field_rules.distinct([c["uid"] for c in consumers], path, RESERVED_MAX)
    if consumers and "allocation" not in status:
        yield forbidden(path, "cannot be there without allocation")
    elif deleted and any(c not in before.get("reservedFor", ()) for c in consumers):
        yield forbidden(path, "takes no new consumer while the claim is being deleted")


def _devices(status: Object, server: Server) -> Problems:
    """``status.devices``: what drivers report of devices that the claim has."""
    path = _STATUS.child("devices")
    devices = status.get("devices", ())
    known = claim_gates.allocated(status)

    def check(device: Object, at: Path) -> Problems:
        yield from _device(device, at, server)
        if claim_gates.device_key(device) not in known:
            name = "/".join(claim_gates.device_key(device)[:3])
            yield invalid(at, name, "is not a device of the allocation")

    yield from field_rules.each(devices, path, check)
    yield from field_rules.distinct([claim_gates.device_key(d) for d in devices], path)


def _device(device: Object, path: Path, server: Server) -> Problems:
    yield from names.driver_name(device["driver"], path.child("driver"))
    yield from names.pool_name(device["pool"], path.child("pool"))
    yield from names.dns_label(device["device"], path.child("device"))
    if "shareID" in device:
        yield from names.share_id(device["shareID"], path.child("shareID"))
    yield from configurations.conditions(device["conditions"], path.child("conditions"), server)
    if "data" in device:
        limit = configurations.DOCUMENT_MAX
        yield from configurations.document(device["data"], path.child("data"), limit)
    if "networkData" in device:
        yield from _network(device["networkData"], path.child("networkData"))


def _network(data: Object, path: Path) -> Problems:
    for name, limit in (("interfaceName", INTERFACE_MAX), ("hardwareAddress", HARDWARE_MAX)):
        if names.size(data.get(name, "")) > limit:
            yield too_long(path.child(name), limit)
    addresses = data.get("ips", ())
    yield from field_rules.each(addresses, path.child("ips"), _address, IPS_MAX)
    yield from field_rules.distinct(addresses, path.child("ips"), IPS_MAX)


def _address(text: str, path: Path) -> Problems:
    """An address and the length of its network's prefix, in canonical form."""
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError:
        canonical = False
    else:
        mapped = getattr(interface.ip, "ipv4_mapped", None) is not None
        canonical = str(interface) == text and not mapped and "%" not in text
    if not canonical:
        yield invalid(path, text, "is not an address such as 10.9.8.7/24 or 2001:db8::1/64")


def _allocation(
    status: Object, before: Object, known: requests.References, server: Server
) -> Problems:
    """``allocation``: checked when it is made, then not to be changed, only to be removed."""
    if "allocation" not in status:
        return
    path, allocation = _STATUS.child("allocation"), status["allocation"]
    if "allocation" in before:
        shape = claim_shapes.ALLOCATION
        yield from claims.immutable(path, shape, allocation, before["allocation"], server)
        return
    devices = allocation["devices"]
    at = path.child("devices")
    yield from field_rules.each(
        devices.get("results", ()),
        at.child("results"),
        lambda result, p: _result(result, p, known, server),
        RESULTS_MAX,
    )
    yield from field_rules.each(
        devices.get("config", ()),
        at.child("config"),
        lambda config, p: _config(config, p, known),
        CONFIG_MAX,
    )
    if "nodeSelector" in allocation:
        yield from node_selector(allocation["nodeSelector"], path.child("nodeSelector"))


def _config(config: Object, path: Path, known: requests.References) -> Problems:
    source = config["source"]
    if not source:
        yield required(path.child("source"), f"must be one of: {', '.join(SOURCES)}")
    elif source not in SOURCES:
        yield not_supported(path.child("source"), source, SOURCES)
    yield from requests.configuration(config, path, known)


def _result(result: Object, path: Path, known: requests.References, server: Server) -> Problems:
    yield from requests.request_reference(result["request"], path.child("request"), known)
    yield from names.driver_name(result["driver"], path.child("driver"))
    yield from names.pool_name(result["pool"], path.child("pool"))
    yield from names.dns_label(result["device"], path.child("device"))
    yield from device_parts.binding_conditions(result, path)
    if server.minor >= 37:
        tolerations = result.get("tolerations", ())
        yield from field_rules.each(tolerations, path.child("tolerations"), requests.toleration)
    if "shareID" in result:
        yield from names.share_id(result["shareID"], path.child("shareID"))
    operations = result.get("skipNodeOperations", ())
    at = path.child("skipNodeOperations")
    yield from device_parts.operations(operations, at)
    yield from device_parts.paired_operations(operations, at)

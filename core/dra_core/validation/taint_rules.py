"""DeviceTaintRule: create, update, and update of the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_core.validation import (
    claim_gates,
    claims,
    configurations,
    device_parts,
    metadata,
    names,
)
from dra_core.validation.field_rules import Problems
from dra_core.validation.problems import Path, Problem, invalid, unique
from dra_core.validation.servers import Server

KIND: Final = "DeviceTaintRule"
_SPEC: Final = Path("spec")

Object = Mapping[str, Any]


def validate_create(rule: Object, server: Server) -> list[Problem]:
    """What the API server says to a new rule; its status does not count."""
    if wrong := claims.wrong_types(KIND, {**rule, "status": None}, server=server):
        return wrong
    spec = claim_gates.drop_disabled(KIND, rule, None, server)["spec"]
    problems = [
        *metadata.created_metadata(claim_gates.metadata_of(rule), server),
        *_spec(spec, None),
    ]
    return unique(problems)


def validate_update(new: Object, old: Object, server: Server) -> list[Problem]:
    """What the API server says to an update; a stored effect may stay whatever it is.

    In ``resource.k8s.io/v1`` an update has to say which ``resourceVersion`` it is of.
    """
    if wrong := claims.wrong_types(KIND, {**new, "status": None}, old, server=server):
        return wrong
    if unversioned := _without_version(new):
        return unversioned
    meta = claim_gates.metadata_of(new)
    spec = claim_gates.drop_disabled(KIND, new, old, server)["spec"]
    before = claim_gates.read(KIND, old, server)[0]["spec"]
    return unique(
        [
            *metadata.updated_metadata(meta, claim_gates.metadata_of(old), server),
            *_spec(spec, before),
        ]
    )


def validate_status_update(new: Object, old: Object, server: Server) -> list[Problem]:
    """What the API server says to an update of ``status.conditions``."""
    if wrong := claims.wrong_types(KIND, {**new, "spec": None}, old, server=server):
        return wrong
    if unversioned := _without_version(new):
        return unversioned
    status = claim_gates.drop_disabled(KIND, new, old, server, subresource="status")["status"]
    meta = claim_gates.metadata_of(old)
    path = Path("status.conditions")
    return unique(
        [
            *metadata.updated_metadata(meta, meta, server),
            *configurations.conditions(status.get("conditions", ()), path, server),
        ]
    )


def _without_version(new: Object) -> list[Problem]:
    """Nothing else is said of an update without one; the older API versions do not ask for it."""
    meta = claim_gates.metadata_of(new)
    if new.get("apiVersion") != "resource.k8s.io/v1" or meta.get("resourceVersion"):
        return []
    path = Path("metadata.resourceVersion")
    return [invalid(path, "", "must be that of the object as it was read")]


def _spec(spec: Object, old: Object | None) -> Problems:
    selector, at = spec.get("deviceSelector", {}), _SPEC.child("deviceSelector")
    if "driver" in selector:
        yield from names.driver_name(selector["driver"], at.child("driver"))
    if "pool" in selector:
        yield from names.pool_name(selector["pool"], at.child("pool"))
    if "device" in selector:
        yield from names.dns_label(selector["device"], at.child("device"))
    stored = None if old is None else old["taint"]["effect"]
    yield from device_parts.taint(spec["taint"], _SPEC.child("taint"), stored_effect=stored)

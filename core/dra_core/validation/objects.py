"""All kinds behind two functions: what a server keeps of a new object, and its verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_core.validation import (
    claim_gates,
    claim_shapes,
    claims,
    classes,
    slice_gates,
    slices,
    taint_rules,
)
from dra_core.validation.problems import Path, Problem, invalid
from dra_core.validation.servers import Server

JSON = dict[str, Any]

_CREATE: Final[Mapping[str, Callable[[JSON, Server], list[Problem]]]] = {
    "DeviceClass": classes.validate_create,
    "DeviceTaintRule": taint_rules.validate_create,
    "ResourceClaim": claims.validate_create,
    "ResourceClaimTemplate": claims.validate_template_create,
    "ResourceSlice": slices.validate_create,
}


_UPDATE: Final[Mapping[str, Callable[[JSON, JSON, Server], list[Problem]]]] = {
    "DeviceClass": classes.validate_update,
    "DeviceTaintRule": taint_rules.validate_update,
    "ResourceClaim": claims.validate_update,
    "ResourceClaimTemplate": claims.validate_template_update,
    "ResourceSlice": slices.validate_update,
}


def drop_disabled(obj: JSON, server: Server) -> JSON:
    """A new object as the server would store it: defaults set, disabled fields gone."""
    kind = obj["kind"]
    if kind == "ResourceSlice":
        return slice_gates.drop_disabled(obj, None, server)
    return claim_gates.drop_disabled(kind, obj, None, server)


def wrong_types(obj: JSON, server: Server) -> list[Problem]:
    """Values in spec, status or metadata that the server cannot decode (it answers 400).

    Those of a slice come from :func:`validate_create`, as InvalidObject.
    """
    kind = obj["kind"]
    return claim_gates.read(kind, obj, server)[1] if kind in claim_shapes.KINDS else []


def validate_create(obj: JSON, server: Server) -> list[Problem]:
    """The server's verdict on a new object in v1; empty if it takes it."""
    return _CREATE[obj["kind"]](obj, server)


def validate_update(new: JSON, old: JSON, server: Server) -> list[Problem]:
    """The server's verdict on replacing ``old``, as stored, by ``new``, both in v1."""
    if new["kind"] != old["kind"]:
        detail = f"does not fit: the object is a {old['kind']}, and stays one"
        return [invalid(Path("kind"), new["kind"], detail)]
    return _UPDATE[old["kind"]](new, old, server)

"""ResourceClaim and ResourceClaimTemplate: create and update of the spec.

``admin_namespace`` says whether the namespace has the label
``resource.kubernetes.io/admin-access: "true"``, without which ``adminAccess`` is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_core.validation import (
    claim_gates,
    claim_shapes,
    declared,
    metadata,
    requests,
)
from dra_core.validation.field_rules import Problems
from dra_core.validation.problems import Path, Problem, forbidden, invalid, unique
from dra_core.validation.servers import Server
from dra_core.validation.shapes import JSON, Shape

CLAIM: Final = "ResourceClaim"
TEMPLATE: Final = "ResourceClaimTemplate"
ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"

Object = Mapping[str, Any]


def wrong_types(kind: str, *objects: Object, server: Server) -> list[Problem]:
    """What the server does not decode (it answers 400); rules cannot be asked then."""
    return [p for obj in objects for p in claim_gates.read(kind, obj, server)[1]]


def validate_create(
    claim: Object, server: Server, *, admin_namespace: bool = False
) -> list[Problem]:
    """What the API server says to a new ResourceClaim; its status does not count."""
    if wrong := wrong_types(CLAIM, {**claim, "status": None}, server=server):
        return wrong
    spec = claim_gates.drop_disabled(CLAIM, claim, None, server)["spec"]
    return unique(
        [
            *_admin_access(spec, admin_namespace),
            *metadata.created_metadata(claim_gates.metadata_of(claim), server),
            *_spec(spec, None, Path("spec"), server),
        ]
    )


def validate_update(new: Object, old: Object, server: Server) -> list[Problem]:
    """What the API server says to an update of a ResourceClaim: its spec is immutable."""
    new = {**new, "status": None}
    if wrong := wrong_types(CLAIM, new, {**old, "status": None}, server=server):
        return wrong
    spec = claim_gates.drop_disabled(CLAIM, new, old, server)["spec"]
    meta = claim_gates.metadata_of(new)
    return unique(
        [
            *metadata.created_metadata(meta, server),
            *metadata.updated_metadata(meta, claim_gates.metadata_of(old), server),
            *immutable(Path("spec"), claim_shapes.CLAIM_SPEC, spec, old.get("spec"), server),
        ]
    )


def validate_template_create(
    template: Object, server: Server, *, admin_namespace: bool = False
) -> list[Problem]:
    """What the API server says to a new ResourceClaimTemplate."""
    if wrong := wrong_types(TEMPLATE, template, server=server):
        return wrong
    spec = claim_gates.drop_disabled(TEMPLATE, template, None, server)["spec"]
    return unique(
        [
            *_admin_access(spec["spec"], admin_namespace),
            *_template(template, spec, server),
            *_declared(spec["spec"], None, Path("spec.spec"), server),
        ]
    )


def validate_template_update(new: Object, old: Object, server: Server) -> list[Problem]:
    """What the API server says to an update: the spec is immutable, and checked all the same."""
    if wrong := wrong_types(TEMPLATE, new, old, server=server):
        return wrong
    spec = claim_gates.drop_disabled(TEMPLATE, new, old, server)["spec"]
    before = claim_gates.read(TEMPLATE, old, server)[0]["spec"]
    shape = claim_shapes.KINDS[TEMPLATE].fields["spec"].shape
    meta = claim_gates.metadata_of(new)
    return unique(
        [
            *_template(new, spec, server),
            *metadata.updated_metadata(meta, claim_gates.metadata_of(old), server),
            *immutable(Path("spec"), shape, spec, before, server),
            *_declared(spec["spec"], before["spec"], Path("spec.spec"), server),
        ]
    )


def immutable(path: Path, shape: Shape, new: Any, old: Any, server: Server) -> Problems:
    """A field that an update must leave alone; equal values may be written differently."""
    if claim_gates.comparable(shape, new, server) != claim_gates.comparable(shape, old, server):
        yield invalid(path, "this value", "cannot replace the stored one: make a new object")


def _template(template: Object, spec: Mapping[str, Any], server: Server) -> Problems:
    yield from metadata.created_metadata(claim_gates.metadata_of(template), server)
    meta = dict(spec["metadata"])
    labels: JSON = {n: meta.pop(n) for n in ("labels", "annotations") if n in meta}
    for problem in metadata.updated_metadata(labels, {}, server):
        yield Problem(f"spec.{problem.field}", problem.type, problem.detail)
    for name in meta:
        # "uID" is how the server spells it.
        path = Path("spec.metadata").child("uID" if name == "uid" else name)
        yield forbidden(path, "cannot be set: only labels and annotations can")
    yield from requests.device_problems(spec["spec"]["devices"], Path("spec.spec.devices"), server)


def _spec(spec: Object, old: Object | None, path: Path, server: Server) -> Problems:
    yield from requests.device_problems(spec["devices"], path.child("devices"), server)
    yield from _declared(spec, old, path, server)


def _declared(spec: Object, old: Object | None, path: Path, server: Server) -> Problems:
    if server.minor >= 37:
        before = old["devices"] if old else None
        yield from declared.device_problems(spec["devices"], before, path.child("devices"))


def _admin_access(spec: Object, allowed: bool) -> Problems:
    """The server names the first request that asks, and the path as if of a claim."""
    for number, request in enumerate(spec["devices"]["requests"]):
        if not allowed and request.get("exactly", {}).get("adminAccess"):
            path = Path("spec.devices.requests").index(number).child("adminAccess")
            yield forbidden(path, f"needs the label {ADMIN_LABEL}: 'true' on the namespace")
            return

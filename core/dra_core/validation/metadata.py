"""Rules for ``metadata`` of objects whose names are DNS subdomains (apimachinery, core)."""

from __future__ import annotations

from typing import Any, Final

from dra_core.formats import is_dns_subdomain, is_label_key
from dra_core.validation import names
from dra_core.validation.problems import (
    ErrorType,
    Path,
    Problem,
    forbidden,
    invalid,
    required,
    too_long,
)
from dra_core.validation.servers import Server

JSON = dict[str, Any]

#: Bytes that keys and values of all annotations may have together.
ANNOTATIONS_MAX: Final = 256 * 1024
#: Finalizers without a domain that exist.
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
#: Names made from generateName: at most 63, of which 5 are random.
_GENERATED_MAX: Final = 58
_PATH: Final = Path("metadata")


def created_metadata(metadata: JSON, server: Server) -> list[Problem]:
    """Rules for a new object, without those for the namespace (part of the URL)."""
    name, prefix = metadata.get("name") or "", metadata.get("generateName") or ""
    found: list[Problem] = []
    if prefix:
        masked = f"{prefix[:-2]}a" if prefix.endswith("-") and len(prefix) > 1 else prefix
        if not is_dns_subdomain(masked):
            rule = "is not the begin of a DNS subdomain: use e.g. 'node-1-'"
            found.append(invalid(_PATH.child("generateName"), prefix, rule))
        name = name or f"{prefix[:_GENERATED_MAX]}00000"
    where = _PATH.child("name")
    found += names.dns_subdomain(name, where) if name else [required(where, "needs a name")]
    return found + _common(metadata, server)


def updated_metadata(new: JSON, old: JSON, server: Server) -> list[Problem]:
    """Rules for a changed object; name and uid are those of the old one or a conflict before."""
    found = _common(new, server)
    prefix = new.get("generateName") or ""
    if "/" in prefix or "%" in prefix:
        found.append(invalid(_PATH.child("generateName"), prefix, "must not have '/' or '%'"))
    before = old.get("finalizers") or []
    added = [f for f in new.get("finalizers") or [] if f not in before]
    if old.get("deletionTimestamp") and added:
        detail = f"the object is being deleted: remove the new {', '.join(added)}"
        found.append(forbidden(_PATH.child("finalizers"), detail))
    for field in ("name", "uid"):
        value = new.get(field)
        if value and old.get(field) and value != old[field]:
            found.append(invalid(_PATH.child(field), value, f"must stay {old[field]!r}"))
    return found


def _common(metadata: JSON, server: Server) -> list[Problem]:
    found: list[Problem] = []
    labels = _PATH.child("labels")
    for key, value in (metadata.get("labels") or {}).items():
        found += names.label_key(key, labels)
        found += names.label_value(value, labels)
    annotations, where = metadata.get("annotations") or {}, _PATH.child("annotations")
    for key in annotations:
        found += names.label_key(key.lower(), where)
    if sum(names.size(k) + names.size(v) for k, v in annotations.items()) > ANNOTATIONS_MAX:
        found.append(too_long(where, ANNOTATIONS_MAX))
    found += _finalizers(metadata.get("finalizers") or [])
    return found + _owners(metadata.get("ownerReferences") or [], server)


def _owners(owners: list[JSON], server: Server) -> list[Problem]:
    """Rules for owners, after the server has removed those that are there twice.

    1.36 leaves the number of the owner out of the path and calls all of them invalid.
    """
    path = _PATH.child("ownerReferences")
    given = [{k: v for k, v in owner.items() if v is not None} for owner in owners]
    owners = [owner for i, owner in enumerate(given) if owner not in given[:i]]
    found: list[Problem] = []
    for i, owner in enumerate(owners):
        where = path.index(i) if server.minor >= 37 else path
        for field in ("apiVersion", "kind", "name", "uid"):
            if owner.get(field):
                continue
            at = where.child(field)
            found.append(required(at) if server.minor >= 37 else invalid(at, "", "must be set"))
        found += _owner_version(owner, where)
    if sum(1 for owner in owners if owner.get("controller")) > 1:
        found.append(invalid(path, len(owners), "owners: only one may have controller: true"))
    return found


def _owner_version(owner: JSON, path: Path) -> list[Problem]:
    version = owner.get("apiVersion") or ""
    if version and (version.count("/") > 1 or version.endswith("/")):
        return [invalid(path.child("apiVersion"), version, "must be group/version or version")]
    if version == "v1" and owner.get("kind") == "Event":
        return [invalid(path, "v1 Event", "cannot own anything")]
    return []


def _finalizers(finalizers: list[str]) -> list[Problem]:
    path = _PATH.child("finalizers")
    found: list[Problem] = []
    for i, finalizer in enumerate(finalizers):
        if not is_label_key(finalizer):
            found.append(invalid(path, finalizer, "is no finalizer: use 'domain/name'"))
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            found.append(invalid(path.index(i), finalizer, "needs a domain: use 'domain/name'"))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "orphan and foregroundDeletion exclude each other: keep one of them"
        found.append(Problem(str(path), ErrorType.INVALID, detail))
    return found

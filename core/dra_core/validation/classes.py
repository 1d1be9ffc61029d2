"""DeviceClass: create and update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_core import formats
from dra_core.validation import claim_gates, claims, configurations, field_rules, metadata
from dra_core.validation import claim_shapes as shapes
from dra_core.validation.field_rules import Problems
from dra_core.validation.problems import Path, Problem, invalid, unique
from dra_core.validation.servers import Server

KIND: Final = "DeviceClass"
CONFIG_MAX: Final = 32
_SPEC: Final = Path("spec")

Object = Mapping[str, Any]


def validate_create(device_class: Object, server: Server) -> list[Problem]:
    """What the API server says to a new DeviceClass."""
    if wrong := claims.wrong_types(KIND, device_class, server=server):
        return wrong
    spec = claim_gates.drop_disabled(KIND, device_class, None, server)["spec"]
    meta = claim_gates.metadata_of(device_class)
    return unique(
        [
            *_metadata(meta, server),
            *_spec(spec, server),
        ]
    )


def validate_update(new: Object, old: Object, server: Server) -> list[Problem]:
    """What the API server says to an update; all of the spec may change.

    Unchanged parameters may be larger than today's limit. Unchanged expressions are not looked at
    again since 1.37.
    """
    if wrong := claims.wrong_types(KIND, new, old, server=server):
        return wrong
    spec = claim_gates.drop_disabled(KIND, new, old, server)["spec"]
    before = claim_gates.read(KIND, old, server)[0]["spec"]
    meta = claim_gates.metadata_of(new)

    def unchanged(name: str) -> bool:
        shape = shapes.CLASS_SPEC.fields[name].shape
        pair = (claim_gates.comparable(shape, s.get(name), server) for s in (spec, before))
        return bool(next(pair) == next(pair))

    return unique(
        [
            *_metadata(meta, server),
            *metadata.updated_metadata(meta, claim_gates.metadata_of(old), server),
            *_spec(
                spec,
                server,
                same_selectors=unchanged("selectors"),
                trusted_config=unchanged("config"),
            ),
        ]
    )


def _metadata(meta: Object, server: Server) -> list[Problem]:
    """Of a bad generateName, only the name made from it is reported for this kind."""
    found = metadata.created_metadata(dict(meta), server)
    return [p for p in found if p.field != "metadata.generateName"]


def _spec(
    spec: Object, server: Server, *, same_selectors: bool = False, trusted_config: bool = False
) -> Problems:
    yield from configurations.selectors(
        spec.get("selectors", ()), _SPEC.child("selectors"), server, unchanged=same_selectors
    )
    yield from field_rules.each(
        spec.get("config", ()),
        _SPEC.child("config"),
        lambda config, path: configurations.opaque(config, path, trusted=trusted_config),
        CONFIG_MAX,
    )
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended_resource(name):
        rule = "is not an extended resource: write '<domain>/<name>', not of kubernetes.io"
        yield invalid(_SPEC.child("extendedResourceName"), name, rule)


def is_extended_resource(name: str) -> bool:
    """``extendedResourceName``: also a label key behind the ``requests.`` that quotas put there."""
    native = "/" not in name or "kubernetes.io/" in name
    return (
        not native and not name.startswith("requests.") and formats.is_label_key(f"requests.{name}")
    )

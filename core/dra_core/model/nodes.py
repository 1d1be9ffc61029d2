"""Which nodes: ``v1.NodeSelector`` as resource.k8s.io uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dra_core.model.defaults import empty_map


@dataclass(frozen=True, slots=True)
class NodeSelectorRequirement:
    """``operator`` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """All requirements together: on labels, and on fields (``metadata.name``)."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Any of the terms; slices and allocations have exactly one."""

    terms: tuple[NodeSelectorTerm, ...]
    unknown: Mapping[str, Any] = empty_map()

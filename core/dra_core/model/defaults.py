"""The default of fields that hold maps: always the same empty one, which nobody can change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any

EMPTY: Mapping[str, Any] = MappingProxyType({})


def empty_map() -> Any:
    """``field: Mapping[str, X] = empty_map()``."""
    return field(default_factory=lambda: EMPTY)

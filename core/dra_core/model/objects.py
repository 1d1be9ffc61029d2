"""What all API objects share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dra_core.model.defaults import empty_map


@dataclass(frozen=True, slots=True)
class Metadata:
    """The part of ``metav1.ObjectMeta`` that is used here; the rest is kept in ``unknown``."""

    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: Mapping[str, str] = empty_map()
    annotations: Mapping[str, str] = empty_map()
    finalizers: tuple[str, ...] = ()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class Condition:
    """``metav1.Condition``; ``status`` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int | None = None
    unknown: Mapping[str, Any] = empty_map()

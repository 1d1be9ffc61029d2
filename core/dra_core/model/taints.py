"""Taints on devices, tolerations in requests, and rules that taint devices by selection."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dra_core.model.defaults import empty_map
from dra_core.model.objects import Condition, Metadata


class Effect(enum.Enum):
    """What a taint does to claims that do not tolerate it."""

    NONE = "None"
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class DeviceTaint:
    """``effect`` is the text of the API; :attr:`known_effect` is what consumers go by."""

    key: str
    effect: str
    value: str = ""
    time_added: datetime | None = None
    unknown: Mapping[str, Any] = empty_map()

    @property
    def known_effect(self) -> Effect:
        """An effect that is not known counts as None (API text of DeviceTaint.effect)."""
        try:
            return Effect(self.effect)
        except ValueError:
            return Effect.NONE


@dataclass(frozen=True, slots=True)
class DeviceToleration:
    """Which taints a request puts up with; ``operator`` is Exists or Equal (the default)."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class DeviceTaintSelector:
    """Fields that are None match everything; the fields are ANDed."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """Without a ``selector`` no device matches, with an empty one every device does."""

    taint: DeviceTaint
    selector: DeviceTaintSelector | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class RuleStatus:
    """How far the evictions of a rule are."""

    conditions: tuple[Condition, ...] = ()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class DeviceTaintRule:
    """Adds a taint to the devices that it selects."""

    metadata: Metadata
    spec: RuleSpec
    status: RuleStatus | None = None
    unknown: Mapping[str, Any] = empty_map()

"""What the use cases need from the world. Calls raise :class:`~dra_core.errors.ApiError`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from dra_core.errors import ApiUnavailable
from dra_core.eviction import Cause
from dra_core.model.usage import Pod


class Clock(Protocol):
    """Both run on alike; only the wall clock may be set by somebody."""

    def now(self) -> datetime:
        """The time of day, to compare with times in objects."""

    def monotonic(self) -> float:
        """Seconds from some start, for pauses and rates."""


class EvictionRefused(ApiUnavailable):
    """429 of the Eviction API: a PodDisruptionBudget does not allow it now."""


class PodApi(Protocol):
    """What is done to pods. All of it is on condition of the pod's UID.

    A pod that is gone, or that has another UID, is ApiNotFound or ApiConflict.
    """

    def evict(self, pod: Pod) -> None:
        """The Eviction API; may be EvictionRefused."""

    def mark(self, pod: Pod, message: str) -> None:
        """Add the condition DisruptionTarget, so that others know that the deletion is no fault."""

    def delete(self, pod: Pod) -> None:
        """Delete it, whatever a PodDisruptionBudget says."""


class TaintApi(Protocol):
    """Asks the API server, since a watch may have missed that something was deleted."""

    def confirm(self, cause: Cause) -> bool:
        """Whether the rule or the slice still puts this taint on the device."""


class Notices(Protocol):
    """Events about pods. Does not fail: an event that cannot be written is logged."""

    def tell(self, pod: Pod, kind: str, reason: str, note: str) -> None:
        """``kind`` is Normal or Warning."""


class Measures(Protocol):
    """Numbers for monitoring."""

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Count up."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""


#: Runs work in another thread, or at once in a test.
Start = Callable[[Callable[[], None]], None]

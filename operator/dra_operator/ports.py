"""What the use cases need from the world. Calls raise :class:`~dra_core.errors.ApiError`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol

from dra_core.errors import ApiUnavailable
from dra_core.eviction import Cause
from dra_core.model.objects import Condition
from dra_core.model.usage import ClaimInUse, Pod
from dra_core.taints import Source


class Mode(enum.Enum):
    """What is done with the pods of tainted devices; AUTO is one of the other two, once decided."""

    EVICT = "evict"
    OBSERVE = "observe"
    AUTO = "auto"


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


#: What an Event may be about; a Source is a DeviceTaintRule or a ResourceSlice.
Subject = Pod | ClaimInUse | Source


class Notices(Protocol):
    """Events. Does not fail: an event that cannot be written is logged."""

    def tell(self, subject: Subject, kind: str, reason: str, note: str) -> None:
        """``kind`` is Normal or Warning."""


class ProbeApi(Protocol):
    """Rules of ours with effect None that select nothing, to see whether they get a condition."""

    def create(self) -> str:
        """Make one; its name."""

    def answered(self, name: str) -> bool:
        """Whether it has got the condition EvictionInProgress."""

    def delete(self, name: str) -> None:
        """Take it away."""

    def left_over(self) -> list[str]:
        """Names of those that were not taken away."""


@dataclass(frozen=True, slots=True)
class RuleCondition:
    """The condition EvictionInProgress of a rule on the server, and who has written it.

    ``condition`` is None if there is none, ``writer`` is its field manager.
    """

    uid: str
    generation: int
    condition: Condition | None = None
    writer: str = ""


class RuleStatusApi(Protocol):
    """Conditions of DeviceTaintRules."""

    #: Our field manager.
    MANAGER: ClassVar[str]

    def read(self, name: str) -> RuleCondition:
        """ApiNotFound if the rule is gone."""

    def apply(self, name: str, uid: str, condition: Condition, *, force: bool) -> None:
        """Server-side apply; without ``force`` ApiConflict if it belongs to another writer."""


class Measures(Protocol):
    """Numbers for monitoring."""

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Count up."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""


#: Runs work in another thread, or at once in a test.
Start = Callable[[Callable[[], None]], None]

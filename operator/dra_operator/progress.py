"""The condition EvictionInProgress of a DeviceTaintRule: what to say about how far it is.

Type, statuses and reasons are those of the in-tree controller (API constant
DeviceTaintConditionEvictionInProgress), so that the same scripts wait for it, and ``Held`` beside
them. ``kubectl wait --for=condition=EvictionInProgress=false`` returns once no pod is left that has
to go: pods that were evicted and still shut down count as not gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dra_core.model.objects import Condition
from dra_core.model.taints import Effect
from dra_operator.cluster import Preview

TYPE: Final = "EvictionInProgress"
COMPLETED: Final = "Completed"


@dataclass(frozen=True, slots=True)
class Progress:
    """Pods of one rule: those to be evicted, those that were and are not gone, those that are.

    ``gone`` counts since this instance has been running; ``namespaces`` are those of the first two.
    """

    pending: int = 0
    going: int = 0
    namespaces: int = 0
    gone: int = 0
    held: bool = False


def running(progress: Progress, generation: int, before: Condition | None) -> Condition:
    """For effect NoExecute; ``before`` is what stands there."""
    left = progress.pending + progress.going
    if left:
        reason = "Held" if progress.held else "PodsPendingEviction"
        have = "has" if left == 1 else "have"
        parts = [f"{_pods(left)} in {_namespaces(progress.namespaces)} {have} to go"]
        if progress.going:
            parts.append(f"shutting down: {progress.going}")
        if progress.held:
            parts.append("held back: see the events of this rule")
        if progress.gone:
            parts.append(f"gone: {progress.gone}")
        return _condition("True", reason, "; ".join(parts) + ".", generation)
    if progress.gone:
        return _condition(
            "False", COMPLETED, f"{_pods(progress.gone)} gone, none left.", generation
        )
    began = before is not None and before.observed_generation == generation
    if before is not None and began and before.reason == COMPLETED:
        return before
    if before is not None and began and before.status == "True":
        return _condition("False", COMPLETED, "No pod left.", generation)
    return _condition("False", "NotStarted", "No pod has to go.", generation)


def without_effect(preview: Preview, generation: int) -> Condition:
    """For effect None."""
    text = (
        f"{_count(preview.published, 'published device')} and "
        f"{_count(preview.allocated, 'allocated device')} selected; with effect NoExecute "
        f"{_pods(preview.pods)} in {_namespaces(preview.namespaces)} would have to go."
    )
    return _condition("False", "NoEffect", text, generation)


def other_effect(generation: int) -> Condition:
    """For NoSchedule and effects to come."""
    text = f"Only effect {Effect.NO_EXECUTE.value} evicts pods."
    return _condition("False", "OtherEffect", text, generation)


def same(one: Condition | None, other: Condition) -> bool:
    """Whether they differ in no more than their time."""
    return one is not None and _content(one) == _content(other)


def since(before: Condition | None, after: Condition, now: datetime) -> datetime:
    """``lastTransitionTime``: moves with the status alone (API conventions)."""
    if before is None or before.status != after.status or before.last_transition_time is None:
        return now
    return before.last_transition_time


def _content(it: Condition) -> tuple[str, str, str, int | None]:
    return it.status, it.reason, it.message, it.observed_generation


def _condition(status: str, reason: str, message: str, generation: int) -> Condition:
    return Condition(TYPE, status, reason, message, observed_generation=generation)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _pods(number: int) -> str:
    return _count(number, "pod")


def _namespaces(number: int) -> str:
    return _count(number, "namespace")

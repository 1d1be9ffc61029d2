"""Keeps the condition of every rule up to date, in mode ``evict`` and by the leader only.

A rule is written at once when it is new or has changed, then at most every 10 s, and only if there
is something else to say. What it would do (effect None) is counted once a minute, since that looks
at all claims. A condition that belongs to another writer is left alone, unless it is the in-tree
evictor's and we know that it does not work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog

from dra_core.errors import ApiConflict, ApiError, ApiForbidden, ApiNotFound
from dra_core.model.objects import Condition
from dra_core.model.taints import DeviceTaintRule, Effect
from dra_operator import progress
from dra_operator.cluster import Preview
from dra_operator.ports import Clock, Measures, RuleCondition, RuleStatusApi
from dra_operator.progress import Progress

_log = structlog.get_logger(__name__)

#: Seconds between writes of a rule, and between counts of what a rule without effect would do.
PERIOD: Final = 10.0
PREVIEW: Final = 60.0
#: Field manager of kube-controller-manager's evictor.
IN_TREE: Final = "device-taint-eviction-controller"
#: How names of our own rules begin, and of those that mode auto asks with.
OURS: Final = "dragoman-"
PROBES: Final = f"{OURS}probe-"


class View(Protocol):
    """The part of :class:`dra_operator.evictions.Evictions` that is needed here."""

    def rules(self) -> list[DeviceTaintRule]:
        """All rules."""

    def progress(self, rule: str) -> Progress:
        """How far the evictions of a rule are, by its UID."""

    def preview(self, rule: DeviceTaintRule) -> Preview:
        """What the rule would do with effect NoExecute."""


class InTree(Protocol):
    """What is known about the in-tree evictor: :class:`dra_operator.modes.Choice`."""

    @property
    def sure(self) -> bool:
        """It is known not to work."""

    def doubt(self) -> None:
        """It seems to work, after all."""


@dataclass(slots=True)
class _Last:
    """What was last looked at: the rule, what was said, and the monotonic time of the next look."""

    rule: DeviceTaintRule
    said: Progress | None
    due: float


class RuleReports:
    """:meth:`tick` is called by one thread, about every second."""

    def __init__(
        self, view: View, status: RuleStatusApi, clock: Clock, measures: Measures, in_tree: InTree
    ) -> None:
        self._view = view
        self._status = status
        self._clock = clock
        self._measures = measures
        self._in_tree = in_tree
        self._began = clock.now()
        self._last: dict[str, _Last] = {}
        self._left_alone: set[str] = set()

    def tick(self, writing: bool) -> None:
        """Write what is due; ``writing`` says whether that is ours to do now."""
        if not writing:
            self._last.clear()
            self._began = self._clock.now()
            return
        rules = [rule for rule in self._view.rules() if not rule.metadata.name.startswith(OURS)]
        gone = self._last.keys() - {rule.metadata.uid for rule in rules}
        for uid in gone:
            del self._last[uid]
            self._left_alone.discard(uid)
        for rule in rules:
            self._report(rule)

    def _report(self, rule: DeviceTaintRule) -> None:
        uid, tick = rule.metadata.uid, self._clock.monotonic()
        last = self._last.get(uid)
        news = last is None or last.rule != rule
        if last is not None and not news and tick < last.due:
            return
        evicting = rule.spec.taint.known_effect is Effect.NO_EXECUTE
        now = self._view.progress(uid) if evicting else None
        if last is not None and not news and evicting and last.said == now:
            return
        try:
            self._write(rule, now)
        except ApiNotFound:
            pass
        except (ApiConflict, ApiForbidden) as error:
            self._leave(rule, str(error))
        except ApiError as error:
            _log.warning("condition not written", rule=rule.metadata.name, error=str(error))
            now = None
        self._last[uid] = _Last(rule, now, tick + (PERIOD if evicting else PREVIEW))

    def _write(self, rule: DeviceTaintRule, now: Progress | None) -> None:
        name, uid = rule.metadata.name, rule.metadata.uid
        found = self._status.read(name)
        if found.uid != uid:
            return
        foreign = found.condition is not None and found.writer != self._status.MANAGER
        if foreign and not self._may_take(rule, found):
            return
        self._left_alone.discard(uid)
        wanted = self._condition(rule, found, now)
        if progress.same(found.condition, wanted):
            return
        at = progress.since(found.condition, wanted, self._clock.now())
        wanted = replace(wanted, last_transition_time=at)
        self._status.apply(name, uid, wanted, force=foreign)
        self._measures.add("rule_conditions_total")

    def _condition(
        self, rule: DeviceTaintRule, found: RuleCondition, now: Progress | None
    ) -> Condition:
        if now is not None:
            return progress.running(now, found.generation, found.condition)
        if rule.spec.taint.effect == Effect.NONE.value:
            return progress.without_effect(self._view.preview(rule), found.generation)
        return progress.other_effect(found.generation)

    def _may_take(self, rule: DeviceTaintRule, found: RuleCondition) -> bool:
        if found.writer != IN_TREE:
            self._leave(rule, f"the condition belongs to {found.writer or 'an unknown writer'}")
            return False
        at = found.condition.last_transition_time if found.condition else None
        if at is not None and at > self._began:
            self._leave(rule, "the in-tree evictor has just written it: two evictors are at work")
            self._in_tree.doubt()
            return False
        if not self._in_tree.sure:
            self._leave(
                rule,
                "the condition is the in-tree evictor's; only mode auto, which asks "
                "whether that works, takes it over",
            )
            return False
        return True

    def _leave(self, rule: DeviceTaintRule, why: str) -> None:
        if rule.metadata.uid not in self._left_alone:
            self._left_alone.add(rule.metadata.uid)
            _log.warning("condition left alone", rule=rule.metadata.name, reason=why)

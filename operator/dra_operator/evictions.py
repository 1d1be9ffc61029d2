"""Evicting pods: who is next, how fast, and what becomes of each.

A pod waits until its moment comes, then it is ready. A start needs room in the rate and in the
share of its pool. An attempt asks the API server once more whether the taint is still there (what
it said within the last second will do, so that a rule with many pods is not read for each), then
uses the Eviction API, which adds the condition DisruptionTarget itself. While a PodDisruptionBudget
says no it is tried again with growing pauses; once the configured time after the pod's moment has
passed, we add that condition and delete the pod. It is in flight until it is gone.

Event handlers call :meth:`Evictions.apply` from their threads, one thread calls
:meth:`Evictions.run_due`, attempts run where ``start`` puts them; one lock is held for moments,
never during a request.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog

from dra_core.errors import ApiConflict, ApiError, ApiNotFound, ApiUnavailable
from dra_core.eviction import Verdict
from dra_core.model.taints import DeviceTaintRule
from dra_operator.agenda import Agenda, Plan, State
from dra_operator.cluster import RULES, Cluster, Object, Pool, Preview
from dra_operator.deallocations import Deallocations
from dra_operator.pacing import Backoff, Rate, Shares
from dra_operator.ports import (
    Clock,
    EvictionRefused,
    Measures,
    Mode,
    Notices,
    PodApi,
    Start,
    TaintApi,
)
from dra_operator.progress import Progress
from dra_operator.unprepared import Unprepared
from dra_operator.wide_rules import WideRules

_log = structlog.get_logger(__name__)

#: Seconds: before a taint that was not confirmed is asked about again; between looks at a pool that
#: has no room; for which the size of a pool is good, and between updates of gauges.
_DOUBT, _FULL, _FRESH = 5.0, 1.0, 1.0
#: Seconds: the longest pause after an attempt that came to nothing for other reasons than a budget.
_OUTAGE: Final = 10.0
#: Reasons of events.
EVICTED: Final = "DeviceTaintEviction"
BLOCKED: Final = "DeviceTaintEvictionBlocked"
CANCELLED: Final = "DeviceTaintEvictionCancelled"


@dataclass(frozen=True, slots=True)
class Limits:
    """See the settings of the same names; ``delete_after`` None means never."""

    pods_per_second: float = 20.0
    pool_share: float = 0.25
    hold_share: float = 0.5
    delete_after: float | None = None
    report_unstarted: float = 120.0
    backoff: Backoff = field(default_factory=Backoff)


@dataclass(frozen=True, slots=True)
class World:
    """The ports.

    ``mode``: evict, observe, or None if neither is decided. ``allowed``: whether this instance may
    write (it leads). ``wake``: call run_due soon. ``doubt``: what is in memory seems to be out of
    date, compare it with the API server.
    """

    pods: PodApi
    taints: TaintApi
    notices: Notices
    measures: Measures
    clock: Clock
    start: Start
    mode: Callable[[], Mode | None] = lambda: Mode.EVICT
    allowed: Callable[[], bool] = lambda: True
    wake: Callable[[], None] = lambda: None
    doubt: Callable[[], None] = lambda: None


class Evictions:
    """See the module."""

    def __init__(self, cluster: Cluster, world: World, limits: Limits) -> None:
        self._lock = threading.RLock()
        self._cluster = cluster
        self._world = world
        self._limits = limits
        self._rate = Rate(limits.pods_per_second)
        self._shares = Shares(limits.pool_share)
        self._agenda = Agenda()
        self._wide = WideRules(cluster, self._agenda, world, limits.hold_share)
        self._mode: Mode | None = None
        self._gone: Counter[str] = Counter()
        self._spared: dict[str, str] = {}
        self._deallocations = Deallocations(cluster, world.notices, world.measures)
        self._unprepared = Unprepared(
            cluster, world.notices, world.measures, limits.report_unstarted
        )
        self._sizes: dict[Pool, tuple[float, int, frozenset[str]]] = {}
        self._measured_at = float("-inf")

    # -- what happens in the cluster

    def apply(self, item: Object) -> None:
        """A new or changed object."""
        with self._lock:
            self._changed(self._cluster.put(item))

    def forget(self, kind: str, uids: Iterable[str]) -> None:
        """Objects that are gone."""
        with self._lock:
            for uid in uids:
                self._changed(self._cluster.remove(kind, uid))
                if kind == RULES:
                    self._gone.pop(uid, None)
                    self._wide.forget(uid)

    def known(self, kind: str) -> frozenset[str]:
        """The UIDs of all objects of a kind."""
        with self._lock:
            return self._cluster.known(kind)

    def _changed(self, uids: Iterable[str]) -> None:
        for uid in uids:
            verdict = self._cluster.verdict(uid)
            plan = self._agenda.plans.get(uid)
            if plan is not None and plan.state in (State.ATTEMPTED, State.IN_FLIGHT):
                self._follow(plan, verdict)
            elif verdict is not None and verdict.at is not None:
                self._plan(verdict, verdict.at, plan)
            elif plan is not None:
                self._cancel(plan, verdict)
            else:
                self._spare(uid, verdict)
                continue
            self._spared.pop(uid, None)
            self._world.wake()

    def _spare(self, uid: str, verdict: Verdict | None) -> None:
        """Say once why a pod with a tainted device stays."""
        if verdict is None or not verdict.tainted or verdict.pod.deleting or verdict.pod.finished:
            self._spared.pop(uid, None)
        elif self._spared.get(uid) != verdict.reason:
            self._spared[uid] = verdict.reason
            self._world.measures.add("spared_total")
            _log.info("pod stays", pod=str(verdict.pod), uid=uid, reason=verdict.reason)

    def _follow(self, plan: Plan, verdict: Verdict | None) -> None:
        """Nothing more to do for a pod in flight; once it is gone there is room for another."""
        if verdict is None or verdict.pod.finished:
            self._drop(plan)
            self._gone.update(plan.rules)
            self._world.measures.add("pods_gone_total")
            _log.info("pod is gone", pod=str(plan.pod), uid=plan.uid)
            self._deallocations.expect(plan.pod, self._world.clock.monotonic())

    def _cancel(self, plan: Plan, verdict: Verdict | None) -> None:
        self._drop(plan)
        if verdict is None or verdict.pod.deleting or plan.state is State.OBSERVED:
            return
        _log.info("eviction cancelled", pod=str(plan.pod), uid=plan.uid, reason=verdict.reason)
        self._world.measures.add("cancelled_total")
        if self._mode is Mode.EVICT and self._world.allowed():
            note = f"stays after all: {verdict.reason}"
            self._world.start(lambda: self._world.notices.tell(plan.pod, "Normal", CANCELLED, note))

    def _plan(self, verdict: Verdict, at: datetime, plan: Plan | None) -> None:
        rules = frozenset(
            cause.placed.source.uid
            for cause in verdict.causes
            if cause.at is not None and cause.placed.source.kind == "DeviceTaintRule"
        )
        same = plan is not None and plan.at == at and plan.cause == verdict.causes[0]
        if plan is not None and same and plan.rules == rules:
            plan.pod = verdict.pod
            return
        pod = verdict.pod
        if not same:
            _log.info("pod is to go", pod=str(pod), uid=pod.uid, at=str(at), reason=verdict.reason)
        self._agenda.add(Plan(pod, at, verdict.causes[0], rules))

    def _drop(self, plan: Plan) -> None:
        self._agenda.drop(plan)
        self._shares.leave(plan.group, plan.uid)
        pool = plan.group[1]
        if pool in self._sizes:
            # Counting anew for each pod that goes would take a second for a pool of a thousand.
            counted_at, size, leaving = self._sizes[pool]
            self._sizes[pool] = counted_at, size - 1, leaving - {plan.pod.uid}

    # -- what rules say

    def rules(self) -> list[DeviceTaintRule]:
        """All rules."""
        with self._lock:
            return self._cluster.rules()

    def preview(self, rule: DeviceTaintRule) -> Preview:
        """What the rule would do with effect NoExecute."""
        with self._lock:
            return self._cluster.preview(rule)

    def progress(self, rule: str) -> Progress:
        """How far the evictions of a rule are, by its UID."""
        with self._lock:
            plans = self._agenda.of_rule(rule)
            going = sum(1 for plan in plans if plan.state is State.IN_FLIGHT)
            return Progress(
                pending=len(plans) - going,
                going=going,
                namespaces=len({plan.pod.namespace for plan in plans}),
                gone=self._gone[rule],
                held=self._wide.held(rule),
            )

    # -- what is done

    def run_due(self) -> float:
        """Start what may be started now; seconds until there may be more to do."""
        with self._lock:
            now, tick = self._world.clock.now(), self._world.clock.monotonic()
            before, self._mode = self._mode, self._world.mode()
            if self._mode is not Mode.OBSERVE and before is Mode.OBSERVE:
                self._agenda.wake_observed(tick)
            self._agenda.ripen(now, tick)
            wait = float("inf")
            if self._mode is Mode.OBSERVE:
                self._observe()
            elif self._mode is Mode.EVICT and self._world.allowed():
                wait = self._start_ready(tick)
            self._measure(tick)
            return min(wait, self._agenda.pause(now, tick))

    def _observe(self) -> None:
        while plans := list(self._agenda.first()):
            for plan in plans:
                plan.state = State.OBSERVED
                self._world.measures.add("observed_total")
                _log.info(
                    "pod would be evicted, but mode is observe",
                    pod=str(plan.pod),
                    uid=plan.uid,
                    reason=str(plan.cause),
                )

    def _start_ready(self, tick: float) -> float:
        """Start as many as may; seconds until another look is of use."""
        while True:
            ready = list(self._agenda.first())
            if not ready:
                return float("inf")
            wait = self._rate.next_at(tick) - tick
            if wait > 0:
                return wait
            with_room = [
                plan
                for plan in ready
                if not self._wide.holds(plan, tick) and self._room(plan, tick)
            ]
            if not with_room:
                return _FULL
            plan = min(with_room, key=lambda plan: plan.order)
            self._rate.start(tick)
            self._shares.enter(plan.group, plan.uid)
            plan.state = State.ATTEMPTED
            self._world.start(lambda plan=plan: self._attempt(plan))  # type: ignore[misc]

    def _room(self, plan: Plan, tick: float) -> bool:
        pool = plan.group[1]
        known = self._sizes.get(pool)
        if known is None or tick >= known[0] + _FRESH:
            known = self._sizes[pool] = tick, *self._cluster.pods_in(pool)
        return self._shares.room(plan.group, known[1], known[2])

    # -- one attempt, in a thread of its own

    def _attempt(self, plan: Plan) -> None:
        try:
            self._try(plan)
        except (ApiNotFound, ApiConflict) as error:
            # It is gone, or somebody else has its name now: the UID did not fit.
            _log.info("pod is gone already", pod=str(plan.pod), uid=plan.uid, error=str(error))
            self._world.measures.add("attempts_total", result="gone")
            self._world.doubt()
            with self._lock:
                self._drop(plan)
        except ApiError as error:
            level = _log.warning if error.retryable else _log.error
            level("eviction failed", pod=str(plan.pod), uid=plan.uid, error=str(error))
            self._again(plan, "failed")
        self._world.wake()

    def _try(self, plan: Plan) -> None:
        if not self._world.allowed():
            self._again(plan, "not leading", _DOUBT)
        elif not self._world.taints.confirm(plan.cause):
            _log.info("the taint is not there any more", pod=str(plan.pod), reason=str(plan.cause))
            self._world.doubt()
            self._again(plan, "unconfirmed", _DOUBT)
        elif self._evict(plan):
            self._done(plan)

    def _evict(self, plan: Plan) -> bool:
        try:
            self._world.pods.evict(plan.pod)
        except ApiUnavailable as error:
            if not self._overdue(plan):
                self._not_now(plan, error)
                return False
            _log.warning(
                "deleting a pod whose eviction was not possible in time",
                pod=str(plan.pod),
                uid=plan.uid,
                error=str(error),
            )
            self._world.pods.mark(plan.pod, f"deleted because {plan.cause}")
            self._world.pods.delete(plan.pod)
        return True

    def _overdue(self, plan: Plan) -> bool:
        seconds = self._limits.delete_after
        if seconds is None:
            return False
        return self._world.clock.now() >= plan.at + timedelta(seconds=seconds)

    def _not_now(self, plan: Plan, error: ApiUnavailable) -> None:
        _log.info("eviction is not possible now", pod=str(plan.pod), uid=plan.uid, error=str(error))
        refused = isinstance(error, EvictionRefused)
        if refused and not plan.told:
            plan.told = True
            note = f"is to go because {plan.cause}; it cannot be evicted now: {error}"
            self._world.notices.tell(plan.pod, "Warning", BLOCKED, note)
        self._again(plan, "blocked" if refused else "failed", error.retry_after)

    def _again(self, plan: Plan, result: str, wanted: float = 0.0) -> None:
        self._world.measures.add("attempts_total", result=result)
        with self._lock:
            if self._agenda.plans.get(plan.uid) is not plan:
                return  # it went in the meantime
            self._shares.leave(plan.group, plan.uid)
            plan.failures += 1
            pause = self._limits.backoff.pause(plan.failures, wanted)
            if result != "blocked":
                # A budget takes its time; an API server is back from one moment to the next.
                pause = max(wanted, min(pause, _OUTAGE))
            if self._limits.delete_after is not None:
                last = plan.at + timedelta(seconds=self._limits.delete_after)
                left = (last - self._world.clock.now()).total_seconds()
                pause = min(pause, left) if left > 0 else pause
            self._agenda.retry(plan, self._world.clock.monotonic() + pause)
            # What came while it was attempted may have changed its fate.
            self._changed([plan.uid])

    def _done(self, plan: Plan) -> None:
        self._world.measures.add("attempts_total", result="evicted")
        with self._lock:
            plan.state = State.IN_FLIGHT
            late = (self._world.clock.now() - plan.at).total_seconds()
        _log.info(
            "pod evicted",
            pod=str(plan.pod),
            uid=plan.uid,
            reason=str(plan.cause),
            seconds_after_its_moment=round(late, 3),
        )
        self._world.notices.tell(plan.pod, "Normal", EVICTED, f"evicted because {plan.cause}")

    def _measure(self, tick: float) -> None:
        if tick < self._measured_at + _FRESH:
            return
        self._measured_at = tick
        self._deallocations.look(tick, self._world.start)
        world = self._world
        self._unprepared.look(world.clock.now(), telling=world.allowed(), start=world.start)
        count = dict.fromkeys(State, 0)
        for plan in self._agenda.plans.values():
            count[plan.state] += 1
        for state, number in count.items():
            self._world.measures.set("pods", number, state=state.value)

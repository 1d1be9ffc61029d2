"""Which pods are to go, when, and in which order."""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dra_core.eviction import Cause
from dra_core.model.usage import Pod
from dra_operator.cluster import Pool

#: What a share is counted for: the UID of a rule or slice, and the pool.
Group = tuple[str, Pool]
Order = tuple[int, float, str]

#: Seconds after which the agenda is looked at again even if nothing was to happen.
IDLE: Final = 60.0


class State(enum.Enum):
    """Where a pod is on its way out."""

    WAITING = "waiting"
    READY = "ready"
    ATTEMPTED = "attempted"
    IN_FLIGHT = "in flight"
    OBSERVED = "observed"


@dataclass(slots=True)
class Plan:
    """One pod's way out. ``entry`` tells its place in the queues from places it had before.

    ``rules`` are the UIDs of all rules that want it to go at some time. ``told``: that its eviction
    is refused was written into an Event.
    """

    pod: Pod
    at: datetime
    cause: Cause
    rules: frozenset[str] = frozenset()
    state: State = State.WAITING
    failures: int = 0
    told: bool = False
    entry: int = 0

    @property
    def uid(self) -> str:
        """The pod's."""
        return self.pod.uid

    @property
    def group(self) -> Group:
        """The pods of one pool that one rule taints."""
        device = self.cause.device
        return self.cause.placed.source.uid, (device.driver, device.pool)

    @property
    def order(self) -> Order:
        """Lowest priority first; within one the youngest, since the least work is lost."""
        created = self.pod.created
        return self.pod.priority, -created.timestamp() if created else 0.0, self.pod.uid


class Agenda:
    """Plans by pod. Waiting ones become ready at their moment; ready ones are kept by group.

    Entries of plans that were dropped or put elsewhere stay in the queues until they come up.
    """

    def __init__(self) -> None:
        self.plans: dict[str, Plan] = {}
        self._by_rule: dict[str, set[str]] = {}
        self._entries = 0
        self._waiting: list[tuple[datetime, int, str]] = []
        self._retrying: list[tuple[float, int, str]] = []
        self._ready: dict[Group, list[tuple[Order, int, str]]] = {}

    def of_rule(self, uid: str) -> list[Plan]:
        """The plans that a rule has a part in."""
        return [self.plans[pod] for pod in self._by_rule.get(uid, ())]

    def count(self, uid: str) -> int:
        """How many plans a rule has a part in."""
        return len(self._by_rule.get(uid, ()))

    def add(self, plan: Plan) -> None:
        """Wait for the plan's moment."""
        self.drop(plan)
        for uid in plan.rules:
            self._by_rule.setdefault(uid, set()).add(plan.uid)
        self._enter(plan, State.WAITING)
        heapq.heappush(self._waiting, (plan.at, plan.entry, plan.uid))

    def retry(self, plan: Plan, tick: float) -> None:
        """Wait until this monotonic time."""
        self._enter(plan, State.WAITING)
        heapq.heappush(self._retrying, (tick, plan.entry, plan.uid))

    def wake_observed(self, tick: float) -> None:
        """Those that were only observed become ready."""
        for plan in list(self.plans.values()):
            if plan.state is State.OBSERVED:
                self.retry(plan, tick)

    def drop(self, plan: Plan) -> None:
        """Nothing is to be done any more."""
        before = self.plans.pop(plan.uid, None)
        for uid in before.rules if before else ():
            pods = self._by_rule[uid]
            pods.discard(plan.uid)
            if not pods:
                del self._by_rule[uid]

    def ripen(self, now: datetime, tick: float) -> None:
        """Whose moment has come is ready."""
        while self._waiting and self._waiting[0][0] <= now:
            _, entry, uid = heapq.heappop(self._waiting)
            self._make_ready(uid, entry)
        while self._retrying and self._retrying[0][0] <= tick:
            _, entry, uid = heapq.heappop(self._retrying)
            self._make_ready(uid, entry)

    def first(self) -> Iterator[Plan]:
        """The next ready plan of each group."""
        for group, queue in list(self._ready.items()):
            while queue and not self._current(queue[0][2], queue[0][1], State.READY):
                heapq.heappop(queue)
            if queue:
                yield self.plans[queue[0][2]]
            else:
                del self._ready[group]

    def pause(self, now: datetime, tick: float) -> float:
        """Seconds until another plan becomes ready."""
        pauses = [IDLE]
        if self._waiting:
            pauses.append(max(0.0, (self._waiting[0][0] - now).total_seconds()))
        if self._retrying:
            pauses.append(max(0.0, self._retrying[0][0] - tick))
        return min(pauses)

    def _enter(self, plan: Plan, state: State) -> None:
        self._entries += 1
        plan.state, plan.entry = state, self._entries
        self.plans[plan.uid] = plan

    def _make_ready(self, uid: str, entry: int) -> None:
        if self._current(uid, entry, State.WAITING):
            plan = self.plans[uid]
            plan.state = State.READY
            heapq.heappush(self._ready.setdefault(plan.group, []), (plan.order, entry, uid))

    def _current(self, uid: str, entry: int, state: State) -> bool:
        plan = self.plans.get(uid)
        return plan is not None and plan.entry == entry and plan.state is state

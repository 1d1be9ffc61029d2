"""Attaching the devices of pods that wait for them.

A device whose allocation has binding conditions is attached, verified, and only then said to be
ready. If that is not possible, or not by our deadline (which is before the scheduler's), the device
is held back, the failure condition is set, and what was done is taken away, in this order: when the
scheduler looks for another device this one is not to be had. Once the claim is deallocated or gone
the device is detached. The fabric is the record: it is asked from time to time what is attached for
whom, so nothing stays attached without a claim, whatever happened while nobody looked.

Event handlers call :meth:`Bindings.apply` from their threads, one thread calls
:meth:`Bindings.run_due`, work runs where ``start`` puts it, once at a time for each device of a
claim; one lock is held for moments, never during a call.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from dra_core.binding import Others, Standing, Target
from dra_core.model.taints import DeviceTaintRule
from dra_core.model.usage import ClaimInUse
from dra_core.names import DriverName
from dra_operator.api import Attacher
from dra_operator.attaching import Limits, Steps, World, text_of
from dra_operator.attachments import NEVER, NOW, Attachments, Record
from dra_operator.cluster import CLAIMS, RULES, Object
from dra_operator.holds import Holds
from dra_operator.reports import Reports

__all__ = ["Bindings", "Limits", "World"]

_log = structlog.get_logger(__name__)

#: Seconds between updates of gauges.
_FRESH: Final = 1.0
#: Of the gauge ``attachments``.
STATES: Final = ("waiting", "ready", "failed", "releasing")


def _state(record: Record) -> str:
    if record.target is None:
        return "releasing"
    if record.says is Standing.OPEN:
        return "waiting" if record.gave_up is None else "failed"
    return "ready" if record.says is Standing.READY else "failed"


class Bindings:
    """See the module. ``namespaces`` empty means all; ``cluster`` stands in every tag."""

    def __init__(
        self,
        attachers: Mapping[DriverName, Attacher],
        world: World,
        limits: Limits,
        cluster: str,
        namespaces: Iterable[str] = (),
    ) -> None:
        self._lock = threading.RLock()
        self._attachers = attachers
        self._world = world
        self._limits = limits
        others: Others = {driver: frozenset(a.OTHERS) for driver, a in attachers.items()}
        now = world.clock.now
        self._attachments = Attachments(others, cluster, namespaces)
        delay = min(limits.hold.delay, limits.deadline / 4)
        self._holds = Holds(world.holds, world.measures, now, replace(limits.hold, delay=delay))
        self._steps = Steps(
            attachers=attachers,
            attachments=self._attachments,
            reports=Reports(world.claims, others, world.measures, now),
            holds=self._holds,
            world=world,
            limits=limits,
            lock=self._lock,
        )
        self._list_at = dict.fromkeys(attachers, NOW)
        self._measured_at = NOW

    # -- what happens in the cluster

    def apply(self, item: Object) -> None:
        """A new or changed object."""
        with self._lock:
            if isinstance(item, ClaimInUse):
                if self._attachments.put(item, self._world.clock.now()):
                    self._world.wake()
            elif isinstance(item, DeviceTaintRule):
                self._holds.put(item)

    def forget(self, kind: str, uids: Collection[str]) -> None:
        """Objects that are gone."""
        with self._lock:
            for uid in uids:
                if kind == CLAIMS:
                    self._attachments.remove(uid)
                elif kind == RULES:
                    self._holds.remove(uid)
        self._world.wake()

    def known(self, kind: str) -> frozenset[str]:
        """The UIDs of all objects of a kind."""
        with self._lock:
            by_kind = {CLAIMS: self._attachments.claims, RULES: self._holds.known}
            return by_kind[kind]() if kind in by_kind else frozenset()

    # -- what is done

    def run_due(self) -> float:
        """Start what may be started now; seconds until there may be more to do."""
        with self._lock:
            tick = self._world.clock.monotonic()
            self._measure(tick)
            if not self._world.allowed():
                self._attachments.idle()
                return NEVER
            for record in list(self._attachments.records.values()):
                if not record.busy and record.due <= tick:
                    record.busy, record.due = True, NEVER
                    self._world.start(record.device.driver, partial(self._work, record))
            for driver, at in self._list_at.items():
                if at <= tick:
                    self._list_at[driver] = NEVER
                    self._world.start(driver, partial(self._list, driver))
            for name, uid in self._holds.due():
                self._world.start(next(iter(self._attachers)), partial(self._lift, name, uid))
            dues = [r.due for r in self._attachments.records.values() if not r.busy]
            return max(0.0, min(dues + list(self._list_at.values()), default=NEVER) - tick)

    def _lift(self, name: str, uid: str) -> None:
        if self._world.allowed():
            self._holds.lift(name, uid)

    def _list(self, driver: DriverName) -> None:
        asked_at = self._world.clock.monotonic()
        try:
            found = list(self._attachers[driver].attachments(self._limits.call))
        except Exception as error:  # noqa: BLE001 - a vendor's code
            self._world.measures.add("fabric_lists_total", driver=driver, result="failed")
            _log.warning("the fabric cannot be listed", driver=driver, error=text_of(error))
        else:
            self._world.measures.add("fabric_lists_total", driver=driver, result="listed")
            with self._lock:
                self._attachments.compare(driver, found, asked_at, self._world.clock.now())
        with self._lock:
            self._list_at[driver] = self._world.clock.monotonic() + self._limits.list_interval
        self._world.wake()

    # -- one look at a device of a claim, in a thread of its own

    def _work(self, record: Record) -> None:
        with self._lock:
            target = record.target
        pause = self._limits.backoff.most
        try:
            if self._world.allowed():
                pause = self._steps.take(record, target)
        finally:
            self._done(record, target, pause)

    def _done(self, record: Record, target: Target | None, pause: float) -> None:
        with self._lock:
            tick = self._world.clock.monotonic()
            record.busy, record.touched = False, tick
            if record.target is target or (record.target is not None and target is not None):
                # What came meanwhile may have made it due already.
                record.due = min(record.due, tick + pause)
            else:
                record.due = NOW
        self._world.wake()

    def _measure(self, tick: float) -> None:
        if tick < self._measured_at + _FRESH:
            return
        self._measured_at = tick
        count = {(d, s): 0 for d in self._attachers for s in STATES}
        oldest = dict.fromkeys(self._attachers, 0.0)
        now = self._world.clock.now()
        for record in self._attachments.records.values():
            driver, state = record.device.driver, _state(record)
            count[driver, state] = count.get((driver, state), 0) + 1
            if state == "waiting" and record.target is not None:
                since = record.target.allocated_at or record.seen
                oldest[driver] = max(oldest[driver], (now - since).total_seconds())
        for (driver, state), number in count.items():
            self._world.measures.set("attachments", number, driver=driver, state=state)
        for driver, seconds in oldest.items():
            self._world.measures.set("oldest_waiting_seconds", seconds, driver=driver)

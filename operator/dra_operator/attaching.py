"""What is done about one device of one claim.

Each step ends with the seconds until another look is due. Order of effects: attach, verify, then
say so; or hold the device back, say that it failed, then take away what was done. Steps of one
record run one at a time; the lock is held for moments, never during a call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog

from dra_core import binding
from dra_core.binding import Act, Outcome, Report, Target
from dra_core.errors import ApiError, ApiForbidden, DraError
from dra_core.names import DriverName
from dra_operator.api import Attacher, AttachFailed
from dra_operator.attachments import NEVER, NOW, Attachments, Record
from dra_operator.binding_ports import ClaimApi, ClaimNotices, Contested, HoldApi, StartFor
from dra_operator.holds import Holds, Pause
from dra_operator.pacing import Backoff
from dra_operator.ports import Clock, Measures
from dra_operator.reports import Reports, Stale

_log = structlog.get_logger(__name__)

#: Reasons of conditions.
ATTACHING: Final = "Attaching"
ATTACHED: Final = "Attached"
NOT_NOW: Final = "AttachDelayed"
UNVERIFIED: Final = "NotVerified"
TOO_LATE: Final = "AttachTimedOut"
#: Reasons of events.
BEGUN: Final = "DeviceAttaching"
DONE: Final = "DeviceAttached"
FAILED: Final = "DeviceAttachFailed"
HELD: Final = "DeviceHeldBack"
DETACHED: Final = "DeviceDetached"
LOST: Final = "DeviceAttachmentLost"
CONTESTED: Final = "DeviceConditionContested"
#: Seconds between words about how far an attachment is.
_WORDS: Final = 10.0
#: Attempts to hold a device back before its claim is told to look for another one all the same.
_INSIST: Final = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds. ``deadline`` counts from the allocation; ``call`` is for one call of an attacher.

    ``poll`` is the pause while the fabric works, ``list_interval`` that between its lists.
    """

    deadline: float = 540.0
    call: float = 20.0
    poll: float = 1.0
    list_interval: float = 15.0
    hold: Pause = field(default_factory=Pause)
    backoff: Backoff = field(default_factory=lambda: Backoff(1.0, 15.0))


@dataclass(frozen=True, slots=True)
class World:
    """The ports.

    ``allowed``: whether this instance may write (it leads). ``wake``: call run_due soon.
    """

    claims: ClaimApi
    holds: HoldApi
    notices: ClaimNotices
    measures: Measures
    clock: Clock
    start: StartFor
    allowed: Callable[[], bool] = lambda: True
    wake: Callable[[], None] = lambda: None


class Steps:
    """See the module."""

    def __init__(
        self,
        *,
        attachers: Mapping[DriverName, Attacher],
        attachments: Attachments,
        reports: Reports,
        holds: Holds,
        world: World,
        limits: Limits,
        lock: threading.RLock,
    ) -> None:
        self._attachers = attachers
        self._attachments = attachments
        self._reports = reports
        self._holds = holds
        self._world = world
        self._limits = limits
        self._lock = lock
        self._forbidden: set[str] = set()

    def take(self, record: Record, target: Target | None) -> float:
        """The next step; seconds until another look, NEVER if something has to happen first."""
        try:
            return self._next(record, target)
        except Stale as stale:
            with self._lock:
                if stale.claim is None:
                    self._attachments.remove(record.tag.uid)
                else:
                    self._attachments.put(stale.claim, self._world.clock.now())
            return NOW
        except Contested as error:
            self._once(record, CONTESTED, f"a condition is set by another writer: {error}")
        except ApiError as error:
            self._refused(record, error)
        except Exception as error:  # noqa: BLE001 - a vendor's code
            _log.warning("trouble with the fabric", **_names(record), error=text_of(error))
        return self._again(record, target)

    def _next(self, record: Record, target: Target | None) -> float:
        if target is None:
            return self._detach(record)
        late = self._world.clock.now() >= self._deadline(record, target)
        act = binding.decide(target, record.says, record.gave_up is not None, late)
        if act is Act.ATTACH:
            return self._attach(record, target)
        if act is Act.KEEP:
            return self._keep(record, target)
        if act is Act.FAIL:
            return self._fail(record, target)
        if act is Act.WAIT:
            self._hold(record, target)
            return NEVER
        return self._roll_back(record)

    def _deadline(self, record: Record, target: Target) -> datetime:
        return binding.deadline(target, record.seen, self._limits.deadline)

    def _attach(self, record: Record, target: Target) -> float:
        now = self._world.clock.now()
        begins = self._holds.delayed_until(record.device)
        if begins is not None and now < begins:
            self._say(record, target, NOT_NOW, f"failed a moment ago, tried again at {begins:%T}Z")
            left = min(begins, self._deadline(record, target)) - now
            return left.total_seconds()
        if record.began is None:
            record.began = self._world.clock.monotonic()
            _log.info("attaching", **_names(record), node=target.node)
            self._tell(record, "Normal", BEGUN, f"attaching {record.device} to node {target.node}")
        attacher, wish = self._attachers[record.device.driver], record.wish(target)
        step = NOT_NOW
        try:
            progress = attacher.attach(wish, self._limits.call)
            if not progress.done:
                record.failures = 0
                self._say(record, target, ATTACHING, progress.message)
                return self._before(record, target, self._limits.poll)
            step = UNVERIFIED
            attacher.verify(wish, self._limits.call)
        except AttachFailed as error:
            self._give_up(record, target, Report(Outcome.FAILED, error.reason, str(error)))
            return NOW
        except (Stale, ApiError):
            raise
        except Exception as error:  # noqa: BLE001 - a vendor's code
            _log.info("not attached yet", **_names(record), reason=step, error=text_of(error))
            self._say(record, target, step, text_of(error))
            return self._again(record, target)
        self._report(record, target, Report(Outcome.READY, ATTACHED, f"on node {target.node}"))
        self._succeeded(record, target)
        return NEVER

    def _give_up(self, record: Record, target: Target, report: Report) -> None:
        with self._lock:
            if record.target is not None and record.target.same_allocation(target):
                record.gave_up = report

    def _again(self, record: Record, target: Target | None) -> float:
        """After something that may work later."""
        record.failures += 1
        pause = self._limits.backoff.pause(record.failures)
        return pause if target is None else self._before(record, target, pause)

    def _before(self, record: Record, target: Target, pause: float) -> float:
        """A pause that does not reach beyond the deadline, unless that has passed."""
        left = (self._deadline(record, target) - self._world.clock.now()).total_seconds()
        return min(pause, left) if left > 0 else pause

    def _succeeded(self, record: Record, target: Target) -> None:
        began = record.began
        seconds = 0.0 if began is None else self._world.clock.monotonic() - began
        self._holds.succeeded(record.device)
        driver = record.device.driver
        self._world.measures.add("attached_total", driver=driver, result="attached")
        self._world.measures.add("attach_seconds_total", seconds, driver=driver)
        _log.info("attached", **_names(record), node=target.node, seconds=round(seconds, 3))
        note = f"{record.device} is attached to node {target.node} after {seconds:.1f} s"
        self._tell(record, "Normal", DONE, note)

    def _keep(self, record: Record, target: Target) -> float:
        if not record.amiss:
            return NEVER
        if record.lost:
            note = f"{record.device} is not attached to node {target.node} any more; tried again"
            self._once(record, LOST, note)
        attacher = self._attachers[record.device.driver]
        if not attacher.attach(record.wish(target), self._limits.call).done:
            return self._limits.poll
        record.amiss = record.lost = False
        record.told.discard(LOST)
        return NEVER

    def _fail(self, record: Record, target: Target) -> float:
        if record.gave_up is None:
            why = f"not attached within {self._limits.deadline:g} s of the allocation"
            self._give_up(record, target, Report(Outcome.FAILED, TOO_LATE, why))
        report, trouble = record.gave_up, None
        if report is None:
            return NOW
        self._hold(record, target)
        if record.reported != report:
            try:
                self._report(record, target, report)
                self._failed(record, report)
            except ApiError as error:
                trouble = error
        pause = self._roll_back(record)
        if trouble is not None:
            raise trouble
        return pause

    def _failed(self, record: Record, report: Report) -> None:
        driver = record.device.driver
        self._world.measures.add("attached_total", driver=driver, result=report.reason)
        _log.warning("attaching failed", **_names(record), reason=report.reason, why=report.message)
        self._tell(record, "Warning", FAILED, f"{record.device}: {report.reason}: {report.message}")

    def _hold(self, record: Record, target: Target) -> None:
        if record.held:
            return
        note = self._holds.place(record.device, insist=record.failures < _INSIST)
        with self._lock:
            record.held = record.target is not None and record.target.same_allocation(target)
        self._tell(record, "Normal", HELD, note)

    def _roll_back(self, record: Record) -> float:
        attacher = self._attachers[record.device.driver]
        progress = attacher.detach(record.device, record.tag, self._limits.call)
        record.failures = 0
        return NEVER if progress.done else self._limits.poll

    def _detach(self, record: Record) -> float:
        """For a claim of which it is certain that it does not have the device any more."""
        claim = self._reports.holder(record.claim, record.device)
        if claim is not None:
            with self._lock:
                self._attachments.put(claim, self._world.clock.now())
                return NEVER if record.target is None else NOW
        if (pause := self._roll_back(record)) != NEVER:
            return pause
        with self._lock:
            if record.target is not None:
                return NOW
            del self._attachments.records[record.key]
        if record.listed or record.began is not None:
            self._world.measures.add("detached_total", driver=record.device.driver)
            _log.info("detached", **_names(record))
            self._tell(record, "Normal", DETACHED, f"{record.device} is detached")
        return NEVER

    # -- what is said

    def _report(self, record: Record, target: Target, report: Report) -> None:
        until = None
        if report.outcome is not Outcome.FAILED:
            until = self._deadline(record, target)
        claim = self._reports.write(target, report, until)
        with self._lock:
            if record.target is not None and record.target.same_allocation(target):
                record.reported, record.failures = report, 0
                record.reported_at = self._world.clock.monotonic()
            self._attachments.put(claim, self._world.clock.now())

    def _say(self, record: Record, target: Target, reason: str, message: str) -> None:
        """How far it is, not too often; a word that cannot be written holds nothing up."""
        report = Report(Outcome.WAITING, reason, message)
        soon = self._world.clock.monotonic() < record.reported_at + _WORDS
        if record.reported == report or soon:
            return
        try:
            self._report(record, target, report)
        except (ApiForbidden, Contested):
            raise
        except ApiError as error:
            _log.info("progress not written", **_names(record), error=str(error))

    def _refused(self, record: Record, error: ApiError) -> None:
        """A missing right is said once for each driver, and again only after a restart."""
        driver = record.device.driver
        if isinstance(error, ApiForbidden) and driver not in self._forbidden:
            self._forbidden.add(driver)
            _log.error(
                "a right is missing; grant update of conditions to the operator's service account",
                driver=driver,
                needed=f"patch resourceclaims/status, arbitrary-node:patch resourceclaims/driver "
                f"with the name {driver}",
                error=str(error),
            )
        elif not isinstance(error, ApiForbidden):
            _log.info("the API server did not do it", **_names(record), error=str(error))

    def _once(self, record: Record, reason: str, note: str) -> None:
        if reason not in record.told:
            record.told.add(reason)
            _log.warning(note, **_names(record))
            self._tell(record, "Warning", reason, note)

    def _tell(self, record: Record, kind: str, reason: str, note: str) -> None:
        self._world.notices.tell(record.claim, kind, reason, note)


def _names(record: Record) -> dict[str, str]:
    return {"claim": f"{record.tag.namespace}/{record.tag.name}", "device": str(record.device)}


def text_of(error: Exception) -> str:
    """For the claim's owner; what an attacher did not mean to raise is for the log only."""
    if isinstance(error, DraError):
        return str(error)
    _log.error("an attacher failed unexpectedly", exc_info=error)
    return f"the attacher failed unexpectedly ({type(error).__name__}); the operator's log has more"

"""What has to be attached before a pod may be bound, and what to say of it in the claim.

No clock: moments are arguments. The scheduler waits until every entry of ``bindingConditions`` of
an allocation result is True in ``status.devices[].conditions`` of the claim; a True entry of
``bindingFailureConditions``, or its time-out from ``allocation.allocationTimestamp`` on, ends the
attempt (KEP-5007). It finds the conditions by driver, pool and device and takes the first entry, so
all shares of a device in a claim are attached as one and carry the same conditions.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from dra_core.errors import InvalidValue
from dra_core.model.claims import AllocationResult, Claim, ClaimReference, DeviceStatus
from dra_core.model.objects import Condition, Metadata
from dra_core.model.taints import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    Effect,
    RuleSpec,
)
from dra_core.model.usage import ClaimInUse
from dra_core.names import DeviceName, DriverName, PoolName
from dra_core.taints import DeviceId

#: Name prefix and taint key of the rules that hold back a device which could not be attached.
HOLD_PREFIX: Final = "dragoman-hold-"
HOLD_KEY: Final = "dragoman-attach-failed"
#: ``reason`` and ``message`` of a condition, see metav1.Condition.
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", re.ASCII)
_REASON_MAX, _MESSAGE_MAX = 1024, 1024
#: A moment as the value of a taint, which is a label's: no colons.
_UNTIL: Final = "%Y-%m-%dT%H.%M.%SZ"


@dataclass(frozen=True, slots=True)
class Target:
    """A device of a claim that waits for us.

    ``shares`` are the share IDs, None for a device that is not shared. ``ready`` and ``failed`` are
    the conditions that are ours to set, ``foreign`` the failure conditions that are others'.
    ``node`` is empty where the allocation does not name a single one.
    """

    claim: ClaimReference
    device: DeviceId
    shares: tuple[str | None, ...]
    ready: tuple[str, ...]
    failed: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    node: str = ""
    allocated_at: datetime | None = None
    results: tuple[AllocationResult, ...] = ()

    def same_allocation(self, other: Target) -> bool:
        """Whether both speak of the same allocation of the claim, or one that is as good."""
        return (self.claim.uid, self.device, self.shares, self.node, self.allocated_at) == (
            other.claim.uid,
            other.device,
            other.shares,
            other.node,
            other.allocated_at,
        )


class Standing(enum.Enum):
    """What the conditions in a claim say of a device."""

    OPEN = "open"
    READY = "ready"
    FAILED = "failed"
    #: Somebody else's failure condition is True.
    FOREIGN = "failed elsewhere"


class Act(enum.Enum):
    """What is to be done next."""

    ATTACH = "attach"
    #: It is attached and said to be so.
    KEEP = "keep"
    #: Too late: hold it back, say that it failed, take away what was done.
    FAIL = "fail"
    #: It has failed: take away what was done.
    ROLL_BACK = "roll back"
    #: Nothing until the claim is deallocated.
    WAIT = "wait"
    #: Nobody needs it any more.
    DETACH = "detach"


#: The conditions of each driver that are set by others than its attacher.
Others = Mapping[DriverName, frozenset[str]]


def targets(claim: ClaimInUse, others: Others) -> dict[DeviceId, Target]:
    """The devices of a claim that have to be attached, of the drivers in ``others``.

    A device of whose binding conditions none is ours does not concern us.
    """
    reference = ClaimReference(claim.namespace, claim.name, claim.uid)
    found: dict[DeviceId, Target] = {}
    for result in claim.results:
        device = DeviceId(result.driver, result.pool, result.device)
        foreign = others.get(result.driver)
        if foreign is None:
            continue
        ready = tuple(c for c in result.binding_conditions if c not in foreign)
        failures = result.binding_failure_conditions
        if not ready:
            continue
        if (known := found.get(device)) is not None:
            shares = tuple(dict.fromkeys((*known.shares, result.share_id)))
            found[device] = replace(known, shares=shares, results=(*known.results, result))
            continue
        found[device] = Target(
            claim=reference,
            device=device,
            shares=(result.share_id,),
            ready=ready,
            failed=tuple(c for c in failures if c not in foreign),
            foreign=tuple(c for c in failures if c in foreign),
            node=claim.node,
            allocated_at=claim.allocated_at,
            results=(result,),
        )
    return found


def standing(target: Target, devices: Sequence[DeviceStatus]) -> Standing:
    """What ``status.devices`` of the claim says."""
    entries = [_entry(target.device, share, devices) for share in target.shares]

    def true(name: str, entry: Mapping[str, Condition]) -> bool:
        return name in entry and entry[name].status == "True"

    if any(true(name, entry) for entry in entries for name in target.failed):
        return Standing.FAILED
    if any(true(name, entry) for entry in entries for name in target.foreign):
        return Standing.FOREIGN
    if all(true(name, entry) for entry in entries for name in target.ready):
        return Standing.READY
    return Standing.OPEN


def decide(target: Target | None, says: Standing, gave_up: bool, late: bool) -> Act:
    """The next act for a device of a claim.

    ``target`` is None if it is not (or no longer) allocated to the claim; ``gave_up`` whether this
    allocation was found not to work, ``late`` whether its deadline has passed.
    """
    if target is None:
        return Act.DETACH
    if says is Standing.READY:
        return Act.KEEP  # a pod may be running with it: from here on only the claim ends it
    if says is Standing.FAILED:
        return Act.ROLL_BACK
    if says is Standing.FOREIGN:
        return Act.WAIT
    return Act.FAIL if gave_up or late else Act.ATTACH


def deadline(target: Target, seen: datetime, seconds: float) -> datetime:
    """Until when it may be reported ready; ``seen`` stands in for a missing timestamp."""
    return (target.allocated_at or seen) + timedelta(seconds=seconds)


class Outcome(enum.Enum):
    """What is said of a device."""

    WAITING = "waiting"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Report:
    """What the conditions of a device are to say."""

    outcome: Outcome
    reason: str
    message: str = ""


def report_entries(
    target: Target, report: Report, devices: Sequence[DeviceStatus], now: datetime
) -> tuple[DeviceStatus, ...]:
    """Our part of ``status.devices``: one entry for each share, with our conditions and no others.

    ``devices`` is what stands there: the time of a condition whose status stays is kept. Of what
    failed, just the failure condition is named, so that nothing else can stand in its way;
    without a failure condition that is ours it can only be left unready.
    """
    now = now.astimezone(UTC).replace(microsecond=0)
    ready = "True" if report.outcome is Outcome.READY else "False"
    wanted = dict.fromkeys(target.ready, ready)
    if report.outcome is Outcome.FAILED and target.failed:
        wanted = {target.failed[0]: "True"}
    reason = report.reason if _REASON.fullmatch(report.reason) else "Unspecified"
    made = []
    for share in target.shares:
        before = _entry(target.device, share, devices)
        conditions = tuple(
            Condition(
                type=name,
                status=status,
                reason=reason[:_REASON_MAX],
                message=report.message[:_MESSAGE_MAX],
                last_transition_time=_since(before.get(name), status, now),
            )
            for name, status in wanted.items()
        )
        device = target.device
        made.append(DeviceStatus(*device, share_id=share, conditions=conditions))
    return tuple(made)


def _since(before: Condition | None, status: str, now: datetime) -> datetime:
    if before is None or before.status != status:
        return now
    return before.last_transition_time or now


def _entry(
    device: DeviceId, share: str | None, devices: Sequence[DeviceStatus]
) -> dict[str, Condition]:
    for entry in devices:
        if (entry.driver, entry.pool, entry.device) == device and entry.share_id == share:
            return {condition.type: condition for condition in entry.conditions}
    return {}


def confirmation(
    claim: Claim, device: DeviceId, condition: Condition, now: datetime
) -> tuple[DeviceStatus, ...]:
    """The entries that set one condition of a device, one for each share; none if it stands so.

    ``condition`` needs no time. Raises InvalidValue if the claim does not have the device, or its
    allocation does not wait for such a condition.
    """
    mine = [r for r in claim.results or () if (r.driver, r.pool, r.device) == device]
    known = {c for r in mine for c in (*r.binding_conditions, *r.binding_failure_conditions)}
    if condition.type not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise InvalidValue(
            f"claim {claim.reference} does not wait for condition {condition.type!r} of {device}; "
            f"conditions of its allocation are: {listed}"
        )
    now = now.astimezone(UTC).replace(microsecond=0)
    devices = claim.status.devices if claim.status else ()
    made, same = [], True
    for share in dict.fromkeys(r.share_id for r in mine):
        found = _entry(device, share, devices).get(condition.type)
        same = same and found is not None and found.status == condition.status
        full = replace(condition, last_transition_time=_since(found, condition.status, now))
        made.append(DeviceStatus(*device, share_id=share, conditions=(full,)))
    return () if same else tuple(made)


# -- holding back a device that could not be attached ----------------------------------------------
@dataclass(frozen=True, slots=True)
class Hold:
    """A device that nobody should get for a while."""

    device: DeviceId
    until: datetime

    @property
    def name(self) -> str:
        """Of the rule; one for each device."""
        return HOLD_PREFIX + hashlib.sha256("\0".join(self.device).encode()).hexdigest()[:16]


def hold_rule(hold: Hold) -> DeviceTaintRule:
    """The rule that keeps new claims off one device; its taint says until when."""
    selector = DeviceTaintSelector(*hold.device)
    until = hold.until.astimezone(UTC).strftime(_UNTIL)
    taint = DeviceTaint(HOLD_KEY, Effect.NO_SCHEDULE.value, until)
    return DeviceTaintRule(Metadata(name=hold.name), RuleSpec(taint, selector))


def hold_of(rule: DeviceTaintRule) -> Hold | None:
    """The hold that a rule is; None if it is not one of ours."""
    where, taint = rule.spec.selector, rule.spec.taint
    if taint.key != HOLD_KEY or where is None:
        return None
    if where.driver is None or where.pool is None or where.device is None:
        return None
    try:
        until = datetime.strptime(taint.value, _UNTIL).replace(tzinfo=UTC)
    except ValueError:
        return None
    device = DeviceId(DriverName(where.driver), PoolName(where.pool), DeviceName(where.device))
    hold = Hold(device, until)
    return hold if rule.metadata.name == hold.name else None


def hold_seconds(failures: int, first: float, most: float) -> float:
    """For how long, after so many failures in a row: doubling from ``first`` up to ``most``."""
    return min(most, first * 2.0 ** min(max(failures, 1) - 1, 16))

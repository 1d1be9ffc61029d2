"""Which taints a device has, from slices and from rules, and for how long they are tolerated.

No clock: moments are arguments. Where the in-tree controller (pkg/controller/devicetainteviction of
1.37) differs from the API's text, :class:`Reading` says which of the two is meant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from dra_core.model.taints import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    DeviceToleration,
    Effect,
)
from dra_core.model.usage import SliceTaints
from dra_core.names import DeviceName, DriverName, PoolName

#: Seconds above which a toleration is as good as unlimited (300 years): the API takes any int64,
#: and a moment that far ahead has no representation.
UNLIMITED: Final = 10**10


class DeviceId(NamedTuple):
    """The name of one device in the cluster."""

    driver: DriverName
    pool: PoolName
    device: DeviceName

    def __str__(self) -> str:
        return "/".join(self)


@dataclass(frozen=True, slots=True)
class Source:
    """The object that a taint comes from."""

    kind: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Placed:
    """A taint in force. ``since`` is ``timeAdded`` or, where that is missing, a stand-in."""

    taint: DeviceTaint
    source: Source
    since: datetime

    def __str__(self) -> str:
        t = self.taint
        value = f"={t.value}" if t.value else ""
        return f"{t.key}{value}:{t.effect} of {self.source}"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the API is read where its text and the in-tree controller differ.

    ``empty_effect``: a toleration without an effect matches every effect (API text of
    DeviceToleration.effect; the scheduler goes by it). The in-tree eviction of 1.36 and 1.37 counts
    only tolerations with effect NoExecute: False does the same.
    """

    empty_effect: bool = True


AS_WRITTEN: Final = Reading()
Taints = Mapping[DeviceName, tuple[Placed, ...]]


# -- taints of devices -----------------------------------------------------------------------------
def pool_taints(
    slices: Iterable[SliceTaints], before: Taints | None, seen: datetime
) -> dict[DeviceName, tuple[Placed, ...]]:
    """The taints that the slices of one pool put on its devices, of those that have any.

    Slices of the highest generation count, whether it is complete or not. A device that an
    unfinished generation does not list (yet) keeps the taints that it had: those of ``before``, the
    answer for the pool's last state, or at first sight (None) those of an older generation that is
    still there. ``seen`` stands in for a missing ``timeAdded``.
    """
    found = list(slices)
    if not found:
        return {}
    newest = max(item.generation for item in found)
    current = [item for item in found if item.generation == newest]
    known = before or {}
    placed = {}
    # A pool may have thousands of slices, and comes here with each one that changes.
    for item in sorted((item for item in current if item.taints), key=lambda item: item.name):
        for device, taints in item.taints.items():
            placed[device] = _placed(item, taints, known.get(device, ()), seen)
    if len(current) >= max(item.slice_count for item in current):
        return placed
    last = known if before is not None else _older(found, newest, seen)
    missing = last.keys() - placed.keys()
    if missing:
        missing.difference_update(*(item.devices for item in current))
    return placed | {device: last[device] for device in missing}


def listed(slices: Iterable[SliceTaints]) -> frozenset[DeviceName]:
    """The devices of one pool: those that the slices of its highest generation list."""
    found = list(slices)
    newest = max((item.generation for item in found), default=0)
    return frozenset().union(*(item.devices for item in found if item.generation == newest))


def _older(found: Sequence[SliceTaints], newest: int, seen: datetime) -> Taints:
    """Devices of the generations before ``newest``, each as the last one that lists it says."""
    last: dict[DeviceName, tuple[Placed, ...]] = {}
    older = (item for item in found if item.generation < newest)
    for item in sorted(older, key=lambda item: (item.generation, item.name)):
        for device in item.devices:
            last[device] = _placed(item, item.taints.get(device, ()), (), seen)
    return {device: taints for device, taints in last.items() if taints}


def _placed(
    item: SliceTaints, taints: Sequence[DeviceTaint], before: Sequence[Placed], seen: datetime
) -> tuple[Placed, ...]:
    source = Source("ResourceSlice", item.name, item.uid)
    return tuple(Placed(t, source, t.time_added or _since(t, before, seen)) for t in taints)


def _since(taint: DeviceTaint, before: Sequence[Placed], seen: datetime) -> datetime:
    """Servers fill ``timeAdded`` in; should one not, a taint counts from when it was first seen."""
    same = (p.since for p in before if _identity(p.taint) == _identity(taint))
    return next(same, seen)


def _identity(taint: DeviceTaint) -> tuple[str, str, str]:
    return taint.key, taint.value, taint.effect


def rule_taint(rule: DeviceTaintRule, seen: datetime) -> Placed:
    """The taint of a rule; its creation stands in for a missing ``timeAdded``."""
    taint, metadata = rule.spec.taint, rule.metadata
    since = taint.time_added or metadata.creation_timestamp or seen
    return Placed(taint, Source("DeviceTaintRule", metadata.name, metadata.uid), since)


def selects(selector: DeviceTaintSelector | None, device: DeviceId) -> bool:
    """Whether a rule's ``deviceSelector`` selects the device.

    None selects nothing, an empty one everything; fields are ANDed (API text of
    DeviceTaintRuleSpec.deviceSelector). An empty string is a value, and no device has it.
    """
    return selector is not None and all(
        wanted is None or wanted == actual
        for wanted, actual in (
            (selector.driver, device.driver),
            (selector.pool, device.pool),
            (selector.device, device.device),
        )
    )


def evicts(placed: Placed) -> bool:
    """Whether the effect is NoExecute; None, NoSchedule and unknown effects evict nobody."""
    return placed.taint.known_effect is Effect.NO_EXECUTE


# -- tolerations -----------------------------------------------------------------------------------
def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether the toleration matches: an empty effect or key matches all of them.

    With an empty key only Exists matches, and an unknown operator matches nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return (
        toleration.operator in ("", "Equal")
        and bool(toleration.key)
        and toleration.value == taint.value
    )


def patience(
    tolerations: Iterable[DeviceToleration], taint: DeviceTaint, reading: Reading = AS_WRITTEN
) -> float:
    """Seconds for which a NoExecute taint is tolerated: 0 without a match, ``inf`` for ever.

    One matching toleration without ``tolerationSeconds`` is enough to tolerate it for ever;
    otherwise the shortest counts. Negative seconds are 0 (API text of tolerationSeconds).
    """
    matching = [
        toleration.toleration_seconds
        for toleration in tolerations
        if (toleration.effect or reading.empty_effect) and tolerates(toleration, taint)
    ]
    if not matching:
        return 0.0
    limits = [seconds for seconds in matching if seconds is not None]
    shortest = max(0, min(limits)) if len(limits) == len(matching) else UNLIMITED
    return math.inf if shortest >= UNLIMITED else float(shortest)

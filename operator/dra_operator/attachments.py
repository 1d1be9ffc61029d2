"""Which devices are to be attached for whom: one record for each device of a claim.

Records follow the claims; the fabric's list adds those that nobody needs any more. Not for use by
several threads at once: :class:`~dra_operator.binding.Bindings` holds the lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from dra_core import binding
from dra_core.binding import Report, Standing, Target
from dra_core.model.claims import ClaimReference, DeviceStatus
from dra_core.model.usage import ClaimInUse
from dra_core.names import ClaimUID
from dra_core.taints import DeviceId
from dra_operator.api import Attachment, Tag, Wish

#: UID of the claim, and the device.
Key = tuple[str, DeviceId]
#: Nothing is due until something happens.
NEVER: Final = float("inf")
NOW: Final = float("-inf")


@dataclass(slots=True)
class Record:
    """A device of a claim. Times ``due``, ``began`` and ``touched`` are monotonic seconds.

    ``target`` None: nobody needs it. ``seen``: when this allocation was first seen. ``gave_up``:
    what is to be said of an allocation that does not work. ``reported``: what was written last.
    ``listed``: the fabric had something when it was asked last. ``amiss``: it is said to be ready,
    and the fabric does not have it just once where it should be; ``lost``: not there at all.
    ``told``: reasons of events that come once.
    """

    device: DeviceId
    tag: Tag
    seen: datetime
    target: Target | None = None
    devices: tuple[DeviceStatus, ...] = ()
    due: float = NOW
    busy: bool = False
    began: float | None = None
    touched: float = NOW
    failures: int = 0
    gave_up: Report | None = None
    reported: Report | None = None
    reported_at: float = NOW
    held: bool = False
    listed: bool = False
    amiss: bool = False
    lost: bool = False
    told: set[str] = field(default_factory=set)

    @property
    def key(self) -> Key:
        """See :data:`Key`."""
        return self.tag.uid, self.device

    @property
    def claim(self) -> ClaimReference:
        """Also of a claim that is gone."""
        return ClaimReference(self.tag.namespace, self.tag.name, ClaimUID(self.tag.uid))

    @property
    def says(self) -> Standing:
        """What the conditions in the claim say."""
        target = self.target
        return Standing.OPEN if target is None else binding.standing(target, self.devices)

    def wish(self, target: Target) -> Wish:
        """What the attacher is asked for."""
        return Wish(self.device, target.node, self.tag, target.results)

    def renew(self, target: Target, now: datetime) -> None:
        """It is allocated (again)."""
        self.target, self.seen, self.began = target, now, None
        self.gave_up = self.reported = None
        self.failures, self.reported_at, self.due = 0, NOW, NOW
        self.held = self.amiss = self.lost = False
        self.told.clear()


class Attachments:
    """See the module. ``others``: which conditions of which drivers are not ours."""

    def __init__(self, others: binding.Others, cluster: str, namespaces: Iterable[str]) -> None:
        self._others = others
        self._cluster = cluster
        self._namespaces = frozenset(namespaces)
        self._claims: dict[str, frozenset[DeviceId]] = {}
        self.records: dict[Key, Record] = {}

    def targets(self, claim: ClaimInUse) -> dict[DeviceId, Target]:
        """See :func:`dra_core.binding.targets`."""
        return binding.targets(claim, self._others)

    def claims(self) -> frozenset[str]:
        """UIDs of the claims that need something attached."""
        return frozenset(self._claims)

    def put(self, claim: ClaimInUse, now: datetime) -> bool:
        """A new or changed claim; whether it needs or needed something attached."""
        found = self.targets(claim)
        concerned = bool(found) or claim.uid in self._claims
        for device in self._claims.get(claim.uid, frozenset()) - found.keys():
            self._release(claim.uid, device)
        for device, target in found.items():
            self._want(claim, device, target, now)
        if found:
            self._claims[claim.uid] = frozenset(found)
        else:
            self._claims.pop(claim.uid, None)
        return concerned

    def _want(self, claim: ClaimInUse, device: DeviceId, target: Target, now: datetime) -> None:
        record = self.records.get((claim.uid, device))
        if record is None:
            tag = Tag(self._cluster, claim.namespace, claim.name, claim.uid)
            record = self.records[claim.uid, device] = Record(device, tag, now)
        before, said = record.target, record.says
        record.devices = claim.devices
        if before is None or not before.same_allocation(target):
            record.renew(target, now)
            return
        record.target = target
        if record.says is not said:
            record.due = NOW

    def remove(self, uid: str) -> None:
        """A claim that is gone."""
        for device in self._claims.pop(uid, frozenset()):
            self._release(uid, device)

    def _release(self, uid: str, device: DeviceId) -> None:
        record = self.records[uid, device]
        record.target, record.due = None, NOW

    def idle(self) -> None:
        """Forget what nobody needs: another instance takes it away, or will find it again."""
        for record in [r for r in self.records.values() if r.target is None and not r.busy]:
            del self.records[record.key]

    def compare(
        self, driver: str, found: Iterable[Attachment], asked_at: float, now: datetime
    ) -> None:
        """What the fabric of a driver had when it was asked at a monotonic time."""
        listed: dict[Key, list[Attachment]] = {}
        for item in found:
            if item.device.driver == driver and self._ours(item.tag):
                listed.setdefault((item.tag.uid, item.device), []).append(item)
        for key, (item, *_) in listed.items():
            if key not in self.records:
                self.records[key] = Record(item.device, item.tag, now)
        for record in self.records.values():
            if record.device.driver == driver and record.touched < asked_at and not record.busy:
                self._listed(record, listed.get(record.key, []))

    def _listed(self, record: Record, items: list[Attachment]) -> None:
        record.listed = bool(items)
        target = record.target
        if target is None:
            record.due = NOW
        elif record.says is Standing.READY:
            nodes = [item.node for item in items]
            record.amiss, record.lost = nodes != [target.node], target.node not in nodes
            record.due = NOW if record.amiss else record.due
        elif record.listed and record.due == NEVER:
            record.due = NOW

    def _ours(self, tag: Tag) -> bool:
        return tag.cluster == self._cluster and (
            not self._namespaces or tag.namespace in self._namespaces
        )

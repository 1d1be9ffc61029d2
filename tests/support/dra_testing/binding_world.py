"""Claims, a fabric and a clock for the operator's binding, all in memory and in virtual time.

The API server keeps conditions per writer as server-side apply does, has resourceVersions, can be
down and can lose answers; what changes reaches the operator only when it is delivered. The fabric
takes its time, and can lose a request, do it after its time-out, attach twice, or refuse.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from dra_core.binding import Hold, hold_rule
from dra_core.errors import ApiConflict, ApiForbidden, ApiInvalid, ApiNotFound
from dra_core.errors import ApiUnavailable as Down
from dra_core.model.claims import AllocationResult, ClaimReference, DeviceStatus
from dra_core.model.objects import Condition
from dra_core.model.usage import ClaimInUse
from dra_core.names import ClaimUID, DeviceName, DriverName, PoolName
from dra_core.taints import DeviceId
from dra_operator.api import AttachFailed, Attachment, NotNow, Progress, Tag, Wish
from dra_operator.binding import Bindings, Limits, World
from dra_operator.binding_ports import Contested, Fresh
from dra_operator.cluster import CLAIMS, RULES

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
DRIVER = DriverName("fabric.example.com")
POOL = PoolName("fabric")
READY, FAILED, CONFIRMED = "example.com/attached", "example.com/failed", "example.com/confirmed"
CLUSTER = "this-cluster"


def device(name: str, driver: DriverName = DRIVER) -> DeviceId:
    return DeviceId(driver, POOL, DeviceName(name))


class Clock:
    """Both times run on only when told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return T0 + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return 1000.0 + self.seconds


@dataclass
class Stored:
    """A claim on the server. ``conditions``: by share and type, with who owns them."""

    claim: ClaimInUse
    version: int
    conditions: dict[tuple[DeviceId, str | None, str], tuple[Condition, str]] = field(
        default_factory=dict
    )

    def seen(self) -> ClaimInUse:
        """As it is read."""
        entries: dict[tuple[DeviceId, str | None], list[Condition]] = {}
        for (where, share, _), (condition, _owner) in self.conditions.items():
            entries.setdefault((where, share), []).append(condition)
        devices = tuple(
            DeviceStatus(*where, share_id=share, conditions=tuple(conditions))
            for (where, share), conditions in entries.items()
        )
        return replace(self.claim, devices=devices)


class Server:
    """The API server: claims and rules."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.claims: dict[str, Stored] = {}
        self.rules: dict[str, Hold] = {}
        self.events: deque[tuple[str, object]] = deque()
        self.down = False
        self.forbidden = False
        self.lose_answers = 0
        self.before_report: Callable[[], None] = lambda: None
        self.after_report: Callable[[str, DeviceId, dict[str, str]], None] = lambda *_: None
        self.rules_served = True
        self.rules_down = False
        self.writes: list[tuple[float, str, dict[str, str]]] = []
        self._versions = itertools.count(1)
        self._uids = itertools.count(1)

    # -- what others do

    def allocate(
        self, name: str, *results: AllocationResult, node: str = "node-1", uid: str = ""
    ) -> str:
        """Allocate a claim that is there, or make one first; its UID."""
        known = next((s for s in self.claims.values() if s.claim.name == name), None)
        uid = known.claim.uid if known else uid or f"uid-{next(self._uids)}"
        claim = ClaimInUse(
            "ns", name, ClaimUID(uid), results, node=node, allocated_at=self.clock.now()
        )
        self.claims[uid] = Stored(claim, next(self._versions))
        self._changed(uid)
        return uid

    def deallocate(self, uid: str) -> None:
        """The scheduler or the claim controller clears the status."""
        claim = self.claims[uid].claim
        bare = ClaimInUse(claim.namespace, claim.name, claim.uid)
        self.claims[uid] = Stored(bare, next(self._versions))
        self._changed(uid)

    def delete(self, uid: str) -> None:
        del self.claims[uid]
        self.events.append(("gone", uid))

    def set(self, uid: str, where: DeviceId, kind: str, status: str, owner: str = "agent") -> None:
        """Another writer sets a condition of a device that is not shared."""
        stored = self.claims[uid]
        condition = Condition(kind, status, "Agent", "", self.clock.now())
        stored.conditions[where, None, kind] = condition, owner
        stored.version = next(self._versions)
        self._changed(uid)

    def touch(self, uid: str) -> None:
        """Something else about the claim changes: a label, say."""
        self.claims[uid].version = next(self._versions)
        self._changed(uid)

    def _changed(self, uid: str) -> None:
        self.events.append(("claim", self.claims[uid].seen()))

    def status(self, uid: str, where: DeviceId, kind: str) -> str:
        """Of a condition, empty if there is none."""
        found = self.claims[uid].conditions.get((where, None, kind))
        return found[0].status if found else ""

    def reason(self, uid: str, where: DeviceId, kind: str) -> str:
        found = self.claims[uid].conditions.get((where, None, kind))
        return found[0].reason if found else ""

    # -- ports

    def _answer(self) -> None:
        if self.down:
            raise Down("no answer")

    def _lose(self) -> None:
        if self.lose_answers:
            self.lose_answers -= 1
            raise Down("the answer was lost")

    def read(self, claim: ClaimReference) -> Fresh:
        self._answer()
        stored = self.claims.get(claim.uid)
        if stored is None:
            raise ApiNotFound(f"no claim {claim}")
        return Fresh(stored.seen(), str(stored.version))

    def report(self, where: DeviceId, fresh: Fresh, entries: Sequence[DeviceStatus]) -> Fresh:
        self._answer()
        self.before_report()
        if self.forbidden:
            raise ApiForbidden("403")
        stored = self.claims.get(fresh.claim.uid)
        if stored is None or str(stored.version) != fresh.version:
            raise ApiConflict("the claim has changed")
        self._apply(stored, where, entries)
        self._lose()
        return Fresh(stored.seen(), str(stored.version))

    def _apply(self, stored: Stored, where: DeviceId, entries: Sequence[DeviceStatus]) -> None:
        manager = f"dragoman {where}"
        held = {(r.driver, r.pool, r.device) for r in stored.claim.results}
        made = {}
        for entry in entries:
            if (entry.driver, entry.pool, entry.device) not in held:
                raise ApiInvalid("must be an allocated device in the claim")
            for condition in entry.conditions:
                key = where, entry.share_id, condition.type
                before = stored.conditions.get(key)
                if before and before[1] != manager and before[0].status != condition.status:
                    raise Contested(f"conflict with {before[1]}")
                made[key] = condition, before[1] if before else manager
        mine = {k for k, (_, owner) in stored.conditions.items() if owner == manager}
        for key in mine - made.keys():
            del stored.conditions[key]
        stored.conditions |= {k: v for k, v in made.items() if v[1] == manager}
        stored.version = next(self._versions)
        said = {kind: condition.status for (_, _, kind), (condition, _) in made.items()}
        self.writes.append((self.clock.seconds, stored.claim.uid, said))
        self.after_report(stored.claim.uid, where, said)
        self._changed(stored.claim.uid)

    def place(self, hold: Hold) -> bool:
        self._answer()
        if self.rules_down:
            raise Down("rules cannot be written")
        if not self.rules_served:
            return False
        if hold.name not in self.rules:
            self.rules[hold.name] = hold
            self.events.append(("rule", hold))
        return True

    def lift(self, name: str, uid: str) -> None:
        self._answer()
        if self.rules.pop(name, None) is not None:
            self.events.append(("no rule", uid))


@dataclass
class Item:
    """Something in the fabric: attached from ``ready_at`` on."""

    device: DeviceId
    node: str
    tag: Tag
    ready_at: float


class Fabric:
    """Implements the attacher, with what the fabric may do wrong in it."""

    OTHERS: Sequence[str] = (CONFIRMED,)

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.items: list[Item] = []
        self.latency = 3.0
        self.faults: deque[str] = deque()
        self.later: list[tuple[float, Item]] = []
        self.broken: set[DeviceId] = set()
        self.unverified = False
        self.while_verifying: Callable[[], None] = lambda: None
        self.while_attaching: Callable[[], None] = lambda: None
        self.calls: list[tuple[float, str, DeviceId]] = []

    def settle(self) -> None:
        """What was asked for long ago happens now."""
        due = [item for at, item in self.later if at <= self.clock.seconds]
        self.later = [entry for entry in self.later if entry[0] > self.clock.seconds]
        self.items += due

    def _mine(self, where: DeviceId, tag: Tag) -> list[Item]:
        return [item for item in self.items if item.device == where and item.tag == tag]

    def attach(self, wish: Wish, timeout: float) -> Progress:
        self.settle()
        self.calls.append((self.clock.seconds, "attach", wish.device))
        self.while_attaching()
        fault = self.faults.popleft() if self.faults else ""
        if fault == "lose":
            raise NotNow("no answer")
        if wish.device in self.broken or fault == "fail":
            raise AttachFailed("PortDown", f"port of {wish.device.device} is down")
        if fault == "crash":
            raise KeyError("bug")
        if any(i.device == wish.device and i.tag != wish.tag for i in self.items):
            raise NotNow("attached for another claim")
        mine = self._mine(wish.device, wish.tag)
        keep = [item for item in mine if item.node == wish.node][:1]
        surplus = {id(item) for item in mine if not keep or item is not keep[0]}
        self.items = [item for item in self.items if id(item) not in surplus]
        if not keep:
            item = Item(wish.device, wish.node, wish.tag, self.clock.seconds + self.latency)
            if fault == "late":
                self.later.append((self.clock.seconds + 60.0, item))
                raise NotNow("no answer in time")
            self.items += [item, replace(item)] if fault == "twice" else [item]
            return Progress(False, "requested")
        return Progress(keep[0].ready_at <= self.clock.seconds, "on its way")

    def verify(self, wish: Wish, timeout: float) -> None:
        self.calls.append((self.clock.seconds, "verify", wish.device))
        self.while_verifying()
        if self.unverified:
            raise NotNow("link is not up")

    def detach(self, where: DeviceId, tag: Tag, timeout: float) -> Progress:
        self.settle()
        self.calls.append((self.clock.seconds, "detach", where))
        if self.faults and self.faults.popleft():
            raise NotNow("no answer")
        for item in self._mine(where, tag):
            self.items.remove(item)
        return Progress(True)

    def attachments(self, timeout: float) -> Sequence[Attachment]:
        self.settle()
        if self.faults and self.faults[0] == "lose":
            self.faults.popleft()
            raise NotNow("no answer")
        return [Attachment(item.device, item.node, item.tag) for item in self.items]

    def attached(self, where: DeviceId) -> list[tuple[str, str]]:
        """Claim UID and node of each attachment that is complete."""
        self.settle()
        return [
            (item.tag.uid, item.node)
            for item in self.items
            if item.device == where and item.ready_at <= self.clock.seconds
        ]


class Stand:
    """An operator on a server and a fabric; it can be started anew."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.clock = Clock()
        self.server = Server(self.clock)
        self.fabric = Fabric(self.clock)
        self.limits = limits or Limits()
        self.told: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.numbers: dict[str, float] = {}
        self.leads = True
        self.waiting: deque[Callable[[], None]] = deque()
        self.bindings = self._operator()

    def _operator(self, namespaces: Iterable[str] = ()) -> Bindings:
        world = World(
            claims=self.server,
            holds=self.server,
            notices=self,
            measures=self,
            clock=self.clock,
            start=lambda _, work: self.waiting.append(work),
            allowed=lambda: self.leads,
        )
        return Bindings({DRIVER: self.fabric}, world, self.limits, CLUSTER, namespaces)

    def restart(self, namespaces: Iterable[str] = ()) -> None:
        """Without what was in memory; calls that run are cut off. It reads all objects first."""
        self.waiting.clear()
        self.server.events.clear()
        self.bindings = self._operator(namespaces)
        for stored in self.server.claims.values():
            self.bindings.apply(stored.seen())
        for hold in self.server.rules.values():
            self._rule(hold)

    def _rule(self, hold: Hold) -> None:
        rule = hold_rule(hold)
        metadata = replace(rule.metadata, uid=f"uid of {hold.name}")
        self.bindings.apply(replace(rule, metadata=metadata))

    def deliver(self) -> None:
        """What has changed reaches the operator."""
        while self.server.events:
            kind, what = self.server.events.popleft()
            if isinstance(what, ClaimInUse):
                self.bindings.apply(what)
            elif isinstance(what, Hold):
                self._rule(what)
            else:
                self.bindings.forget(CLAIMS if kind == "gone" else RULES, [str(what)])

    def turn(self) -> float:
        """All that is due at this moment; seconds until more may be."""
        for _ in range(1000):
            self.deliver()
            pause = self.bindings.run_due()
            if not self.waiting and not self.server.events and pause > 0:
                return pause
            while self.waiting:
                self.waiting.popleft()()
        raise AssertionError("the operator does not come to rest")

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.clock.seconds + seconds
        while True:
            pause = self.turn()
            if self.clock.seconds + pause >= end:
                break
            self.clock.seconds += pause
        self.clock.seconds = end
        self.turn()

    # ports
    def tell(self, claim: ClaimReference, kind: str, reason: str, note: str) -> None:
        self.told.append((claim.name, reason))
        self.notes.append(note)

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        self.numbers[name] = self.numbers.get(name, 0.0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        self.numbers[" ".join((name, *labels.values()))] = value


def result(
    name: str,
    *more: str,
    share: str | None = None,
    driver: DriverName = DRIVER,
    failures: tuple[str, ...] = (FAILED,),
) -> AllocationResult:
    """A device with our conditions, and ``more`` binding conditions."""
    return AllocationResult(
        "r",
        driver,
        POOL,
        DeviceName(name),
        binding_conditions=(READY, *more),
        binding_failure_conditions=failures,
        share_id=share,
    )

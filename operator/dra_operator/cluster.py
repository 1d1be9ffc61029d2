"""The cluster in memory: pods with claims, claims, taints of slices and rules, and who uses what.

Event handlers put objects in, already reduced (:mod:`dra_core.wire.lean`); each change answers with
the pods whose fate may have changed. Everything is kept by UID, so that an object and its successor
under the same name never get mixed up, in whichever order their events come. Not for use by several
threads at once: :class:`~dra_operator.evictions.Evictions` holds the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

from dra_core import eviction, taints
from dra_core.eviction import Verdict
from dra_core.model.taints import DeviceTaintRule, Effect
from dra_core.model.usage import ClaimInUse, Pod, SliceTaints
from dra_core.names import DriverName, PodUID, PoolName
from dra_core.taints import DeviceId, Placed, Reading

K = TypeVar("K")
T = TypeVar("T")

Pool = tuple[DriverName, PoolName]
Named = tuple[str, str]
Object = Pod | ClaimInUse | SliceTaints | DeviceTaintRule
Pods = frozenset[PodUID]

NOBODY: Final[Pods] = frozenset()
PODS, CLAIMS, SLICES, RULES = "pods", "resourceclaims", "resourceslices", "devicetaintrules"


@dataclass(frozen=True, slots=True)
class Preview:
    """What a rule selects: published and allocated devices, and the pods that would go."""

    published: int
    allocated: int
    pods: int
    namespaces: int


class Cluster:
    """See the module. ``now`` stands in where the server gave a taint no time."""

    def __init__(self, now: Callable[[], datetime], reading: Reading = taints.AS_WRITTEN) -> None:
        self._now = now
        self._reading = reading
        self.pods: dict[str, Pod] = {}
        self._claims: dict[str, ClaimInUse] = {}
        self._slices: dict[str, SliceTaints] = {}
        self._rules: dict[str, tuple[DeviceTaintRule, Placed]] = {}
        # Indexes.
        self._claim_named: dict[Named, str] = {}
        self._pods_naming: dict[Named, set[PodUID]] = {}
        self._claims_in: dict[Pool, set[str]] = {}
        self._slices_of: dict[Pool, set[str]] = {}
        self._tainted: dict[Pool, taints.Taints] = {}

    # -- changes

    def put(self, item: Object) -> Pods:
        """A new or changed object; the pods that it may concern."""
        if isinstance(item, Pod):
            return self._put_pod(item)
        if isinstance(item, ClaimInUse):
            return self._put_claim(item)
        if isinstance(item, SliceTaints):
            return self._put_slice(item)
        return self._put_rule(item)

    def remove(self, kind: str, uid: str) -> Pods:
        """An object that is gone; one that was never there is no matter."""
        if kind == PODS:
            return self._remove_pod(uid)
        if kind == CLAIMS:
            return self._remove_claim(uid)
        if kind == SLICES:
            gone = self._slices.pop(uid, None)
            return NOBODY if gone is None else self._slice_changed(gone, None)
        old = self._rules.pop(uid, None)
        return NOBODY if old is None else self._selected_by(old[0])

    def known(self, kind: str) -> frozenset[str]:
        """The UIDs of all objects of a kind."""
        by_kind: dict[str, Iterable[str]] = {
            PODS: self.pods,
            CLAIMS: self._claims,
            SLICES: self._slices,
            RULES: self._rules,
        }
        return frozenset(by_kind[kind])

    def _put_pod(self, pod: Pod) -> Pods:
        before = self.pods.get(pod.uid)
        if before == pod:
            return NOBODY
        if before is not None:
            self._unname(before)
        self.pods[pod.uid] = pod
        for claim in pod.claims:
            self._pods_naming.setdefault((pod.namespace, claim.name), set()).add(pod.uid)
        return frozenset({pod.uid})

    def _remove_pod(self, uid: str) -> Pods:
        pod = self.pods.pop(uid, None)
        if pod is None:
            return NOBODY
        self._unname(pod)
        return frozenset({pod.uid})

    def _unname(self, pod: Pod) -> None:
        for claim in pod.claims:
            _discard(self._pods_naming, (pod.namespace, claim.name), pod.uid)

    def _put_claim(self, claim: ClaimInUse) -> Pods:
        before = self._claims.get(claim.uid)
        if before == claim:
            return NOBODY
        if before is not None:
            self._unplace(before)
        self._claims[claim.uid] = claim
        self._claim_named[claim.namespace, claim.name] = claim.uid
        for result in claim.results:
            self._claims_in.setdefault((result.driver, result.pool), set()).add(claim.uid)
        return self._naming(claim)

    def _remove_claim(self, uid: str) -> Pods:
        claim = self._claims.pop(uid, None)
        if claim is None:
            return NOBODY
        self._unplace(claim)
        if self._claim_named.get((claim.namespace, claim.name)) == uid:
            del self._claim_named[claim.namespace, claim.name]
        return self._naming(claim)

    def _unplace(self, claim: ClaimInUse) -> None:
        for result in claim.results:
            _discard(self._claims_in, (result.driver, result.pool), str(claim.uid))

    def _naming(self, claim: ClaimInUse) -> Pods:
        return frozenset(self._pods_naming.get((claim.namespace, claim.name), ()))

    def _put_slice(self, item: SliceTaints) -> Pods:
        before = self._slices.get(item.uid)
        if before == item:
            return NOBODY
        self._slices[item.uid] = item
        return self._slice_changed(before, item)

    def _slice_changed(self, before: SliceTaints | None, after: SliceTaints | None) -> Pods:
        item = after or before
        assert item is not None  # noqa: S101 - one of them is there
        pool = item.driver, item.pool
        if after is None:
            _discard(self._slices_of, pool, item.uid)
        else:
            self._slices_of.setdefault(pool, set()).add(item.uid)
        slices = [self._slices[uid] for uid in self._slices_of.get(pool, ())]
        old = self._tainted.get(pool)
        new = taints.pool_taints(slices, old, self._now())
        if slices:
            self._tainted[pool] = new
        else:
            self._tainted.pop(pool, None)
        old = old or {}
        changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
        return self._using(pool, lambda device: device.device in changed) if changed else NOBODY

    def _put_rule(self, rule: DeviceTaintRule) -> Pods:
        uid = rule.metadata.uid
        before = self._rules.get(uid)
        if before is not None and before[0] == rule:
            return NOBODY
        self._rules[uid] = rule, taints.rule_taint(rule, self._now())
        return self._selected_by(rule) | (self._selected_by(before[0]) if before else NOBODY)

    # -- questions

    def verdict(self, uid: str) -> Verdict | None:
        """What is to become of a pod; None if there is none with this UID."""
        pod = self.pods.get(uid)
        if pod is None:
            return None
        verdicts = [
            verdict
            for named in pod.claims
            for claim in (self.claim(pod.namespace, named.name),)
            if claim is not None
            for verdict in eviction.decide(claim, [pod], self.taints_of, self._reading)
        ]
        return eviction.together(pod, verdicts)

    def claim(self, namespace: str, name: str) -> ClaimInUse | None:
        """A claim by its name."""
        uid = self._claim_named.get((namespace, name))
        return None if uid is None else self._claims.get(uid)

    def taints_of(self, device: DeviceId) -> list[Placed]:
        """The taints of a device, by slices and by rules."""
        found = list(self._tainted.get((device.driver, device.pool), {}).get(device.device, ()))
        found += [
            placed
            for rule, placed in self._rules.values()
            if taints.selects(rule.spec.selector, device)
        ]
        return found

    def pods_in(self, pool: Pool) -> tuple[int, Pods]:
        """How many pods on nodes use devices of the pool, and which of them are being deleted."""
        pods = (self.pods[uid] for uid in self._using(pool, lambda _: True))
        found = [pod for pod in pods if pod.node and not pod.finished]
        return len(found), frozenset(pod.uid for pod in found if pod.deleting)

    def published(self, pool: Pool) -> bool:
        """Whether there is any slice of the pool."""
        return pool in self._slices_of

    def rules(self) -> list[DeviceTaintRule]:
        """All rules."""
        return [rule for rule, _ in self._rules.values()]

    def rule(self, uid: str) -> DeviceTaintRule | None:
        """A rule by its UID."""
        found = self._rules.get(uid)
        return None if found is None else found[0]

    def users(self) -> int:
        """How many pods on nodes name claims."""
        return sum(1 for pod in self.pods.values() if pod.node and not pod.finished)

    def preview(self, rule: DeviceTaintRule) -> Preview:
        """What the rule would do if its effect were NoExecute."""
        selector = rule.spec.selector
        taint = replace(rule.spec.taint, effect=Effect.NO_EXECUTE.value)
        placed = taints.rule_taint(replace(rule, spec=replace(rule.spec, taint=taint)), self._now())

        def alone(device: DeviceId) -> list[Placed]:
            return [placed] if taints.selects(selector, device) else []

        published = sum(
            taints.selects(selector, DeviceId(*pool, device))
            for pool, uids in self._slices_of.items()
            for device in taints.listed(self._slices[uid] for uid in uids)
        )
        allocated = {
            device
            for claim in self._claims.values()
            for device in map(eviction.device_of, claim.results)
            if taints.selects(selector, device)
        }
        going = {
            self.pods[uid]
            for uid in self._selected_by(rule)
            for named in self.pods[uid].claims
            for claim in (self.claim(self.pods[uid].namespace, named.name),)
            if claim is not None
            for verdict in eviction.decide(claim, [self.pods[uid]], alone, self._reading)
            if verdict.at is not None
        }
        return Preview(published, len(allocated), len(going), len({p.namespace for p in going}))

    def _selected_by(self, rule: DeviceTaintRule) -> Pods:
        selector = rule.spec.selector
        if selector is None:
            return NOBODY
        found: set[PodUID] = set()
        for pool in self._claims_in:
            if selector.driver in (None, pool[0]) and selector.pool in (None, pool[1]):
                found |= self._using(pool, lambda device: taints.selects(selector, device))
        return frozenset(found)

    def _using(self, pool: Pool, wanted: Callable[[DeviceId], bool]) -> Pods:
        found: set[PodUID] = set()
        for uid in self._claims_in.get(pool, ()):
            claim = self._claims[uid]
            if any(
                (result.driver, result.pool) == pool and wanted(eviction.device_of(result))
                for result in claim.results
            ):
                found |= self._naming(claim)
        return frozenset(found)


def _discard(index: dict[K, set[T]], key: K, item: T) -> None:
    """Take an item out of an index; an entry that nothing is left of goes, too."""
    items = index.get(key)
    if items is not None:
        items.discard(item)
        if not items:
            del index[key]

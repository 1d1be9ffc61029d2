"""When a pod has to go because of the taints on its devices, or why it stays.

No clock: moments are arguments and results. A pod goes at the earliest moment that an untolerated
NoExecute taint on a device of its claims asks for. What it tolerates stands in the allocation
results, not in the spec of the claim and not in the pod (API text of
DeviceRequestAllocationResult.tolerations).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dra_core.model.claims import AllocationResult
from dra_core.model.usage import ClaimInUse, Pod
from dra_core.taints import AS_WRITTEN, DeviceId, Placed, Reading, evicts, patience


@dataclass(frozen=True, slots=True)
class Cause:
    """One NoExecute taint on one device of a claim; ``at`` is None if tolerated for ever."""

    claim: str
    device: DeviceId
    placed: Placed
    tolerated: float

    @property
    def at(self) -> datetime | None:
        """When the pods have to go."""
        if math.isinf(self.tolerated):
            return None
        return self.placed.since + timedelta(seconds=self.tolerated)

    def __str__(self) -> str:
        if math.isinf(self.tolerated):
            how = "is tolerated without limit"
        elif self.tolerated:
            how = f"is tolerated for {self.tolerated:g} s"
        else:
            how = "is not tolerated"
        return f"{self.placed} on {self.device} (claim {self.claim}) {how}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a pod. ``at`` is None if it stays; ``reason`` is one sentence.

    ``tainted``: there is a NoExecute taint on a device of a claim that it names, whether that
    concerns the pod (``causes``) or not.
    """

    pod: Pod
    at: datetime | None
    reason: str
    causes: tuple[Cause, ...] = ()
    tainted: bool = False


#: The taints of one device, of both kinds.
TaintsOf = Callable[[DeviceId], Sequence[Placed]]


def device_of(result: AllocationResult) -> DeviceId:
    """The device that an allocation result names."""
    return DeviceId(result.driver, result.pool, result.device)


def causes(claim: ClaimInUse, taints: TaintsOf, reading: Reading = AS_WRITTEN) -> tuple[Cause, ...]:
    """The NoExecute taints on all devices of a claim, earliest first, those tolerated last.

    Results with adminAccess count like all others.
    """
    found = [
        Cause(claim.name, device, placed, patience(result.tolerations, placed.taint, reading))
        for result in claim.results
        for device in (device_of(result),)
        for placed in taints(device)
        if evicts(placed)
    ]
    return tuple(sorted(found, key=_when))


def _when(cause: Cause) -> tuple[bool, float, str]:
    at = cause.at
    return at is None, at.timestamp() if at else 0.0, str(cause.placed.source)


def spared(claim: ClaimInUse, pod: Pod) -> str:
    """Why taints on the claim do not concern the pod, or nothing if they do.

    As the in-tree controller has it (resourceclaim.PodClaims, IsForPod, IsReservedForPod): only
    pods on a node that the claim is reserved for, by UID or through their PodGroup. A claim that
    was made for another pod, which had the same name perhaps, does not count.
    """
    if whole := _spared_by_itself(pod):
        return whole
    uses = [item for item in pod.claims if item.name == claim.name]
    if claim.namespace != pod.namespace or not uses:
        return f"does not use claim {claim}"
    if all(item.made for item in uses) and not _made_for(claim, pod):
        return f"claim {claim} was made for another pod"
    if not _reserved(claim, pod):
        return f"claim {claim} is not reserved for it"
    return ""


def _spared_by_itself(pod: Pod) -> str:
    if pod.deleting:
        return "is being deleted already"
    if pod.finished:
        return "has finished"
    return "" if pod.node else "is not on a node yet"


def _made_for(claim: ClaimInUse, pod: Pod) -> bool:
    owner = claim.controller
    if owner is None:
        return False
    by_group = owner.kind == "PodGroup" and owner.api_group == "scheduling.k8s.io"
    return owner.uid == pod.uid or (by_group and bool(pod.group) and owner.name == pod.group)


def _reserved(claim: ClaimInUse, pod: Pod) -> bool:
    return any(
        consumer.uid == pod.uid
        or (
            consumer.api_group == "scheduling.k8s.io"
            and consumer.resource == "podgroups"
            and bool(pod.group)
            and consumer.name == pod.group
        )
        for consumer in claim.reserved_for
    )


def decide(
    claim: ClaimInUse,
    pods: Iterable[Pod],
    taints: TaintsOf,
    reading: Reading = AS_WRITTEN,
) -> list[Verdict]:
    """What one claim means for each of these pods, with a reason for those that stay, too."""
    found = causes(claim, taints, reading)
    return [_verdict(claim, pod, found) for pod in pods]


def _verdict(claim: ClaimInUse, pod: Pod, found: tuple[Cause, ...]) -> Verdict:
    if why := spared(claim, pod):
        return Verdict(pod, None, f"pod {why}", tainted=bool(found))
    if not found:
        return Verdict(pod, None, f"no device of claim {claim} has a NoExecute taint")
    return Verdict(pod, found[0].at, str(found[0]), found, tainted=True)


def together(pod: Pod, verdicts: Sequence[Verdict]) -> Verdict:
    """The verdicts on a pod by all its claims as one: the earliest moment counts."""
    concerned = [verdict for verdict in verdicts if verdict.causes]
    if not concerned:
        tainted = (verdict for verdict in verdicts if verdict.tainted)
        none = Verdict(pod, None, "pod uses no claim that is allocated")
        return next(tainted, next(iter(verdicts), none))
    found = sorted((cause for verdict in concerned for cause in verdict.causes), key=_when)
    return Verdict(pod, found[0].at, str(found[0]), tuple(found), tainted=True)

"""What becomes of the claims of pods that were evicted: their devices are free only when the
allocation is gone, and kube-controller-manager's claim controller is the one to take it away."""

from __future__ import annotations

from typing import Final

import structlog

from dra_core.model.usage import ClaimInUse, Pod
from dra_operator.cluster import Cluster
from dra_operator.ports import Measures, Notices, Start

_log = structlog.get_logger(__name__)

#: Seconds after which a claim that is still allocated is reported, once.
SLOW: Final = 30.0
STILL_ALLOCATED: Final = "DeviceTaintClaimStillAllocated"
#: Names of consumers in a message.
_NAMED: Final = 3


class Deallocations:
    """Claims that are to become free. Used under the lock of whoever holds the cluster's."""

    def __init__(self, cluster: Cluster, notices: Notices, measures: Measures) -> None:
        self._cluster = cluster
        self._notices = notices
        self._measures = measures
        #: By UID: the claim as it was, the monotonic time since when, and whether that was told.
        self._expected: dict[str, tuple[ClaimInUse, float, bool]] = {}

    def expect(self, pod: Pod, tick: float) -> None:
        """The pod has gone; its claims should follow."""
        for named in pod.claims:
            claim = self._cluster.claim(pod.namespace, named.name)
            if claim is not None and not claim.results:
                # The watch of claims was faster than that of pods.
                self._freed(claim, 0.0)
            elif claim is not None:
                self._expected.setdefault(claim.uid, (claim, tick, False))

    def look(self, tick: float, start: Start) -> None:
        """Note which have become free, and say why others have not."""
        for uid, (claim, since, told) in list(self._expected.items()):
            now = self._cluster.claim(claim.namespace, claim.name)
            # Other results: free in between, and given to somebody again.
            if now is None or now.uid != uid or now.results != claim.results:
                del self._expected[uid]
                self._freed(claim, tick - since)
            elif not told and tick >= since + SLOW:
                self._expected[uid] = now, since, True
                self._tell(now, round(tick - since), start)
        self._measures.set("claims_to_deallocate", len(self._expected))

    def _freed(self, claim: ClaimInUse, seconds: float) -> None:
        self._measures.add("claims_deallocated_total")
        took = round(seconds, 1)
        _log.info("claim is deallocated", claim=str(claim), uid=claim.uid, seconds=took)

    def _tell(self, claim: ClaimInUse, seconds: int, start: Start) -> None:
        note = f"still allocated {seconds} s after a pod of it was evicted: {_why(claim)}"
        _log.warning("claim is not deallocated", claim=str(claim), uid=claim.uid, reason=note)
        start(lambda: self._notices.tell(claim, "Warning", STILL_ALLOCATED, note))


def _why(claim: ClaimInUse) -> str:
    users = [f"{user.resource}/{user.name}" for user in claim.reserved_for]
    if not users:
        return (
            "nobody has reserved it, so the resourceclaim controller of kube-controller-manager "
            "should have freed it; see whether that runs"
        )
    more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
    return f"reserved for {', '.join(users[:_NAMED])}{more}"

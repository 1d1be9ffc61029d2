"""Pods that wait for a driver that is not there: allocated, on their node, and never started.

When a driver's plugin is gone from a node, the kubelet deletes its slices 30 s later. A pod that
was scheduled before that stays in ContainerCreating, and only the kubelet's log says why. Whoever
looks at the pod shall find it there.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import structlog

from dra_core.model.usage import Pod
from dra_operator.cluster import Cluster, Pool
from dra_operator.ports import Measures, Notices, Start

_log = structlog.get_logger(__name__)

DRIVER_MISSING: Final = "DeviceDriverMissing"


class Unprepared:
    """Tells each such pod once. Used under the lock of whoever holds the cluster's."""

    def __init__(
        self, cluster: Cluster, notices: Notices, measures: Measures, seconds: float
    ) -> None:
        """``seconds`` for which a pod may be starting before it is looked at; 0 means never."""
        self._cluster = cluster
        self._notices = notices
        self._measures = measures
        self._patience = timedelta(seconds=seconds)
        self._told: set[str] = set()

    def look(self, now: datetime, *, telling: bool, start: Start) -> None:
        """Once in a while; ``telling`` says whether this instance may write Events."""
        if not self._patience:
            return
        stuck = {
            pod.uid: (pod, missing)
            for pod in self._cluster.pods.values()
            if self._late(pod, now)
            for missing in (self._missing(pod),)
            if missing
        }
        self._told &= stuck.keys()
        self._measures.set("pods_without_driver", len(stuck))
        for uid, (pod, missing) in stuck.items():
            if telling and uid not in self._told:
                self._told.add(uid)
                self._tell(pod, missing, start)

    def _late(self, pod: Pod, now: datetime) -> bool:
        since = pod.starting
        return since is not None and not pod.deleting and now >= since + self._patience

    def _missing(self, pod: Pod) -> list[Pool]:
        """The pools of the pod's devices that nobody publishes (any more)."""
        claims = (self._cluster.claim(pod.namespace, named.name) for named in pod.claims)
        pools = {
            (result.driver, result.pool)
            for claim in claims
            if claim is not None and any(user.uid == pod.uid for user in claim.reserved_for)
            for result in claim.results
        }
        return sorted(pool for pool in pools if not self._cluster.published(pool))

    def _tell(self, pod: Pod, missing: list[Pool], start: Start) -> None:
        pools = ", ".join(f"{driver}/{pool}" for driver, pool in missing)
        drivers = ", ".join(sorted({driver for driver, _ in missing}))
        note = (
            f"still starting on node {pod.node} after {self._patience.total_seconds():g} s, and no "
            f"ResourceSlice of {pools} is published (any more): see whether the plugin of driver "
            f"{drivers} runs on that node, or delete the pod to have it scheduled anew"
        )
        _log.warning("a pod waits for a driver", pod=str(pod), uid=pod.uid, reason=note)
        start(lambda: self._notices.tell(pod, "Warning", DRIVER_MISSING, note))

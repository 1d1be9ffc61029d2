"""Who uses devices, as far as taints matter: pods, claims and slices with all else left out.

A cluster has many more pods and slices than fit into memory whole. What is not here was dropped
when the object arrived (:mod:`dra_core.wire.lean`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from dra_core.model.claims import AllocationResult, Consumer, DeviceStatus
from dra_core.model.defaults import empty_map
from dra_core.model.taints import DeviceTaint
from dra_core.names import ClaimUID, DeviceName, DriverName, PodUID, PoolName


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim that a pod names.

    ``made`` claims were made for the pod (from a template, for an extended resource), so their
    controller has to be the pod or its PodGroup.
    """

    name: str
    made: bool = False


@dataclass(frozen=True, slots=True)
class Pod:
    """``group`` is the name of its PodGroup; ``finished`` means phase Succeeded or Failed.

    ``starting`` is since when it has been on its node without running (phase Pending).
    """

    namespace: str
    name: str
    uid: PodUID
    claims: tuple[PodClaim, ...] = ()
    node: str = ""
    priority: int = 0
    created: datetime | None = None
    deleting: bool = False
    finished: bool = False
    group: str = ""
    starting: datetime | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Controller:
    """The owner reference with ``controller: true``; ``api_group`` is without the version."""

    api_group: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ClaimInUse:
    """A claim: what is allocated to it, and for whom.

    ``node`` is the single node that the allocation is for, empty if it is for several. ``devices``
    (conditions only), ``node`` and ``allocated_at`` are kept only where a device has binding
    conditions.
    """

    namespace: str
    name: str
    uid: ClaimUID
    results: tuple[AllocationResult, ...] = ()
    reserved_for: tuple[Consumer, ...] = ()
    controller: Controller | None = None
    node: str = ""
    allocated_at: datetime | None = None
    devices: tuple[DeviceStatus, ...] = ()

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class SliceTaints:
    """A ResourceSlice: which devices it lists, and the taints of those that have any."""

    name: str
    uid: str
    driver: DriverName
    pool: PoolName
    generation: int
    slice_count: int
    devices: frozenset[DeviceName] = frozenset()
    taints: Mapping[DeviceName, tuple[DeviceTaint, ...]] = empty_map()

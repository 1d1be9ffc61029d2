"""Claims as a driver sees them: who, and which devices were allocated."""

from __future__ import annotations

from dataclasses import dataclass

from dra_core.names import ClaimUID, DeviceName, DriverName, PoolName


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """What the kubelet tells about a claim."""

    namespace: str
    name: str
    uid: ClaimUID

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} (UID {self.uid})"


@dataclass(frozen=True, slots=True)
class AllocationResult:
    """One entry of ``status.allocation.devices.results[]``.

    ``request`` is as the scheduler wrote it: ``<request>`` or ``<request>/<subrequest>``.
    """

    request: str
    driver: DriverName
    pool: PoolName
    device: DeviceName
    admin_access: bool = False
    share_id: str | None = None

    @property
    def main_request(self) -> str:
        """The name that containers use: the part before the slash."""
        return self.request.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Claim:
    """A ResourceClaim. ``results`` is None while it is not allocated."""

    reference: ClaimReference
    results: tuple[AllocationResult, ...] | None

    def results_of(self, driver: DriverName) -> tuple[AllocationResult, ...]:
        """The results that ``driver`` has to prepare, in the order of the allocation."""
        return tuple(r for r in self.results or () if r.driver == driver)

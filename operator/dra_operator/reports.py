"""Conditions of attached devices, written on top of what the claim is now.

The claim is read anew before each write, and the write is on condition of what was read: an
allocation that is over leads to a conflict and another look, never to a word about another device.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from dra_core import binding
from dra_core.binding import Others, Outcome, Report, Standing, Target
from dra_core.errors import ApiConflict, ApiNotFound
from dra_core.model.claims import ClaimReference
from dra_core.model.usage import ClaimInUse
from dra_core.taints import DeviceId
from dra_operator.binding_ports import ClaimApi
from dra_operator.ports import Measures

#: Writes in a row that met a change of the claim by somebody else.
_CONFLICTS: Final = 4


class Stale(Exception):
    """The claim is not what it was thought to be.

    ``claim`` is what it is now; None if it is gone.
    """

    def __init__(self, claim: ClaimInUse | None) -> None:
        super().__init__("stale")
        self.claim = claim


class Reports:
    """See the module. Any thread may use it."""

    def __init__(
        self, api: ClaimApi, others: Others, measures: Measures, now: Callable[[], datetime]
    ) -> None:
        self._api = api
        self._others = others
        self._measures = measures
        self._now = now

    def write(self, target: Target, report: Report, until: datetime | None = None) -> ClaimInUse:
        """Say it; the claim after that. Nothing is written ``until`` is over.

        Raises Stale if the allocation is over, or if the conditions rule the report out: of a
        device that has failed it is never said that it is ready, nor the other way round. Raises
        ApiError.
        """
        left = _CONFLICTS
        while True:
            try:
                fresh = self._api.read(target.claim)
            except ApiNotFound as error:
                raise Stale(None) from error
            current = binding.targets(fresh.claim, self._others).get(target.device)
            if current is None or not current.same_allocation(target):
                raise Stale(fresh.claim)
            says = binding.standing(current, fresh.claim.devices)
            if says is not Standing.OPEN or (until is not None and self._now() >= until):
                raise Stale(fresh.claim)
            entries = binding.report_entries(current, report, fresh.claim.devices, self._now())
            try:
                written = self._api.report(target.device, fresh, entries)
            except ApiConflict:
                self._count(report, "conflict")
                left -= 1
                if not left:
                    raise
                continue
            self._count(report, "written")
            return written.claim

    def holder(self, claim: ClaimReference, device: DeviceId) -> ClaimInUse | None:
        """The claim, if its allocation names the device; None only if that is certain not to be.

        Raises ApiError if it cannot be told.
        """
        try:
            found = self._api.read(claim).claim
        except ApiNotFound:
            return None
        held = any((r.driver, r.pool, r.device) == device for r in found.results)
        return found if held else None

    def _count(self, report: Report, result: str) -> None:
        said: Outcome = report.outcome
        self._measures.add("condition_writes_total", outcome=said.value, result=result)

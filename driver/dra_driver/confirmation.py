"""Conditions that the node's side of a driver sets while a pod waits to be bound.

The claim is read first, and the write is on condition of what was read, so that it never speaks of
another allocation. Each condition of each device is applied for itself: what others have written
into the same entry stays.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from dra_core import binding
from dra_core.errors import ApiConflict, ApiNotFound, ClaimGone
from dra_core.model.claims import Claim
from dra_core.model.objects import Condition
from dra_core.names import DriverName
from dra_core.taints import DeviceId
from dra_driver.api import Confirmation
from dra_driver.ports import ClaimConditions

_log = structlog.get_logger(__name__)

#: Writes in a row that met a change of the claim by somebody else.
_CONFLICTS: Final = 5


class Confirmations:
    """See the module. Any thread may use it."""

    def __init__(
        self, name: DriverName, claims: ClaimConditions, now: Callable[[], datetime]
    ) -> None:
        self._name = name
        self._claims = claims
        self._now = now

    def set(self, confirmation: Confirmation) -> bool:
        """See :attr:`dra_driver.api.Context.confirm`."""
        c = confirmation
        device = DeviceId(self._name, c.pool, c.device)
        condition = Condition(c.condition, "True" if c.met else "False", c.reason, c.message)
        left = _CONFLICTS
        while True:
            claim = self._read(confirmation)
            entries = binding.confirmation(claim, device, condition, self._now())
            if not entries:
                return False
            try:
                self._claims.apply(claim, (*device, c.condition), entries)
            except ApiConflict:
                left -= 1
                if not left:
                    raise
                continue
            _log.info(
                "condition set",
                claim=str(c.claim),
                device=str(device),
                condition=c.condition,
                met=c.met,
                reason=c.reason,
            )
            return True

    def _read(self, confirmation: Confirmation) -> Claim:
        reference = confirmation.claim
        try:
            claim = self._claims.read(reference)
        except ApiNotFound as error:
            raise ClaimGone(f"claim {reference} does not exist (any more)") from error
        if claim.reference.uid != reference.uid:
            raise ClaimGone(f"claim {reference} is gone; another one has its name")
        return claim

"""Which of several instances may write: the one that holds the Lease.

As client-go's leader election: the holder renews well before the lease ends and stops writing on
its own if it cannot; the others take over once they have seen no renewal for the whole length. Each
instance measures with its own monotonic clock from when it saw the Lease change, so clocks that
differ do no harm, and an instance that was stopped for a while knows it when it runs again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from dra_core.errors import ApiConflict, ApiError

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease. ``renewed`` is compared with itself only: clocks of machines differ.

    ``version`` is its resourceVersion.
    """

    holder: str
    renewed: str
    version: str
    transitions: int = 0
    acquired: str = ""


class LeaseApi(Protocol):
    """One Lease object. Calls raise :class:`~dra_core.errors.ApiError`."""

    def read(self) -> LeaseRecord | None:
        """None if there is none."""

    def write(self, holder: str, last: LeaseRecord | None, seconds: int) -> LeaseRecord:
        """Create it, or replace the ``last`` one; ApiConflict if somebody was faster."""


class Measures(Protocol):
    """Numbers for monitoring."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set the gauge ``leading``: 1 or 0."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: length of a lease, how long a holder trusts its last renewal, between tries."""

    lease: int = 15
    trust: float = 10.0
    retry: float = 2.0


class Leadership:
    """:meth:`tick` is called by one thread, :attr:`leading` by any."""

    def __init__(
        self,
        leases: LeaseApi,
        identity: str,
        measures: Measures,
        monotonic: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self._leases = leases
        self._identity = identity
        self._measures = measures
        self._monotonic = monotonic
        self._changed = changed
        self._times = Times()
        self._seen: LeaseRecord | None = None
        self._seen_at = 0.0
        self._good_until = float("-inf")
        self._terms = 0
        self._was_leading = False

    @property
    def term(self) -> int | None:
        """How often this instance has begun to lead; None while it does not."""
        terms = self._terms
        return terms if self.leading else None

    @property
    def leading(self) -> bool:
        """Whether the Lease is ours and was renewed lately."""
        return self._monotonic() < self._good_until

    @property
    def holder(self) -> str:
        """Who held the Lease when it was last looked at."""
        return self._seen.holder if self._seen else ""

    def tick(self) -> float:
        """Take or renew the Lease if that is due; seconds until the next try."""
        try:
            self._try()
        except ApiConflict:
            _log.debug("another instance was faster with the lease")
        except ApiError as error:
            _log.warning("the lease cannot be read or renewed", error=str(error))
        self._note()
        return self._times.retry

    def release(self) -> None:
        """Let another instance take over at once."""
        last = self._seen
        if not self.leading or last is None:
            return
        self._good_until = float("-inf")
        try:
            self._leases.write("", last, self._times.lease)
        except ApiError as error:
            _log.warning("the lease cannot be released", error=str(error))
        self._note()

    def _try(self) -> None:
        started = self._monotonic()
        found = self._leases.read()
        if found != self._seen:
            self._seen, self._seen_at = found, started
        free = found is None or not found.holder
        if not free and found is not None and found.holder != self._identity:
            self._good_until = float("-inf")
            if started < self._seen_at + self._times.lease:
                return
        self._seen = self._leases.write(self._identity, found, self._times.lease)
        self._seen_at = started
        self._terms += not self.leading
        self._good_until = started + self._times.trust

    def _note(self) -> None:
        leading = self.leading
        self._measures.set("leading", float(leading))
        if leading is not self._was_leading:
            self._was_leading = leading
            _log.info("leading" if leading else "not leading", holder=self.holder)
            self._changed()

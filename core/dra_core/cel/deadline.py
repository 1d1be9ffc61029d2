"""When an evaluation has to end: by a clock that the caller brings, and by what it copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dra_core.cel.faults import CostExceeded, DeadlineExceeded

#: Iterations of loops between two looks at the clock, as in Kubernetes.
FREQUENCY: Final = 100
#: Items of lists that one evaluation may copy with ``+``. The reference shares them.
MAX_COPIED: Final = 10_000_000


class Clock:
    """Counts the iterations of one evaluation and ends it when its time is over.

    ``now`` gives seconds that never go back, ``until`` is such a time; without them it never ends.
    """

    __slots__ = ("_copied", "_count", "_now", "_until")

    def __init__(self, now: Callable[[], float] | None = None, until: float = 0.0) -> None:
        self._now = now
        self._until = until
        self._count = 0
        self._copied = 0

    def copied(self, items: int) -> None:
        """A list of so many items was made. Errors: ``CostExceeded``."""
        self._copied += items
        if self._copied > MAX_COPIED:
            raise CostExceeded(f"actual cost limit exceeded: {self._copied} items were copied")

    def check(self) -> None:
        """Errors: ``DeadlineExceeded`` if the time is over."""
        if self._now is not None and self._now() > self._until:
            raise DeadlineExceeded("operation interrupted: the deadline is over")

    def tick(self) -> None:
        """One iteration. Errors: ``DeadlineExceeded``."""
        self._count += 1
        if self._count % FREQUENCY == 0 and self._now is not None and self._now() > self._until:
            raise DeadlineExceeded("operation interrupted: the deadline is over")

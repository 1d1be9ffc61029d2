"""When an evaluation has to end: by a clock that the caller brings, and by what it copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dra_core.cel.call_costs import traversal
from dra_core.cel.faults import CostExceeded, DeadlineExceeded

#: Iterations of loops between two looks at the clock, as in Kubernetes.
FREQUENCY: Final = 100
#: Items that one evaluation may make at less than their number costs: lists that ``+`` joins, where
#: the reference shares, long texts of ``replace`` and ``format``, and the like.
MAX_COPIED: Final = 10_000_000
#: Characters of a text that count as an item, or items as which a converted one counts.
_WEIGHT: Final = 4


class Clock:
    """Counts the iterations of evaluations, one after another, and ends them when time is over.

    ``now`` gives seconds that never go back, ``until`` is such a time; without them it never ends.
    """

    __slots__ = ("_copied", "_count", "_now", "_until")

    def __init__(self, now: Callable[[], float] | None = None, until: float = 0.0) -> None:
        self._now = now
        self._until = until
        self._count = 0
        self._copied = 0

    def begin(self) -> None:
        """An evaluation begins: what others copied is none of its business."""
        self._copied = 0

    def made(self, value: object) -> None:
        """A list or text was made at less than its size costs. Errors: ``CostExceeded``."""
        if type(value) is list:
            self.copied(len(value))
        elif type(value) is str:
            self.copied(len(value) // _WEIGHT)

    def converted(self, value: object) -> None:
        """An object was made, its items converted one by one. Errors: ``CostExceeded``."""
        self.copied(traversal(value) * _WEIGHT)

    def copied(self, items: int) -> None:
        """So many items were made. Errors: ``CostExceeded``."""
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
        if self._count % FREQUENCY == 0:
            self.check()

"""The cost of an evaluation as it goes, and the stack of values that decides what is charged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_core.cel.faults import CostExceeded, EvalError
from dra_core.cel.values import Value

#: What one evaluation of a selector or derived attribute may cost in Kubernetes.
LIMIT: Final = 1_000_000

ATTRIBUTE: Final = 1
LIST: Final = 10
MAP: Final = 30
OBJECT: Final = 40


#: Arguments for which looking whether they all are on top is worth it.
_MANY: Final = 8


class Failure:
    """An error as the value of a step."""

    __slots__ = ("error",)

    def __init__(self, error: EvalError) -> None:
        self.error = error


class Tracker:
    """Cost units so far, their limit, and the values observed with the identifiers of their steps.

    Taking a value away takes all above it, too: that is how values which nobody asked for go.
    Where the latest value of a step stands, and the one before it, is known without a search.
    """

    __slots__ = ("_before", "_ids", "_latest", "_values", "cost", "limit")

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.cost = 0
        self._ids: list[int] = []
        self._values: list[Value] = []
        self._before: list[int] = []
        self._latest: dict[int, int] = {}

    def push(self, step: int, value: Value) -> None:
        """The value of a step was seen. Errors: ``CostExceeded``."""
        latest, ids = self._latest, self._ids
        self._before.append(latest.get(step, -1))
        latest[step] = len(ids)
        ids.append(step)
        self._values.append(value)
        if self.cost > self.limit:
            raise CostExceeded("operation cancelled: actual cost limit exceeded")

    def push_all(self, steps: Sequence[int], values: Sequence[Value]) -> None:
        """The values of several different steps were seen at no cost, one after the other."""
        latest, ids = self._latest, self._ids
        self._before.extend([latest.get(step, -1) for step in steps])
        latest.update(zip(steps, range(len(ids), len(ids) + len(steps)), strict=True))
        ids.extend(steps)
        self._values.extend(values)

    def drop(self, step: int) -> None:
        """Take the latest value of a step away, if there is one."""
        place = self._latest.get(step, -1)
        if place >= 0:
            self._cut(place)

    def take(self, steps: tuple[int, ...]) -> list[Value] | None:
        """Take the values of arguments, the last one first; ``None`` once one is not found."""
        if len(steps) > _MANY and self._ids[-len(steps) :] == list(steps):
            return self._take_top(steps)
        found: list[Value] = []
        for step in reversed(steps):
            place = self._latest.get(step, -1)
            if place < 0:
                return None
            found.append(self._values[place])
            self._cut(place)
        found.reverse()
        return found

    def _take_top(self, steps: tuple[int, ...]) -> list[Value]:
        """The same where they are on top, in their order."""
        start = len(self._ids) - len(steps)
        found = self._values[start:]
        self._latest.update(zip(steps, self._before[start:], strict=True))
        del self._ids[start:], self._values[start:], self._before[start:]
        return found

    def _cut(self, place: int) -> None:
        ids, values, before, latest = self._ids, self._values, self._before, self._latest
        while len(ids) > place:
            latest[ids.pop()] = before.pop()
            values.pop()

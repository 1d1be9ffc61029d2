"""Whether values are the same, for functions that look for one among others."""

from __future__ import annotations

from typing import Final

from dra_core.cel.faults import CostExceeded, EvalError
from dra_core.cel.values import Value, equal

#: Each of them costs a unit or two, and a selector may spend this many.
MAX_COMPARISONS: Final = 1_000_000


def same(left: Value, right: Value) -> bool:
    """``left == right``; False where the two cannot be compared."""
    try:
        return equal(left, right)
    except EvalError:
        return False


def contains(items: list[Value], value: Value) -> bool:
    """Whether an item is the same as a value."""
    if type(value) is str:
        return value in items
    return any(same(value, item) for item in items)


def check_comparisons(count: int) -> None:
    """End an evaluation before comparisons that cost more than it may spend, not after them.

    Errors: ``CostExceeded``.
    """
    if count > MAX_COMPARISONS:
        raise CostExceeded(f"actual cost limit exceeded: {count} comparisons of items")

"""Which of two values comes first, where a function of lists asks for it.

Values of one kind have an order, and numbers across their kinds. Other pairs have none, and NaN
has none with anything; such a pair is no error here, it just does not decide anything.
"""

from __future__ import annotations

from typing import Final

from dra_core.cel.values import Duration, Timestamp, Uint, Value

_NUMBERS: Final = frozenset((int, Uint, float))
_SPANS: Final = frozenset((Duration, Timestamp))
ORDERED: Final = frozenset((*_NUMBERS, *_SPANS, bool, str, bytes))


def compare(left: Value, right: Value) -> int:
    """-1 or 1 for before or after; 0 where the two are equal, and where they have no order."""
    kind = type(left)
    if kind in _NUMBERS:
        if type(right) not in _NUMBERS:
            return 0
        if kind is float or type(right) is float:
            left, right = float(left), float(right)  # precision is lost in the reference too
    elif kind is not type(right) or kind not in ORDERED:
        return 0
    elif kind in _SPANS:
        left, right = left.nanos, right.nanos
    return int(left > right) - int(left < right)

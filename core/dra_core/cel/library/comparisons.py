"""``< <= > >=``, ``in`` and ``size``.

Numbers compare by value across their kinds; an integer beside a double is compared as a double,
precision lost, as in the reference. NaN has no place in an order: comparing it is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
)
from dra_core.cel.faults import EvalError
from dra_core.cel.library.membership import contains
from dra_core.cel.signatures import Overload
from dra_core.cel.values import Duration, Map, Timestamp, Value

Compare = Callable[[Value, Value], bool]

_OPERATORS: Final[tuple[tuple[str, str, Compare], ...]] = (
    ("_<_", "less", operator.lt),
    ("_<=_", "less_equals", operator.le),
    ("_>_", "greater", operator.gt),
    ("_>=_", "greater_equals", operator.ge),
)

#: The pairs of types that have an order: the end of the overload's identifier, and the types.
_ORDERED: Final[tuple[tuple[str, Type, Type], ...]] = (
    ("bool", BOOL, BOOL),
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
    ("string", STRING, STRING),
    ("bytes", BYTES, BYTES),
    ("timestamp", TIMESTAMP, TIMESTAMP),
    ("duration", DURATION, DURATION),
)


def _ordering() -> Iterator[Overload]:
    for function, name, compare in _OPERATORS:
        for kinds, left, right in _ORDERED:
            yield Overload(
                f"{name}_{kinds}", function, (left, right), BOOL, _comparison(compare, left, right)
            )


def _comparison(compare: Compare, left: Type, right: Type) -> Compare:
    if DOUBLE in (left, right):
        return _of_doubles(compare)
    return _of_spans(compare) if left in (TIMESTAMP, DURATION) else compare


def _of_doubles(compare: Compare) -> Compare:
    def comparison(left: float, right: float) -> bool:
        left, right = float(left), float(right)
        if left != left or right != right:  # noqa: PLR0124  # faster than isnan
            raise EvalError("NaN values cannot be ordered")
        return compare(left, right)

    return comparison


def _of_spans(compare: Compare) -> Compare:
    def comparison(left: Timestamp | Duration, right: Timestamp | Duration) -> bool:
        return compare(left.nanos, right.nanos)

    return comparison


def _in_list(value: Value, items: list[Value]) -> bool:
    return contains(items, value)


def _in_map(key: Value, entries: Map) -> bool:
    """Whether there is such a key. Errors: ``Aborted`` for a kind that cannot be looked up."""
    return entries.find(key) is not None


def _sizes() -> Iterator[Overload]:
    """``size(x)`` and ``x.size()``; a string is counted in code points."""
    sized = {
        "bytes": BYTES,
        "list": celtypes.list_of(_A),
        "map": celtypes.map_of(_A, _B),
        "string": STRING,
    }
    for name, of in sized.items():
        yield Overload(f"size_{name}", "size", (of,), INT, len)
        yield Overload(f"{name}_size", "size", (of,), INT, len, member=True)


_A = celtypes.param("A")
_B = celtypes.param("B")

OVERLOADS: Final[tuple[Overload, ...]] = (
    *_ordering(),
    Overload("in_list", "@in", (_A, celtypes.list_of(_A)), BOOL, _in_list),
    Overload("in_map", "@in", (_A, celtypes.map_of(_A, _B)), BOOL, _in_map),
    *_sizes(),
)

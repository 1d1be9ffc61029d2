"""Lists seen as sets. Items that cannot be compared are different."""

from __future__ import annotations

from typing import Final

from dra_core.cel.celtypes import BOOL, list_of, param
from dra_core.cel.library.membership import check_comparisons, contains
from dra_core.cel.signatures import Overload
from dra_core.cel.values import Value

_LISTS = (list_of(param("T")), list_of(param("T")))


def _contains(items: list[Value], others: list[Value]) -> bool:
    check_comparisons(len(items) * len(others))
    return all(contains(items, other) for other in others)


def _equivalent(items: list[Value], others: list[Value]) -> bool:
    return _contains(items, others) and _contains(others, items)


def _intersects(items: list[Value], others: list[Value]) -> bool:
    check_comparisons(len(items) * len(others))
    return any(contains(others, item) for item in items)


OVERLOADS: Final[tuple[Overload, ...]] = (
    Overload("list_sets_contains_list", "sets.contains", _LISTS, BOOL, _contains),
    Overload("list_sets_equivalent_list", "sets.equivalent", _LISTS, BOOL, _equivalent),
    Overload("list_sets_intersects_list", "sets.intersects", _LISTS, BOOL, _intersects),
)

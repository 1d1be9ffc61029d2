"""What a call on lists and sets costs at most, and how long its result is.

These are the libraries that say it for each overload. Sizes that are not known are without bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from dra_core.cel.call_costs import CHARACTER, NEW_LIST
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
from dra_core.cel.estimates import (
    MAX,
    UNKNOWN_SIZE,
    CallEstimate,
    Operand,
    SizeEstimate,
    fixed_cost,
    fixed_size,
)
from dra_core.cel.syntax import Const


class Call(NamedTuple):
    """A call as an estimate sees it."""

    overload: str
    target: Operand | None
    args: Sequence[Operand]


#: None where the operands are not those that it knows.
Estimate = Callable[[Call], CallEstimate | None]


def size_of(operand: Operand) -> SizeEstimate:
    """The size of a target or argument."""
    return operand.computed_size or UNKNOWN_SIZE


def _literal(operand: Operand, otherwise: int) -> int:
    """The number that an argument is, if it is a literal; negative ones count as 0."""
    node = operand.node
    if not isinstance(node, Const) or type(node.value) is not int:
        return otherwise
    return max(node.value, 0)


def _new_list(factor: float, size: SizeEstimate) -> CallEstimate:
    cost = size.multiply_by_cost_factor(factor).add(fixed_cost(1)).add(fixed_cost(NEW_LIST))
    return CallEstimate(cost, size)


def _slice(call: Call) -> CallEstimate | None:
    if call.target is None or len(call.args) != 2:
        return None
    start = _literal(call.args[0], 0)
    end = _literal(call.args[1], size_of(call.target).max)
    return _new_list(1, fixed_size((end - start) & MAX))  # wraps around, as in the reference


def _range(call: Call) -> CallEstimate | None:
    if call.target is not None or len(call.args) != 1:
        return None
    return _new_list(1, fixed_size(_literal(call.args[0], MAX)))


def _reverse(call: Call) -> CallEstimate | None:
    if call.target is None or call.args:
        return None
    return _new_list(1, size_of(call.target))


def _flatten(call: Call) -> CallEstimate | None:
    if call.target is None or len(call.args) > 1:
        return None
    depth = _literal(call.args[0], MAX) if call.args else 1
    return _new_list(float(depth), size_of(call.target))


def _all_with_all(size: SizeEstimate, factor: float = 2.0) -> CallEstimate:
    return _new_list(factor, size.multiply(size))


def _distinct(call: Call) -> CallEstimate | None:
    return None if call.target is None or call.args else _all_with_all(size_of(call.target))


def _sort(of: Type) -> Estimate:
    factor = _sort_factor(of)

    def sort(call: Call) -> CallEstimate | None:
        if call.target is None or call.args:
            return None
        return _all_with_all(size_of(call.target), factor)

    return sort


def _sort_by(of: Type) -> Estimate:
    factor = _sort_factor(of)

    def sort_by(call: Call) -> CallEstimate | None:
        if call.target is None or len(call.args) != 1:
            return None
        return _all_with_all(size_of(call.args[0]), factor)

    return sort_by


def _sort_factor(of: Type) -> float:
    return 2.0 + CHARACTER if of in (STRING, BYTES) else 2.0


def _sets(factor: int) -> Estimate:
    def sets(call: Call) -> CallEstimate | None:
        if len(call.args) != 2:
            return None
        left, right = map(size_of, call.args)
        pairs = left.multiply(right).multiply_by_cost_factor(factor)
        return CallEstimate(pairs.add(fixed_cost(1)))

    return sets


_KINDS: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)

BY_OVERLOAD: Final[dict[str, Estimate]] = {
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _distinct,
    **{f"list_{of.name}_sort": _sort(of) for of in _KINDS},
    **{f"list_{of.name}_sortByAssociatedKeys": _sort_by(of) for of in _KINDS},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}

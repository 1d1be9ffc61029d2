"""What the functions and operators of the language itself cost, by the sizes of their operands.

Libraries come first: :mod:`dra_core.cel.library_estimates` says what theirs cost, and for some of
the functions here what Kubernetes says instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dra_core.cel import device_sizes, library_estimates
from dra_core.cel.call_costs import CHARACTER, PATTERN
from dra_core.cel.environment import Environment
from dra_core.cel.estimate_sizes import Argument, Sizes
from dra_core.cel.estimates import (
    MAX,
    UNKNOWN_SIZE,
    CallEstimate,
    CostEstimate,
    SizeEstimate,
    fixed_cost,
    fixed_size,
)
from dra_core.cel.syntax import Call

_STEP: Final = fixed_cost(1)

#: The sizes of the target, if there is one, and of the arguments, in this order.
_Sizes = Sequence[SizeEstimate]
#: The cost of a call without that of its arguments.
_Rule = Callable[[_Sizes], CallEstimate]


class Calls:
    """Estimates of calls within one expression."""

    def __init__(self, sizes: Sizes, environment: Environment) -> None:
        self._sizes = sizes
        self._old = not environment.costly_matches

    def estimate(
        self,
        node: Call,
        overload: str,
        target: Argument | None,
        args: Sequence[Argument],
        costs: Sequence[CostEstimate],
    ) -> CallEstimate:
        """The cost of one overload with that of its arguments, but not of its target."""
        found = self._library(node, overload, target, args)
        if found is None:
            special = self._with_costs(node, overload, args, costs)
            if special is not None:
                return special
            found = self._standard(overload, target, args)
            if overload in _JOINED:
                self._join(node, args)
        total = found.cost
        for cost in costs:
            total = total.add(cost)
        return CallEstimate(total, found.result_size)

    def _library(
        self, node: Call, overload: str, target: Argument | None, args: Sequence[Argument]
    ) -> CallEstimate | None:
        if overload == "dra_includes_dyn_dyn":
            return CallEstimate(CostEstimate(0, device_sizes.MAX_LIST_VALUES))
        return library_estimates.estimate_call(
            node.function,
            overload,
            None if target is None else target.operand(),
            [arg.operand() for arg in args],
        )

    def _with_costs(
        self, node: Call, overload: str, args: Sequence[Argument], costs: Sequence[CostEstimate]
    ) -> CallEstimate | None:
        """Operators that do not evaluate all of their operands."""
        if overload in {"logical_and", "logical_or"}:
            left, right = costs
            return CallEstimate(CostEstimate(left.min, left.add(right).max))
        if overload != "conditional":
            return None
        self._join(node, args[1:])
        condition, yes, no = costs
        size = _size(args[1]).union(_size(args[2]))
        return CallEstimate(condition.add(yes.union(no)), size)

    def _join(self, node: Call, args: Sequence[Argument]) -> None:
        """The result has the items of either."""
        first, second = (self._sizes.entries(arg.node) for arg in args)
        if first is not None and second is not None:
            self._sizes.set_entries(node, first.union(second))

    def _standard(
        self, overload: str, target: Argument | None, args: Sequence[Argument]
    ) -> CallEstimate:
        rule = _STANDARD.get(overload)
        if rule is None or (self._old and overload == "matches"):
            return CallEstimate(_STEP)
        operands = args if target is None else [target, *args]
        return rule([_size(operand) for operand in operands])


def _size(argument: Argument) -> SizeEstimate:
    return argument.size or UNKNOWN_SIZE


def _read(size: SizeEstimate) -> CostEstimate:
    return size.multiply_by_cost_factor(CHARACTER)


def _read_first(sizes: _Sizes) -> CallEstimate:
    return CallEstimate(_read(sizes[0]))


def _read_second(sizes: _Sizes) -> CallEstimate:
    return CallEstimate(_read(sizes[1]))


def _to_bytes(sizes: _Sizes) -> CallEstimate:
    """Up to four bytes for a character; without bound it wraps around, as in the reference."""
    size = sizes[0]
    return CallEstimate(_read(size), SizeEstimate(size.min, size.max * 4 & MAX))


def _from_bytes(sizes: _Sizes) -> CallEstimate:
    size = sizes[0]
    return CallEstimate(_read(size), SizeEstimate(size.min // 4, size.max))


def _quote(sizes: _Sizes) -> CallEstimate:
    """Two quotes, and every character may be escaped; wraps around like the bytes."""
    size = sizes[0]
    result = SizeEstimate(size.min + 2 & MAX, size.max * 2 + 2 & MAX)
    return CallEstimate(_read(size), result)


def _in_list(sizes: _Sizes) -> CallEstimate:
    return CallEstimate(sizes[1].multiply_by_cost_factor(1))


def _matches(sizes: _Sizes) -> CallEstimate:
    """A pattern costs even on an empty text."""
    text, pattern = sizes
    read = _read(text.add(fixed_size(1)))
    return CallEstimate(read.multiply(pattern.multiply_by_cost_factor(PATTERN)))


def _contains(sizes: _Sizes) -> CallEstimate:
    text, part = sizes
    return CallEstimate(_read(text).multiply(_read(part)))


def _add_list(sizes: _Sizes) -> CallEstimate:
    left, right = sizes
    return CallEstimate(_STEP, left.add(right))


def _add_text(sizes: _Sizes) -> CallEstimate:
    left, right = sizes
    size = left.add(right)
    return CallEstimate(_read(size), size)


def _compare(sizes: _Sizes) -> CallEstimate:
    """The shorter one is read; where both can have something to read, it costs at least 1."""
    left, right = sizes
    most = min(left.max, right.max)
    return CallEstimate(_read(SizeEstimate(1 if most > 0 else 0, most)))


_JOINED: Final = frozenset({"add_string", "add_bytes", "add_list"})

_STANDARD: Final[dict[str, _Rule]] = {
    "string_format": _read_first,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _from_bytes,
    "strings_quote": _quote,
    "starts_with_string": _read_second,
    "ends_with_string": _read_second,
    "in_list": _in_list,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_list": _add_list,
    "add_string": _add_text,
    "add_bytes": _add_text,
    **dict.fromkeys(
        [
            "equals",
            "not_equals",
            *(
                f"{order}_{kind}"
                for order in ("less", "greater", "less_equals", "greater_equals")
                for kind in ("string", "bytes")
            ),
        ],
        _compare,
    ),
}

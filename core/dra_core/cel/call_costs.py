"""What a call costs when it runs, in the cost units of Kubernetes.

A unit is the cost of a simple operation. Libraries come first: lists and sets by the overload, the
functions of Kubernetes by their name alone, so that ``x.min()`` is charged like a list even where
``x`` is none. Then comes the table of the language, by the overload; everything else is one unit.
Where the checker left the overload open, its identifier is empty.

Costs are charged whether a call has a value or not: arguments and result can be errors, whatever
stands for them, and count as size 1 then. The reference breaks down over some of them, and with
them the evaluation ends (``Aborted``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

from dra_core.cel.celtypes import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT
from dra_core.cel.faults import Aborted
from dra_core.cel.library.addresses import CidrValue, IpValue
from dra_core.cel.library.named_formats import FormatValue
from dra_core.cel.library.urls import UrlValue
from dra_core.cel.values import Map, QuantityValue, SemverValue, Value, size_of

#: Cost of each code point, or byte, that is read; and of each of a pattern.
CHARACTER: Final = 0.1
PATTERN: Final = 0.25
NEW_LIST: Final = 10
#: Cost of an authorization check, and of each requirement of a selector of objects.
CHECK: Final = 350_000
REQUIREMENT: Final = 50
#: The most requirements for each character of a selector.
REQUIREMENTS: Final = 0.5

#: The cost of a call by its arguments (a target is the first of them) and its result.
Coster = Callable[[Sequence[Value], Value], int]

_TOO_LARGE: Final = 2.0**64


def call_cost(function: str, overload: str, args: Sequence[Value], result: Value) -> int:
    """The cost of one call. Errors: ``Aborted`` where the reference cannot tell."""
    return coster(function, overload)(args, result)


def coster(function: str, overload: str) -> Coster:
    """How to compute the cost of a call, which depends on nothing else about the call."""
    found = _BY_OVERLOAD_FIRST.get(overload) or _BY_FUNCTION.get(function)
    return found or _BY_OVERLOAD.get(overload, one)


def is_fixed(function: str, overload: str) -> bool:
    """Whether such a call always costs 1."""
    return coster(function, overload) is one


def one(_args: Sequence[Value], _result: Value) -> int:
    """One unit."""
    return 1


def read(size: int, factor: float = CHARACTER) -> int:
    """The cost of reading something, rounded up; computed as a double, as the reference does."""
    return math.ceil(size * factor)


def _read_first(args: Sequence[Value], _result: Value) -> int:
    return read(size_of(args[0]))


def _read_second(args: Sequence[Value], _result: Value) -> int:
    return read(size_of(args[1]))


def _read_both(args: Sequence[Value], _result: Value) -> int:
    return read(size_of(args[0]) + size_of(args[1]))


def _read_twice(args: Sequence[Value], _result: Value) -> int:
    return read(size_of(args[0]) * 2)


def _write_result(_args: Sequence[Value], result: Value) -> int:
    return read(size_of(result) * 2)


def _search(args: Sequence[Value], _result: Value) -> int:
    return read(size_of(args[0])) * read(size_of(args[1]))


def _compare(args: Sequence[Value], _result: Value) -> int:
    """The shorter one is read."""
    left, right = args
    return read(min(size_of(left), size_of(right)))


def _equal(args: Sequence[Value], result: Value) -> int:
    return 1 if type(args[0]) in _COMPARED_AT_ONCE else _compare(args, result)


_COMPARED_AT_ONCE: Final = frozenset(
    (QuantityValue, SemverValue, IpValue, CidrValue, FormatValue, UrlValue)
)


def _items(args: Sequence[Value], _result: Value) -> int:
    return size_of(args[1])


def _match(text_size: int, pattern_size: int) -> int:
    """An empty text costs too, as its pattern has to be read."""
    return math.ceil((1.0 + text_size) * CHARACTER) * read(pattern_size, PATTERN)


def _matching(args: Sequence[Value], _result: Value) -> int:
    return _match(size_of(args[0]), size_of(args[1]))


def _check(_args: Sequence[Value], _result: Value) -> int:
    return CHECK


def _selector(args: Sequence[Value], _result: Value) -> int:
    size = size_of(args[1])
    return NEW_LIST + read(size) + read(size, REQUIREMENTS) * REQUIREMENT


def _validate(args: Sequence[Value], _result: Value) -> int:
    of = args[0]
    return _match(size_of(args[1]), of.regex_size) if type(of) is FormatValue else 1


# -- networks: sizes are those of the prefix and the address in bytes --


def _contains_ip(args: Sequence[Value], _result: Value) -> int:
    return read(2 * size_of(args[0]))


def _contains_cidr(args: Sequence[Value], _result: Value) -> int:
    prefix = size_of(args[0])
    return read(2 * prefix) + read(prefix) + 1


def _and_read_text(coster: Coster) -> Coster:
    def with_text(args: Sequence[Value], result: Value) -> int:
        return coster(args, result) + read(size_of(args[1]))

    return with_text


# -- lists --


def _traversal(args: Sequence[Value], _result: Value) -> int:
    return traversal(args[0])


def traversal(value: Value) -> int:
    """The cost of walking over a value with all that is in it: 1 for each plain value, and less
    than that for short strings, of which the bytes count.
    """
    kind = type(value)
    if kind is str:
        return int((len(value) if value.isascii() else len(value.encode())) * CHARACTER)
    if kind is bytes:
        return int(len(value) * CHARACTER)
    if kind is list or kind is Map:
        return _walk(value, {})
    return 1


def _walk(value: Value, seen: dict[int, int]) -> int:
    """The same for a list or map. One that stands in it many times is walked over once and counts
    every time.
    """
    cost = 0
    for item in value if type(value) is list else chain.from_iterable(value.items()):
        if type(item) is list or type(item) is Map:
            known = seen.get(id(item))
            if known is None:
                known = seen[id(item)] = _walk(item, seen)
            cost += known
        else:
            cost += traversal(item)
    return cost


def _new_list(factor: float, size: int) -> int:
    walked = size * factor
    # A double beyond 64 bits becomes 2^63 on the machines that Kubernetes runs on.
    return (int(walked) if walked < _TOO_LARGE else 2**63) + 1 + NEW_LIST


def _by_result(_args: Sequence[Value], result: Value) -> int:
    return _new_list(1, size_of(result))


def _flatten(args: Sequence[Value], _result: Value) -> int:
    depth = args[1] if len(args) == 2 else 1
    if type(depth) is not int:
        raise _broken()
    return _new_list(float(depth) if depth >= 0 else 1.0, size_of(args[0]))


def _comparing_items(args: Sequence[Value], _result: Value) -> int:
    return _all_with_all(args[0])


def _comparing_keys(args: Sequence[Value], _result: Value) -> int:
    return _all_with_all(args[1])


def _all_with_all(items: Value) -> int:
    if type(items) is not list:
        raise _broken()
    factor = 2.0
    if items and type(items[0]) in (str, bytes):
        factor += CHARACTER
    return _new_list(factor, len(items) ** 2)


def _broken() -> Aborted:
    return Aborted("internal error: the cost of the call cannot be computed")


def _comparing_sets(factor: int) -> Coster:
    def comparing_sets(args: Sequence[Value], _result: Value) -> int:
        return 1 + size_of(args[0]) * size_of(args[1]) * factor

    return comparing_sets


_KINDS: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)

#: What the libraries charge by the overload, before anything else.
_BY_OVERLOAD_FIRST: Final[dict[str, Coster]] = {
    "list_slice": _by_result,
    "lists_range": _by_result,
    "list_reverse": _by_result,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _comparing_items,
    **{f"list_{kind.name}_sort": _comparing_items for kind in _KINDS},
    **{f"list_{kind.name}_sortByAssociatedKeys": _comparing_keys for kind in _KINDS},
    "list_sets_contains_list": _comparing_sets(1),
    "list_sets_intersects_list": _comparing_sets(1),
    "list_sets_equivalent_list": _comparing_sets(2),
    "cidr_ip": one,
    "cidr_contains_ip_string": _and_read_text(_contains_ip),
    "cidr_contains_cidr_string": _and_read_text(_contains_cidr),
}

#: Overloads over whose cost the reference can break down: the evaluation ends, ``||`` does not
#: help. An evaluator that does not count must not run these.
MAY_ABORT: Final = frozenset(
    identifier
    for identifier, cost in _BY_OVERLOAD_FIRST.items()
    if cost in (_comparing_items, _comparing_keys) or identifier == "list_flatten_int"
)

#: What Kubernetes charges by the name of the function.
_BY_FUNCTION: Final[dict[str, Coster]] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traversal
    ),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "ip", "isIP", "isCIDR"),
        _read_first,
    ),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _read_first),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _read_twice),
    "join": _write_result,
    "find": _matching,
    "findAll": _matching,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "check": _check,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    "_==_": _equal,
}

#: What the language charges.
_BY_OVERLOAD: Final[dict[str, Coster]] = {
    "starts_with_string": _read_second,
    "ends_with_string": _read_second,
    "string_to_bytes": _read_first,
    "bytes_to_string": _read_first,
    "strings_quote": _read_first,
    "string_format": _read_first,
    "in_list": _items,
    **{
        f"{order}_{kind}": _compare
        for order in ("less", "greater", "less_equals", "greater_equals")
        for kind in ("string", "bytes")
    },
    "not_equals": _compare,
    "add_string": _read_both,
    "add_bytes": _read_both,
    "matches": _matching,
    "matches_string": _matching,
    "contains_string": _search,
}

"""Functions of lists: those of Kubernetes, and version 3 of those of the language.

Where a list holds values of several kinds (possible only if the checker could not see it), the
first item decides which overload runs, and the rest is as far as that one gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dra_core.cel.celtypes import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    param,
)
from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.library.arithmetic import moment, unsigned, whole
from dra_core.cel.library.bounds import check_items
from dra_core.cel.library.membership import check_comparisons, contains, same
from dra_core.cel.library.ordering import ORDERED, compare
from dra_core.cel.library.sorting import sorted_places
from dra_core.cel.signatures import Overload, member
from dra_core.cel.values import Duration, Timestamp, Uint, Value

_ORDERED_TYPES: Final = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
_ZEROS: Final[dict[str, Value]] = {
    "int": 0,
    "uint": Uint(0),
    "double": 0.0,
    "duration": Duration(0),
}
#: What a list of Kubernetes 1.36 may hold at most for ``includes``, and the most that
#: ``lists.range`` makes.
_MAX_INCLUDES: Final = 48
_MAX_RANGE: Final = 1_000_000

_A: Final = param("A")
_T: Final = param("T")


# -- Kubernetes --


def _is_sorted(items: list[Value]) -> bool:
    for place, item in enumerate(items):
        _ordered(item)
        if place and compare(items[place - 1], item) == 1:
            return False
    return True


def _extreme(name: str, worse: int) -> Callable[[list[Value]], Value]:
    def extreme(items: list[Value]) -> Value:
        if not items:
            raise EvalError(f"{name} called on empty list")
        best = _ordered(items[0])
        for item in items[1:]:
            if compare(best, _ordered(item)) == worse:
                best = item
        return best

    return extreme


def _ordered(item: Value) -> Value:
    if type(item) not in ORDERED:
        raise no_such_overload()
    return item


def _sum(zero: Value) -> Callable[[list[Value]], Value]:
    def total(items: list[Value]) -> Value:
        result = zero
        for item in items:
            result = _plus(result, item)
        return result

    return total


def _plus(total: Value, item: Value) -> Value:
    kind = type(total)
    if kind is type(item):
        if kind is int:
            return whole(total + item)
        if kind is float:
            return total + item
        if kind is Uint:
            return unsigned(int(total) + int(item))
        if kind is Duration:
            return Duration(whole(total.nanos + item.nanos))
    if kind is Duration and type(item) is Timestamp:
        return moment(item.nanos + total.nanos, item.offset)
    if kind is Timestamp and type(item) is Duration:
        return moment(total.nanos + item.nanos, total.offset)
    raise no_such_overload()


def _index_of(items: list[Value], value: Value) -> int:
    return next((place for place, item in enumerate(items) if same(item, value)), -1)


def _last_index_of(items: list[Value], value: Value) -> int:
    return next((place for place in reversed(range(len(items))) if same(items[place], value)), -1)


def _includes(target: Value, value: Value) -> bool:
    if type(target) is not list:
        return same(target, value)
    if type(value) is str:
        return value in target
    return any(same(item, value) for item in target)


def _includes_at_most(target: Value, value: Value) -> bool:
    """As Kubernetes 1.36 has it."""
    if type(target) is list and len(target) > _MAX_INCLUDES:
        if _includes(target[:_MAX_INCLUDES], value):
            return True
        raise EvalError(
            f"'includes' function cannot be applied to lists longer than {_MAX_INCLUDES} values"
        )
    return _includes(target, value)


def _of_kubernetes() -> Iterator[Overload]:
    for name, item in _ORDERED_TYPES.items():
        items = (list_of(item),)
        yield member(f"list_{name}_is_sorted_bool", "isSorted", items, BOOL, _is_sorted)
        yield member(f"list_{name}_max_{name}", "max", items, item, _extreme("max", -1))
        yield member(f"list_{name}_min_{name}", "min", items, item, _extreme("min", 1))
        if name in _ZEROS:
            yield member(f"list_{name}_sum_{name}", "sum", items, item, _sum(_ZEROS[name]))
    found = (list_of(_A), _A)
    yield member("list_a_index_of_int", "indexOf", found, INT, _index_of)
    yield member("list_a_last_index_of_int", "lastIndexOf", found, INT, _last_index_of)


# -- the language --


def _slice(items: list[Value], start: int, end: int) -> list[Value]:
    if start < 0 or end < 0:
        raise EvalError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvalError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if len(items) < end:
        raise EvalError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: Value, depth: Value = 1) -> list[Value]:
    if type(items) is not list or type(depth) is not int:
        raise no_such_overload("flatten")
    if depth < 0:
        raise EvalError("level must be non-negative")
    flat: list[Value] = items
    while depth and any(type(item) is list for item in flat):
        check_items(sum(len(item) if type(item) is list else 1 for item in flat))
        flat = [inner for item in flat for inner in (item if type(item) is list else (item,))]
        depth -= 1
    return flat


def _sort(items: Value) -> list[Value]:
    return _sort_by(items, items)


def _sort_by(items: Value, keys: Value) -> list[Value]:
    if type(items) is not list or type(keys) is not list:
        raise no_such_overload()
    if len(items) != len(keys):
        raise EvalError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    kind = type(keys[0])
    if kind not in ORDERED:
        raise EvalError("list elements must be comparable")
    if any(type(key) is not kind for key in keys):
        raise EvalError("list elements must have the same type")
    if kind is Duration or kind is Timestamp:
        keys = [key.nanos for key in keys]
    elif items is keys and kind is not float:
        return sorted(keys)  # equal items are not to be told apart
    return [items[place] for place in sorted_places(keys)]


def _range(size: int) -> list[Value]:
    if size < 0:
        raise EvalError(f"lists.range: size must be non-negative, got {size}")
    if size > _MAX_RANGE:
        raise EvalError(f"lists.range: size {size} exceeds maximum allowed ({_MAX_RANGE})")
    return list(range(size))


def _reverse(items: list[Value]) -> list[Value]:
    return items[::-1]


def _distinct(items: list[Value]) -> list[Value]:
    check_comparisons(2 * len(items) ** 2)
    if all(type(item) is str for item in items):
        return list(dict.fromkeys(items))
    found: list[Value] = []
    for item in items:
        if not contains(found, item):
            found.append(item)
    return found


def _of_language() -> Iterator[Overload]:
    items, flat = list_of(_T), (list_of(list_of(_T)),)
    yield member("list_slice", "slice", (items, INT, INT), items, _slice)
    yield _unguarded("list_flatten", "flatten", flat, items, _flatten)
    yield _unguarded("list_flatten_int", "flatten", (list_of(DYN), INT), list_of(DYN), _flatten)
    for of in _ORDERED_TYPES.values():
        yield _unguarded(f"list_{of.name}_sort", "sort", (list_of(of),), list_of(of), _sort)
    for of in _ORDERED_TYPES.values():
        identifier = f"list_{of.name}_sortByAssociatedKeys"
        params = (items, list_of(of))
        yield _unguarded(identifier, "@sortByAssociatedKeys", params, items, _sort_by)
    yield Overload("lists_range", "lists.range", (INT,), list_of(INT), _range)
    yield member("list_reverse", "reverse", (items,), items, _reverse)
    yield member("list_distinct", "distinct", (items,), items, _distinct)


def _unguarded(
    identifier: str,
    function: str,
    params: tuple[Type, ...],
    result: Type,
    call: Callable[..., Value],
) -> Overload:
    return Overload(identifier, function, params, result, call, member=True, guarded=False)


#: Version 0 of Kubernetes' library; version 1 adds ``INCLUDES``.
KUBERNETES: Final[tuple[Overload, ...]] = tuple(_of_kubernetes())
INCLUDES: Final = (member("list_includes_dyn_dyn", "includes", (DYN, DYN), BOOL, _includes),)
#: What came before it, in Kubernetes 1.36.
INCLUDES_1_36: Final = (
    member("dra_includes_dyn_dyn", "includes", (DYN, DYN), BOOL, _includes_at_most),
)
#: Version 3 of the language's library.
LANGUAGE: Final[tuple[Overload, ...]] = tuple(_of_language())

OVERLOADS: Final[tuple[Overload, ...]] = (
    *LANGUAGE,
    *KUBERNETES,
    *INCLUDES_1_36,
    *INCLUDES,
)

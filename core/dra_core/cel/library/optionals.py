"""Optional values, in the version that Kubernetes has (the newest).

``or`` and ``orValue`` evaluate their argument only where it is needed, and take it as it is: of
either kind, optional or not. A target that is not optional is "no such overload". Indexing and
``.?`` are parts of the path they stand in.
"""

from __future__ import annotations

from typing import Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import BOOL, DYN, INT, STRING
from dra_core.cel.faults import EvalError
from dra_core.cel.library.arithmetic import FIRST_SECOND, SECOND
from dra_core.cel.messages import ObjectValue
from dra_core.cel.signatures import Overload
from dra_core.cel.values import NONE, Duration, Map, Optional, Timestamp, Uint, Value

_PLAIN: Final = frozenset((bool, int, Uint, float, str, bytes, list, type(None)))


def _of(value: Value) -> Optional:
    return Optional(has_value=True, value=value)


def _of_non_zero(value: Value) -> Optional:
    return NONE if _is_zero(value) else Optional(has_value=True, value=value)


def _is_zero(value: Value) -> bool:
    """False, 0, null, empty, the first moment there is. Values of libraries never are, and neither
    is a map of which every key has something.
    """
    kind = type(value)
    if kind in _PLAIN:
        return not value
    if kind is Map:
        return not len(value) and value.default is None
    if kind is Duration:
        return bool(value.nanos == 0)
    if kind is ObjectValue:
        return not value.fields
    return kind is Timestamp and bool(value.nanos == FIRST_SECOND * SECOND)


def _value(optional: Optional) -> Value:
    if not optional.has_value:
        raise EvalError("optional.none() dereference")
    return optional.value


def _first(items: list[Value]) -> Optional:
    return _of(items[0]) if items else NONE


def _last(items: list[Value]) -> Optional:
    return _of(items[-1]) if items else NONE


def _unwrapped(items: list[Value]) -> list[Value]:
    """The values of those that have one."""
    for item in items:
        if type(item) is not Optional:
            raise EvalError("value is not optional")
    return [item.value for item in items if item.has_value]


_V = celtypes.param("V")
_K = celtypes.param("K")
_OPTIONAL: Final = celtypes.optional_of(_V)
_LIST: Final = celtypes.list_of(_V)
_MAP: Final = celtypes.map_of(_K, _V)
_LIST_OF_OPTIONALS: Final = celtypes.list_of(_OPTIONAL)
_OPTIONAL_LIST: Final = celtypes.optional_of(_LIST)
_OPTIONAL_MAP: Final = celtypes.optional_of(_MAP)

OVERLOADS: Final[tuple[Overload, ...]] = (
    Overload("optional_of", "optional.of", (_V,), _OPTIONAL, _of),
    Overload("optional_ofNonZeroValue", "optional.ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero),
    Overload("optional_none", "optional.none", (), _OPTIONAL, lambda: NONE),
    Overload("optional_value", "value", (_OPTIONAL,), _V, _value, member=True),
    Overload(
        "optional_hasValue", "hasValue", (_OPTIONAL,), BOOL, lambda it: it.has_value, member=True
    ),
    Overload("optional_or_optional", "or", (_OPTIONAL, _OPTIONAL), _OPTIONAL, member=True),
    Overload("optional_orValue_value", "orValue", (_OPTIONAL, _V), _V, member=True),
    Overload("select_optional_field", "_?._", (DYN, STRING), _OPTIONAL),
    Overload("list_optindex_optional_int", "_[?_]", (_LIST, INT), _OPTIONAL),
    Overload("optional_list_optindex_optional_int", "_[?_]", (_OPTIONAL_LIST, INT), _OPTIONAL),
    Overload("map_optindex_optional_value", "_[?_]", (_MAP, _K), _OPTIONAL),
    Overload("optional_map_optindex_optional_value", "_[?_]", (_OPTIONAL_MAP, _K), _OPTIONAL),
    Overload("optional_list_index_int", "_[_]", (_OPTIONAL_LIST, INT), _OPTIONAL),
    Overload("optional_map_index_value", "_[_]", (_OPTIONAL_MAP, _K), _OPTIONAL),
    Overload("list_last", "last", (_LIST,), _OPTIONAL, _last, member=True),
    Overload("list_first", "first", (_LIST,), _OPTIONAL, _first, member=True),
    Overload("optional_unwrap", "optional.unwrap", (_LIST_OF_OPTIONALS,), _LIST, _unwrapped),
    Overload(
        "optional_unwrapOpt", "unwrapOpt", (_LIST_OF_OPTIONALS,), _LIST, _unwrapped, member=True
    ),
)

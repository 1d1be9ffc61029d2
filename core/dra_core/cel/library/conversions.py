"""``int(x)``, ``string(x)`` and the other conversions, ``type(x)`` and ``dyn(x)``."""

from __future__ import annotations

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
from dra_core.cel.library.arithmetic import SECOND, moment, unsigned, whole
from dra_core.cel.library.moments import (
    duration_text,
    parse_duration,
    parse_timestamp,
    timestamp_text,
)
from dra_core.cel.library.numerals import (
    double_text,
    parse_bool,
    parse_double,
    parse_int,
    parse_uint,
)
from dra_core.cel.signatures import Overload
from dra_core.cel.values import Duration, Timestamp, TypeValue, Uint, Value, type_of

#: Names in the identifiers of overloads that differ from those of the types.
_NAMES: Final = {
    INT: "int64",
    UINT: "uint64",
    DURATION: "duration",
    TIMESTAMP: "timestamp",
}
_INT_LIMIT: Final = 2.0**63
_UINT_LIMIT: Final = 2.0**64


def no_conversion(source: str, target: str) -> EvalError:
    """The text (or the kind) has no such value."""
    return EvalError(f"type conversion error from '{source}' to '{target}'")


def _same(value: Value) -> Value:
    return value


def _double_to_int(number: float) -> int:
    """Cut off, not rounded; the least int of all is refused too, as in the reference."""
    if -_INT_LIMIT < number < _INT_LIMIT:
        return int(number)
    raise EvalError("integer overflow")


def _double_to_uint(number: float) -> Uint:
    if 0 <= number < _UINT_LIMIT:
        return Uint(number)
    raise EvalError("unsigned integer overflow")


def _int_to_duration(_number: int) -> Duration:
    """Declared until Kubernetes 1.36, though it never had a value."""
    raise no_conversion("int", DURATION.name)


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None


def _bool_to_string(value: bool) -> str:
    return "true" if value else "false"


def _uint_to_string(number: Uint) -> str:
    return str(int(number))


def _string_to_bool(text: str) -> bool:
    parsed = parse_bool(text)
    if parsed is None:
        raise no_conversion("string", "bool")
    return parsed


def _string_to_int(text: str) -> int:
    parsed = parse_int(text)
    if parsed is None:
        raise no_conversion("string", "int")
    return parsed


def _string_to_uint(text: str) -> Uint:
    parsed = parse_uint(text)
    if parsed is None:
        raise no_conversion("string", "uint")
    return Uint(parsed)


def _string_to_double(text: str) -> float:
    parsed = parse_double(text)
    if parsed is None:
        raise no_conversion("string", "double")
    return parsed


def _string_to_duration(text: str) -> Duration:
    parsed = parse_duration(text)
    if parsed is None:
        raise no_conversion("string", DURATION.name)
    return parsed


def _string_to_timestamp(text: str) -> Timestamp:
    parsed = parse_timestamp(text)
    if parsed is None:
        raise no_conversion("string", TIMESTAMP.name)
    return parsed


_CONVERSIONS: Final[tuple[tuple[Type, Type, Callable[..., Value]], ...]] = (
    (BOOL, BOOL, _same),
    (STRING, BOOL, _string_to_bool),
    (BYTES, BYTES, _same),
    (STRING, BYTES, str.encode),
    (DOUBLE, DOUBLE, _same),
    (INT, DOUBLE, float),
    (STRING, DOUBLE, _string_to_double),
    (UINT, DOUBLE, float),
    (DURATION, DURATION, _same),
    (INT, DURATION, _int_to_duration),
    (STRING, DURATION, _string_to_duration),
    (INT, INT, _same),
    (DOUBLE, INT, _double_to_int),
    (DURATION, INT, lambda span: span.nanos),
    (STRING, INT, _string_to_int),
    (TIMESTAMP, INT, lambda time: time.nanos // SECOND),
    (UINT, INT, lambda number: whole(int(number))),
    (STRING, STRING, _same),
    (BOOL, STRING, _bool_to_string),
    (BYTES, STRING, _bytes_to_string),
    (DOUBLE, STRING, double_text),
    (DURATION, STRING, duration_text),
    (INT, STRING, str),
    (TIMESTAMP, STRING, timestamp_text),
    (UINT, STRING, _uint_to_string),
    (TIMESTAMP, TIMESTAMP, _same),
    (INT, TIMESTAMP, lambda seconds: moment(seconds * SECOND)),
    (STRING, TIMESTAMP, _string_to_timestamp),
    (UINT, UINT, _same),
    (DOUBLE, UINT, _double_to_uint),
    (INT, UINT, unsigned),
    (STRING, UINT, _string_to_uint),
)


def _overloads() -> Iterator[Overload]:
    for source, target, call in _CONVERSIONS:
        name = _NAMES.get(target, target.name)
        overload = f"{_NAMES.get(source, source.name)}_to_{name}"
        function = {"int64": "int", "uint64": "uint"}.get(name, name)
        yield Overload(overload, function, (source,), target, call)


#: How ``string()`` and ``%s`` write a value, by its kind.
TEXTS: Final[dict[type, Callable[..., str]]] = {
    str: _same,
    bool: _bool_to_string,
    bytes: _bytes_to_string,
    float: double_text,
    int: str,
    Uint: _uint_to_string,
    Duration: duration_text,
    Timestamp: timestamp_text,
    TypeValue: lambda value: str(value.name),
    type(None): lambda _: "null",
}

_A = celtypes.param("A")

OVERLOADS: Final[tuple[Overload, ...]] = (
    *_overloads(),
    Overload("type", "type", (_A,), celtypes.type_of(_A), lambda v: TypeValue(type_of(v).name)),
    Overload("to_dyn", "dyn", (_A,), celtypes.DYN, _same),
)

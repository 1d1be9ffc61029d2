"""Fields of messages: what a value becomes in a field, and objects that have fields.

The checker knows the types of fields; a value of which it does not know the type is converted here
or refused. Nothing is converted from one kind of number to another.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_core.cel.celtypes import Type
from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.library.addresses import CidrValue, IpValue
from dra_core.cel.library.moments import duration_text, timestamp_text
from dra_core.cel.library.url_syntax import shown
from dra_core.cel.library.urls import UrlValue
from dra_core.cel.values import (
    Duration,
    Map,
    Optional,
    QuantityValue,
    SemverValue,
    Timestamp,
    Uint,
    Value,
    equal,
    register_equality,
    type_of,
)

Convert = Callable[[Value], Value]

#: Whole numbers up to here are exact as doubles.
_EXACT: Final = 2**53 - 1
_FIELD_OF_LISTS: Final = ("values", "Values", "VALUES")


@dataclass(frozen=True, slots=True, eq=False)
class ObjectValue:
    """An object: the fields that are set, and the values of those that are not.

    What stands in ``fields`` alone has no name: bytes of a packed message that no field took.
    """

    cel_type: Type
    fields: Mapping[str, Value]
    defaults: Mapping[str, Value]

    def given(self, name: Value) -> tuple[Value] | None:
        """The value of a field if it is set. Errors: ``EvalError`` if there is no such field."""
        if type(name) is not str:
            raise no_such_overload()
        if name not in self.defaults:
            raise EvalError(f"no such field '{name}'")
        return (self.fields[name],) if name in self.fields else None


def _equal_objects(left: ObjectValue, right: Value) -> bool:
    return (
        type(right) is ObjectValue
        and left.cel_type == right.cel_type
        and left.fields.keys() == right.fields.keys()
        and all(equal(value, right.fields[name]) for name, value in left.fields.items())
    )


register_equality(ObjectValue, _equal_objects)


def _content(value: Value) -> Value:
    """A value itself: an optional one is what is in it."""
    while type(value) is Optional:
        if not value.has_value:
            raise EvalError("optional.none() dereference")
        value = value.value
    return value


def _unsuitable(value: Value, wanted: str) -> EvalError:
    return EvalError(f"type conversion error from {type_of(value).name} to {wanted}")


def _plain(kind: type, wanted: str) -> Convert:
    def convert(value: Value) -> Value:
        content = _content(value)
        if type(content) is not kind:
            raise _unsuitable(content, wanted)
        return content

    return convert


def _ranged(convert: Convert, least: int, most: int, error: str) -> Convert:
    def convert_in_range(value: Value) -> Value:
        number = convert(value)
        if not least <= number <= most:
            raise EvalError(error)
        return number

    return convert_in_range


as_bool: Final = _plain(bool, "bool")
as_double: Final = _plain(float, "double")
as_int64: Final = _plain(int, "int64")
as_uint64: Final = _plain(Uint, "uint64")
as_int32: Final = _ranged(as_int64, -(2**31), 2**31 - 1, "integer overflow")
as_uint32: Final = _ranged(as_uint64, 0, 2**32 - 1, "unsigned integer overflow")
_as_byte: Final = _ranged(as_uint64, 0, 2**8 - 1, "unsigned integer overflow")


def as_string(value: Value) -> Value:
    """A string, or the text of a value of a library."""
    content = _content(value)
    text = _TEXTS.get(type(content))
    if text is None:
        raise _unsuitable(content, "string")
    return text(content)


def as_float(value: Value) -> Value:
    """A double with the precision of 32 bits."""
    number = as_double(value)
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def as_bytes(value: Value) -> Value:
    """Bytes, or a list of uint that are some."""
    content = _content(value)
    if type(content) is list:
        return bytes([_as_byte(item) for item in content])
    if type(content) is not bytes:
        raise _unsuitable(content, "bytes")
    return content


def items_of(value: Value) -> Value:
    """The items of a repeated field. It must be a list; an optional one is none."""
    if type(value) is not list:
        raise _unsuitable(value, "list")
    return _json_items(value, {})


def members_of(value: Value) -> Value:
    """The entries of a map field."""
    if type(value) is not Map:
        raise _unsuitable(value, "map")
    return _json_members(value, {})


def as_json_list(value: Value) -> Value:
    """A list of JSON, or a map with its fields: ``{"values": []}``."""
    content = _content(value)
    if type(content) is not Map:
        return items_of(content)
    found: Value = []
    for key, items in content.items():
        if key not in _FIELD_OF_LISTS:
            raise _unsuitable(content, "google.protobuf.ListValue")
        found = items_of(_content(items))
    return found


def as_json_struct(value: Value) -> Value:
    """An object of JSON."""
    return members_of(_content(value))


def as_json(value: Value) -> Value:
    """What JSON has for a value. Errors: ``EvalError`` if it has nothing."""
    return _json(value, {})


#: What was converted, by the ``id`` of what it was: a value may hold another one many times over.
_Seen = dict[int, Value]


def _json(value: Value, seen: _Seen) -> Value:
    of = type(value)
    nested = _NESTED.get(of)
    if nested is not None:
        known = seen.get(id(value))
        if known is None:
            known = seen[id(value)] = nested(value, seen)
        return known
    convert = _JSON.get(of)
    if convert is None:
        raise _unsuitable(value, "google.protobuf.Value")
    return convert(value)


def _same(value: Value) -> Value:
    return value


def _json_number(value: int) -> Value:
    return float(value) if -_EXACT <= value <= _EXACT else str(int(value))


def _json_items(value: list[Value], seen: _Seen) -> Value:
    return [_json(item, seen) for item in value]


def _json_members(value: Map, seen: _Seen) -> Value:
    pairs = ((as_string(key), _json(item, seen)) for key, item in value.items())
    return Map.of(pairs, named=True)


def _json_object(value: ObjectValue, seen: _Seen) -> Value:
    kept = ((name, item) for name, item in value.fields.items() if name in value.defaults)
    return Map.of(((name, _json(item, seen)) for name, item in kept), named=True)


_TEXTS: Final[dict[type, Convert]] = {
    str: _same,
    QuantityValue: lambda value: str(value.quantity),
    SemverValue: lambda value: str(value.version),
    IpValue: str,
    CidrValue: str,
    UrlValue: lambda value: shown(str(value.url)),
}

_JSON: Final[dict[type, Convert]] = {
    type(None): _same,
    bool: _same,
    float: _same,
    str: _same,
    int: _json_number,
    Uint: _json_number,
    bytes: lambda value: base64.b64encode(value).decode("ascii"),
    Timestamp: timestamp_text,
    Duration: duration_text,
}
_NESTED: Final[dict[type, Callable[[Any, _Seen], Value]]] = {
    list: _json_items,
    Map: _json_members,
    Optional: lambda value, seen: _json(_content(value), seen),
    ObjectValue: _json_object,
}

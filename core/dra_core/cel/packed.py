"""Messages packed into bytes, as ``google.protobuf.Any`` holds them.

Of the encoding only what the well-known messages need: numbers of fields, varints, fixed 64 and 32
bits, and lengths. A field that is not known, or is encoded in another way, is left out; only of an
``Empty`` all that is in it is kept, as it counts when two are compared.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from dra_core.cel.values import INT_MIN, Map, Uint, Value

_VARINT, _FIXED64, _LENGTH, _START, _END, _FIXED32 = range(6)
_HIGHEST: Final = 2**29 - 1
_TEN_BYTES: Final = 70
#: Messages in one another that are read: fewer than the 10,000 of the reference, for the stack's
#: sake.
_DEEPEST: Final = 1_200


class _Broken(Exception):
    """The bytes are no message."""


#: Name of a field, how it is encoded, and how its value is read: from the one before, if any, the
#: content, and how many messages may be in it, one in the other.
_Field = tuple[str, int, Callable[[Value, Value, int], Value]]


def unpacked(url: str, data: bytes) -> tuple[str, dict[str, Value]] | None:
    """The name of a message and its fields; ``None`` if it is not known or the bytes are none."""
    name = url.rpartition("/")[2]
    fields = _MESSAGES.get(name)
    if fields is None:
        return None
    try:
        found = _read(fields, data, _DEEPEST)
    except _Broken:
        return None
    return name, found if fields or not data else {"": data}


def _read(fields: dict[int, _Field], data: bytes, depth: int) -> dict[str, Value]:
    """The fields of a message in which others are, ``depth`` deep at most."""
    if depth == 0:
        raise _Broken
    found: dict[str, Value] = {}
    for number, wire, value in _parts(data):
        name, expected, convert = fields.get(number, ("", -1, _second))
        if wire == expected:
            before = found.pop(name, None)
            if fields is _VALUE and name != "null_value":
                found = {}
            found[name] = convert(before, value, depth - 1)
    return found


def _parts(data: bytes) -> Iterator[tuple[int, int, Value]]:
    """Number, encoding and content of every field."""
    place, groups = 0, []
    while place < len(data):
        tag, place = _varint(data, place)
        number, wire = tag >> 3, tag & 7
        if not 1 <= number <= _HIGHEST:
            raise _Broken
        if wire == _START:
            groups.append(number)
        elif wire == _END:
            if not groups or groups.pop() != number:
                raise _Broken
        else:
            value, place = _content(data, place, wire)
            if not groups:
                yield number, wire, value
    if groups:
        raise _Broken


def _content(data: bytes, place: int, wire: int) -> tuple[Value, int]:
    if wire == _VARINT:
        return _varint(data, place)
    size = {_FIXED64: 8, _FIXED32: 4}.get(wire)
    if wire == _LENGTH:
        size, place = _varint(data, place)
    if size is None or place + size > len(data):
        raise _Broken
    return data[place : place + size], place + size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, _TEN_BYTES, 7):
        if place >= len(data):
            raise _Broken
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >= 2**64:
                raise _Broken
            return number, place
    raise _Broken


def _second(_before: Value, value: Value, _depth: int) -> Value:
    return value


def _signed(_before: Value, value: Value, _depth: int) -> Value:
    return (value - INT_MIN) % 2**64 + INT_MIN


def _int32(_before: Value, value: Value, _depth: int) -> Value:
    return (value + 2**31) % 2**32 - 2**31


def _text(_before: Value, value: Value, _depth: int) -> Value:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise _Broken from None


def _item(before: Value, value: Value, depth: int) -> Value:
    return [*(before or ()), _json(_read(_VALUE, value, depth))]


def _member(before: Value, value: Value, depth: int) -> Value:
    entry = _read(_ENTRY, value, depth)
    entries = dict(before.entries) if before else {}
    key = entry.get("key", "")
    entries[key] = (key, entry.get("value"))
    return Map(entries, named=True)


def _struct(before: Value, value: Value, depth: int) -> Value:
    more = _read(_STRUCT, value, depth).get("fields", Map({}))
    return Map({**(before.entries if before else {}), **more.entries}, named=True)


def _list(before: Value, value: Value, depth: int) -> Value:
    return [*(before or ()), *_read(_LIST, value, depth).get("values", ())]


def _json(fields: dict[str, Value]) -> Value:
    name = next(iter(fields), "null_value")
    return None if name == "null_value" else fields[name]


_DOUBLE: Final[_Field] = (
    "value",
    _FIXED64,
    lambda _before, value, _depth: struct.unpack("<d", value)[0],
)
_MOMENT: Final[dict[int, _Field]] = {
    1: ("seconds", _VARINT, _signed),
    2: ("nanos", _VARINT, _int32),
}
_LIST: Final[dict[int, _Field]] = {1: ("values", _LENGTH, _item)}
_STRUCT: Final[dict[int, _Field]] = {1: ("fields", _LENGTH, _member)}
_VALUE: Final[dict[int, _Field]] = {
    1: ("null_value", _VARINT, _int32),
    2: ("number_value", _FIXED64, _DOUBLE[2]),
    3: ("string_value", _LENGTH, _text),
    4: ("bool_value", _VARINT, lambda _before, value, _depth: value != 0),
    5: ("struct_value", _LENGTH, _struct),
    6: ("list_value", _LENGTH, _list),
}
_ENTRY: Final[dict[int, _Field]] = {
    1: ("key", _LENGTH, _text),
    2: ("value", _LENGTH, lambda _before, value, depth: _json(_read(_VALUE, value, depth))),
}

_BY_NAME: Final[dict[str, dict[int, _Field]]] = {
    "BoolValue": {1: ("value", _VARINT, lambda _before, value, _depth: value != 0)},
    "BytesValue": {1: ("value", _LENGTH, _second)},
    "DoubleValue": {1: _DOUBLE},
    "FloatValue": {
        1: ("value", _FIXED32, lambda _before, value, _depth: struct.unpack("<f", value)[0]),
    },
    "Int32Value": {1: ("value", _VARINT, _int32)},
    "Int64Value": {1: ("value", _VARINT, _signed)},
    "StringValue": {1: ("value", _LENGTH, _text)},
    "UInt32Value": {1: ("value", _VARINT, lambda _before, value, _depth: Uint(value % 2**32))},
    "UInt64Value": {1: ("value", _VARINT, lambda _before, value, _depth: Uint(value))},
    "Timestamp": _MOMENT,
    "Duration": _MOMENT,
    "ListValue": _LIST,
    "Struct": _STRUCT,
    "Value": _VALUE,
    "Empty": {},
    "Any": {1: ("type_url", _LENGTH, _text), 2: ("value", _LENGTH, _second)},
}
_MESSAGES: Final = {f"google.protobuf.{name}": fields for name, fields in _BY_NAME.items()}

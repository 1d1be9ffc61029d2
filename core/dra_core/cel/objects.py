"""Objects that an expression makes by the name of a message, as ``google.protobuf.Empty{}``.

The reference knows the well-known messages of protobuf because its library always brings them. Most
of them are no objects once they are made, but the plain value that they wrap. What goes into one of
the JSON kind (``ListValue``, ``Struct``, ``Value``) becomes what JSON can say: numbers are doubles,
or text where a double is not exact; bytes are base64; moments and spans are text.

Some names pass the check although nothing can be made by them: ``kubernetes.DRADevice``, and a few
that the reference has for its own use. They fail when the expression runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import BOOL, BYTES, DOUBLE, DYN, INT, STRING, UINT, Kind, Type
from dra_core.cel.faults import EvalError
from dra_core.cel.library.arithmetic import SECOND
from dra_core.cel.messages import (
    Convert,
    ObjectValue,
    as_bool,
    as_bytes,
    as_double,
    as_float,
    as_int32,
    as_int64,
    as_json,
    as_json_list,
    as_json_struct,
    as_string,
    as_uint32,
    as_uint64,
    items_of,
    members_of,
)
from dra_core.cel.packed import unpacked
from dra_core.cel.values import INT_MAX, INT_MIN, Duration, Map, Timestamp, Uint, Value

PREFIX: Final = "google.protobuf."
EMPTY: Final = celtypes.struct(f"{PREFIX}Empty")
#: What a ``Struct`` is made of. Only for completeness: nobody needs to make one.
FIELDS_ENTRY: Final = celtypes.struct(f"{PREFIX}Struct.FieldsEntry")
_STRUCT: Final = celtypes.map_of(STRING, DYN)
_ANY: Final = f"{PREFIX}Any"

#: What an object of a type name is as a value, from the values of the fields that are given.
Make = Callable[[dict[str, Value]], Value]


@dataclass(frozen=True, slots=True)
class Message:
    """A message that an expression can name: the type it is checked as, the types of its fields."""

    type: Type
    fields: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A message with the conversions of its fields, and what it is when all are converted."""

    type: Type
    fields: Mapping[str, tuple[Type, Convert]]
    value: Make


def _wrapper(of: Type, convert: Convert, default: Value) -> _Kind:
    nullable = Type(of.kind, of.name, nullable=True)
    return _Kind(nullable, {"value": (of, convert)}, lambda it: it.get("value", default))


def _wrapped(number: int) -> int:
    return (number - INT_MIN) % 2**64 + INT_MIN


def _timestamp(fields: dict[str, Value]) -> Value:
    """Any number of seconds is taken, also one that no timestamp could have otherwise.

    Above 9223371974719179007 seconds the reference takes it for the earliest in comparisons, which
    is not so here.
    """
    more, nanos = divmod(fields.get("nanos", 0), SECOND)
    return Timestamp(_wrapped(fields.get("seconds", 0) + more) * SECOND + nanos)


def _duration(fields: dict[str, Value]) -> Value:
    """What is too long is as long as can be."""
    seconds = fields.get("seconds", 0)
    whole = seconds * SECOND
    total = whole + fields.get("nanos", 0)
    if not (INT_MIN <= whole <= INT_MAX and INT_MIN <= total <= INT_MAX):
        return Duration(INT_MIN if seconds < 0 else INT_MAX)
    return Duration(total)


def _json_value(fields: dict[str, Value]) -> Value:
    """One of the fields. Of several the reference takes any; here it is the last."""
    name = next(reversed(fields), "null_value")
    return None if name == "null_value" else fields[name]


def _entry(fields: dict[str, Value]) -> Value:
    """A key that is empty counts as not given."""
    given = {name: value for name, value in fields.items() if name != "key" or value}
    return ObjectValue(FIELDS_ENTRY, given, {"key": "", "value": None})


def _any(fields: dict[str, Value]) -> Value:
    """What is packed into it. Errors: ``EvalError`` for what is not one of the messages here."""
    name = _ANY
    while name == _ANY:
        found = unpacked(fields.get("type_url", ""), fields.get("value", b""))
        if found is None:
            raise EvalError(f"unsupported conversion of a {_ANY}")
        name, fields = found
    return _KINDS[name].value(fields)


_MOMENT: Final = {"seconds": (INT, as_int64), "nanos": (INT, as_int32)}

_KINDS: Final[dict[str, _Kind]] = {
    f"{PREFIX}BoolValue": _wrapper(BOOL, as_bool, False),
    f"{PREFIX}BytesValue": _wrapper(BYTES, as_bytes, b""),
    f"{PREFIX}DoubleValue": _wrapper(DOUBLE, as_double, 0.0),
    f"{PREFIX}FloatValue": _wrapper(DOUBLE, as_float, 0.0),
    f"{PREFIX}Int32Value": _wrapper(INT, as_int32, 0),
    f"{PREFIX}Int64Value": _wrapper(INT, as_int64, 0),
    f"{PREFIX}StringValue": _wrapper(STRING, as_string, ""),
    f"{PREFIX}UInt32Value": _wrapper(UINT, as_uint32, Uint(0)),
    f"{PREFIX}UInt64Value": _wrapper(UINT, as_uint64, Uint(0)),
    f"{PREFIX}Timestamp": _Kind(celtypes.TIMESTAMP, _MOMENT, _timestamp),
    f"{PREFIX}Duration": _Kind(celtypes.DURATION, _MOMENT, _duration),
    f"{PREFIX}ListValue": _Kind(
        celtypes.LIST,
        {"values": (celtypes.LIST, items_of)},
        lambda fields: fields.get("values", []),
    ),
    f"{PREFIX}Struct": _Kind(
        _STRUCT,
        {"fields": (_STRUCT, members_of)},
        lambda fields: fields["fields"] if fields else Map({}),
    ),
    f"{PREFIX}Value": _Kind(
        DYN,
        {
            "null_value": (INT, as_int32),
            "number_value": (DOUBLE, as_double),
            "string_value": (STRING, as_string),
            "bool_value": (BOOL, as_bool),
            "struct_value": (_STRUCT, as_json_struct),
            "list_value": (celtypes.LIST, as_json_list),
        },
        _json_value,
    ),
    EMPTY.name: _Kind(EMPTY, {}, lambda unread: ObjectValue(EMPTY, unread, {})),
    FIELDS_ENTRY.name: _Kind(
        FIELDS_ENTRY, {"key": (STRING, as_string), "value": (DYN, as_json)}, _entry
    ),
    _ANY: _Kind(celtypes.ANY, {"type_url": (STRING, as_string), "value": (BYTES, as_bytes)}, _any),
}


def _maker(name: str, kind: _Kind) -> Make:
    def make(given: dict[str, Value]) -> Value:
        fields: dict[str, Value] = {}
        for field, value in given.items():
            try:
                fields[field] = kind.fields[field][1](value)
            except EvalError as error:
                raise EvalError(f"field {name}.{field}: {error.text}") from None
        return kind.value(fields)

    return make


def unknown(name: str) -> Make:
    """For a type of which nothing can be made."""

    def make(_: dict[str, Value]) -> Value:
        raise EvalError(f"unknown type '{name}'")

    return make


#: The messages by name, as they are checked.
MESSAGES: Final[Mapping[str, Message]] = {
    **{
        name: Message(kind.type, {field: of for field, (of, _) in kind.fields.items()})
        for name, kind in _KINDS.items()
    },
    # Names of the reference's own; what is checked is the message of that kind.
    "timestamp": Message(celtypes.TIMESTAMP, {"seconds": INT, "nanos": INT}),
    "duration": Message(celtypes.DURATION, {"seconds": INT, "nanos": INT}),
    "list": Message(celtypes.LIST, {"values": celtypes.LIST}),
    "null_type": Message(celtypes.NULL, {}),
}

#: How they are made, those apart that cannot be made.
OBJECTS: Final[Mapping[str, Make]] = {name: _maker(name, kind) for name, kind in _KINDS.items()}

#: Messages that stay objects, and are types by their name.
OBJECT_TYPES: Final[Mapping[str, Type]] = {
    name: kind.type for name, kind in _KINDS.items() if kind.type.kind is Kind.STRUCT
}

#: Values that have a name.
CONSTANTS: Final[Mapping[str, Value]] = {f"{PREFIX}NullValue.NULL_VALUE": 0}

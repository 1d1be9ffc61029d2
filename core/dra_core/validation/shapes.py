"""The shape of API objects as data, and reading JSON as the API server's decoder does.

The server decodes into typed structs before it looks at any rule: fields it does not know vanish,
``null`` and a missing field are the same, empty values of optional fields are not stored, defaults
are filled in, and quantities and times get their canonical text. Rules and stored objects can only
be equal to the server's after the same has been done here.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from dra_core.errors import InvalidQuantity
from dra_core.quantity import Quantity
from dra_core.validation.problems import ErrorType, Path, Problem

JSON = dict[str, Any]


class Leaf(enum.Enum):
    """What has no fields of its own. ``JSON`` is any document (Go: ``runtime.RawExtension``)."""

    STRING = "a string"
    INTEGER = "a whole number of 64 bits"
    BOOLEAN = "true or false"
    QUANTITY = "a quantity such as '8Gi' or '100m'"
    TIME = "a time such as '2026-01-31T09:00:00Z'"
    JSON = "JSON"


class Presence(enum.Enum):
    """What becomes of an empty value.

    ``OMITTED``: not stored. ``POINTER``: stored if given at all, ``null`` is not. ``ALWAYS``:
    written even if it was not given.
    """

    OMITTED = enum.auto()
    POINTER = enum.auto()
    ALWAYS = enum.auto()


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its shape, since which minor version it exists, and the gate it depends on."""

    shape: Shape
    presence: Presence = Presence.OMITTED
    default: str = ""
    since: int = 0
    gate: str = ""


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with these fields; ``fill`` adds defaults that depend on other fields."""

    fields: Mapping[str, Field]
    fill: Callable[[JSON], None] | None = None


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys and values of one shape."""

    item: Shape


Shape = Leaf | Struct | ListOf | MapOf
STRINGS: Final = ListOf(Leaf.STRING)
_ZEROS: Final[Mapping[Leaf, Any]] = {
    Leaf.STRING: "",
    Leaf.INTEGER: 0,
    Leaf.BOOLEAN: False,
    Leaf.QUANTITY: "0",
    Leaf.TIME: None,
    Leaf.JSON: None,
}
_INT64: Final = 2**63
_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_RFC3339: Final = re.compile(
    _DATE + r"T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)


class Reader:
    """Reads JSON for a server of one minor version; ``problems`` collects wrong types.

    With ``comparing`` set, leaves become values that are equal exactly where the API server takes
    them for equal: quantities by value, documents by their text.
    """

    def __init__(self, minor: int, *, comparing: bool = False) -> None:
        self.minor = minor
        self.comparing = comparing
        self.problems: list[Problem] = []

    def read(self, shape: Shape, value: Any, path: Path) -> Any:
        """The value as the server holds it; never fails, see ``problems``."""
        if isinstance(shape, Leaf):
            return self._leaf(shape, value, path)
        if value is None:
            value = [] if isinstance(shape, ListOf) else {}
        if isinstance(shape, ListOf):
            if not isinstance(value, list):
                return self._wrong(path, value, "a list", [])
            return [self.read(shape.item, item, path.index(n)) for n, item in enumerate(value)]
        return self._object(shape, value, path)

    def _object(self, shape: Struct | MapOf, value: Any, path: Path) -> Any:
        if not isinstance(value, dict):
            return self._wrong(path, value, "an object", {})
        if any(not isinstance(key, str) for key in value):
            return self._wrong(path, value, "an object with text for keys", {})
        if isinstance(shape, MapOf):
            return {k: self.read(shape.item, item, path.key(k)) for k, item in value.items()}
        return self._struct(shape, value, path)

    def _struct(self, shape: Struct, value: Mapping[str, Any], path: Path) -> JSON:
        result: JSON = {}
        for name, field in shape.fields.items():
            if field.since <= self.minor:
                self._field(result, name, field, value.get(name), path)
        if shape.fill:
            shape.fill(result)
        return result

    def _field(self, result: JSON, name: str, field: Field, value: Any, path: Path) -> None:
        if field.presence is Presence.POINTER:
            # An empty list that is there is still equal to none.
            if value is not None and not (self.comparing and value == []):
                result[name] = self.read(field.shape, value, path.child(name))
            return
        if value is None and not isinstance(field.shape, Struct):
            read = None  # most fields of most objects: no path is made for nothing
        else:
            read = self.read(field.shape, value, path.child(name))
        if not read and field.shape is not Leaf.JSON:
            read = field.default or _zero(field.shape)
        stays = field.presence is Presence.ALWAYS or isinstance(field.shape, Struct)
        if stays or read:
            result[name] = read

    def _leaf(self, shape: Leaf, value: Any, path: Path) -> Any:
        if shape is Leaf.JSON:
            return _text_of(value) if self.comparing else value
        if value is None:
            return _ZEROS[shape]
        if shape is Leaf.QUANTITY:
            return self._quantity(value, path)
        if shape is Leaf.TIME:
            return self._time(value, path)
        if not _fits(shape, value):
            return self._wrong(path, value, shape.value, _ZEROS[shape])
        return value

    def _quantity(self, value: Any, path: Path) -> Any:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            try:
                quantity = Quantity.parse(str(value).strip())
            except (InvalidQuantity, ValueError):  # Python writes no numbers of 4,300 digits
                pass
            else:
                return quantity if self.comparing else str(quantity)
        return self._wrong(path, value, Leaf.QUANTITY.value, "0")

    def _time(self, value: Any, path: Path) -> Any:
        """Times are kept in UTC and whole seconds."""
        if isinstance(value, str) and _RFC3339.fullmatch(value):
            try:
                read = datetime.fromisoformat(value).astimezone(UTC)
            except (ValueError, OverflowError):
                pass
            else:
                return f"{read.replace(microsecond=0, tzinfo=None).isoformat()}Z"
        return self._wrong(path, value, Leaf.TIME.value, None)

    def _wrong(self, path: Path, value: Any, expected: str, instead: Any) -> Any:
        detail = f"is {_json_type(value)} where the API has {expected}"
        self.problems.append(Problem(str(path), ErrorType.TYPE_INVALID, detail))
        return instead


def _zero(shape: Shape) -> Any:
    if isinstance(shape, Leaf):
        return _ZEROS[shape]
    return [] if isinstance(shape, ListOf) else {}


def _fits(shape: Leaf, value: Any) -> bool:
    if shape is Leaf.STRING:
        return isinstance(value, str)
    if shape is Leaf.BOOLEAN:
        return isinstance(value, bool)
    return isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64


def _text_of(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _json_type(value: Any) -> str:
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}" if abs(value) < _INT64 else "a large number"
    return "a list" if isinstance(value, list) else "an object"

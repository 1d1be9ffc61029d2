"""JSON data <-> values, by tables.

A :class:`Record` says which fields of a dataclass stand where in a JSON object. Reading keeps what
it has no name for in the value's ``unknown``; writing puts it back and leaves out what is empty, as
the API server does. Data of the wrong kind is an :class:`~dra_core.errors.InvalidObject` that names
the place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Generic, Protocol, TypeVar

from dra_core.errors import InvalidObject, InvalidQuantity
from dra_core.quantity import Quantity

T = TypeVar("T")

JSON = dict[str, Any]


class Codec(Protocol[T]):
    """Reads and writes one kind of value. ``where`` is the place, for errors."""

    def read(self, data: object, where: str) -> T:
        """The value; raises InvalidObject."""

    def write(self, value: T) -> Any:
        """The JSON data."""


def wrong(where: str, data: object, wanted: str) -> InvalidObject:
    """The error for data of the wrong kind."""
    shown = repr(data)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return InvalidObject(f"{where}: {shown} is not {wanted}")


@dataclass(frozen=True, slots=True)
class Plain(Generic[T]):
    """A JSON type as it is; ``kind`` exactly, so that true is no number."""

    kind: type[T]
    wanted: str

    def read(self, data: object, where: str) -> T:
        """The data itself."""
        if type(data) is not self.kind:
            raise wrong(where, data, self.wanted)
        return data

    def write(self, value: T) -> T:
        """The value itself."""
        return value


STRING: Final = Plain(str, "a string")
INT: Final = Plain(int, "a whole number")
BOOL: Final = Plain(bool, "true or false")


class _Quantity:
    def read(self, data: object, where: str) -> Quantity:
        """From text or from a whole number, which the API takes too."""
        if type(data) not in (str, int):
            raise wrong(where, data, "a quantity")
        try:
            return Quantity.parse(str(data))
        except InvalidQuantity as error:
            raise InvalidObject(f"{where}: {error}") from error

    def write(self, value: Quantity) -> str:
        """Canonical text."""
        return str(value)


class _Time:
    def read(self, data: object, where: str) -> datetime:
        """RFC 3339, as ``metav1.Time``."""
        try:
            moment = datetime.fromisoformat(STRING.read(data, where))
        except ValueError as error:
            raise wrong(where, data, "a time such as 2026-01-02T03:04:05Z") from error
        if moment.tzinfo is None:
            raise wrong(where, data, "a time with a time zone, e.g. 2026-01-02T03:04:05Z")
        return moment.astimezone(UTC)

    def write(self, value: datetime) -> str:
        """In UTC and whole seconds, which is what the API keeps."""
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Anything:
    def read(self, data: object, where: str) -> Any:  # noqa: ARG002 - a Codec
        """Any JSON."""
        return data

    def write(self, value: Any) -> Any:
        """The same."""
        return value


QUANTITY: Final = _Quantity()
TIME: Final = _Time()
ANYTHING: Final = _Anything()


@dataclass(frozen=True, slots=True)
class ListOf(Generic[T]):
    """A list; a tuple as a value."""

    item: Codec[T]

    def read(self, data: object, where: str) -> tuple[T, ...]:
        """All items in order."""
        if not isinstance(data, list):
            raise wrong(where, data, "a list")
        return tuple(self.item.read(item, f"{where}[{i}]") for i, item in enumerate(data))

    def write(self, value: tuple[T, ...]) -> list[Any]:
        """All items in order."""
        return [self.item.write(item) for item in value]


@dataclass(frozen=True, slots=True)
class MapOf(Generic[T]):
    """A map from strings."""

    item: Codec[T]

    def read(self, data: object, where: str) -> Mapping[str, T]:
        """Keys as they are."""
        if not isinstance(data, Mapping):
            raise wrong(where, data, "a map")
        return {key: self.item.read(value, f"{where}[{key}]") for key, value in data.items()}

    def write(self, value: Mapping[str, T]) -> JSON:
        """Keys as they are."""
        return {key: self.item.write(item) for key, item in value.items()}


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its name in the dataclass, in JSON, and how it is written.

    ``required`` fields are written even if they are empty, and must be there when read.
    """

    name: str
    wire: str
    codec: Codec[Any]
    required: bool = False


_SIZED: Final = (str, tuple, Mapping)


def is_empty(part: object) -> bool:
    """Whether the API leaves it out: nothing, no text, an empty list or map; not 0 and false."""
    return part is None or (not part and isinstance(part, _SIZED))


class Record(Generic[T]):
    """A JSON object as a dataclass with a field ``unknown``."""

    def __init__(self, make: Callable[..., T], *fields: Field) -> None:
        self.make = make
        self.use(fields)

    def use(self, fields: tuple[Field, ...]) -> None:
        """Take these fields from now on."""
        self.fields = fields
        self._names = frozenset(field.wire for field in fields)

    def read(self, data: object, where: str) -> T:
        """The value; null counts as absent."""
        if not isinstance(data, Mapping):
            raise wrong(where, data, "an object")
        values: dict[str, Any] = {
            "unknown": {k: v for k, v in data.items() if k not in self._names}
        }
        for field in self.fields:
            raw = data.get(field.wire)
            place = f"{where}.{field.wire}" if where else field.wire
            if raw is not None:
                values[field.name] = field.codec.read(raw, place)
            elif field.required:
                raise InvalidObject(f"{place}: is missing")
        return self.make(**values)

    def write(self, value: T) -> JSON:
        """Without what is empty, and with what was unknown."""
        data: JSON = {}
        for field in self.fields:
            part = getattr(value, field.name)
            if field.required or not is_empty(part):
                data[field.wire] = field.codec.write(part)
        unknown: Mapping[str, Any] = value.unknown  # type: ignore[attr-defined]
        return data | dict(unknown) if unknown else data

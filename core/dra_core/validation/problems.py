"""What is wrong with an object: where, of which kind, and a sentence that says what to do."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class ErrorType(enum.Enum):
    """The API's ``status.details.causes[].reason`` (apimachinery, field.ErrorType)."""

    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    NOT_FOUND = "FieldValueNotFound"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TYPE_INVALID = "FieldValueTypeInvalid"
    INTERNAL = "InternalError"


@dataclass(frozen=True, slots=True)
class Path:
    """A field path as the API server writes it: ``spec.devices[0].attributes[model].string``."""

    text: str = ""

    def child(self, *names: str) -> Path:
        """The field with this name, or the last of several."""
        joined = ".".join(names)
        return Path(f"{self.text}.{joined}" if self.text else joined)

    def index(self, number: int) -> Path:
        """The item of a list."""
        return Path(f"{self.text}[{number}]")

    def key(self, name: str) -> Path:
        """The value of a map."""
        return Path(f"{self.text}[{name}]")

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Problem:
    """One verdict of the API server. ``detail`` names the value, the limit and the fix."""

    field: str
    type: ErrorType
    detail: str

    def __str__(self) -> str:
        return f"{self.field}: {self.detail}"


def unique(problems: Iterable[Problem]) -> list[Problem]:
    """One problem for each field and type, the first: rules overlap."""
    found: dict[tuple[str, ErrorType], Problem] = {}
    for problem in problems:
        found.setdefault((problem.field, problem.type), problem)
    return list(found.values())


def required(path: Path, detail: str = "must be set") -> Problem:
    """A field without which the object means nothing."""
    return Problem(str(path), ErrorType.REQUIRED, detail)


def invalid(path: Path, value: object, detail: str) -> Problem:
    """A value that breaks a rule."""
    return Problem(str(path), ErrorType.INVALID, f"{_shown(value)} {detail}")


def duplicate(path: Path, value: object) -> Problem:
    """A value that may stand there once only."""
    return Problem(str(path), ErrorType.DUPLICATE, f"{_shown(value)} is there twice")


def not_supported(path: Path, value: object, known: list[str]) -> Problem:
    """A value that is not one of those in question."""
    choices = ", ".join(known)
    return Problem(str(path), ErrorType.NOT_SUPPORTED, f"{_shown(value)} is not one of: {choices}")


def forbidden(path: Path, detail: str) -> Problem:
    """A field that must not be set here."""
    return Problem(str(path), ErrorType.FORBIDDEN, detail)


def internal(path: Path, detail: str) -> Problem:
    """A value that the server fails on rather than judges."""
    return Problem(str(path), ErrorType.INTERNAL, detail)


def too_long(path: Path, limit: int) -> Problem:
    """Text with more bytes than allowed."""
    return Problem(str(path), ErrorType.TOO_LONG, f"may have at most {limit} bytes")


def too_many(path: Path, count: int, limit: int) -> Problem:
    """A list or map with more items than allowed."""
    detail = f"has {count} items, at most {limit} are allowed"
    return Problem(str(path), ErrorType.TOO_MANY, detail)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."

"""What a row of ``docs/api-fields.md`` means, as an example with one place that is varied.

The tables are data for two tests: the unit tests ask reading, writing and the offline rules, and
``tests/contract/test_row_verdicts.py`` asks real API servers the same, with all gates on.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_core.validation.problems import ErrorType

JSON = dict[str, Any]
Types = ErrorType | tuple[ErrorType, ...]
Found = frozenset[tuple[str, ErrorType]]


class Special(enum.Enum):
    """Values of a field that are none, and refusals that name no field."""

    GONE = "the field is not there"
    NOTHING = "no such example"
    SAME = "written as it was read"


class Answer(enum.Enum):
    """What becomes of an example that is not simply good or bad.

    ``MALFORMED``: JSON of the wrong type, which a server answers with 400. ``UNREADABLE``: reading
    refuses it. ``DROPPED``: accepted, and stored without the field. ``TWICE``: text in which
    a key (written ``again:<key>``) stands twice.
    """

    MALFORMED = "malformed"
    UNREADABLE = "unreadable"
    DROPPED = "dropped"
    TWICE = "twice"


GONE, NOTHING, SAME = Special.GONE, Special.NOTHING, Special.SAME
MALFORMED, UNREADABLE = Answer.MALFORMED, Answer.UNREADABLE
DROPPED, TWICE = Answer.DROPPED, Answer.TWICE
INVALID, REQUIRED, TOO_MANY = ErrorType.INVALID, ErrorType.REQUIRED, ErrorType.TOO_MANY
TOO_LONG, DUPLICATE, FORBIDDEN = ErrorType.TOO_LONG, ErrorType.DUPLICATE, ErrorType.FORBIDDEN
NOT_SUPPORTED, NOT_FOUND = ErrorType.NOT_SUPPORTED, ErrorType.NOT_FOUND

MINORS: Final = (36, 37)
V1: Final = "resource.k8s.io/v1"


@dataclass(frozen=True)
class Base:
    """A valid object and the part of it that a table is about.

    ``root`` is its place, dotted; ``path`` the same as servers write it, ``model`` the same in the
    value that reading gives. With ``status``, examples are updates of the status.
    """

    obj: JSON
    root: str = ""
    path: str = ""
    model: str = ""
    status: bool = False

    @property
    def where(self) -> str:
        """The part as servers name it."""
        return self.path or path_of(self.root)


@dataclass(frozen=True)
class Row:
    """One row: ``place`` below the base's root is varied, ``good`` is accepted, ``bad`` refused.

    ``problems`` of ``bad`` are a type (at the place itself) or types by place below the root; a
    place that begins with ``/`` is one of the whole object. ``more`` are changes that both have,
    ``bad_more`` those of the bad one alone. ``reads`` is a place in the model with its value.
    ``warned`` is the code of a warning of ``dra lint`` about ``bad``, which servers accept, looked
    at together with the objects ``beside``. ``server`` is the status a server answers where that
    does not follow.
    """

    name: str
    place: str
    good: Any
    bad: Any = NOTHING
    problems: Types | Mapping[str, Types] | Answer = INVALID
    problems_36: Mapping[str, Types] | None = None
    _: dataclasses.KW_ONLY
    reads: tuple[str, Any] | None = None
    written: Any = SAME
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    bad_more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    minors: tuple[int, ...] = MINORS
    update: bool = False
    judged: bool = True
    warned: str = ""
    beside: tuple[JSON, ...] = ()
    server: int = 0
    base: Base = Base({})

    def good_object(self) -> JSON:
        """The object with the good value."""
        return changed(self.base, {**self.more, self.place: self.good})

    def without(self) -> JSON:
        """The same without anything at the place."""
        return changed(self.base, {**self.more, self.place: GONE})

    def bad_object(self) -> JSON:
        """The object with the bad value."""
        return changed(self.base, {**self.more, **self.bad_more, self.place: self.bad})

    def expected(self, minor: int) -> Found:
        """The problems of the bad object on a server of this minor version."""
        if isinstance(self.problems, Answer) or self.warned:
            return frozenset()
        given = self.problems
        if minor == 36 and self.problems_36 is not None:
            given = self.problems_36
        if isinstance(given, ErrorType | tuple):
            given = {path_of(self.place): given}
        return frozenset(self._spelled(given))

    def _spelled(self, given: Mapping[str, Types]) -> Iterator[tuple[str, ErrorType]]:
        for place, types in given.items():
            joint = "." if place and self.base.where and not place.startswith("[") else ""
            path = place[1:] if place.startswith("/") else f"{self.base.where}{joint}{place}"
            for kind in types if isinstance(types, tuple) else (types,):
                yield path, kind


@dataclass(frozen=True)
class Case:
    """One write, and whether it is the good example of its row."""

    row: Row
    new: JSON
    old: JSON | None
    good: bool

    @property
    def subresource(self) -> str:
        """Of updates of the status."""
        return "status" if self.row.base.status else ""

    @property
    def text(self) -> str:
        """As JSON, keys that shall stand twice twice."""
        return json.dumps(self.new).replace('"again:', '"')


def cases(row: Row, minor: int) -> Iterator[Case]:
    """The examples of a row for a server of this minor version: the good one, then the bad one."""
    if minor not in row.minors or not row.judged:
        return
    good, old = row.good_object(), None
    if row.base.status:
        old = {k: v for k, v in good.items() if k != "status"}
    elif row.update:
        old = good
        good = copy.deepcopy(good)
        good["metadata"]["labels"] = {"changed": "yes"}
    yield Case(row, versioned(good, minor), old, good=True)
    if row.bad is not NOTHING:
        yield Case(row, versioned(row.bad_object(), minor), old, good=False)


def versioned(obj: JSON, minor: int) -> JSON:
    """1.36 has DeviceTaintRule in v1beta2 only."""
    if minor == 36 and obj["kind"] == "DeviceTaintRule":
        return {**obj, "apiVersion": "resource.k8s.io/v1beta2"}
    return obj


def table(base: Base, *rows: Row) -> list[Row]:
    """Rows with their base."""
    return [dataclasses.replace(row, base=base) for row in rows]


def path_of(place: str) -> str:
    """``spec.devices.0`` as ``spec.devices[0]``."""
    return re.sub(r"(^|\.)(\d+)(?=\.|$)", r"[\2]", place)


def changed(base: Base, changes: Mapping[str, Any]) -> JSON:
    """A copy of the base's object with values put at places."""
    obj = copy.deepcopy(base.obj)
    for place, value in changes.items():
        joint = "." if place and base.root else ""
        steps = (place[1:] if place.startswith("/") else f"{base.root}{joint}{place}").split(".")
        holder: Any = obj
        for step in steps[:-1]:
            holder = _inside(holder, step)
        last: Any = int(steps[-1]) if isinstance(holder, list) else steps[-1]
        if value is not GONE:
            holder[last] = copy.deepcopy(value)
        elif isinstance(holder, list) or last in holder:
            del holder[last]
    return obj


def _inside(holder: Any, step: str) -> Any:
    return holder[int(step)] if isinstance(holder, list) else holder.setdefault(step, {})


def at(value: Any, place: str) -> Any:
    """What stands at a dotted place of JSON or of the model; GONE if nothing does."""
    for step in filter(None, place.split(".")):
        if isinstance(value, Mapping):
            value = value.get(step, GONE)
        elif isinstance(value, list | tuple):
            value = value[int(step)] if int(step) < len(value) else GONE
        else:
            value = getattr(value, step, GONE)
    return value

"""Take each field out of the wire tables in turn: its tests must notice.

Two rounds. First for each row of ``docs/api-fields.md`` that is modelled: the field goes, and the
test that the row names must fail. Then for every field of every table, whether the page has it or
not: of the objects with every field, one must have something unknown or not be readable any more.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from dra_cli import documents  # noqa: E402
from dra_core import wire  # noqa: E402
from dra_core.errors import InvalidObject  # noqa: E402
from dra_core.wire import tables, versions  # noqa: E402
from dra_core.wire.codec import Field, ListOf, MapOf, Record  # noqa: E402
from dra_service.api_server import ApiServer  # noqa: E402
from dra_testing import api_page  # noqa: E402
from dra_testing.in_process import failing  # noqa: E402
from dra_testing.rows.example import Row  # noqa: E402
from dra_testing.rows.listing import ROWS  # noqa: E402
from dra_testing.wire_parts import unknown_parts  # noqa: E402

OBJECTS: Final = ROOT / "tests" / "data" / "wire" / "objects"
_ATTRIBUTE_KEY: Final = 'key = next(iter(data), "")'
#: Fields that no table has: what reads them, and how its text forgets the field.
BY_HAND: Final[Mapping[str, tuple[Any, str, str, str]]] = {
    "ResourceSlice.apiVersion": (versions, "version_of", 'data.get("apiVersion")', "V1"),
    "ResourceSlice.kind": (versions, "version_of", 'data.get("kind")', '"ResourceSlice"'),
    "DeviceSelector.cel": (tables._Selector, "read", 'data.get("cel") is None', "True"),
    "CELDeviceSelector.expression": (tables._Selector, "read", "(cel.expression,", "(None,"),
    "ResourceSliceList.apiVersion": (documents, "_implied", '"apiVersion": data', '"": data'),
    "ResourceSliceList.kind": (documents, "_objects", 'data.get("kind")', "None"),
    "ResourceSliceList.items": (documents, "_objects", 'data.get("items")', "[]"),
    "ResourceSliceList.metadata": (ApiServer, "pages", 'page.get("metadata")', "None"),
    **{
        f"DeviceAttribute.{kind}": (
            tables._Attribute,
            "read",
            _ATTRIBUTE_KEY,
            f'key = "" if {kind!r} in data else next(iter(data), "")',
        )
        for scalar in ("bool", "int", "string", "version")
        for kind in (scalar, f"{scalar}s")
    },
}


@contextlib.contextmanager
def rewritten(owner: Any, name: str, find: str, replace: str) -> Iterator[None]:
    """A function with one part of its text replaced."""
    whole = inspect.getattr_static(owner, name)
    text = textwrap.dedent(inspect.getsource(whole))
    if text.count(find) != 1:
        raise SystemExit(f"{name}: {find!r} stands {text.count(find)} times, not once")
    made: dict[str, Any] = {}
    exec(text.replace(find, replace), whole.__globals__, made)  # noqa: S102 - that is the point
    setattr(owner, name, made[name])
    try:
        yield
    finally:
        setattr(owner, name, whole)


@contextlib.contextmanager
def taken_out(record: Record[Any], field: Field) -> Iterator[None]:
    """A table without one of its fields."""
    whole = record.fields
    record.use(tuple(f for f in whole if f is not field))
    try:
        yield
    finally:
        record.use(whole)


def located(row: Row) -> tuple[Record[Any], Field]:
    """The table and the field that an example varies, by its place in the object."""
    codec: Any = tables.OBJECTS[row.base.obj["kind"]]
    steps = f"{row.base.root}.{row.place}".strip(".").split(".")
    found: tuple[Record[Any], Field] | None = None
    for step in steps:
        if isinstance(codec, Record):
            field = next(f for f in codec.fields if f.wire == step)
            found, codec = (codec, field), field.codec
        else:
            codec = codec.item
    if found is None or found[1].wire != steps[-1]:
        raise SystemExit(f"{row.name}: {'.'.join(steps)} is no field of a table")
    return found


def mutant(name: str) -> contextlib.AbstractContextManager[None]:
    """The product without the field of this row."""
    if name in BY_HAND:
        return rewritten(*BY_HAND[name])
    return taken_out(*located(next(row for row in ROWS[name] if row.reads)))


def rows_survived() -> tuple[int, list[str]]:
    """How many rows are modelled, and of which the named test did not fail without the field."""
    page = api_page.parse(api_page.PAGE.read_text(encoding="utf-8"))
    modelled = [
        row
        for row in page.rows
        if row.cells["Kind"] == "field" and api_page.CODE.search(row.cells["Modelled"])
    ]
    named = {
        str(row.key): test
        for row in modelled
        if (test := api_page.own_test(row)) in row.cells["Test"].split(", ")
    }
    if failing(named.values()):
        raise SystemExit("a test that the page names fails on the product as it is")
    survivors = [str(row.key) for row in modelled if str(row.key) not in named]
    for name, test in named.items():
        with mutant(name):
            if failing([test]) != {test}:
                survivors.append(name)
    return len(modelled), survivors


def records(record: Record[Any], seen: dict[int, Record[Any]]) -> None:
    """All tables that can be reached from one."""
    if id(record) in seen:
        return
    seen[id(record)] = record
    for field in record.fields:
        codec: Any = field.codec
        while isinstance(codec, ListOf | MapOf):
            codec = codec.item
        if isinstance(codec, Record):
            records(codec, seen)


def noticed(objects: list[Mapping[str, Any]]) -> bool:
    """Whether an object can no longer be read, or has parts that are unknown."""
    try:
        return any(list(unknown_parts(wire.read(data))) for data in objects)
    except (InvalidObject, TypeError):
        return True


def fields_survived() -> tuple[int, list[str]]:
    """How many fields the tables have, and which the objects with every field do not miss."""
    objects = [json.loads(path.read_text()) for path in sorted(OBJECTS.glob("*.json"))]
    assert not noticed(objects)
    found: dict[int, Record[Any]] = {}
    for record in tables.OBJECTS.values():
        records(record, found)
    survivors = []
    for record in found.values():
        for field in record.fields:
            with taken_out(record, field):
                if not noticed(objects):
                    survivors.append(
                        f"{getattr(record.make, '__name__', record.make)}.{field.wire}"
                    )
    return sum(len(record.fields) for record in found.values()), survivors


def main() -> int:
    """Status 1 if any field was missed by nobody."""
    missed = 0
    for what, (count, survivors) in (
        ("modelled rows of docs/api-fields.md", rows_survived()),
        ("fields of the wire tables", fields_survived()),
    ):
        print(f"{count} {what}, {len(survivors)} that nobody missed: {', '.join(survivors)}")
        missed += len(survivors)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

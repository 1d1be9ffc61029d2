"""Take each field out of the wire tables in turn: the objects with every field must notice.

A field without a place in the model would still survive a round trip, among what is unknown. So the
check of ``tests/unit/test_wire.py`` is asked for each: is something of a known object unknown now?
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dra_core import wire
from dra_core.errors import InvalidObject
from dra_core.wire import tables
from dra_core.wire.codec import ListOf, MapOf, Record

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from dra_testing.wire_parts import unknown_parts

OBJECTS = Path(__file__).parents[1] / "data" / "wire" / "objects"


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


def main() -> int:
    """The number of fields that nobody missed decides the exit status."""
    objects = [json.loads(path.read_text()) for path in sorted(OBJECTS.glob("*.json"))]
    assert not noticed(objects)
    found: dict[int, Record[Any]] = {}
    for record in tables.OBJECTS.values():
        records(record, found)
    survivors = list(survived(list(found.values()), objects))
    count = sum(len(record.fields) for record in found.values())
    print(f"{count} fields, {len(survivors)} that nobody missed: {', '.join(survivors)}")
    return 1 if survivors else 0


def survived(found: list[Record[Any]], objects: list[Mapping[str, Any]]) -> Iterator[str]:
    """Fields whose absence is not noticed."""
    for record in found:
        whole = record.fields
        for field in whole:
            record.use(tuple(f for f in whole if f is not field))
            if not noticed(objects):
                yield f"{getattr(record.make, '__name__', record.make)}.{field.wire}"
        record.use(whole)


if __name__ == "__main__":
    sys.exit(main())

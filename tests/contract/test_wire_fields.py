"""Every field of resource.k8s.io/v1 has a place in the model: names compared with Go's types."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_core.wire import tables
from dra_core.wire.codec import ListOf, MapOf, Record

DATA = Path(__file__).parents[1] / "data" / "api"
VERSIONS = ["0.36.3", "0.37.2"]
#: Types with codecs of their own, and types of other API groups.
BY_HAND = {"DeviceSelector", "CELDeviceSelector", "DeviceAttribute"}
OTHERS = {"ObjectMeta", "TypeMeta", "Condition", "NodeSelector", "RawExtension", "Time", "Quantity"}
ROOTS = [
    "DeviceClass",
    "DeviceTaintRule",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
]
#: 1.36 keeps DeviceTaintRule in v1beta2.
PACKAGES = {"0.36.3": ("v1", "v1beta2"), "0.37.2": ("v1",)}

Fields = dict[str, dict[str, str]]


def parse(source: str) -> Fields:
    """Go struct name -> JSON field -> Go type, without pointers, lists and maps."""
    found: Fields = {}
    name = ""
    for line in source.splitlines():
        if start := re.match(r"type (\w+) struct", line):
            name = start[1]
            found[name] = {}
        elif line.startswith("}"):
            name = ""
        elif name and (
            tag := re.match(r'\t(?:\w+ )?\s*([\w.*\[\]]+)\s+`json:"(\w*),?([^"]*)"', line)
        ):
            kind = re.sub(r".*[\].*]", "", tag[1])
            found[name][tag[2] or "inline"] = kind
    return {k: v for k, v in found.items() if v}


def golden(version: str) -> Fields:
    fields: Fields = json.loads((DATA / f"resource-{version}.json").read_text())
    return fields


@pytest.mark.go
@pytest.mark.parametrize("version", VERSIONS)
def test_the_list_of_fields_is_that_of_the_go_types(version: str) -> None:
    command = ["go", "mod", "download", "-json", f"k8s.io/api@v{version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    folder = Path(json.loads(done.stdout)["Dir"]) / "resource"
    fields: Fields = {}
    for package in reversed(PACKAGES[version]):
        fields |= parse((folder / package / "types.go").read_text())
    assert fields == golden(version)


def missing(kind: str, record: Record[Any], fields: Fields, done: set[str]) -> Iterator[str]:
    """Fields of the Go type ``kind`` and of those below it that ``record`` has no place for."""
    if kind in done:
        return
    done.add(kind)
    ours = {field.wire: field.codec for field in record.fields}
    theirs = dict(fields[kind])
    if "inline" in theirs and theirs["inline"] not in OTHERS:
        theirs |= fields[theirs["inline"]]
    theirs.pop("inline", None)
    yield from (f"{kind}.{name}" for name in theirs if name not in ours)
    for name, child in theirs.items():
        codec: Any = ours.get(name)
        while isinstance(codec, ListOf | MapOf):
            codec = codec.item
        if child in fields and child not in BY_HAND | OTHERS and isinstance(codec, Record):
            yield from missing(child, codec, fields, done)
        elif child in fields and child not in BY_HAND | OTHERS and codec is not None:
            yield f"{kind}.{name} is read as {codec}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ROOTS)
def test_every_field_is_modelled(version: str, kind: str) -> None:
    done: set[str] = set()
    assert list(missing(kind, tables.OBJECTS[kind], golden(version), done)) == []
    assert len(done) > 2


def test_a_field_without_a_place_is_noticed() -> None:
    fields = golden("0.37.2")
    fields["Counter"]["newField"] = "string"
    found = missing("ResourceSlice", tables.OBJECTS["ResourceSlice"], fields, set())
    assert list(found) == ["Counter.newField"]

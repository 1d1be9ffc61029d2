"""YAML and JSON files as Kubernetes reads them, with bounds on what they may cost.

Aliases, depth and size are limited before anything is built from a file; keys that stand twice in a
mapping are refused; times and dates stay text, as in JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from dra_core.errors import InvalidValue

#: Bytes of one file; levels of nesting; values of a document with its aliases written out.
MAX_BYTES: Final = 16 * 2**20
MAX_DEPTH: Final = 100
MAX_VALUES: Final = 1_000_000
_SUFFIXES: Final = (".yaml", ".yml", ".json")

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """One object and where it stands: ``file.yaml`` or ``file.yaml, document 2``."""

    source: str
    data: Mapping[str, Any]


class _Strict(_Loader):  # type: ignore[misc]
    """Refuses a key that stands twice; knows no times."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """As its base class, but the API server would refuse a duplicate too."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                line = key.start_mark.line + 1
                raise InvalidValue(f"line {line}: the key {key.value!r} stands twice in a mapping")
            seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


_Strict.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
    for first, found in _Loader.yaml_implicit_resolvers.items()
}


def load(where: str) -> Iterator[Document]:
    """All objects of a file, of the files of a folder, or of standard input (``-``).

    Lists (``kind: List``, ``ResourceSliceList``) come apart. Raises InvalidValue that names the
    file and says in one line what is wrong with it.
    """
    path = Path(where)
    if where == "-":
        yield from _parsed("standard input", sys.stdin.buffer.read(MAX_BYTES + 1))
    elif path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES and p.is_file())
        if not files:
            raise InvalidValue(f"{where}: no file ends in {', '.join(_SUFFIXES)}")
        for file in files:
            yield from _file(file)
    else:
        yield from _file(path)


def _file(path: Path) -> Iterator[Document]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidValue(f"{path}: {error.strerror}") from error
    yield from _parsed(str(path), content)


def _parsed(source: str, content: bytes) -> Iterator[Document]:
    if len(content) > MAX_BYTES:
        raise InvalidValue(f"{source}: larger than {MAX_BYTES // 2**20} MiB; split it")
    try:
        text = content.decode()
        documents = [d for d in yaml.load_all(text, Loader=_Strict) if d is not None]
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{source}: is not text in UTF-8 (byte {error.start})") from error
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidValue(f"{source}: is not valid YAML: {reason}") from error
    except InvalidValue as error:
        raise InvalidValue(f"{source}: {error}") from error
    for number, data in enumerate(documents, start=1):
        name = source if len(documents) == 1 else f"{source}, document {number}"
        _check_size(name, data)
        yield from _objects(name, data)


def _check_size(source: str, data: object) -> None:
    """Count values with aliases written out, each shared part only once."""
    sizes: dict[int, int] = {}

    def size(value: object, depth: int) -> int:
        if not isinstance(value, Mapping | list):
            return 1
        if depth > MAX_DEPTH:
            raise InvalidValue(f"{source}: is nested deeper than {MAX_DEPTH} levels")
        known = sizes.get(id(value))
        if known is None:
            sizes[id(value)] = 1  # an alias to what it stands in
            parts = value.values() if isinstance(value, Mapping) else value
            known = sizes[id(value)] = 1 + sum(size(part, depth + 1) for part in parts)
        return known

    if size(data, 1) > MAX_VALUES:
        raise InvalidValue(f"{source}: its aliases stand for more than {MAX_VALUES} values")


def _objects(source: str, data: object) -> Iterator[Document]:
    if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
        raise InvalidValue(f"{source}: is not an object of the Kubernetes API")
    kind = data.get("kind")
    items = data.get("items")
    if isinstance(kind, str) and kind.endswith("List"):
        if not isinstance(items, list):
            raise InvalidValue(f"{source}: a {kind} must have a list of items")
        for number, item in enumerate(items):
            if not isinstance(item, Mapping):
                raise InvalidValue(f"{source}, item {number}: is not an object")
            implied = {} if kind == "List" else _implied(kind, data)
            yield Document(f"{source}, item {number}", {**implied, **item})
    else:
        yield Document(source, data)


def _implied(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Items of a typed list need not repeat what they are."""
    return {"kind": kind.removesuffix("List"), "apiVersion": data.get("apiVersion")}

"""``cel.@mapInsert``, which ``transformMap`` and ``transformMapEntry`` become; nobody can write it.

An entry never replaces another one: a key that is there already is an error.
"""

from __future__ import annotations

from typing import Final

from dra_core.cel.celtypes import map_of, param
from dra_core.cel.faults import EvalError
from dra_core.cel.signatures import Overload
from dra_core.cel.values import Map, Value, key_of

_K: Final = param("K")
_V: Final = param("V")
_MAP: Final = map_of(_K, _V)


def insert_in_place(target: Map, key: Value, value: Value) -> Map:
    """Add an entry to a map that a loop is making, and which nothing else has seen yet."""
    if target.find(key) is not None:
        raise EvalError(f"insert failed: key {key} already exists")
    target.entries[key_of(key)] = (key, value)
    return target


def merge_in_place(target: Map, entries: Map) -> Map:
    """Add all entries of another map; as above."""
    for key, value in entries.items():
        insert_in_place(target, key, value)
    return target


def _inserted(target: Map, key: Value, value: Value) -> Map:
    return insert_in_place(Map(dict(target.entries)), key, value)


def _merged(target: Map, entries: Map) -> Map:
    return merge_in_place(Map(dict(target.entries)), entries)


OVERLOADS: Final[tuple[Overload, ...]] = (
    Overload("@mapInsert_map_key_value", "cel.@mapInsert", (_MAP, _K, _V), _MAP, _inserted),
    Overload("@mapInsert_map_map", "cel.@mapInsert", (_MAP, _MAP), _MAP, _merged),
)

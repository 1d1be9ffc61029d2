"""``container.field`` and ``container[key]``, and whether they are there."""

from __future__ import annotations

from typing import Final

from dra_core.cel.faults import EvalError
from dra_core.cel.messages import ObjectValue
from dra_core.cel.values import INT_MAX, INT_MIN, Map, Uint, Value, type_of

#: What ``container[key]`` can have as its key.
KEYS: Final = frozenset((str, int, Uint, bool, float))


def as_key(value: Value) -> Value:
    """A computed key. Errors: ``EvalError`` if it is of a kind that no container has keys of."""
    if type(value) not in KEYS:
        raise EvalError(f"invalid qualifier type: {type_of(value).name}")
    return value


def at(container: Value, key: Value) -> Value:
    """What a container has for a key. Errors: ``EvalError`` if it is not there."""
    found = find(container, key)
    if found is None:
        if type(container) is ObjectValue:
            return container.defaults[key]
        raise missing(container, key)
    return found[0]


def find(container: Value, key: Value) -> tuple[Value] | None:
    """What a container has for a key, ``None`` if that is nothing or it is no container.

    Errors: ``EvalError`` for a key that no list can have, a field that an object does not have.
    """
    if type(container) is Map:
        entry = container.find(key)
        if entry is not None:
            return (entry[1],)
        return None if container.default is None else (container.default,)
    if type(container) is list:
        place = index_of(key)
        return (container[place],) if 0 <= place < len(container) else None
    return container.given(key) if type(container) is ObjectValue else None


def index_of(key: Value) -> int:
    """A key as the place in a list."""
    kind = type(key)
    if kind is int:
        return key  # type: ignore[no-any-return]
    if kind is Uint:
        if key > INT_MAX:
            raise EvalError(f"unsupported index value {key} in list")
        return int(key)
    if kind is float:
        if key.is_integer() and INT_MIN < key < 2.0**63:
            return int(key)
        raise EvalError(f"unsupported index value {key} in list")
    raise EvalError(f"unsupported index type '{type_of(key).name}' in list")


def missing(container: Value, key: Value) -> EvalError:
    """The key is not there."""
    if type(container) is list:
        return EvalError(f"index out of bounds: {key}")
    return EvalError(f"no such key: {key}")

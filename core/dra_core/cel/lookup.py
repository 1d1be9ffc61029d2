"""``container.field`` and ``container[key]``, and whether they are there."""

from __future__ import annotations

from dra_core.cel.faults import EvalError
from dra_core.cel.messages import ObjectValue
from dra_core.cel.values import Map, Uint, Value, type_of


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
    if kind is int or kind is Uint:
        return int(key)
    if kind is float:
        if key.is_integer():
            return int(key)
        raise EvalError(f"unsupported index value {key} in list")
    raise EvalError(f"unsupported index type '{type_of(key).name}' in list")


def missing(container: Value, key: Value) -> EvalError:
    """The key is not there."""
    if type(container) is list:
        return EvalError(f"index out of bounds: {key}")
    return EvalError(f"no such key: {key}")

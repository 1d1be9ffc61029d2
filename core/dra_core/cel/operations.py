"""What both evaluators share: items of literals, membership, what loops go over."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from dra_core.cel.faults import EvalError
from dra_core.cel.library.bounds import check_items
from dra_core.cel.library.two_variable import insert_in_place, merge_in_place
from dra_core.cel.plan import ObjectStep
from dra_core.cel.values import Map, Optional, Value, equal, key_of, type_of

#: An accumulator that was not read yet.
UNSET: Final = object()


def is_empty(value: Value) -> bool:
    """Whether a first value is a container to which a loop may add in place."""
    return (type(value) is list or type(value) is Map) and not value


def unequal(left: Value, right: Value) -> bool:
    """``!=``: what cannot be compared is not equal."""
    try:
        return not equal(left, right)
    except EvalError:
        return True


def given(value: Value) -> bool:
    """Whether an optional item has a value. Errors: ``EvalError`` if it is not optional."""
    if type(value) is not Optional:
        raise EvalError("cannot initialize an optional item from a value that is not optional")
    return value.has_value


def put(
    entries: dict[Any, tuple[Value, Value]], key: Value, value: Value, *, optional: bool
) -> None:
    """Add an entry to a map that is being made; an optional one without a value removes it."""
    if type(key) is Optional and key.has_value:
        key = copy.copy(key)  # every use of one is another key
    held = key_of(key)
    if optional:
        if not given(value):
            entries.pop(held, None)
            return
        value = value.value
    entries[held] = (key, value)


def made(step: ObjectStep, values: list[Value]) -> Value:
    """An object from the values of its fields."""
    fields: dict[str, Value] = {}
    for place, (name, value) in enumerate(zip(step.names, values, strict=True)):
        if place in step.optional:
            if not given(value):
                fields.pop(name, None)
                continue
            fields[name] = value.value
        else:
            fields[name] = value
    return step.make(fields)


def is_member(value: Value, keys: frozenset[object]) -> bool:
    """Whether a value is among constants. Errors: ``Aborted`` for one that cannot be looked up."""
    return key_of(value) in keys


def iterated(value: Value, *, pairs: bool) -> list[Value]:
    """What a loop goes over."""
    if type(value) is list:
        return list(enumerate(value)) if pairs else value
    if type(value) is Map:
        return list(value.items()) if pairs else list(value.keys())
    raise EvalError(f"got '{type_of(value).name}', expected iterable type")


def extended(call: Callable[..., Value], accu: Value, more: Value) -> Value:
    """``accu + more`` for an accumulator that may be changed."""
    if type(accu) is not list or type(more) is not list:
        return call(accu, more)
    check_items(len(accu) + len(more))
    accu.extend(more)
    return accu


def inserted(call: Callable[..., Value], accu: Value, *more: Value) -> Value:
    """``cel.@mapInsert(accu, …)`` for an accumulator that may be changed."""
    if type(accu) is not Map:
        return call(accu, *more)
    if len(more) == 2:
        return insert_in_place(accu, *more)
    return merge_in_place(accu, *more) if type(more[0]) is Map else call(accu, *more)

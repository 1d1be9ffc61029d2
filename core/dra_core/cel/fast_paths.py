"""Paths, not counted: ``device.attributes["d"].x`` from its variable to its value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from dra_core.cel.lookup import as_key, at, find
from dra_core.cel.plan import Qualifier
from dra_core.cel.values import NONE, Map, Optional, Value

#: The variables of a run by slot, then its meter and its clock.
Env = list[Any]
Run = Callable[[Env], Value]


def plain_keys(qualifiers: Iterable[Qualifier]) -> list[str] | None:
    """The keys of a path of nothing but names."""
    keys = []
    for one in qualifiers:
        if one.attribute is not None or one.optional or one.test or type(one.value) is not str:
            return None
        keys.append(one.value)
    return keys


def plain_path(slot: int, keys: list[str]) -> Run:
    """A path of nothing but names, from a variable."""

    def path(env: Env) -> Value:
        value = env[slot]
        if type(value) is Optional:
            return qualified(value, [(False, False, key, None) for key in keys], env)
        for key in keys:
            if type(value) is Map and (found := value.entries.get(key)) is not None:
                value = found[1]
            else:
                value = at(value, key)
        return value

    return path if keys else itemgetter(slot)


def from_start(start: Run, qualifiers: list[tuple[bool, bool, Value, Run | None]]) -> Run:
    """Any path: of each part whether it is optional, whether it tests, its key or what gives it."""
    return lambda env: qualified(start(env), qualifiers, env)


def qualified(
    value: Value, qualifiers: list[tuple[bool, bool, Value, Run | None]], env: Env
) -> Value:
    """Follow a path. From the first optional part on, what is not there makes the whole empty."""
    through = type(value) is Optional
    if through:
        if not value.has_value:
            return value
        value = value.value
    for optional, test, constant, run in qualifiers:
        key = constant if run is None else as_key(run(env))
        through = through or optional
        if through or test:
            found = find(value, key)
            if not through:
                value = found is not None
            elif found is None:
                return NONE
            else:
                value = found[0]
        else:
            value = at(value, key)
    return Optional(has_value=True, value=value) if through else value

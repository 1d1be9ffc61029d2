"""Lists, maps and objects, counted: a unit for each that is made, after those of its items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from dra_core.cel.faults import EvalError
from dra_core.cel.operations import given, put
from dra_core.cel.plan import ConstStep, Step
from dra_core.cel.tracked_calls import identifiers, placed
from dra_core.cel.tracked_paths import Env, Run
from dra_core.cel.tracker import Failure, Tracker
from dra_core.cel.values import Map, Value

#: The values of some items of a list, or a failure.
_Part = Callable[[Env], "list[Value] | Failure"]


def in_parts(items: Sequence[Step], runs: Sequence[Run]) -> list[_Part]:
    """The items of a list, constants that follow each other as one; none if there are few."""
    parts: list[_Part] = []
    for constant, group in groupby(zip(items, runs, strict=True), key=_is_constant):
        pairs = list(group)
        if constant:
            parts.append(_constants([item for item, _ in pairs]))
        else:
            parts += [_one(run) for _, run in pairs]
    return parts if 2 * len(parts) < len(items) else []


def _is_constant(item: tuple[Step, Run]) -> bool:
    return type(item[0]) is ConstStep


def _constants(items: Sequence[Step]) -> _Part:
    steps = identifiers(items)
    values = [item.value for item in items if isinstance(item, ConstStep)]

    def constants(env: Env) -> list[Value]:
        env[-2].push_all(steps, values)
        return values

    return constants


def _one(run: Run) -> _Part:
    def one(env: Env) -> list[Value] | Failure:
        value = run(env)
        return value if type(value) is Failure else [value]

    return one


def gathered(parts: Sequence[_Part], env: Env) -> Value:
    """The list of these parts, or the first failure."""
    values: list[Value] = []
    for part in parts:
        some = part(env)
        if type(some) is Failure:
            return some
        values += some  # type: ignore[arg-type]
    return values


def list_of(runs: Sequence[Run], optional: frozenset[int], env: Env) -> Value:
    """The list of these items, or the first failure; ``optional`` are places."""
    values = []
    for place, run in enumerate(runs):
        value = run(env)
        if type(value) is Failure:
            return value
        if place in optional:
            try:
                if not given(value):
                    continue
            except EvalError as error:
                return Failure(error)
            value = value.value
        values.append(value)
    return values


def map_of(runs: Sequence[tuple[Run, Run]], optional: frozenset[int], env: Env) -> Value:
    """The map of these keys and values, or the first failure; ``optional`` are places."""
    entries: dict[Any, tuple[Value, Value]] = {}
    for place, (key_run, value_run) in enumerate(runs):
        key = key_run(env)
        if type(key) is Failure:
            return key
        value = value_run(env)
        if type(value) is Failure:
            return value
        try:
            put(entries, key, value, optional=place in optional)
        except EvalError as error:
            return Failure(error)
    return Map(entries)


def construct(tracker: Tracker, items: tuple[int, ...], cost: int, own: int, value: Value) -> None:
    """Count what was made of items: their values go, its own comes."""
    if type(value) is Failure:
        placed(value.error, own)
    tracker.take(items)
    tracker.cost += cost
    tracker.push(own, value)

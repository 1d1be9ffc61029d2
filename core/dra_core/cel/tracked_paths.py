"""Paths, counted: every part of ``device.attributes["d"].x`` costs a unit, so does the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.lookup import as_key, at, find
from dra_core.cel.operations import UNSET, is_empty
from dra_core.cel.plan import (
    Attribute,
    AttributeStep,
    Conditional,
    Qualifier,
    Relative,
    Slots,
    Step,
    Variable,
    identifier,
)
from dra_core.cel.tracker import ATTRIBUTE, Failure, Tracker
from dra_core.cel.values import NONE, Map, Optional, Value

#: The variables of a run by slot, then its tracker and its clock.
Env = list[Any]
Run = Callable[[Env], Value]
#: Goes one part of a path further: container -> what is there; ``None`` if nothing is and it may.
Part = Callable[[Env, Value, bool], tuple[Value] | None]


class Paths:
    """Makes the functions that read attributes; ``run`` makes those of any other step."""

    def __init__(self, run: Callable[[Step], Run]) -> None:
        self._run = run
        #: The first values of accumulators, by slot.
        self.inits: dict[int, Run] = {}

    def step(self, step: AttributeStep) -> Run:
        """An attribute as a step of its own."""
        attribute = step.attribute
        read = self.attribute(attribute)
        own = identifier(step)
        dropped, cost = _observed(attribute, presence=step.presence)
        presence = step.presence

        def observed(env: Env) -> Value:
            value = read(env)
            if presence and type(value) is Optional:
                value = value.has_value
            tracker: Tracker = env[-2]
            for one in dropped:
                tracker.drop(one)
            tracker.cost += cost
            tracker.push(own, value)
            return value

        return observed

    def attribute(self, attribute: Attribute) -> Run:
        """An attribute without what is counted for it as a whole."""
        if isinstance(attribute, Conditional):
            return self._conditional(attribute)
        if isinstance(attribute, Variable):
            start = (
                _variable(attribute.slot) if attribute.accu is None else self._accu(attribute.accu)
            )
        else:
            assert isinstance(attribute, Relative)  # noqa: S101
            start = self._run(attribute.operand)
        path = _path(start, [self._part(one) for one in attribute.qualifiers])
        if isinstance(attribute, Variable) and attribute.rooted:
            return _uncounted(path)
        return path

    def _accu(self, slots: Slots) -> Run:
        slot, grows, init = slots.accu, slots.grows, self.inits[slots.accu]

        def accumulator(env: Env) -> Value:
            value = env[slot]
            if value is UNSET:
                value = env[slot] = init(env)
                env[grows] = is_empty(value)
                if env[grows]:
                    value = env[slot] = [] if type(value) is list else Map({})
            return value

        return accumulator

    def _conditional(self, attribute: Conditional) -> Run:
        condition = self._run(attribute.condition)
        truthy, falsy = self.attribute(attribute.truthy), self.attribute(attribute.falsy)

        def conditional(env: Env) -> Value:
            decided = condition(env)
            if decided is True:
                return truthy(env)
            if decided is False:
                return falsy(env)
            return decided if type(decided) is Failure else Failure(no_such_overload())

        return conditional

    def _part(self, qualifier: Qualifier) -> tuple[bool, Part]:
        key = None if qualifier.attribute is None else self.attribute(qualifier.attribute)
        return qualifier.optional, _part(qualifier, key)


def _observed(attribute: Attribute, *, presence: bool) -> tuple[tuple[int, ...], int]:
    """Which values go when an attribute is seen, and what it costs. ``has()`` is free."""
    if isinstance(attribute, Conditional):
        parts = (attribute.falsy.id, attribute.truthy.id, identifier(attribute.condition))
        return parts, -ATTRIBUTE if presence else 0
    return (attribute.id,), 0 if presence else ATTRIBUTE


def _variable(slot: int) -> Run:
    return lambda env: env[slot]


def _uncounted(path: Run) -> Run:
    """What it costs is not charged, but limited all the same."""

    def uncounted(env: Env) -> Value:
        outside = env.copy()
        outside[-2] = Tracker(env[-2].limit)
        return path(outside)

    return uncounted


def _path(start: Run, parts: Sequence[tuple[bool, Part]]) -> Run:
    def path(env: Env) -> Value:
        value = start(env)
        if type(value) is Failure:
            return value
        through = type(value) is Optional
        if through:
            if not value.has_value:
                return value
            value = value.value
        try:
            for optional, part in parts:
                through = through or optional
                found = part(env, value, through)
                if found is None:
                    return NONE
                value = found[0]
        except EvalError as error:
            return Failure(error)
        return Optional(has_value=True, value=value) if through else value

    return path


def _part(qualifier: Qualifier, read: Run | None) -> Part:
    own, constant, test, relative = (
        qualifier.id,
        qualifier.value,
        qualifier.test,
        qualifier.relative,
    )

    def part(env: Env, container: Value, through: bool) -> tuple[Value] | None:
        tracker: Tracker = env[-2]
        try:
            key = constant if read is None else _key(read(env))
            if through or test:
                found = find(container, key)
                if through and found is None:
                    return None
                if not through:
                    found = (found is not None,)
            else:
                found = (at(container, key),)
        except EvalError as error:
            error.node = error.node or own
            if not through:
                _seen(tracker, own, Failure(error), relative=relative)
            raise
        _seen(tracker, own, found[0] if found else None, relative=relative)
        return found

    return part


def _key(value: Value) -> Value:
    if type(value) is Failure:
        raise value.error
    return as_key(value)


def _seen(tracker: Tracker, step: int, value: Value, *, relative: bool) -> None:
    if relative:
        tracker.drop(step)
    tracker.cost += 1
    tracker.push(step, value)

"""Evaluation without counting: each step becomes a function of the variables.

Errors are exceptions here. The deadline is looked at in loops. What an evaluation can have cost is
metered, see ``meter``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from dra_core.cel.deadline import Clock
from dra_core.cel.fast_paths import Env, Run, from_start, plain_keys, plain_path
from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.meter import Recount, call_charge, charged, equality_charge
from dra_core.cel.operations import UNSET, given, is_empty, is_member, iterated, made, put, unequal
from dra_core.cel.plan import (
    Attribute,
    AttributeStep,
    CallStep,
    Conditional,
    ConstStep,
    EqualStep,
    FoldStep,
    GrowStep,
    ListStep,
    LogicStep,
    MapStep,
    MemberStep,
    NotFalseStep,
    ObjectStep,
    OrStep,
    Relative,
    Slots,
    Step,
    Variable,
)
from dra_core.cel.tracker import LIST, MAP, OBJECT
from dra_core.cel.values import (
    Map,
    Optional,
    Value,
    equal,
)


class Raised:
    """An accumulator whose last step failed: reading it fails in the same way."""

    __slots__ = ("error",)

    def __init__(self, error: EvalError) -> None:
        self.error = error


@dataclass(frozen=True, slots=True)
class Fast:
    """The function that evaluates a step, and what all outside of its loops costs at most."""

    run: Run
    outside: int


def compiled(step: Step) -> Fast:
    """Compile a step."""
    compiler = _Compiler()
    run = compiler.run(step)
    return Fast(run, compiler.fixed)


#: What steps cost at most by themselves; all others a unit.
_OWN: Final = {ListStep: LIST, MapStep: MAP, ObjectStep: OBJECT}


class _Compiler:
    def __init__(self) -> None:
        #: What the steps so far cost at most, those in loops apart.
        self.fixed = 0
        #: How many of the steps so far are charged when they run.
        self._metered = 0
        #: Whether the reference may evaluate such a step where an error before it ended it here.
        self._skips = False
        self._makers: dict[type[Step], Callable[[Any], Run]] = {
            ConstStep: _constant,
            AttributeStep: self._attribute_step,
            LogicStep: self._logic,
            EqualStep: self._equal,
            CallStep: self._call,
            GrowStep: self._grow,
            NotFalseStep: self._not_false,
            MemberStep: self._member,
            OrStep: self._or,
            ListStep: self._list,
            MapStep: self._map,
            ObjectStep: self._object,
            FoldStep: self._fold,
        }
        #: The first values of accumulators, by slot.
        self._inits: dict[int, Run] = {}

    def run(self, step: Step) -> Run:
        self.fixed += _OWN.get(type(step), 1)
        return self._makers[type(step)](step)

    def _args(self, args: Sequence[Step]) -> list[Run]:
        """Arguments that the reference evaluates even if one before them has no value."""
        runs = []
        for place, arg in enumerate(args):
            before = self._metered
            runs.append(self.run(arg))
            self._skips = self._skips or (place > 0 and self._metered > before)
        return runs

    # -- attributes --------------------------------------------------------------------------------
    def _attribute_step(self, step: AttributeStep) -> Run:
        read = self._attribute(step.attribute)
        if not step.presence:
            return read

        def present(env: Env) -> Value:
            value = read(env)
            return value.has_value if type(value) is Optional else value

        return present

    def _attribute(self, attribute: Attribute) -> Run:
        self.fixed += 1 + len(attribute.qualifiers)
        if isinstance(attribute, Conditional):
            return self._conditional(attribute)
        keys = plain_keys(attribute.qualifiers)
        if isinstance(attribute, Variable):
            if attribute.accu is None:
                slot = attribute.slot
                if keys is not None:
                    return plain_path(slot, keys)
                return from_start(itemgetter(slot), self._qualifiers(attribute))
            start = self._accumulator(attribute.accu)
        else:
            assert isinstance(attribute, Relative)  # noqa: S101
            start = self.run(attribute.operand)
        return from_start(start, self._qualifiers(attribute)) if attribute.qualifiers else start

    def _accumulator(self, slots: Slots) -> Run:
        slot, grows, init = slots.accu, slots.grows, self._inits[slots.accu]

        def accumulator(env: Env) -> Value:
            value = env[slot]
            if value is UNSET:
                value = env[slot] = started(init, env)
                env[grows] = is_empty(value)
                if env[grows]:
                    value = env[slot] = [] if type(value) is list else Map({})
            if type(value) is Raised:
                raise value.error
            return value

        return accumulator

    def _conditional(self, attribute: Conditional) -> Run:
        condition = self.run(attribute.condition)
        truthy = self._attribute(attribute.truthy)
        falsy = self._attribute(attribute.falsy)

        def conditional(env: Env) -> Value:
            decided = condition(env)
            if decided is True:
                return truthy(env)
            if decided is False:
                return falsy(env)
            raise no_such_overload()

        return conditional

    def _qualifiers(self, attribute: Attribute) -> list[tuple[bool, bool, Value, Run | None]]:
        return [
            (
                qualifier.optional,
                qualifier.test,
                qualifier.value,
                None if qualifier.attribute is None else self._attribute(qualifier.attribute),
            )
            for qualifier in attribute.qualifiers
        ]

    # -- operators and calls -----------------------------------------------------------------------
    def _logic(self, step: LogicStep) -> Run:
        runs = [self.run(term) for term in step.terms]
        decided_by, skips = step.decided_by, self._skips

        def logic(env: Env) -> Value:
            failure: EvalError | None = None
            for run in runs:
                try:
                    value = run(env)
                except EvalError as error:
                    if skips:
                        raise Recount from None
                    failure = failure or error
                    continue
                if value is decided_by:
                    return value
                if type(value) is not bool:
                    failure = failure or no_such_overload()
            if failure is not None:
                raise failure
            return not decided_by

        return logic

    def _equal(self, step: EqualStep) -> Run:
        left, right = runs = self._args(step.args)
        most, cost = equality_charge(step)
        self.fixed += most
        if cost is not None:
            self._metered += 1
            return charged(unequal if step.negated else equal, cost, runs, copies=False)
        if not step.negated:
            return lambda env: equal(left(env), right(env))

        return lambda env: unequal(left(env), right(env))

    def _call(self, step: CallStep) -> Run:
        call = step.call
        runs = self._args(step.args)
        cost = call_charge(step)
        if cost is not None:
            self._metered += 1
            return charged(call, cost, runs, copies=step.copies)
        if len(runs) == 1:
            (only,) = runs
            return lambda env: call(only(env))
        if len(runs) == 2:
            first, second = runs
            if step.copies:
                return _copying(call, first, second)
            return lambda env: call(first(env), second(env))
        return lambda env: call(*[run(env) for run in runs])

    def _grow(self, step: GrowStep) -> Run:
        runs = self._args(step.args)
        slot, call, grow = step.slots.grows, step.call, step.grow
        cost = call_charge(step)

        def growing(env: Env) -> Value:
            values = [run(env) for run in runs]
            if env[slot]:
                return grow(call, *values)
            value = call(*values)
            env[-1].made(value)
            return value

        if cost is None:
            return growing
        self._metered += 1
        return charged(call, cost, runs, copies=step.copies)  # of texts: nothing grows in place

    def _not_false(self, step: NotFalseStep) -> Run:
        run = self.run(step.args[0])
        skips = self._skips

        def not_false(env: Env) -> Value:
            try:
                value = run(env)
            except EvalError:
                if skips:
                    raise Recount from None
                return True
            return value if type(value) is bool else True

        return not_false

    def _member(self, step: MemberStep) -> Run:
        run, keys = self.run(step.arg), step.keys
        return lambda env: is_member(run(env), keys)

    def _or(self, step: OrStep) -> Run:
        left, right, unwrap = self.run(step.left), self.run(step.right), step.unwrap

        def either(env: Env) -> Value:
            value = left(env)
            if type(value) is not Optional:
                raise no_such_overload()
            if not value.has_value:
                return right(env)
            return value.value if unwrap else value

        return either

    # -- containers --------------------------------------------------------------------------------
    def _list(self, step: ListStep) -> Run:
        runs = [self.run(item) for item in step.items]
        optional = step.optional
        if not optional:
            return lambda env: [run(env) for run in runs]

        def items(env: Env) -> Value:
            found = []
            for place, run in enumerate(runs):
                value = run(env)
                if place in optional:
                    if not given(value):
                        continue
                    value = value.value
                found.append(value)
            return found

        return items

    def _map(self, step: MapStep) -> Run:
        pairs = [
            (self.run(key), self.run(value))
            for key, value in zip(step.keys, step.values, strict=True)
        ]
        optional = step.optional

        def entries(env: Env) -> Value:
            found: dict[Any, tuple[Value, Value]] = {}
            for place, (key_run, value_run) in enumerate(pairs):
                key, value = key_run(env), value_run(env)
                put(found, key, value, optional=place in optional)
            return Map(found)

        return entries

    def _object(self, step: ObjectStep) -> Run:
        runs = [self.run(value) for value in step.values]

        def constructed(env: Env) -> Value:
            value = made(step, [run(env) for run in runs])
            env[-1].converted(value)
            return value

        return constructed

    # -- loops -------------------------------------------------------------------------------------
    def _fold(self, step: FoldStep) -> Run:
        slots = step.slots
        over = self.run(step.range)
        self._inits[slots.accu] = self.run(slots.init)
        outside, self.fixed = self.fixed, 0
        condition, body = self.run(step.condition), self.run(step.step)
        once, self.fixed = self.fixed, outside
        result = self.run(step.result)
        self._metered += 1
        skips = self._skips
        accu, grows, var, var2, pairs = slots.accu, slots.grows, slots.var, slots.var2, step.pairs

        def fold(env: Env) -> Value:
            items = iterated(over(env), pairs=pairs)
            env[-2].charge(len(items) * once)
            env[accu], env[grows] = UNSET, None
            clock: Clock = env[-1]
            for item in items:
                if pairs:
                    env[var], env[var2] = item
                else:
                    env[var] = item
                try:
                    if condition(env) is False:
                        break
                except EvalError:  # undecided: the loop goes on
                    if skips:
                        raise Recount from None
                try:
                    env[accu] = body(env)
                except EvalError as error:
                    if skips:
                        raise Recount from None
                    env[accu] = Raised(error)
                clock.tick()
            return result(env)

        return fold


def _copying(call: Callable[..., Value], left: Run, right: Run) -> Run:
    def copying(env: Env) -> Value:
        value = call(left(env), right(env))
        env[-1].made(value)
        return value

    return copying


def _constant(step: ConstStep) -> Run:
    value = step.value
    return lambda _: value


def started(init: Run, env: Env) -> Value:
    """The first value of an accumulator, or that it has none."""
    try:
        return init(env)
    except EvalError as error:
        return Raised(error)

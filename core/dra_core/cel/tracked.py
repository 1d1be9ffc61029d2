"""Evaluation that counts, in the cost units of Kubernetes, to the last unit.

The reference observes the value of every step, keeps the values on a stack, and charges a call when
it finds the values of all its arguments there. It does not always find them: an argument that was
not evaluated because of an error, a value that another step took away. So the stack is kept here in
the same way, rather than charging what would be due.

Errors are values in this evaluator (``Failure``), since the reference goes on to evaluate, and to
count, after one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dra_core.cel.deadline import Clock
from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.operations import UNSET, is_member, iterated, made, unequal
from dra_core.cel.plan import (
    AttributeStep,
    CallStep,
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
    Step,
    identifier,
)
from dra_core.cel.tracked_calls import (
    all_values,
    any_arity,
    binary,
    both_values,
    called,
    charging,
    identifiers,
    placed,
    unary,
)
from dra_core.cel.tracked_lists import construct, gathered, in_parts, list_of, map_of
from dra_core.cel.tracked_paths import Env, Paths, Run
from dra_core.cel.tracker import LIST, MAP, OBJECT, Failure, Tracker
from dra_core.cel.values import Optional, Value, equal


def tracked(step: Step) -> Run:
    """The function that evaluates a step; ``env[-2]`` is the tracker, ``env[-1]`` the clock."""
    return _Compiler().run(step)


class _Compiler:
    def __init__(self) -> None:
        self._paths = Paths(self.run)
        self._makers: dict[type[Step], Callable[[Any], Run]] = {
            ConstStep: _constant,
            AttributeStep: self._paths.step,
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

    def run(self, step: Step) -> Run:
        return self._makers[type(step)](step)

    def _logic(self, step: LogicStep) -> Run:
        runs = [self.run(term) for term in step.terms]
        terms = identifiers(step.terms)
        own, decided_by = step.id, step.decided_by

        def logic(env: Env) -> Value:
            value = decided(runs, env, decided_by)
            if type(value) is Failure:
                placed(value.error, own)
            tracker: Tracker = env[-2]
            for term in terms:
                tracker.drop(term)
            tracker.push(own, value)
            return value

        return logic

    def _equal(self, step: EqualStep) -> Run:
        left, right = (self.run(arg) for arg in step.args)
        compare = unequal if step.negated else _equal
        charge, own = charging(step.id, step.function, step.overload, step.args), step.id

        def equality(env: Env) -> Value:
            a, b = left(env), right(env)
            value = a if type(a) is Failure else b if type(b) is Failure else compare(a, b)
            if type(value) is Failure:
                placed(value.error, own)
            charge(env, value)
            return value

        return equality

    # -- calls -------------------------------------------------------------------------------------
    def _call(self, step: CallStep) -> Run:
        charge = charging(step.id, step.function, step.overload, step.args)
        runs = [self.run(arg) for arg in step.args]
        if len(runs) == 1:
            return unary(step, runs[0], charge)
        if step.eager:
            return binary(step, runs[0], runs[1], charge)
        return any_arity(step, runs, charge)

    def _grow(self, step: GrowStep) -> Run:
        slot, call, grow, own = step.slots.grows, step.call, step.grow, step.id
        charge = charging(step.id, step.function, step.overload, step.args)
        runs = [self.run(arg) for arg in step.args]
        gather = both_values if step.eager else all_values

        def grown(env: Env) -> Value:
            value = gather(runs, env)
            if type(value) is not Failure:
                grows = env[slot]
                args = (call, *value) if grows else value
                value = called(grow if grows else call, args, own)
                if not grows:
                    env[-1].made(value)
            charge(env, value)
            return value

        return grown

    def _not_false(self, step: NotFalseStep) -> Run:
        run = self.run(step.args[0])
        charge = charging(step.id, step.function, step.overload, step.args)

        def not_false(env: Env) -> Value:
            value = run(env)
            value = value if type(value) is bool else True
            charge(env, value)
            return value

        return not_false

    def _member(self, step: MemberStep) -> Run:
        run, keys, own = self.run(step.arg), step.keys, step.id

        def member(env: Env) -> Value:
            value = run(env)
            if type(value) is not Failure:
                value = is_member(value, keys)
            env[-2].push(own, value)
            return value

        return member

    def _or(self, step: OrStep) -> Run:
        left, right, unwrap, own = self.run(step.left), self.run(step.right), step.unwrap, step.id

        def either(env: Env) -> Value:
            value = left(env)
            if type(value) is Optional:
                if not value.has_value:
                    value = right(env)
                elif unwrap:
                    value = value.value
            elif type(value) is not Failure:
                value = Failure(no_such_overload())
            env[-2].push(own, value)
            return value

        return either

    # -- containers --------------------------------------------------------------------------------
    def _list(self, step: ListStep) -> Run:
        runs = [self.run(item) for item in step.items]
        optional, own, items = step.optional, step.id, identifiers(step.items)
        parts = [] if optional else in_parts(step.items, runs)

        def listed(env: Env) -> Value:
            value = gathered(parts, env) if parts else list_of(runs, optional, env)
            construct(env[-2], items, LIST, own, value)
            return value

        return listed

    def _map(self, step: MapStep) -> Run:
        pairs = list(zip(step.keys, step.values, strict=True))
        runs = [(self.run(key), self.run(value)) for key, value in pairs]
        optional, own = step.optional, step.id
        items = identifiers([part for pair in pairs for part in pair])

        def mapped(env: Env) -> Value:
            value = map_of(runs, optional, env)
            construct(env[-2], items, MAP, own, value)
            return value

        return mapped

    def _object(self, step: ObjectStep) -> Run:
        runs = [self.run(value) for value in step.values]
        own, items = step.id, identifiers(step.values)

        def constructed(env: Env) -> Value:
            values: Value = all_values(runs, env)
            if type(values) is not Failure:
                values = called(lambda: made(step, values), (), own)
                env[-1].converted(values)
            construct(env[-2], items, OBJECT, own, values)
            return values

        return constructed

    # -- loops -------------------------------------------------------------------------------------
    def _fold(self, step: FoldStep) -> Run:
        slots = step.slots
        over = self.run(step.range)
        self._paths.inits[slots.accu] = self.run(slots.init)
        condition, body, result = (self.run(s) for s in (step.condition, step.step, step.result))
        accu, grows, var, var2, pairs = slots.accu, slots.grows, slots.var, slots.var2, step.pairs
        own, range_id = step.id, identifier(step.range)

        def looped(env: Env) -> Value:
            items = over(env)
            if type(items) is Failure:
                return items
            try:
                items = iterated(items, pairs=pairs)
            except EvalError as error:
                return Failure(placed(error, own))
            env[accu], env[grows] = UNSET, False
            clock: Clock = env[-1]
            for item in items:
                if pairs:
                    env[var], env[var2] = item
                else:
                    env[var] = item
                if condition(env) is False:
                    break
                env[accu] = body(env)
                clock.tick()
            return result(env)

        def fold(env: Env) -> Value:
            value = looped(env)
            tracker: Tracker = env[-2]
            tracker.drop(range_id)
            tracker.push(own, value)
            return value

        return fold


def _constant(step: ConstStep) -> Run:
    own, value = step.id, step.value

    def constant(env: Env) -> Value:
        env[-2].push(own, value)
        return value

    return constant


def decided(runs: Sequence[Run], env: Env, decided_by: bool) -> Value:
    """``&&`` or ``||``: the first value that decides, else the first failure, else the other."""
    failure: Failure | None = None
    for run in runs:
        value = run(env)
        if value is decided_by:
            return value
        if type(value) is not bool and failure is None:
            failure = value if type(value) is Failure else Failure(no_such_overload())
    return (not decided_by) if failure is None else failure


def _equal(left: Value, right: Value) -> Value:
    try:
        return equal(left, right)
    except EvalError as error:
        return Failure(error)

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
from itertools import groupby
from typing import Any

from dra_core.cel.call_costs import coster
from dra_core.cel.deadline import Clock
from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.operations import UNSET, given, is_member, iterated, made, put
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
from dra_core.cel.tracked_paths import Env, Paths, Run
from dra_core.cel.tracker import LIST, MAP, OBJECT, Failure, Tracker
from dra_core.cel.values import Map, Optional, Value, equal


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
        terms = _identifiers(step.terms)
        own, decided_by = step.id, step.decided_by

        def logic(env: Env) -> Value:
            value = decided(runs, env, decided_by)
            if type(value) is Failure:
                _placed(value.error, own)
            tracker: Tracker = env[-2]
            for term in terms:
                tracker.drop(term)
            tracker.push(own, value)
            return value

        return logic

    def _equal(self, step: EqualStep) -> Run:
        left, right = (self.run(arg) for arg in step.args)
        compare = _unequal if step.negated else _equal
        function = ("_!=_", "not_equals") if step.negated else ("_==_", "equals")
        charge, own = _charge(step.id, *function, step.args), step.id

        def equality(env: Env) -> Value:
            a, b = left(env), right(env)
            value = a if type(a) is Failure else b if type(b) is Failure else compare(a, b)
            if type(value) is Failure:
                _placed(value.error, own)
            charge(env, value)
            return value

        return equality

    # -- calls -------------------------------------------------------------------------------------
    def _call(self, step: CallStep) -> Run:
        charge = _charge(step.id, step.function, step.overload, step.args)
        runs = [self.run(arg) for arg in step.args]
        if len(runs) == 1:
            return _unary(step, runs[0], charge)
        if step.eager:
            return _binary(step, runs[0], runs[1], charge)
        return _any_arity(step, runs, charge)

    def _grow(self, step: GrowStep) -> Run:
        slot, call, grow, own = step.slots.grows, step.call, step.grow, step.id
        charge = _charge(step.id, step.function, step.overload, step.args)
        runs = [self.run(arg) for arg in step.args]
        gather = _both_values if step.eager else _all_values

        def grown(env: Env) -> Value:
            value = gather(runs, env)
            if type(value) is not Failure:
                grows = env[slot]
                args = (call, *value) if grows else value
                value = _called(grow if grows else call, args, own)
                if not grows:
                    env[-1].made(value)
            charge(env, value)
            return value

        return grown

    def _not_false(self, step: NotFalseStep) -> Run:
        run = self.run(step.args[0])
        charge = _charge(step.id, step.function, step.overload, step.args)

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
        optional, own, items = step.optional, step.id, _identifiers(step.items)
        parts = [] if optional else _parts(step.items, runs)

        def listed(env: Env) -> Value:
            value = _gathered(parts, env) if parts else _listed(runs, optional, env)
            _construct(env[-2], items, LIST, own, value)
            return value

        return listed

    def _map(self, step: MapStep) -> Run:
        pairs = list(zip(step.keys, step.values, strict=True))
        runs = [(self.run(key), self.run(value)) for key, value in pairs]
        optional, own = step.optional, step.id
        items = _identifiers([part for pair in pairs for part in pair])

        def mapped(env: Env) -> Value:
            value = _mapped(runs, optional, env)
            _construct(env[-2], items, MAP, own, value)
            return value

        return mapped

    def _object(self, step: ObjectStep) -> Run:
        runs = [self.run(value) for value in step.values]
        own, items = step.id, _identifiers(step.values)

        def constructed(env: Env) -> Value:
            values: Value = _all_values(runs, env)
            if type(values) is not Failure:
                values = _called(lambda: made(step, values), (), own)
                env[-1].converted(values)
            _construct(env[-2], items, OBJECT, own, values)
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
                return Failure(_placed(error, own))
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


def _identifiers(steps: Sequence[Step]) -> tuple[int, ...]:
    return tuple(identifier(step) for step in steps)


def _charge(
    own: int, function: str, overload: str, args: Sequence[Step]
) -> Callable[[Env, Value], None]:
    """What happens to the count when a call has given its value."""
    cost = coster(function, overload)
    steps = _identifiers(args)

    def charge(env: Env, value: Value) -> None:
        tracker: Tracker = env[-2]
        values = tracker.take(steps)
        if values is not None:
            tracker.cost += cost(values, value)
        tracker.push(own, value)

    return charge


def _unary(step: CallStep, run: Run, charge: Callable[[Env, Value], None]) -> Run:
    call, own, copies = step.call, step.id, step.copies

    def unary(env: Env) -> Value:
        value = run(env)
        if type(value) is not Failure:
            try:
                value = call(value)
                if copies:
                    env[-1].made(value)
            except EvalError as error:
                value = Failure(_placed(error, own))
        charge(env, value)
        return value

    return unary


def _binary(step: CallStep, left: Run, right: Run, charge: Callable[[Env, Value], None]) -> Run:
    call, own, copies = step.call, step.id, step.copies

    def binary(env: Env) -> Value:
        a, b = left(env), right(env)
        if type(a) is Failure:
            value = a
        elif type(b) is Failure:
            value = b
        else:
            try:
                value = call(a, b)
                if copies:
                    env[-1].made(value)
            except EvalError as error:
                value = Failure(_placed(error, own))
        charge(env, value)
        return value

    return binary


def _any_arity(step: CallStep, runs: Sequence[Run], charge: Callable[[Env, Value], None]) -> Run:
    call, own, copies = step.call, step.id, step.copies

    def function(env: Env) -> Value:
        values = _all_values(runs, env)
        if type(values) is not Failure:
            values = _called(call, values, own)
            if copies:
                env[-1].made(values)
        charge(env, values)
        return values

    return function


def _all_values(runs: Sequence[Run], env: Env) -> Value:
    """The values of arguments, or the first failure: those after it are not evaluated."""
    values = []
    for run in runs:
        value = run(env)
        if type(value) is Failure:
            return value
        values.append(value)
    return values


def _both_values(runs: Sequence[Run], env: Env) -> Value:
    """The values of both arguments, or the first failure: the second is evaluated all the same."""
    values = [run(env) for run in runs]
    return next((value for value in values if type(value) is Failure), values)


def _called(call: Callable[..., Value], args: Sequence[Value], own: int) -> Value:
    for arg in args:
        if type(arg) is Failure:
            return arg
    try:
        return call(*args)
    except EvalError as error:
        return Failure(_placed(error, own))


def _placed(error: EvalError, own: int) -> EvalError:
    """Remember where an error came up, the innermost place first."""
    error.node = error.node or own
    return error


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


def _unequal(left: Value, right: Value) -> Value:
    try:
        return not equal(left, right)
    except EvalError:
        return True  # what cannot be compared is not equal


#: The values of some items of a list, or a failure.
_Part = Callable[[Env], "list[Value] | Failure"]


def _parts(items: Sequence[Step], runs: Sequence[Run]) -> list[_Part]:
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
    steps = _identifiers(items)
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


def _gathered(parts: Sequence[_Part], env: Env) -> Value:
    values: list[Value] = []
    for part in parts:
        some = part(env)
        if type(some) is Failure:
            return some
        values += some  # type: ignore[arg-type]
    return values


def _listed(runs: Sequence[Run], optional: frozenset[int], env: Env) -> Value:
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


def _mapped(runs: Sequence[tuple[Run, Run]], optional: frozenset[int], env: Env) -> Value:
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


def _construct(tracker: Tracker, items: tuple[int, ...], cost: int, own: int, value: Value) -> None:
    if type(value) is Failure:
        _placed(value.error, own)
    tracker.take(items)
    tracker.cost += cost
    tracker.push(own, value)

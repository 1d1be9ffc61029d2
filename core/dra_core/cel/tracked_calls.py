"""Calls, counted: what happens to the count when a call has given its value, or its failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dra_core.cel.call_costs import coster
from dra_core.cel.faults import EvalError
from dra_core.cel.plan import CallStep, Step, identifier
from dra_core.cel.tracked_paths import Env, Run
from dra_core.cel.tracker import Failure, Tracker
from dra_core.cel.values import Value

Charge = Callable[[Env, Value], None]


def identifiers(steps: Sequence[Step]) -> tuple[int, ...]:
    """Those under which the values of steps are kept."""
    return tuple(identifier(step) for step in steps)


def charging(own: int, function: str, overload: str, args: Sequence[Step]) -> Charge:
    """What happens to the count when a call has given its value."""
    cost = coster(function, overload)
    steps = identifiers(args)

    def charge(env: Env, value: Value) -> None:
        tracker: Tracker = env[-2]
        values = tracker.take(steps)
        if values is not None:
            tracker.cost += cost(values, value)
        tracker.push(own, value)

    return charge


def unary(step: CallStep, run: Run, charge: Charge) -> Run:
    """A call with one argument."""
    call, own, copies = step.call, step.id, step.copies

    def function(env: Env) -> Value:
        value = run(env)
        if type(value) is not Failure:
            try:
                value = call(value)
                if copies:
                    env[-1].made(value)
            except EvalError as error:
                value = Failure(placed(error, own))
        charge(env, value)
        return value

    return function


def binary(step: CallStep, left: Run, right: Run, charge: Charge) -> Run:
    """A call with two arguments, both of which are evaluated in any case."""
    call, own, copies = step.call, step.id, step.copies

    def function(env: Env) -> Value:
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
                value = Failure(placed(error, own))
        charge(env, value)
        return value

    return function


def any_arity(step: CallStep, runs: Sequence[Run], charge: Charge) -> Run:
    """Any call whose arguments after one without a value are not evaluated."""
    call, own, copies = step.call, step.id, step.copies

    def function(env: Env) -> Value:
        values = all_values(runs, env)
        if type(values) is not Failure:
            values = called(call, values, own)
            if copies:
                env[-1].made(values)
        charge(env, values)
        return values

    return function


def all_values(runs: Sequence[Run], env: Env) -> Value:
    """The values of arguments, or the first failure: those after it are not evaluated."""
    values = []
    for run in runs:
        value = run(env)
        if type(value) is Failure:
            return value
        values.append(value)
    return values


def both_values(runs: Sequence[Run], env: Env) -> Value:
    """The values of both arguments, or the first failure: the second is evaluated all the same."""
    values = [run(env) for run in runs]
    return next((value for value in values if type(value) is Failure), values)


def called(call: Callable[..., Value], args: Sequence[Value], own: int) -> Value:
    """The value of a call, or the first failure: of an argument, else its own."""
    for arg in args:
        if type(arg) is Failure:
            return arg
    try:
        return call(*args)
    except EvalError as error:
        return Failure(placed(error, own))


def placed(error: EvalError, own: int) -> EvalError:
    """Remember where an error came up, the innermost place first."""
    error.node = error.node or own
    return error

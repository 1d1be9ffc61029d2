"""What an evaluation may have cost so far, kept so loosely that it hardly takes time.

The fast evaluator does not count. It has to know all the same whether the limit could have been
reached, as the reference then ends the evaluation. The static estimate does not tell: what ``join``
gives counts as empty there, for one. So every call of which the cost depends on its arguments is
charged with that, all other steps with the most that they can cost, once for each time that they
can run. When this reaches the limit, the evaluation begins anew, and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dra_core.cel.call_costs import Coster, coster, is_fixed
from dra_core.cel.faults import EvalError
from dra_core.cel.plan import CallStep, ConstStep, EqualStep
from dra_core.cel.tracker import LIMIT, Failure
from dra_core.cel.values import Value

_FAILED: Final = Failure(EvalError(""))

Run = Callable[[list[Any]], Value]


class Recount(Exception):
    """The evaluation has to be done by the evaluator that counts."""


class Meter:
    """What is left of the limit. ``outside`` is what all steps outside of loops cost at most."""

    __slots__ = ("_left",)

    def __init__(self, outside: int) -> None:
        self._left = LIMIT - outside

    def charge(self, cost: int) -> None:
        """Errors: ``Recount`` when the limit may be reached."""
        self._left -= cost
        if self._left < 0:
            raise Recount


def call_charge(step: CallStep) -> Coster | None:
    """How to charge a call, ``None`` if it costs one unit."""
    if is_fixed(step.function, step.overload):
        return None
    return coster(step.function, step.overload)


def equality_charge(step: EqualStep) -> tuple[int, Coster | None]:
    """The most that ``==`` or ``!=`` costs, or how to charge it.

    The shorter side is read, so that a constant says how much that can be.
    """
    cost = coster(step.function, step.overload)
    for arg in step.args:
        if isinstance(arg, ConstStep):
            return max(1, cost([arg.value, arg.value], None)), None
    return 0, cost


def charged(call: Callable[..., Value], cost: Coster, runs: list[Run], *, copies: bool) -> Run:
    """A call that is charged. An argument without a value counts in other ways."""

    def run_charged(env: list[Any]) -> Value:
        try:
            args = [run(env) for run in runs]
        except EvalError:
            raise Recount from None
        try:
            value = call(*args)
        except EvalError:
            env[-2].charge(cost(args, _FAILED))
            raise
        env[-2].charge(cost(args, value))
        if copies:
            env[-1].made(value)
        return value

    return run_charged

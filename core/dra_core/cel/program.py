"""Expressions, compiled and run: device selectors and derived attributes.

``compile_selector`` and ``compile_derived`` check an expression as Kubernetes does and give a
program that can be run for any number of devices, from any number of threads at once.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import Kind as TypeKind
from dra_core.cel.celtypes import Type
from dra_core.cel.checker import check, shown
from dra_core.cel.constants import check_constants
from dra_core.cel.deadline import Clock
from dra_core.cel.deep import deep
from dra_core.cel.devices import DeviceInput, attribute_value
from dra_core.cel.environment import SCHEDULER_1_37, Environment, declarations
from dra_core.cel.estimate import estimate_cost
from dra_core.cel.fast import Fast, compiled
from dra_core.cel.faults import CompileError, EvaluationFailed, Fault
from dra_core.cel.lexer import QUOTED, words
from dra_core.cel.meter import Meter, Recount
from dra_core.cel.parser import parse
from dra_core.cel.plan import Plan
from dra_core.cel.planner import plan
from dra_core.cel.references import Named, names_used
from dra_core.cel.syntax import Checked
from dra_core.cel.tracked import tracked
from dra_core.cel.tracker import LIMIT, Failure, Tracker
from dra_core.cel.values import Optional, Value, type_of
from dra_core.model.devices import AttributeValue

#: The longest expression that an API server takes, in bytes.
MAX_BYTES: Final = 10 * 1024

_SCALARS: Final = frozenset(
    (celtypes.BOOL, celtypes.INT, celtypes.STRING, celtypes.ANY, celtypes.DYN, celtypes.SEMVER)
)


class Kind(enum.Enum):
    """What an expression is for."""

    SELECTOR = "selector"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one evaluation gave: a value or an error, and what it cost."""

    cost: int
    value: Value = None
    error: EvaluationFailed | None = None


class Program:
    """A compiled expression."""

    def __init__(
        self, kind: Kind, checked: Checked, planned: Plan, environment: Environment
    ) -> None:
        self.kind = kind
        self.expression = checked.parsed.source
        self.output_type: Type = checked.type
        self._checked = checked
        self._plan = planned
        self._environment = environment
        self._max_cost: int | None = None
        self._fast: Fast | None = None
        self._tracked: Callable[[list[Any]], Value] | None = None

    @property
    def max_cost(self) -> int:
        """The most that one evaluation can cost, estimated without a device, in cost units."""
        if self._max_cost is None:
            self._max_cost = estimate_cost(self._checked, self._environment).max
        return self._max_cost

    @property
    def names_used(self) -> tuple[Named, ...]:
        """The attributes and capacities that the expression names."""
        return names_used(self._checked.root)

    def matches(self, device: DeviceInput, clock: Clock | None = None) -> bool:
        """Whether a selector selects a device.

        Errors: ``EvaluationFailed``; the scheduler then gives up on the whole claim.
        """
        return as_bool(self.value(device, clock))

    def attribute(self, device: DeviceInput, clock: Clock | None = None) -> AttributeValue:
        """The value of a derived attribute for a device. Errors: ``EvaluationFailed``."""
        return attribute_value(self.value(device, clock))

    def value(self, device: DeviceInput, clock: Clock | None = None) -> Value:
        """The value of the expression for a device. Errors: ``EvaluationFailed``.

        Costs are counted only where that can matter: where they may have reached the limit.
        """
        if device.broken:
            raise EvaluationFailed(device.broken)
        if not self._plan.counted:
            fast = self._fast
            if fast is None:
                fast = self._fast = deep(lambda: compiled(self._plan.root))
            try:
                try:
                    return fast.run(self._begun(device, Meter(fast.outside), clock))
                except RecursionError:
                    return deep(lambda: fast.run(self._begun(device, Meter(fast.outside), clock)))
            except Recount:
                pass
        outcome = self.evaluate(device, clock=clock)
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    def evaluate(
        self, device: DeviceInput, *, limit: int = LIMIT, clock: Clock | None = None
    ) -> Outcome:
        """The value or the error, with its cost in the units of Kubernetes, at most ``limit``."""
        if device.broken:
            return Outcome(0, error=EvaluationFailed(device.broken))
        run = self._tracked
        if run is None:
            run = self._tracked = deep(lambda: tracked(self._plan.root))
        tracker = Tracker(limit)
        try:
            value = deep(lambda: run(self._begun(device, tracker, clock)), before=tracker.reset)
        except EvaluationFailed as error:
            return Outcome(tracker.cost, error=error)
        if type(value) is Failure:
            return Outcome(tracker.cost, error=value.error)
        return Outcome(tracker.cost, value)

    def _begun(
        self, device: DeviceInput, counter: Meter | Tracker, clock: Clock | None
    ) -> list[Any]:
        """The variables at the start of an evaluation, then what counts, then the clock."""
        clock = clock or Clock()
        clock.begin()
        env: list[Any] = [None] * (self._plan.size + 2)
        env[0], env[-2], env[-1] = device.value, counter, clock
        return env

    def offset(self, node: int) -> int | None:
        """Where an expression, ``EvaluationFailed.node``, stands in the text, in code points."""
        return self._checked.parsed.positions.get(node)

    def answer(self, outcome: Outcome) -> bool | AttributeValue:
        """What an evaluation means: whether a device matches, or the value of an attribute.

        Errors: ``EvaluationFailed``, also for a value that is neither.
        """
        if outcome.error is not None:
            raise outcome.error
        if self.kind is Kind.SELECTOR:
            return as_bool(outcome.value)
        return attribute_value(outcome.value)


def as_bool(value: Value) -> bool:
    """The value of a selector. Errors: ``EvaluationFailed`` if it is not bool."""
    while type(value) is Optional and value.has_value:
        value = value.value
    if type(value) is not bool:
        raise EvaluationFailed(
            f"CEL result of type {type_of(value).name} could not be converted to bool"
        )
    return value


def compile_selector(expression: str, environment: Environment = SCHEDULER_1_37) -> Program:
    """Compile a device selector. Errors: ``CompileError``."""
    return _compile(Kind.SELECTOR, expression, environment)


def compile_derived(expression: str, environment: Environment = SCHEDULER_1_37) -> Program:
    """Compile the expression of a derived attribute. Errors: ``CompileError``."""
    return _compile(Kind.DERIVED, expression, environment)


@functools.lru_cache(maxsize=1024)
def _compile(kind: Kind, expression: str, environment: Environment) -> Program:
    return deep(lambda: _compiled(kind, expression, environment))


def _compiled(kind: Kind, expression: str, environment: Environment) -> Program:
    size = len(expression.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        fault = f"the expression is {size} bytes long, {MAX_BYTES} are allowed"
        raise CompileError(expression[:80], (Fault(0, fault),))
    _check_quoted(expression, environment)
    known = declarations(environment)
    checked = check(parse(expression), known)
    check_constants(checked)
    _check_output(kind, checked, environment)
    return Program(kind, checked, plan(checked, known), environment)


def _check_quoted(expression: str, environment: Environment) -> None:
    """Refuse ``a.`b-c``` where the parser does not know it yet."""
    if environment.quoted_fields or "`" not in expression:
        return
    for kind, text, at in words(expression):
        if kind == QUOTED:
            fault = f'{text} is not understood before Kubernetes 1.37: write ["{text[1:-1]}"]'
            raise CompileError(expression, (Fault(at, fault),))


def _check_output(kind: Kind, checked: Checked, environment: Environment) -> None:
    of = checked.type
    if kind is Kind.SELECTOR:
        if of in environment.selector_types:
            return
        expected = "bool or the unknown type"
    else:
        item = of.params[0] if of.kind is TypeKind.LIST and environment.derived_lists else of
        if of in _SCALARS or item in _SCALARS:
            return
        expected = "a primitive scalar (string, integer, boolean, semver)"
        if environment.derived_lists:
            expected += " or a list of these scalars"
    text = f"must evaluate to {expected}, not {shown(of)}"
    raise CompileError(checked.parsed.source, (Fault(0, text),))

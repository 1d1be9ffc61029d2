"""Attributes of a device as the constraints of a claim see them: derived ones first.

A request can give a device attributes by expressions (``derivedAttributes``). Constraints find them
by their full name before the device's own of the same name; selectors do not see them, nor do other
derived attributes. An expression is compiled and evaluated when a constraint first asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dra_core.cel.deadline import Clock
from dra_core.cel.devices import DeviceInput
from dra_core.cel.environment import SCHEDULER_1_37, Environment
from dra_core.cel.faults import CelError, CompileError, EvaluationFailed
from dra_core.cel.program import compile_derived
from dra_core.model.devices import AttributeValue, Device
from dra_core.model.requests import DerivedAttribute


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that is tried for a request; driver, pool and name tell it from all others."""

    driver: str
    pool: str
    device: Device
    input: DeviceInput

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all others."""
        return self.driver, self.pool, str(self.device.name)

    def __str__(self) -> str:
        return "/".join(self.key)


class DerivedFailed(CelError):
    """A derived attribute has no value: this ends the attempt for the whole claim.

    ``__cause__`` is the ``CompileError`` or ``EvaluationFailed``.
    """

    def __init__(self, attribute: str, device: str, expression: str, reason: str) -> None:
        self.attribute = attribute
        self.device = device
        self.expression = expression
        super().__init__(
            f"derived attribute {attribute} of device {device}: {reason}; its expression is "
            f"{expression!r}"
        )


class DerivedAttributes:
    """The derived attributes of one request or subrequest, each evaluated once for a device.

    Of two with one name the last counts. ``clock`` makes the clock of one evaluation. Expressions
    that were evaluated are remembered as long as this object lives: one for each attempt.
    """

    def __init__(
        self,
        attributes: Sequence[DerivedAttribute],
        environment: Environment = SCHEDULER_1_37,
        clock: Callable[[], Clock] = Clock,
    ) -> None:
        self._expressions = {found.name: found.expression for found in attributes}
        self._environment = environment
        self._clock = clock
        self._known: dict[tuple[tuple[str, str, str], str], AttributeValue] = {}

    def values(self, candidate: Candidate) -> Mapping[str, AttributeValue]:
        """All of them for a device. Errors: ``DerivedFailed``, of the first that has none."""
        return {name: self._value(name, candidate) for name in self._expressions}

    def lookup(self, name: str, candidate: Candidate) -> AttributeValue | None:
        """What a constraint on ``name``, which has a domain, finds; ``None`` if there is nothing.

        Errors: ``DerivedFailed``. A derived attribute without a value does not give way to one of
        the device.
        """
        if name in self._expressions:
            return self._value(name, candidate)
        return own(name, candidate)

    def _value(self, name: str, candidate: Candidate) -> AttributeValue:
        expression = self._expressions[name]
        key = candidate.key, expression
        if key not in self._known:
            self._known[key] = self._evaluated(name, expression, candidate)
        return self._known[key]

    def _evaluated(self, name: str, expression: str, candidate: Candidate) -> AttributeValue:
        try:
            program = compile_derived(expression, self._environment)
            return program.attribute(candidate.input, self._clock())
        except CompileError as error:
            reason = f"does not compile: {error.brief}"
            raise DerivedFailed(name, str(candidate), expression, reason) from error
        except EvaluationFailed as error:
            raise DerivedFailed(name, str(candidate), expression, error.text) from error


def own(name: str, candidate: Candidate) -> AttributeValue | None:
    """The attribute that a device published as ``name``.

    One without a domain is found under that of the driver, unless the full name is there as well.
    """
    found = candidate.device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    if not slash or domain != candidate.driver:
        return None
    return candidate.device.attributes.get(identifier)

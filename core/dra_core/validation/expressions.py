"""CEL expressions of selectors and derived attributes: length, compilation, cost.

An API server compiles an expression in the environment of its version and gates, and refuses one
that could cost too much: by its estimate, before any device is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dra_core.cel.environment import for_validation
from dra_core.cel.faults import CompileError, PlanError
from dra_core.cel.program import MAX_BYTES, compile_derived, compile_selector
from dra_core.validation import names
from dra_core.validation.field_rules import Problems
from dra_core.validation.problems import Path, forbidden, internal, invalid, too_long
from dra_core.validation.servers import Server

#: ``CELSelectorExpressionMaxCost``; the same for all derived attributes of a claim together,
#: ``DeviceClaimDerivedAttributeCELMaxCost``. Units of cost.
COST_MAX: Final = 1_000_000


@dataclass(slots=True)
class DerivedCost:
    """What the derived attributes of a claim can cost together."""

    total: int = 0

    def add(self, cost: int) -> None:
        """Add one. The server counts in 64 bits: two without a bound can come to little."""
        self.total = (self.total + cost) % 2**64

    def problems(self, path: Path) -> Problems:
        """``spec.devices`` of a claim whose derived attributes are too costly together."""
        if self.total > COST_MAX:
            limit = f"cost up to {self.total} units together, {COST_MAX} are allowed"
            yield forbidden(path, f"the derived attributes of the claim {limit}: simplify them")


def selector(text: str, path: Path, server: Server, *, unchanged: bool = False) -> Problems:
    """The expression of a selector. ``unchanged`` is one that was stored before, of a class."""
    yield from _expression(text, path, server, None, unchanged=unchanged)


def derived(text: str, path: Path, server: Server, cost: DerivedCost) -> Problems:
    """The expression of a derived attribute; adds to what those of the claim cost."""
    yield from _expression(text, path, server, cost, unchanged=False)


def _expression(
    text: str, path: Path, server: Server, cost: DerivedCost | None, *, unchanged: bool
) -> Problems:
    environment = for_validation(
        server.minor,
        consumable_capacity=server.has("DRAConsumableCapacity"),
        list_attributes=server.has("DRAListTypeAttributes"),
        unchanged=unchanged,
    )
    if environment is None:
        return
    if names.size(text) > MAX_BYTES:
        yield too_long(path, MAX_BYTES)
        return
    try:
        program = (compile_selector if cost is None else compile_derived)(text, environment)
    except PlanError as error:
        yield internal(path, f"does not compile: {error.brief}")
        return
    except CompileError as error:
        yield invalid(path, text, f"does not compile: {error.brief}")
        return
    if program.max_cost > COST_MAX:
        limit = f"costs up to {program.max_cost} units, {COST_MAX} are allowed"
        yield forbidden(path, f"the expression {limit}: simplify it")
    if cost is not None:
        cost.add(program.max_cost)

"""Ranges of sizes and costs, as the static estimate of an expression adds them up.

All numbers are unsigned and have 64 bits in the reference; what does not fit is ``MAX``, which also
stands for "no bound known".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from dra_core.cel.celtypes import Type
from dra_core.cel.syntax import Node

#: 2^64-1: the largest number, and "without bound".
MAX: Final = 2**64 - 1
_TWO_TO_64: Final = 2.0**64


def scaled(number: int, factor: float) -> int:
    """``number`` times ``factor``, rounded up; computed as a double, as the reference does."""
    product = math.ceil(float(number) * factor)
    return product if product < _TWO_TO_64 else MAX


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The least and the most that something costs, in cost units."""

    min: int
    max: int

    def add(self, other: CostEstimate) -> CostEstimate:
        """Both, one after the other."""
        return CostEstimate(min(self.min + other.min, MAX), min(self.max + other.max, MAX))

    def multiply(self, other: CostEstimate) -> CostEstimate:
        """The product of the least and that of the most."""
        return CostEstimate(min(self.min * other.min, MAX), min(self.max * other.max, MAX))

    def multiply_by_cost_factor(self, factor: float) -> CostEstimate:
        """Each end times a factor, rounded up."""
        return CostEstimate(scaled(self.min, factor), scaled(self.max, factor))

    def union(self, other: CostEstimate) -> CostEstimate:
        """The range that holds both."""
        return CostEstimate(min(self.min, other.min), max(self.max, other.max))


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """The least and the greatest size: code points, bytes, items or entries."""

    min: int
    max: int

    def add(self, other: SizeEstimate) -> SizeEstimate:
        """The size of both put together."""
        return SizeEstimate(min(self.min + other.min, MAX), min(self.max + other.max, MAX))

    def multiply(self, other: SizeEstimate) -> SizeEstimate:
        """The product of the least and that of the greatest."""
        return SizeEstimate(min(self.min * other.min, MAX), min(self.max * other.max, MAX))

    def multiply_by_cost_factor(self, factor: float) -> CostEstimate:
        """What it costs when each unit of size costs ``factor``; rounded up."""
        return CostEstimate(scaled(self.min, factor), scaled(self.max, factor))

    def multiply_by_cost(self, cost: CostEstimate) -> CostEstimate:
        """What it costs when each unit of size costs ``cost``."""
        return CostEstimate(min(self.min * cost.min, MAX), min(self.max * cost.max, MAX))

    def union(self, other: SizeEstimate) -> SizeEstimate:
        """The range that holds both."""
        return SizeEstimate(min(self.min, other.min), max(self.max, other.max))


UNKNOWN_SIZE: Final = SizeEstimate(0, MAX)
UNKNOWN_COST: Final = CostEstimate(0, MAX)


def fixed_size(size: int) -> SizeEstimate:
    """A size that is known."""
    return SizeEstimate(size, size)


def fixed_cost(cost: int) -> CostEstimate:
    """A cost that is known."""
    return CostEstimate(cost, cost)


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """What a call costs, its arguments not counted, and the size of its result where it has one."""

    cost: CostEstimate
    result_size: SizeEstimate | None = None


@dataclass(frozen=True, slots=True)
class Operand:
    """A target or argument as an estimate sees it.

    ``path`` is the way from a variable to it (``"device", "attributes", "@values"`` …), empty when
    there is none. ``node`` is None for what stands in no expression, such as the items of a list.
    ``computed_size`` is what the expression itself tells of its size.
    """

    node: Node | None
    type: Type
    path: tuple[str, ...] = ()
    computed_size: SizeEstimate | None = None

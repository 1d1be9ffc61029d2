"""Values that were read, operators that wait for their right side, and how deep both are.

A parser that calls itself would be as deep as the expression. This one keeps its own stacks, so
that neither Python's recursion limit nor the caller's depth matters. The limits are those of the
reference, which counts in two ways:

* while it reads, the rules that are open at the same time: an expression in brackets or after
  ``:`` is one of ``depth``; a comparison opens one of ``relations``, and one more for its right
  side; a sum or product likewise one of ``calcs``. So ``1+(1+(1+…`` ends at 124 levels and
  ``((((…`` at 249;
* when it makes the tree, the height of what was read: member access, member calls, indexes,
  comparisons, sums, products and ``?:`` count, function calls, lists, maps, ``!`` and ``&&`` do
  not, nor what macros add.
"""

from __future__ import annotations

from typing import Final

from dra_core.cel.builder import Builder
from dra_core.cel.syntax import Call, Node

DEPTH_MAX: Final = 250

#: How strongly operators bind. ``!`` and ``-`` in front bind most, members and indexes even more.
OR: Final = 1
AND: Final = 2
RELATION: Final = 3
SUM: Final = 4
PRODUCT: Final = 5
UNARY: Final = 6

#: A value and its height.
Operand = tuple[Node, int]
#: The left values of ``&&`` or ``||`` with the offsets of the operators after them.
_Chain = list[tuple[Node, int, int]]


class Operands:
    """The two stacks of one expression."""

    __slots__ = ("_builder", "_calcs", "_depth", "_outer", "_relations", "nodes", "waiting")

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.nodes: list[Operand] = []
        #: The operators since the last bracket: strength, function, offset, chain.
        self.waiting: list[tuple[int, str, int, _Chain]] = []
        self._outer: list[tuple[list[tuple[int, str, int, _Chain]], int, int]] = []
        self._depth = self._relations = self._calcs = 1

    # Brackets.

    def enter(self, at: int) -> None:
        """An expression in brackets begins after an offset."""
        self._outer.append((self.waiting, self._relations, self._calcs))
        self.waiting = []
        self._relations += 1
        self._calcs += 1
        self.deeper(at)

    def leave(self) -> None:
        """The brackets end; the operators before them wait again."""
        self.waiting, self._relations, self._calcs = self._outer.pop()
        self._depth -= 1

    def deeper(self, at: int) -> None:
        """The last part of a ``?:`` begins, an expression of its own without brackets."""
        self._depth += 1
        self._check(at)

    def shallower(self) -> None:
        """The last part of a ``?:`` ends."""
        self._depth -= 1

    def _check(self, at: int) -> None:
        if self._depth > DEPTH_MAX or self._relations > DEPTH_MAX or self._calcs > DEPTH_MAX:
            self.too_deep(at)

    def too_deep(self, at: int) -> None:
        """Ends the reading."""
        self._builder.stop(at, f"the expression is nested deeper than {DEPTH_MAX} levels")

    # Operators.

    def counted(self, node: Node, below: int, at: int) -> None:
        """A value made of parts, the highest of which is ``below``; it counts as one level."""
        if below >= DEPTH_MAX:
            self.too_deep(at)
        self.nodes.append((node, below + 1))

    def binary(self, strength: int, function: str, at: int) -> None:
        """A comparison, sum or product: its left side is complete."""
        self.settle(strength)
        if strength == RELATION:
            self._relations += 1
        else:
            self._calcs += 1
        self._check(at)
        self.waiting.append((strength, function, at, []))

    def logical(self, strength: int, function: str, at: int) -> None:
        """``&&`` or ``||``: one more value of a chain is complete."""
        self.settle(strength + 1)
        waiting = self.waiting
        if not waiting or waiting[-1][0] != strength:
            waiting.append((strength, function, at, []))
        node, height = self.nodes.pop()
        waiting[-1][3].append((node, height, at))

    def settle(self, strength: int) -> None:
        """Applies what binds at least that strongly to the values at hand."""
        waiting = self.waiting
        while waiting and waiting[-1][0] >= strength:
            level, function, at, chain = waiting.pop()
            if level == UNARY:
                node, height = self.nodes.pop()
                self.nodes.append((Call(self._builder.new_id(at), function, [node]), height))
            elif level <= AND:
                self._join(function, chain)
            else:
                self._apply(level, function, at)

    def _apply(self, level: int, function: str, at: int) -> None:
        nodes = self.nodes
        right, height = nodes.pop()
        left, left_height = nodes.pop()
        if level == RELATION:
            self._relations -= 1
        else:
            self._calcs -= 1
        self.counted(
            Call(self._builder.new_id(at), function, [left, right]), max(height, left_height), at
        )

    def _join(self, function: str, chain: _Chain) -> None:
        """A balanced tree of a chain: ``a && b && c && d`` is ``(a && b) && (c && d)``.

        Which operator comes on top decides which errors are seen and what an evaluation costs.
        """
        last, height = self.nodes.pop()
        terms = [node for node, _, _ in chain]
        terms.append(last)
        height = max(height, *(below for _, below, _ in chain))
        top = Call(0, function, [])
        pending = [(top, 0, len(chain) - 1)]  # calls with the first and last of their operators
        while pending:
            call, first, end = pending.pop()
            middle = (first + end + 1) // 2
            call.id = self._builder.new_id(chain[middle][2])
            for low, high in ((first, middle - 1), (middle + 1, end)):
                if low > high:
                    call.args.append(terms[low])
                else:
                    below = Call(0, function, [])
                    call.args.append(below)
                    pending.append((below, low, high))
        self.nodes.append((top, height))

"""Makes the nodes of a tree: gives them identifiers, keeps their places and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from dra_core.cel.faults import CompileError, Fault
from dra_core.cel.syntax import (
    Call,
    Const,
    Entry,
    FieldInit,
    Fold,
    Ident,
    ListNode,
    MapNode,
    Node,
    Select,
    StructNode,
    children,
)

#: Faults that are collected before the reading ends.
FAULTS_MAX: Final = 100
#: ``a.optMap(…)`` has a copy of ``a``, so that every link of a chain of them doubles the tree. The
#: reference has no limit: it works for more than five minutes on a chain of 12 with 50,000 nodes.
COPIES_MAX: Final = 100_000


class Builder:
    """The nodes of one expression. Identifiers start at 1."""

    __slots__ = ("_copies", "_places", "faults", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self.faults: list[Fault] = []
        self._places: list[int] = []
        self._copies = 0

    def new_id(self, at: int) -> int:
        """A new identifier for something at an offset."""
        places = self._places
        places.append(at)
        return len(places)

    def place(self, node: Node) -> int:
        """The offset of a node."""
        return self._places[node.id - 1]

    def positions(self) -> dict[int, int]:
        """The offsets of all nodes by identifier."""
        return dict(enumerate(self._places, 1))

    def refuse(self, at: int, text: str) -> Node:
        """Notes a fault; the reading goes on with a node that is nothing."""
        self.faults.append(Fault(at, text))
        if len(self.faults) >= FAULTS_MAX:
            self.fail()
        return Node(self.new_id(at))

    def stop(self, at: int, text: str) -> NoReturn:
        """Notes a fault after which nothing can be read."""
        self.faults.append(Fault(at, text))
        self.fail()

    def fail(self) -> NoReturn:
        """Raises all faults, in the order of the text."""
        raise CompileError(self.source, tuple(sorted(self.faults, key=lambda fault: fault.offset)))

    def copy(self, root: Node, at: int) -> Node:
        """The same expression with identifiers of its own, for a macro at an offset."""
        order: list[Node] = []
        pending = [root]
        while pending:
            node = pending.pop()
            order.append(node)
            pending += reversed(list(children(node)))
            if self._copies + len(order) > COPIES_MAX:
                self.stop(at, f"the macros of this expression copy more than {COPIES_MAX} nodes")
        self._copies += len(order)
        done: list[Node] = []  # the copies that have no parent yet, the first child on top
        for node in reversed(order):
            done.append(self._copy_of(node, done.pop, at))
        return done.pop()

    def _copy_of(self, node: Node, child: Callable[[], Node], at: int) -> Node:
        """A copy of a node; ``child`` gives those of its children, in the order of ``children``."""
        number = self.new_id(self.place(node))
        match node:
            case Const():
                return Const(number, node.value)
            case Ident():
                return Ident(number, node.name)
            case Select():
                return Select(number, child(), node.field, node.test_only)
            case Call():
                target = None if node.target is None else child()
                return Call(number, node.function, [child() for _ in node.args], target)
            case ListNode():
                return ListNode(number, [child() for _ in node.items], node.optional)
            case _:
                return self._copy_of_rest(node, number, child, at)

    def _copy_of_rest(self, node: Node, number: int, child: Callable[[], Node], at: int) -> Node:
        new_id = self.new_id
        match node:
            case MapNode():
                return MapNode(
                    number,
                    [Entry(new_id(at), child(), child(), old.optional) for old in node.entries],
                )
            case StructNode():
                return StructNode(
                    number,
                    node.type_name,
                    [FieldInit(new_id(at), old.name, child(), old.optional) for old in node.fields],
                )
            case Fold():
                return Fold(
                    number,
                    range=child(),
                    var=node.var,
                    var2=node.var2,
                    accu=node.accu,
                    init=child(),
                    condition=child(),
                    step=child(),
                    result=child(),
                )
            case _:
                return Node(number)

"""The tree of an expression, after its macros were expanded.

Every node has an identifier; positions, types and resolved functions are kept beside the tree by
it. Nodes can be changed: the checker replaces ``a.b.c`` by the name it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dra_core.cel.celtypes import Type


@dataclass(slots=True, eq=False)
class Node:
    """Any expression."""

    id: int


@dataclass(slots=True, eq=False)
class Const(Node):
    """A literal: null, bool, int, Uint, float, str or bytes, as ``values`` describes them."""

    value: Any


@dataclass(slots=True, eq=False)
class Ident(Node):
    """A name; one that starts with a dot is looked up outside of all loops."""

    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    """``operand.field``, or with ``test_only`` the ``has(operand.field)`` of it."""

    operand: Node
    field: str
    test_only: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """A function or operator (``_+_``, ``_[_]``, ``_?._`` …); a member function has a target."""

    function: str
    args: list[Node]
    target: Node | None = None


@dataclass(slots=True, eq=False)
class ListNode(Node):
    """``[a, ?b]``: items, and the places of those that are optional."""

    items: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry:
    """``key: value`` of a map; an optional one is left out when its value has none."""

    id: int
    key: Node
    value: Node
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapNode(Node):
    """``{key: value}``."""

    entries: list[Entry]


@dataclass(slots=True, eq=False)
class FieldInit:
    """``name: value`` of an object."""

    id: int
    name: str
    value: Node
    optional: bool = False


@dataclass(slots=True, eq=False)
class StructNode(Node):
    """``type.Name{field: value}``."""

    type_name: str
    fields: list[FieldInit]


@dataclass(slots=True, eq=False)
class Fold(Node):
    """A loop over a list or map, which all comprehension macros become.

    ``accu`` starts as ``init``; while ``condition`` holds, each item sets ``var`` (and ``var2``:
    then they are index and item, or key and value) and ``accu`` becomes ``step``. The value of the
    loop is ``result``.
    """

    range: Node
    var: str
    var2: str
    accu: str
    init: Node
    condition: Node
    step: Node
    result: Node


@dataclass(slots=True)
class Parsed:
    """A tree and where its nodes stand: offsets in code points of the source text."""

    source: str
    root: Node
    positions: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reference:
    """What a node stands for: a variable or type by its full name (a constant has a value), or the
    overloads of a function that its arguments can be passed to.
    """

    name: str = ""
    value: Any = None
    overloads: tuple[str, ...] = ()


@dataclass(slots=True)
class Checked:
    """A tree with the type of every node, and what names and calls stand for, by identifier."""

    parsed: Parsed
    types: dict[int, Type]
    references: dict[int, Reference]

    @property
    def root(self) -> Node:
        """The whole expression."""
        return self.parsed.root

    @property
    def type(self) -> Type:
        """The type of the whole expression."""
        return self.types[self.root.id]


def children(node: Node) -> Iterator[Node]:
    """The expressions directly below one, in the order in which they are checked."""
    match node:
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.args
        case ListNode():
            yield from node.items
        case MapNode():
            for entry in node.entries:
                yield entry.key
                yield entry.value
        case StructNode():
            for init in node.fields:
                yield init.value
        case Fold():
            yield from (node.range, node.init, node.condition, node.step, node.result)

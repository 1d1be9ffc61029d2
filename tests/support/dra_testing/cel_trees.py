"""Trees of expressions in a form in which ours and the reference's can be compared.

A tree is the list of its nodes in pre-order, each with its offset, what it is and the number of
nodes below it. Identifiers differ, but nodes that share one must be the same ones::

    agree(parsed(expression), reference(oracle, [expression])[0])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dra_core.cel.faults import CompileError
from dra_core.cel.parser import parse
from dra_core.cel.syntax import (
    Call,
    Const,
    Fold,
    Ident,
    ListNode,
    MapNode,
    Node,
    Parsed,
    Select,
    StructNode,
    children,
)
from dra_core.cel.values import Uint
from dra_testing.cel_oracle import JSON, Oracle

#: (place of the first node with this identifier, offset, kind, what it is, number of nodes below)
Shape = tuple[int, int | None, str, Any, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a parser makes of an expression."""

    #: Empty after a fault, or when the reference has a tree but could not be made to show it.
    tree: tuple[Shape, ...] = ()
    #: Offsets of the faults in order; -1 where the reference has no place.
    faults: tuple[int, ...] = ()
    #: The first of them that is a fault of the syntax; only of the reference.
    syntax: int | None = None
    #: The reference panicked while it went on after a fault.
    unknown: bool = False


#: The checker renames calls of functions with a dot; with this the reference stops before it does.
_BEFORE = "["
_AFTER = "\n, nobody_has_declared_this]"


def parsed(expression: str) -> Outcome:
    """What our parser makes of an expression."""
    try:
        return Outcome(tree=tuple(flat(parse(expression))))
    except CompileError as error:
        return Outcome(faults=tuple(fault.offset for fault in error.faults))


def agree(ours: Outcome, theirs: Outcome) -> bool:
    """Whether the trees are equal, or the faults are in the same places.

    After a fault of the syntax the reference goes on, finds others that come of it, and does not
    look into what it gave up; so only that fault has to be the same. It does not look into the
    arguments of a reserved name either. Where it has no place, any will do.
    """
    if theirs.unknown:
        return True
    if not ours.faults or not theirs.faults:
        return bool(ours.faults) == bool(theirs.faults) and theirs.tree in ((), ours.tree)
    if -1 in theirs.faults:
        return True
    if theirs.syntax is not None:
        return theirs.syntax in ours.faults
    return ours.faults[0] == theirs.faults[0] and set(theirs.faults) <= set(ours.faults)


def flat(tree: Parsed) -> list[Shape]:
    """The nodes of a tree."""
    shapes: list[Shape] = []
    first: dict[int, int] = {}
    pending = [tree.root]
    while pending:
        node = pending.pop()
        below = list(children(node))
        kind, describe = _DESCRIBED[type(node)]
        place = first.setdefault(node.id, len(shapes))
        shapes.append((place, tree.positions[node.id], kind, describe(node), len(below)))
        pending += reversed(below)
    return shapes


#: What a node is called and what it says.
_DESCRIBED: dict[type[Node], tuple[str, Callable[[Any], Any]]] = {
    Const: ("constant", lambda node: _constant(node.value)),
    Ident: ("ident", lambda node: node.name),
    Select: ("select", lambda node: (node.field, node.test_only)),
    Call: ("call", lambda node: (node.function, node.target is not None)),
    ListNode: ("list", lambda node: tuple(sorted(node.optional))),
    MapNode: ("map", lambda node: tuple(("", entry.optional) for entry in node.entries)),
    StructNode: (
        "struct",
        lambda node: (node.type_name, tuple((init.name, init.optional) for init in node.fields)),
    ),
    Fold: ("comprehension", lambda node: (node.var, node.var2, node.accu)),
}
_NAMES = {str: "string", Uint: "uint", int: "int", float: "double", type(None): "null_type"}


def _constant(value: Any) -> tuple[str, Any]:
    if isinstance(value, bytes):
        return "bytes", value.hex()
    if isinstance(value, bool):
        return "bool", value
    name = _NAMES[type(value)]
    return name, None if value is None else repr(value).rstrip("u") if name != "string" else value


def reference(oracle: Oracle, expressions: Sequence[str]) -> list[Outcome]:
    """What the reference's parser makes of expressions."""
    asked = oracle.trees(expressions)
    fine = [e for e, answer in zip(expressions, asked, strict=True) if _is_parsed(answer)]
    trees = iter(oracle.trees([f"{_BEFORE}{expression}{_AFTER}" for expression in fine]))
    return [
        _first_item(answer, next(trees)) if _is_parsed(answer) else _faults(expression, answer)
        for expression, answer in zip(expressions, asked, strict=True)
    ]


def _is_parsed(answer: JSON) -> bool:
    """A panic is mostly one of the checks after the parser: that of ``[?dyn(1)]``, for example."""
    return not answer.keys().isdisjoint(("nodes", "parsed", "panic"))


def _faults(expression: str, answer: JSON) -> Outcome:
    starts = [0, *(found.end() for found in re.finditer("\n", expression))]
    places = []
    syntax = None
    for line, column, text in re.findall(
        r"ERROR: <input>:(-?\d+):(\d+): (.*)", answer["compileError"]
    ):
        place = -1 if line == "-1" else starts[int(line) - 1] + int(column) - 1
        places.append(place)
        if syntax is None and text.startswith("Syntax error"):
            syntax = place
    return Outcome(faults=tuple(places), syntax=syntax)


def _first_item(alone: JSON, answer: JSON) -> Outcome:
    """The tree of the expression within the list that was asked for."""
    if "parsed" not in answer:  # it was as deep as can be, and the list is one level more
        return Outcome(unknown="panic" in alone)
    shift = len(_BEFORE)
    first: dict[int, int] = {}
    shapes = (
        (
            first.setdefault(node["id"], number),
            node["at"] - shift if "at" in node else None,
            node["kind"],
            _STATED[node["kind"]](node),
            _below(node),
        )
        for number, node in enumerate(answer["parsed"]["nodes"][1:-1])
    )
    return Outcome(tree=tuple(shapes))


#: The same, from the reference's answers.
_STATED: dict[str, Callable[[JSON], Any]] = {
    "constant": lambda node: (node["constant"], _value(node)),
    "ident": lambda node: node["name"],
    "select": lambda node: (node["name"], node.get("testOnly", False)),
    "call": lambda node: (node["name"], "target" in node),
    "list": lambda node: tuple(node.get("optional", ())),
    "map": lambda node: (*_entries(node),),
    "struct": lambda node: (node["name"], _entries(node)),
    "comprehension": lambda node: (
        node["loop"]["var"],
        node["loop"].get("var2", ""),
        node["loop"]["accu"],
    ),
}


def _value(node: JSON) -> Any:
    value = node.get("value")
    return repr(float(str(value))) if node["constant"] == "double" else value


def _entries(node: JSON) -> tuple[tuple[str, bool], ...]:
    entries = node.get("entries", ())
    return tuple((entry.get("field", ""), entry.get("optional", False)) for entry in entries)


def _below(node: JSON) -> int:
    """The number of nodes directly below one."""
    each = 2 if node["kind"] == "map" else 1
    return (
        len(node.get("args", ()))
        + ("target" in node)
        + each * len(node.get("entries", ()))
        + 5 * ("loop" in node)
    )

"""Literal patterns of ``string.format`` are checked when an expression is compiled.

Only a literal pattern with a list literal behind it: every clause must be one, have an argument,
and take its type; and there must be no argument without a clause.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dra_core.cel.celtypes import Kind
from dra_core.cel.faults import EvalError, Fault
from dra_core.cel.library.text_format import Clause, clauses, wrong_kind
from dra_core.cel.syntax import Call, Checked, Const, ListNode, MapNode, Node, children

_PLAIN: Final = frozenset(
    (
        *(Kind.LIST, Kind.MAP, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.BOOL, Kind.STRING),
        *(Kind.TIMESTAMP, Kind.BYTES, Kind.DURATION, Kind.TYPE, Kind.NULL),
    )
)
_HEX: Final = frozenset((Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES))

#: The types that a clause takes; a string may be "NaN" to ``%f`` and ``%e``.
_TAKES: Final = {
    "s": _PLAIN,
    "d": frozenset((Kind.INT, Kind.UINT)),
    "f": frozenset((Kind.DOUBLE, Kind.STRING)),
    "e": frozenset((Kind.DOUBLE, Kind.STRING)),
    "b": frozenset((Kind.INT, Kind.UINT, Kind.BOOL)),
    "x": _HEX,
    "X": _HEX,
    "o": frozenset((Kind.INT, Kind.UINT)),
}


def format_faults(checked: Checked) -> list[Fault]:
    """What is wrong with the literal patterns of an expression: the first thing of each."""
    faults = []
    for call, pattern, items in _literal_formats(checked.root):
        fault = _first_fault(checked, call, pattern, items)
        if fault is not None:
            faults.append(fault)
    return faults


def _literal_formats(root: Node) -> Iterator[tuple[Call, str, list[Node]]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        match node:
            case Call(
                function="format",
                target=Const(value=str() as pattern),
                args=[ListNode(items=items)],
            ):
                yield node, pattern, items
        waiting.extend(children(node))


def _first_fault(checked: Checked, call: Call, pattern: str, items: list[Node]) -> Fault | None:
    used = 0
    try:
        for piece in clauses(pattern, len(items)):
            if isinstance(piece, Clause):
                used += 1
                bad = _refused(checked, piece.verb, items[piece.argument])
                if bad is not None:
                    error = wrong_kind(piece.verb, checked.types[bad.id].name)
                    return _fault(checked, bad, error.text)
    except EvalError as error:
        return _fault(checked, call, error.text)
    if len(items) > used:
        text = f"too many arguments supplied to string.format (expected {used}, got {len(items)})"
        return _fault(checked, call, text)
    return None


def _fault(checked: Checked, node: Node, text: str) -> Fault:
    return Fault(checked.parsed.positions.get(node.id, 0), text)


def _refused(checked: Checked, verb: str, node: Node) -> Node | None:
    """The argument if the clause does not take it, or what in it ``%s`` does not take."""
    kind = checked.types[node.id].kind
    if kind is not Kind.DYN and kind not in _TAKES[verb]:
        return node
    if verb != "s":
        return None
    inner: list[Node] = []
    if isinstance(node, ListNode):
        inner = node.items
    elif isinstance(node, MapNode):
        inner = [part for entry in node.entries for part in (entry.key, entry.value)]
    for part in inner:
        bad = _refused(checked, verb, part)
        if bad is not None:
            return bad
    return None

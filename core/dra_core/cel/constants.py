"""Constants that are checked when an expression is compiled, beyond their types.

These are what the reference calls validators: patterns of ``matches``, formats of ``format``, and
lists and maps of constants, which hold one type only, and durations and times. Other conversions
of constants are made by the planner.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dra_core.cel.celtypes import DYN, Type
from dra_core.cel.checker import shown
from dra_core.cel.dispatch import bound
from dra_core.cel.faults import CompileError, EvaluationFailed, Fault
from dra_core.cel.library import conversions
from dra_core.cel.library.format_check import format_faults
from dra_core.cel.regexps import compiled
from dra_core.cel.syntax import Call, Checked, Const, ListNode, MapNode, Node, children

#: Conversions of which a constant argument is tried: by value, as they are written.
_MOMENTS: Final = {
    name: bound([one for one in conversions.OVERLOADS if one.function == name], (), (DYN,))
    for name in ("duration", "timestamp")
}
#: Inside calls of these, lists may hold what they like.
_EXEMPT: Final = frozenset(("format",))


def check_constants(checked: Checked) -> None:
    """Check the constants of an expression. Errors: ``CompileError``."""
    faults = [Fault(checked.parsed.positions.get(node, 0), text) for node, text in _faults(checked)]
    faults += format_faults(checked)
    if faults:
        raise CompileError(checked.parsed.source, tuple(faults))


def _faults(checked: Checked) -> Iterator[tuple[int, str]]:
    todo: list[tuple[Node, bool]] = [(checked.root, False)]
    while todo:
        node, exempt = todo.pop()
        if isinstance(node, Call):
            yield from _pattern(node)
            yield from _moment(node)
            exempt = exempt or node.function in _EXEMPT
        elif not exempt and isinstance(node, ListNode):
            items = [(item.id, place in node.optional) for place, item in enumerate(node.items)]
            yield from _one_type(checked, items)
        elif not exempt and isinstance(node, MapNode):
            yield from _one_type(checked, [(entry.key.id, False) for entry in node.entries])
            values = [(entry.value.id, entry.optional) for entry in node.entries]
            yield from _one_type(checked, values)
        todo.extend((child, exempt) for child in children(node))


def _pattern(node: Call) -> Iterator[tuple[int, str]]:
    """The first argument of ``matches``, which is the pattern of a member call."""
    if node.function != "matches" or not node.args or not isinstance(node.args[0], Const):
        return
    try:
        compiled(node.args[0].value)
    except EvaluationFailed:
        yield node.args[0].id, "invalid matches argument"


def _moment(node: Call) -> Iterator[tuple[int, str]]:
    """The constant argument of ``duration`` and ``timestamp``."""
    if node.function not in _MOMENTS or not node.args or not isinstance(node.args[0], Const):
        return
    try:
        _MOMENTS[node.function](node.args[0].value)
    except EvaluationFailed:
        yield node.args[0].id, f"invalid {node.function} argument"


def _one_type(checked: Checked, items: list[tuple[int, bool]]) -> Iterator[tuple[int, str]]:
    first: Type | None = None
    for node, optional in items:
        of = checked.types[node]
        if optional and not of.params:
            yield node, "an optional item of unknown type: Kubernetes cannot compile it"
            return
        if optional:
            of = of.params[0]
        if first is None:
            first = of
        elif first != of:
            yield node, f"expected type '{shown(first)}' but found '{shown(of)}'"
            return

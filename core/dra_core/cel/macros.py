"""Macros: calls that stand for other expressions, mostly loops.

The trees are those of the reference, node by node: costs are counted along them. ``@result`` and
``@__sortBy_input__`` cannot be written in an expression, so that no name of the author is hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dra_core.cel.builder import Builder
from dra_core.cel.syntax import Call, Const, Fold, Ident, ListNode, MapNode, Node, Select

#: The name of what a loop gathers, and the one that older versions used: both are taken.
ACCUMULATOR: Final = "@result"
_OLD_ACCUMULATOR: Final = "__result__"
#: The variable of a loop that is none: ``cel.bind`` and ``optMap`` loop over an empty list.
UNUSED: Final = "#unused"
_SORT_INPUT: Final = "@__sortBy_input__"
_INSERT: Final = "cel.@mapInsert"


class _Refused(Exception):
    """The arguments do not fit the macro: the node that is wrong, and why."""

    def __init__(self, node: Node, text: str) -> None:
        super().__init__(text)
        self.node = node
        self.text = text


class _Over(NamedTuple):
    """What a loop goes over: the item, or with two variables index and item or key and value."""

    range: Node
    var: str
    var2: str = ""


class _Maker:
    """Nodes that a macro adds; all stand at its opening bracket."""

    __slots__ = ("at", "builder")

    def __init__(self, builder: Builder, at: int) -> None:
        self.builder = builder
        self.at = at

    def const(self, value: Any) -> Const:
        return Const(self.builder.new_id(self.at), value)

    def name(self, name: str) -> Ident:
        return Ident(self.builder.new_id(self.at), name)

    def accu(self) -> Ident:
        return Ident(self.builder.new_id(self.at), ACCUMULATOR)

    def items(self, *items: Node) -> ListNode:
        return ListNode(self.builder.new_id(self.at), list(items))

    def empty_map(self) -> MapNode:
        return MapNode(self.builder.new_id(self.at), [])

    def call(self, function: str, *args: Node) -> Call:
        return Call(self.builder.new_id(self.at), function, list(args))

    def member(self, function: str, target: Node, *args: Node) -> Call:
        return Call(self.builder.new_id(self.at), function, list(args), target)

    def copy(self, node: Node) -> Node:
        return self.builder.copy(node, self.at)

    def fold(self, over: _Over, init: Node, *, condition: Node, step: Node, result: Node) -> Fold:
        """A loop that gathers ``ACCUMULATOR``."""
        number = self.builder.new_id(self.at)
        var, var2 = over.var, over.var2
        return Fold(number, over.range, var, var2, ACCUMULATOR, init, condition, step, result)

    def let(self, name: str, value: Node, result: Node) -> Fold:
        """``result`` where a name stands for a value: the start of a loop that never runs."""
        return Fold(
            self.builder.new_id(self.at),
            range=self.items(),
            var=UNUSED,
            var2="",
            accu=name,
            init=value,
            condition=self.const(value=False),
            step=self.name(name),
            result=result,
        )


#: A macro of a value: answers ``None`` when the call is no macro after all.
_Expander = Callable[[_Maker, Node, list[Node]], Node | None]
#: A loop; the arguments are those after its variables.
_Loop = Callable[[_Maker, _Over, list[Node]], Node]


def expand(
    builder: Builder, at: int, function: str, target: Node | None, args: list[Node]
) -> Node | None:
    """What a call stands for, or ``None`` if it is a call and no macro.

    ``at`` is the offset of its opening bracket. A macro whose arguments are wrong is a fault of the
    builder and a node that is nothing.
    """
    try:
        if target is None:
            if function == "has" and len(args) == 1:
                return _has(_Maker(builder, at), args[0])
            return None
        expander = _MACROS.get((function, len(args)))
        return None if expander is None else expander(_Maker(builder, at), target, args)
    except _Refused as refused:
        return builder.refuse(builder.place(refused.node), refused.text)


def _has(make: _Maker, tested: Node) -> Node:
    if not isinstance(tested, Select):
        raise _Refused(tested, "has() asks for a field: has(a.b)")
    return Select(make.builder.new_id(make.at), tested.operand, tested.field, test_only=True)


def _name_of(node: Node) -> str:
    """The name that an argument gives to a variable."""
    if not isinstance(node, Ident):
        raise _Refused(node, "the variable of a macro must be a plain name")
    return node.name


def _no_accumulator(node: Node, name: str) -> None:
    if name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise _Refused(node, f"the variable of a macro cannot be called {name}")


def _over(target: Node, variable: Node) -> _Over:
    name = _name_of(variable)
    _no_accumulator(variable, name)
    return _Over(target, name)


def _one(loop: _Loop) -> _Expander:
    """A macro ``a.f(x, …)``."""

    def expander(make: _Maker, target: Node, args: list[Node]) -> Node:
        return loop(make, _over(target, args[0]), args[1:])

    return expander


def _two(loop: _Loop) -> _Expander:
    """A macro ``a.f(i, x, …)``: index and item, or key and value."""

    def expander(make: _Maker, target: Node, args: list[Node]) -> Node:
        first, second = _name_of(args[0]), _name_of(args[1])
        if first == second:
            raise _Refused(args[1], f"both variables are called {first}")
        _no_accumulator(args[0], first)
        _no_accumulator(args[1], second)
        return loop(make, _Over(target, first, second), args[2:])

    return expander


def _all(make: _Maker, over: _Over, args: list[Node]) -> Node:
    condition = make.call("@not_strictly_false", make.accu())
    step = make.call("_&&_", make.accu(), args[0])
    return make.fold(
        over, make.const(value=True), condition=condition, step=step, result=make.accu()
    )


def _exists(make: _Maker, over: _Over, args: list[Node]) -> Node:
    condition = make.call("@not_strictly_false", make.call("!_", make.accu()))
    step = make.call("_||_", make.accu(), args[0])
    return make.fold(
        over, make.const(value=False), condition=condition, step=step, result=make.accu()
    )


def _exists_one(make: _Maker, over: _Over, args: list[Node]) -> Node:
    more = make.call("_+_", make.accu(), make.const(1))
    step = make.call("_?_:_", args[0], more, make.accu())
    result = make.call("_==_", make.accu(), make.const(1))
    return make.fold(
        over, make.const(0), condition=make.const(value=True), step=step, result=result
    )


def _gather(make: _Maker, over: _Over, init: Node, step: Node, only: list[Node]) -> Node:
    """A loop that adds something for every item, or for those for which ``only`` holds."""
    if only:
        step = make.call("_?_:_", only[0], step, make.accu())
    return make.fold(over, init, condition=make.const(value=True), step=step, result=make.accu())


def _map(make: _Maker, over: _Over, args: list[Node]) -> Node:
    step = make.call("_+_", make.accu(), make.items(args[-1]))
    return _gather(make, over, make.items(), step, args[:-1])


def _transform_map(make: _Maker, over: _Over, args: list[Node]) -> Node:
    step = make.call(_INSERT, make.accu(), make.name(over.var), args[-1])
    return _gather(make, over, make.empty_map(), step, args[:-1])


def _transform_entry(make: _Maker, over: _Over, args: list[Node]) -> Node:
    step = make.call(_INSERT, make.accu(), args[-1])
    return _gather(make, over, make.empty_map(), step, args[:-1])


def _filter(make: _Maker, target: Node, args: list[Node]) -> Node:
    over = _over(target, args[0])
    step = make.call("_+_", make.accu(), make.items(args[0]))
    return _gather(make, over, make.items(), step, args[1:])


def _bind(make: _Maker, target: Node, args: list[Node]) -> Node | None:
    """``cel.bind(x, value, result)``; ``bind`` of anything else is a call."""
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    return make.let(_name_of(args[0]), args[1], args[2])


def _opt_flat_map(make: _Maker, target: Node, args: list[Node]) -> Node:
    """``a.hasValue() ? (x = a.value(), result) : optional.none()``."""
    return _opt(make, target, args, lambda mapped: mapped)


def _opt_map(make: _Maker, target: Node, args: list[Node]) -> Node:
    return _opt(make, target, args, lambda mapped: make.call("optional.of", mapped))


def _opt(make: _Maker, target: Node, args: list[Node], wrap: Callable[[Node], Node]) -> Node:
    name = _name_of(args[0])
    return make.call(
        "_?_:_",
        make.member("hasValue", target),
        wrap(make.let(name, make.member("value", make.copy(target)), args[1])),
        make.call("optional.none"),
    )


def _sort_by(make: _Maker, target: Node, args: list[Node]) -> Node:
    """The input gets a name, is mapped to its keys, and is sorted by them."""
    if not isinstance(target, ListNode | Select | Ident | Fold | Call):
        raise _Refused(target, "sortBy() sorts a list, not a literal of another kind")
    keys = _map(make, _over(make.name(_SORT_INPUT), args[0]), args[1:])
    call = make.member("@sortByAssociatedKeys", make.name(_SORT_INPUT), keys)
    return make.let(_SORT_INPUT, target, call)


_MACROS: Final[dict[tuple[str, int], _Expander]] = {
    ("all", 2): _one(_all),
    ("exists", 2): _one(_exists),
    ("exists_one", 2): _one(_exists_one),
    ("map", 2): _one(_map),
    ("map", 3): _one(_map),
    ("filter", 2): _filter,
    ("all", 3): _two(_all),
    ("exists", 3): _two(_exists),
    ("existsOne", 3): _two(_exists_one),
    ("exists_one", 3): _two(_exists_one),
    ("transformList", 3): _two(_map),
    ("transformList", 4): _two(_map),
    ("transformMap", 3): _two(_transform_map),
    ("transformMap", 4): _two(_transform_map),
    ("transformMapEntry", 3): _two(_transform_entry),
    ("transformMapEntry", 4): _two(_transform_entry),
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
    ("sortBy", 2): _sort_by,
}

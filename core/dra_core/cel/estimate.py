"""What an expression costs at most, before it runs, in the cost units of Kubernetes.

An API server refuses an expression whose estimate is above its limit, so the estimate is the same,
unit by unit, as that of cel-go 0.29.2 with the estimates of Kubernetes. It walks over the tree
once; each kind of node has a rule, a generator that yields the nodes below it and gets their costs.
So the depth of a tree needs no depth of Python's stack.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

from dra_core.cel.call_costs import NEW_LIST
from dra_core.cel.celtypes import Kind
from dra_core.cel.environment import SCHEDULER_1_37, Environment
from dra_core.cel.estimate_calls import Calls
from dra_core.cel.estimate_sizes import Argument, EntrySize, Sizes
from dra_core.cel.estimates import (
    MAX,
    CostEstimate,
    SizeEstimate,
    fixed_cost,
    fixed_size,
)
from dra_core.cel.syntax import (
    Call,
    Checked,
    Const,
    Fold,
    Ident,
    ListNode,
    MapNode,
    Node,
    Select,
    StructNode,
)

_FREE: Final = fixed_cost(0)
_STEP: Final = fixed_cost(1)
_NEW_LIST: Final = fixed_cost(NEW_LIST)
_NEW_MAP: Final = fixed_cost(30)
_NEW_OBJECT: Final = fixed_cost(40)
#: What any other range or size widens to itself.
_NO_COST: Final = CostEstimate(MAX, 0)
_NO_SIZE: Final = SizeEstimate(MAX, 0)
#: A field of these costs a step; of all else it is for free.
_WITH_FIELDS: Final = frozenset({Kind.MAP, Kind.STRUCT, Kind.PARAM})
#: Overloads of ``_[_]`` whose value can be found by its path.
_ITEMS: Final = {"index_list": "@items", "index_map": "@values"}

#: Yields the nodes below one, is sent their costs, and returns the cost of all.
_Rule = Generator[Node, CostEstimate, CostEstimate]


def estimate_cost(checked: Checked, environment: Environment = SCHEDULER_1_37) -> CostEstimate:
    """The least and the most that evaluating an expression costs; ``MAX`` is "without bound"."""
    return _Estimate(checked, environment).run()


class _Estimate:
    def __init__(self, checked: Checked, environment: Environment) -> None:
        self._root = checked.root
        self._references = checked.references
        self._sizes = Sizes(checked)
        self._calls = Calls(self._sizes, environment)

    def run(self) -> CostEstimate:
        rules = [self._whole()]
        cost: CostEstimate | None = None
        while True:
            try:
                node = next(rules[-1]) if cost is None else rules[-1].send(cost)
            except StopIteration as end:
                cost = end.value
                rules.pop()
                if not rules:
                    return cost
                continue
            if type(node) is Const:
                cost = _FREE
            elif type(node) is Ident:
                self._sizes.set_variable(node)
                cost = _STEP
            else:
                rules.append(self._rule(node))
                cost = None

    def _whole(self) -> _Rule:
        return (yield self._root)

    def _rule(self, node: Node) -> _Rule:
        match node:
            case Call():
                return self._dyn(node) if node.function == "dyn" else self._call(node)
            case Select():
                return self._select(node)
            case ListNode():
                return self._list(node)
            case Fold():
                return self._bind(node) if _is_bind(node) else self._loop(node)
            case MapNode():
                return self._map(node)
            case StructNode():
                return self._object(node)
        raise TypeError(type(node).__name__)

    def _select(self, node: Select) -> _Rule:
        cost = yield node.operand
        if node.test_only:
            return cost
        path = self._sizes.path(node.operand)
        self._sizes.set_path(node, path.to(node.field))
        has_fields = self._sizes.type(node.operand).kind in _WITH_FIELDS
        return cost.add(_STEP) if has_fields else cost

    def _list(self, node: ListNode) -> _Rule:
        total = _NEW_LIST
        size = _NO_SIZE if node.items else fixed_size(0)
        for item in node.items:
            total = total.add((yield item))
            size = size.union(self._sizes.size_or_unknown(item))
        self._sizes.set_entries(node, EntrySize(True, fixed_size(1), size))
        return total

    def _map(self, node: MapNode) -> _Rule:
        total = _NEW_MAP
        keys = values = _NO_SIZE if node.entries else fixed_size(0)
        for entry in node.entries:
            total = total.add((yield entry.key))
            total = total.add((yield entry.value))
            keys = keys.union(self._sizes.size_or_unknown(entry.key))
            values = values.union(self._sizes.size_or_unknown(entry.value))
        self._sizes.set_entries(node, EntrySize(False, keys, values))
        return total

    def _object(self, node: StructNode) -> _Rule:
        total = _NEW_OBJECT
        for init in node.fields:
            total = total.add((yield init.value))
        return total

    # -- loops -------------------------------------------------------------------------------------
    def _bind(self, node: Fold) -> _Rule:
        total = yield node.range
        total = total.add((yield node.init))
        self._sizes.bind(node.accu, node.init)
        total = total.add((yield node.result))
        self._sizes.unbind(node.accu)
        self._sizes.copy(node, node.result)
        return total

    def _loop(self, node: Fold) -> _Rule:
        sizes = self._sizes
        total = yield node.range
        total = total.add((yield node.init))
        sizes.bind(node.accu, node.init)
        sizes.bind_items(node.var, node.var2, node.range)
        turn = yield node.condition
        turn = turn.add((yield node.step))
        sizes.unbind(node.var, node.var2)
        total = total.add((yield node.result))
        sizes.unbind(node.accu)
        turns = sizes.size_or_unknown(node.range)
        if type(node.init) is Const:
            sizes.set_size(node, sizes.size(node.init))
        elif type(node.init) in {ListNode, MapNode}:
            sizes.set_size(node, turns)
            sizes.set_entries(node, sizes.entries(node.step))
        return total.add(turns.multiply_by_cost(turn))

    # -- calls -------------------------------------------------------------------------------------
    def _dyn(self, node: Call) -> _Rule:
        """``dyn(x)`` is ``x`` without the check of its type."""
        cost = yield node.args[0]
        self._sizes.copy(node, node.args[0])
        return cost.add(_STEP)

    def _call(self, node: Call) -> _Rule:
        costs: list[CostEstimate] = []
        args: list[Argument] = []
        for arg in node.args:
            costs.append((yield arg))
            args.append(Argument(self._sizes, arg))
        reference = self._references.get(node.id)
        if reference is None or not reference.overloads:
            return _FREE
        if node.target is None:
            return self._overloads(node, reference.overloads, None, args, costs)
        cost = yield node.target
        target = Argument(self._sizes, node.target)
        return cost.add(self._overloads(node, reference.overloads, target, args, costs))

    def _overloads(
        self,
        node: Call,
        overloads: Sequence[str],
        target: Argument | None,
        args: list[Argument],
        costs: list[CostEstimate],
    ) -> CostEstimate:
        """The range that covers all overloads that the call can mean."""
        sizes = self._sizes
        cost = _NO_COST
        size: SizeEstimate | None = None
        for overload in overloads:
            call = self._calls.estimate(node, overload, target, args, costs)
            cost = cost.union(call.cost)
            if call.result_size is not None:
                size = call.result_size if size is None else size.union(call.result_size)
            part = _ITEMS.get(overload)
            if part is not None and args:
                entries = sizes.entries(args[0].node)
                size = None if entries is None else entries.values
                sizes.set_path(node, sizes.path(args[0].node).to(part))
            if size is None:
                size = sizes.size(node)
        sizes.set_size(node, size)
        return cost


def _is_bind(node: Fold) -> bool:
    """Whether it is no loop but ``cel.bind``: it goes over ``[]``, and never further."""
    return (
        type(node.range) is ListNode
        and not node.range.items
        and type(node.condition) is Const
        and node.condition.value is False
        and node.accu != "__result__"
    )

"""From a checked tree to a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from dra_core.cel.call_costs import MAY_ABORT
from dra_core.cel.celtypes import DYN, Kind, Type
from dra_core.cel.declarations import Declarations
from dra_core.cel.dispatch import bound
from dra_core.cel.faults import EvalError, EvaluationFailed, Fault, PlanError
from dra_core.cel.library import standard
from dra_core.cel.lookup import KEYS
from dra_core.cel.objects import OBJECTS, unknown
from dra_core.cel.operations import extended, inserted, put
from dra_core.cel.plan import (
    Attribute,
    AttributeStep,
    CallStep,
    Conditional,
    ConstStep,
    EqualStep,
    FoldStep,
    Grow,
    GrowStep,
    ListStep,
    LogicStep,
    MapStep,
    MemberStep,
    NotFalseStep,
    ObjectStep,
    OrStep,
    Plan,
    Qualifier,
    Relative,
    Slots,
    Step,
    Variable,
)
from dra_core.cel.regexps import precompiled
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
from dra_core.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Map,
    TypeValue,
    Uint,
    Value,
    key_of,
)

_DEVICE: Final = 0
_DEVICE_NAME: Final = "device"
#: Functions with one implementation for two arguments, whatever the checker found out of them.
_BINARY: Final = standard.SINGLETONS | {"@sortByAssociatedKeys"}


def plan(checked: Checked, declarations: Declarations) -> Plan:
    """Plan an expression.

    Errors: ``PlanError`` where a constant part has no value: an invalid regular expression, a
    conversion of a constant that cannot be made.
    """
    planner = _Planner(checked, declarations)
    return Plan(planner.step(checked.root), planner.size, planner.counted)


class _Planner:
    def __init__(self, checked: Checked, declarations: Declarations) -> None:
        self._checked = checked
        self._functions = declarations.functions
        self._type_names = declarations.types
        self._scopes: list[dict[str, Variable]] = []
        self.size = 1
        self.counted = False
        self._makers: dict[type[Node], Callable[..., Step]] = {
            Call: self._call,
            Ident: self._ident,
            Const: lambda node: ConstStep(node.id, node.value),
            Select: self._select,
            ListNode: self._list,
            MapNode: self._map,
            StructNode: self._object,
            Fold: self._fold,
        }

    def step(self, node: Node) -> Step:
        """The step of a node."""
        return self._makers[type(node)](node)

    # -- names and paths ---------------------------------------------------------------------------
    def _ident(self, node: Ident) -> Step:
        name = node.name
        reference = self._checked.references.get(node.id)
        if reference is not None and reference.value is not None:
            return ConstStep(node.id, reference.value)
        of = self._checked.types[node.id]
        if of.kind is Kind.TYPE:
            if name not in self._type_names:
                raise self._refused(node.id, f"reference to undefined type: {name}")
            return ConstStep(node.id, TypeValue(of.params[0].name if of.params else name))
        for scope in reversed(self._scopes):
            if name in scope:
                known = scope[name]
                return AttributeStep(node.id, Variable(node.id, known.slot, known.accu))
        if name.removeprefix(".") != _DEVICE_NAME:
            # A variable of a loop in the key of a path that is read outside all loops.
            return CallStep(node.id, "", "", [], lambda: _missing(name))
        return AttributeStep(node.id, Variable(node.id, _DEVICE, rooted=name != _DEVICE_NAME))

    def _outside(self, node: Node) -> Step:
        """The step of a node outside all loops."""
        scopes, self._scopes = self._scopes, []
        step = self.step(node)
        self._scopes = scopes
        return step

    def _select(self, node: Select) -> Step:
        attribute = _attribute_of(self.step(node.operand))
        attribute.extend(Qualifier(node.id, optional=False, value=node.field, test=node.test_only))
        return AttributeStep(node.id, attribute, presence=node.test_only)

    def _index(self, node: Call, args: Sequence[Step], *, optional: bool) -> Step:
        operand, key = args
        attribute = _attribute_of(operand)
        if isinstance(attribute, Variable) and attribute.rooted:
            key = self._outside(node.args[1])
        if isinstance(key, ConstStep):
            if type(key.value) not in KEYS:
                raise self._refused(key.id, "invalid qualifier type")
            qualifier = Qualifier(node.id, optional, key.value)
        elif isinstance(key, AttributeStep):
            qualifier = Qualifier(node.id, optional, attribute=key.attribute)
        else:
            computed = Relative(node.id, key)
            qualifier = Qualifier(node.id, optional, attribute=computed, relative=True)
        attribute.extend(qualifier)
        return AttributeStep(node.id, attribute)

    # -- calls -------------------------------------------------------------------------------------
    def _call(self, node: Call) -> Step:
        operands = node.args if node.target is None else [node.target, *node.args]
        args = [self.step(operand) for operand in operands]
        special = _OPERATORS.get(node.function)
        if special is not None:
            return special(self, node, args)
        chosen = self._checked.references[node.id].overloads
        overload = chosen[0] if len(chosen) == 1 else ""
        self.counted = self.counted or overload in MAY_ABORT
        if node.function in ("or", "orValue") and len(args) == 2:
            return OrStep(node.id, args[0], args[1], unwrap=node.function == "orValue")
        overloads = self._functions[node.function]
        types = [self._certain_type(operand) for operand in operands]
        call = bound(overloads, chosen, types)
        eager = len(args) == 2 and (bool(overload) or node.function in _BINARY)
        step = CallStep(node.id, node.function, overload, args, call, eager)
        return self._specialised(step)

    def _certain_type(self, node: Node) -> Type:
        """The type of a node if its value surely has it, else ``dyn``.

        The checker may take the type of an overload's parameter from an argument that is ``dyn``;
        what comes of that need not be what it says.
        """
        return self._checked.types[node.id] if self._is_certain(node) else DYN

    def _is_certain(self, node: Node) -> bool:
        if isinstance(node, Const):
            return True
        if isinstance(node, Ident):
            return not any(node.name in scope for scope in self._scopes)
        if isinstance(node, Select):
            return self._is_certain(node.operand)
        if not isinstance(node, Call):
            return False
        if node.function == "_[_]":
            return self._is_certain(node.args[0])
        chosen = self._checked.references[node.id].overloads
        known = [one for one in self._functions.get(node.function, ()) if one.id in chosen]
        return len(chosen) == 1 and len(known) == 1 and not known[0].is_generic

    def _specialised(self, step: CallStep) -> Step:
        if step.overload == "in_list" and isinstance(step.args[1], ConstStep):
            return _member(step, step.args[1].value)
        if step.function in standard.CONVERSIONS and len(step.args) == 1:
            return self._folded(step)
        try:
            precompiled_call = precompiled(step.function, step.overload, _constants(step.args))
        except EvaluationFailed as error:
            raise self._refused(step.id, error.text) from error
        if precompiled_call is not None:
            step.call, step.eager = precompiled_call, False
            return step
        return self._growing(step)

    def _folded(self, step: CallStep) -> Step:
        argument = step.args[0]
        if not isinstance(argument, ConstStep):
            return step
        try:
            return ConstStep(step.id, step.call(argument.value))
        except EvaluationFailed as error:
            raise self._refused(step.id, error.text) from error

    def _growing(self, step: CallStep) -> Step:
        """A call that may change the accumulator of its loop in place."""
        grow = _GROWING.get(step.function)
        target = step.args[0] if step.args else None
        if grow is None or not isinstance(target, AttributeStep) or target.attribute.qualifiers:
            return step
        attribute = target.attribute
        if not isinstance(attribute, Variable) or attribute.accu is None:
            return step
        return GrowStep(
            step.id,
            step.function,
            step.overload,
            step.args,
            step.call,
            step.eager,
            slots=attribute.accu,
            grow=grow,
        )

    def _conditional(self, node: Call, args: Sequence[Step]) -> Step:
        condition, truthy, falsy = args
        branches = [
            branch.attribute if isinstance(branch, AttributeStep) else Relative(branch.id, branch)
            for branch in (truthy, falsy)
        ]
        return AttributeStep(node.id, Conditional(node.id, condition, *branches))

    # -- containers and loops ----------------------------------------------------------------------
    def _list(self, node: ListNode) -> Step:
        items = [self.step(item) for item in node.items]
        constants = _constants(items)
        if None in constants or node.optional:
            return ListStep(node.id, items, node.optional)
        return ConstStep(node.id, [constant[0] for constant in constants if constant])

    def _map(self, node: MapNode) -> Step:
        keys: list[Step] = []
        values: list[Step] = []
        for entry in node.entries:
            keys.append(self.step(entry.key))
            values.append(self.step(entry.value))
        optional = frozenset(place for place, entry in enumerate(node.entries) if entry.optional)
        known_keys, known_values = _constants(keys), _constants(values)
        if None in known_keys or None in known_values or optional:
            return MapStep(node.id, keys, values, optional)
        entries: dict[object, tuple[Value, Value]] = {}
        for known, of in zip(known_keys, known_values, strict=True):
            if known is not None and of is not None:
                try:
                    put(entries, known[0], of[0], optional=False)
                except EvaluationFailed as error:
                    raise self._refused(node.id, error.text) from error
        return ConstStep(node.id, Map(entries))

    def _object(self, node: StructNode) -> Step:
        name = node.type_name.removeprefix(".")
        make = OBJECTS.get(name) or unknown(name)
        return ObjectStep(
            node.id,
            [init.name for init in node.fields],
            [self.step(init.value) for init in node.fields],
            frozenset(place for place, init in enumerate(node.fields) if init.optional),
            make,
        )

    def _fold(self, node: Fold) -> Step:
        init = self.step(node.init)
        over = self.step(node.range)
        first = self.size
        self.size += 4
        slots = Slots(first, first + 1, first + 2, first + 3, init)
        self._scopes.append({node.accu: Variable(0, slots.accu, slots)})
        items = {node.var: Variable(0, slots.var)}
        if node.var2:
            items[node.var2] = Variable(0, slots.var2)
        self._scopes.append(items)
        condition = self.step(node.condition)
        step = self.step(node.step)
        self._scopes.pop()
        result = self.step(node.result)
        self._scopes.pop()
        return FoldStep(node.id, slots, over, condition, step, result, bool(node.var2))

    def _refused(self, node: int, text: str) -> PlanError:
        parsed = self._checked.parsed
        return PlanError(parsed.source, (Fault(parsed.positions.get(node, 0), text),))


def _missing(name: str) -> NoReturn:
    raise EvalError(f"no such attribute(s): {name}")


def _attribute_of(step: Step) -> Attribute:
    if isinstance(step, AttributeStep) and not step.presence:
        return step.attribute
    return Relative(step.id, step)


def _constants(steps: Sequence[Step]) -> list[tuple[Value] | None]:
    return [(step.value,) if isinstance(step, ConstStep) else None for step in steps]


def _member(step: CallStep, items: list[Value]) -> Step:
    """``x in [constants]`` as a look-up in a set, where all of them are plain values."""
    if not items:
        return ConstStep(step.id, False)
    keys: set[object] = set()
    for item in items:
        if type(item) not in KEYS:
            return step
        keys.add(key_of(item))
        keys.update(_other_kinds(item))
    return MemberStep(step.id, step.args[0], frozenset(keys))


def _other_kinds(item: Value) -> list[object]:
    """The same number as values of the other kinds of numbers."""
    kind = type(item)
    if kind in (str, bool) or (kind is float and not item.is_integer()):
        return []
    whole = int(item)
    found: list[object] = []
    if kind is not float:
        found.append(key_of(float(whole)))
    if kind is not int and INT_MIN < whole <= INT_MAX:
        found.append(key_of(whole))
    if kind is not Uint and 0 <= whole <= UINT_MAX:
        found.append(key_of(Uint(whole)))
    return found


_GROWING: Final[dict[str, Grow]] = {"_+_": extended, "cel.@mapInsert": inserted}

_OPERATORS: Final[dict[str, Callable[[_Planner, Call, list[Step]], Step]]] = {
    "_&&_": lambda _, node, args: LogicStep(node.id, args, decided_by=False),
    "_||_": lambda _, node, args: LogicStep(node.id, args, decided_by=True),
    "_?_:_": _Planner._conditional,  # noqa: SLF001
    "_==_": lambda _, node, args: EqualStep(node.id, args, negated=False),
    "_!=_": lambda _, node, args: EqualStep(node.id, args, negated=True),
    "_[_]": lambda planner, node, args: planner._index(node, args, optional=False),  # noqa: SLF001
    "_[?_]": lambda planner, node, args: planner._index(node, args, optional=True),  # noqa: SLF001
    "_?._": lambda planner, node, args: planner._index(node, args, optional=True),  # noqa: SLF001
    "@not_strictly_false": lambda _, node, args: NotFalseStep(
        node.id, node.function, "not_strictly_false", args
    ),
}

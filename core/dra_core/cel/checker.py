"""The static check: what names stand for, which overloads a call can mean, the type of every node.

All faults are collected, not only the first. Names are resolved as the language says: variables of
loops first, then variables and types; ``a.b.c`` is looked up as a whole before it is taken for
fields of ``a``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import BOOL, DYN, ERROR, INT, Kind, Type
from dra_core.cel.declarations import Declarations
from dra_core.cel.faults import CompileError, Fault
from dra_core.cel.signatures import Overload
from dra_core.cel.syntax import (
    Call,
    Checked,
    Const,
    Fold,
    Ident,
    ListNode,
    MapNode,
    Node,
    Parsed,
    Reference,
    Select,
    StructNode,
)
from dra_core.cel.unification import Bindings, most_general
from dra_core.cel.values import type_of

_LOGICAL: Final = ("_&&_", "_||_")
_SHORT: Final = {
    Kind.ANY: "any",
    Kind.DURATION: "duration",
    Kind.ERROR: "!error!",
    Kind.NULL: "null",
    Kind.TIMESTAMP: "timestamp",
}


def check(parsed: Parsed, declarations: Declarations) -> Checked:
    """Check an expression.

    Errors: ``CompileError`` with everything that is wrong. The tree is changed on the way: names
    of several parts become one node, functions with a name space get their full name.
    """
    return _Checker(parsed, declarations).run()


def shown(of: Type) -> str:
    """A type as messages name it."""
    short = _SHORT.get(of.kind)
    if short is not None:
        return short
    if of.kind is Kind.PARAM:
        return of.name
    if of.params:
        return f"{of.name}({', '.join(map(shown, of.params))})"
    return str(of)


class _Checker:
    def __init__(self, parsed: Parsed, declarations: Declarations) -> None:
        self._parsed = parsed
        self._known = declarations
        self._bindings = Bindings()
        self._types: dict[int, Type] = {}
        self._references: dict[int, Reference] = {}
        self._faults: list[Fault] = []
        self._scopes: list[dict[str, Type]] = []
        self._variables = 0

    def run(self) -> Checked:
        self._parsed.root = self._check(self._parsed.root)
        if self._faults:
            faults = sorted(self._faults, key=lambda fault: fault.offset)
            raise CompileError(self._parsed.source, tuple(faults))
        resolved = self._bindings.resolved
        types = {node: resolved(of, open_as_dyn=True) for node, of in self._types.items()}
        return Checked(self._parsed, types, self._references)

    # -- one kind of node after the other ----------------------------------------------------------
    def _check(self, node: Node) -> Node:
        """Check a node and answer the one that takes its place."""
        kind = type(node)
        if kind is Call:
            self._check_call(node)  # type: ignore[arg-type]
        elif kind is Select:
            return self._check_select(node)  # type: ignore[arg-type]
        elif kind is Const:
            self._set(node, type_of(node.value))  # type: ignore[attr-defined]
        elif kind is Ident:
            self._check_ident(node)  # type: ignore[arg-type]
        elif kind is ListNode:
            self._check_list(node)  # type: ignore[arg-type]
        elif kind is Fold:
            self._check_fold(node)  # type: ignore[arg-type]
        elif kind is MapNode:
            self._check_map(node)  # type: ignore[arg-type]
        else:
            self._check_struct(node)  # type: ignore[arg-type]
        return node

    def _check_ident(self, node: Ident) -> None:
        found = self._resolve((node.name,))
        if found is None:
            self._set(node, ERROR)
            self._fault(node.id, f"undeclared reference to '{node.name}' (in container '')")
            return
        node.name = self._refer(node, found)

    def _check_select(self, node: Select) -> Node:
        parts = None if node.test_only else _qualified(node)
        found = self._resolve(parts) if parts is not None else None
        if found is not None:
            return Ident(node.id, self._refer(node, found))
        node.operand = self._check(node.operand)
        result = self._field_type(node, node.operand, node.field, optional=False)
        self._set(node, BOOL if node.test_only else self._settled(result))
        return node

    def _check_optional_select(self, node: Call) -> None:
        if len(node.args) != 2 or node.target is not None:
            self._fault(node.id, "unsupported optional field selection")
            return
        operand, name = node.args
        if not isinstance(name, Const) or type(name.value) is not str:
            self._fault(name.id, "unsupported optional field selection")
            return
        node.args[0] = self._check(operand)
        result = self._field_type(node, node.args[0], name.value, optional=True)
        self._set(node, self._settled(result))
        self._references[node.id] = Reference(overloads=("select_optional_field",))
        self._types.setdefault(name.id, celtypes.STRING)

    def _field_type(self, node: Node, operand: Node, name: str, *, optional: bool) -> Type:
        target = self._settled(self._type(operand))
        through = target.is_optional
        if through:
            target = target.params[0]
        result = DYN
        if target.kind is Kind.MAP:
            result = target.params[1]
        elif target.kind is Kind.STRUCT:
            result = self._declared_field(node.id, target.name, name)
        elif target.kind is Kind.PARAM:
            self._bindings.assignable(DYN, target)
        elif not target.is_dyn and target.kind is not Kind.ERROR:
            self._fault(node.id, f"type '{shown(target)}' does not support field selection")
        return celtypes.optional_of(result) if through or optional else result

    def _declared_field(self, node: int, owner: str, name: str) -> Type:
        message = self._known.messages.get(owner)
        found = message.fields.get(name) if message is not None else None
        if found is None:
            self._fault(node, f"undefined field '{name}'")
            return ERROR
        return found

    def _check_call(self, node: Call) -> None:
        if node.function == "_?._":
            self._check_optional_select(node)
            return
        node.args = [self._check(arg) for arg in node.args]
        if node.target is not None:
            parts = _qualified(node.target)
            full = None if parts is None else ".".join((*parts, node.function)).removeprefix(".")
            if full is not None and full in self._known.functions:
                node.function, node.target = full, None
            else:
                node.target = self._check(node.target)
        overloads = self._known.functions.get(node.function.removeprefix("."))
        if overloads is None:
            self._set(node, ERROR)
            self._fault(node.id, f"undeclared reference to '{node.function}' (in container '')")
            return
        node.function = node.function.removeprefix(".")
        self._resolve_overload(node, overloads)

    def _check_list(self, node: ListNode) -> None:
        joined: Type | None = None
        for place, item in enumerate(node.items):
            node.items[place] = checked = self._check(item)
            of = self._type(checked)
            if place in node.optional:
                of = self._unwrapped(checked, of)
            joined = self._joined(joined, of)
        self._set(node, celtypes.list_of(joined or self._variable()))

    def _check_map(self, node: MapNode) -> None:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            entry.key = self._check(entry.key)
            keys = self._joined(keys, self._type(entry.key))
            entry.value = self._check(entry.value)
            of = self._type(entry.value)
            if entry.optional:
                of = self._unwrapped(entry.value, of)
            values = self._joined(values, of)
        self._set(node, celtypes.map_of(keys or self._variable(), values or self._variable()))

    def _check_struct(self, node: StructNode) -> None:
        name = node.type_name.removeprefix(".")
        message = self._known.messages.get(name)
        if message is None:
            self._set(node, ERROR)
            wrong = name in self._known.types
            self._fault(
                node.id,
                f"'{name}' is not a message type"
                if wrong
                else f"undeclared reference to '{name}' (in container '')",
            )
            return
        self._references[node.id] = Reference(name)
        self._set(node, message.type)
        for init in node.fields:
            init.value = self._check(init.value)
            declared = self._declared_field(init.id, name, init.name)
            of = self._type(init.value)
            if init.optional:
                of = self._unwrapped(init.value, of)
            if not self._bindings.assignable(declared, of):
                self._fault(
                    init.id,
                    f"expected type of field '{init.name}' is '{shown(declared)}' but provided "
                    f"type is '{shown(of)}'",
                )

    def _check_fold(self, node: Fold) -> None:
        node.range = self._check(node.range)
        node.init = self._check(node.init)
        accu = self._type(node.init)
        first, second = self._item_types(node)
        self._scopes.append({node.accu: accu})
        self._scopes.append({node.var: first, **({node.var2: second} if node.var2 else {})})
        node.condition = self._check(node.condition)
        self._expect(node.condition, BOOL)
        node.step = self._check(node.step)
        self._expect(node.step, accu)
        self._scopes.pop()
        node.result = self._check(node.result)
        self._scopes.pop()
        self._set(node, self._settled(self._type(node.result)))

    def _item_types(self, node: Fold) -> tuple[Type, Type]:
        """The types of the variables of a loop over a list, a map or what is not known."""
        over = self._settled(self._type(node.range))
        if over.kind is Kind.LIST:
            return (INT, over.params[0]) if node.var2 else (over.params[0], DYN)
        if over.kind is Kind.MAP:
            return over.params[0], over.params[1]
        if over.kind in (Kind.DYN, Kind.ERROR, Kind.PARAM):
            self._bindings.assignable(DYN, over)
            return DYN, DYN
        self._fault(
            node.range.id,
            f"expression of type '{shown(over)}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    # -- calls -------------------------------------------------------------------------------------
    def _resolve_overload(self, node: Call, overloads: Sequence[Overload]) -> None:
        operands = node.args if node.target is None else [node.target, *node.args]
        types = [self._type(operand) for operand in operands]
        member = node.target is not None
        fitting: list[str] = []
        result: Type | None = None
        for overload in overloads:
            if overload.member is not member:
                continue
            if node.function in _LOGICAL:
                fitting, result = [overload.id], self._logical(node, types)
                break
            params, declared = self._instance(overload)
            if self._bindings.all_assignable(types, params):
                fitting.append(overload.id)
                declared = self._settled(declared)
                if result is None:
                    result = declared
                elif not result.is_dyn and declared != result:
                    result = DYN
        if result is None:
            self._set(node, ERROR)
            self._fault(node.id, self._no_overload(node, types, member=member))
            return
        self._set(node, result)
        self._references[node.id] = Reference(overloads=tuple(fitting))

    def _logical(self, node: Call, types: Sequence[Type]) -> Type:
        for operand, of in zip(node.args, types, strict=True):
            if not self._bindings.assignable(of, BOOL):
                self._mismatch(operand.id, BOOL, of)
        return BOOL

    def _instance(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """Parameters and result of an overload, with variables of their own for type parameters."""
        if not overload.is_generic:
            return overload.params, overload.result
        fresh = Bindings()
        for parameter in overload.type_params:
            fresh.bind(parameter, self._variable())
        return (
            tuple([fresh.resolved(param, open_as_dyn=False) for param in overload.params]),
            fresh.resolved(overload.result, open_as_dyn=False),
        )

    def _no_overload(self, node: Call, types: Sequence[Type], *, member: bool) -> str:
        names = [shown(self._bindings.resolved(of, open_as_dyn=True)) for of in types]
        signature = f"{names[0]}.({', '.join(names[1:])})" if member else f"({', '.join(names)})"
        return f"found no matching overload for '{node.function}' applied to '{signature}'"

    # -- names -------------------------------------------------------------------------------------
    def _resolve(self, parts: Sequence[str]) -> tuple[str, Type] | None:
        """The full name and type of what a name is; a dot before it where a loop hides it."""
        local = next(
            (scope[parts[0]] for scope in reversed(self._scopes) if parts[0] in scope), None
        )
        if local is not None:
            return (parts[0], local) if len(parts) == 1 else None
        name = ".".join(parts)
        rooted = name.removeprefix(".")
        hidden = any(rooted.partition(".")[0] in scope for scope in self._scopes)
        found = self._known.variables.get(rooted)
        if found is None and (named := self._known.types.get(rooted)) is not None:
            found = celtypes.type_of(named)
        if found is None and (message := self._known.messages.get(rooted)) is not None:
            found = celtypes.type_of(message.type)
        if found is None and (constant := self._known.constants.get(rooted)) is not None:
            found = type_of(constant)
        return None if found is None else (f".{rooted}" if hidden else rooted, found)

    def _refer(self, node: Node, found: tuple[str, Type]) -> str:
        name, of = found
        self._set(node, of)
        self._references[node.id] = Reference(name, self._known.constants.get(name.lstrip(".")))
        return name

    # -- types -------------------------------------------------------------------------------------
    def _settled(self, of: Type) -> Type:
        return self._bindings.resolved(of, open_as_dyn=False)

    def _type(self, node: Node) -> Type:
        return self._types[node.id]

    def _set(self, node: Node, of: Type) -> None:
        old = self._types.setdefault(node.id, of)
        if old != of:
            self._fault(node.id, f"incompatible types: {shown(old)} and {shown(of)}")

    def _variable(self) -> Type:
        self._variables += 1
        return celtypes.param(f"_var{self._variables}")

    def _unwrapped(self, node: Node, of: Type) -> Type:
        if of.is_optional:
            return of.params[0]
        if not of.is_dyn:
            self._mismatch(node.id, celtypes.optional_of(of), of)
        return of

    def _joined(self, before: Type | None, of: Type) -> Type:
        """The type of items so far and one more. That they are of one type is asked for later."""
        if before is None:
            return of
        return most_general(before, of) if self._bindings.assignable(before, of) else DYN

    def _expect(self, node: Node, of: Type) -> None:
        if not self._bindings.assignable(of, self._type(node)):
            self._mismatch(node.id, of, self._type(node))

    def _mismatch(self, node: int, expected: Type, found: Type) -> None:
        self._fault(node, f"expected type '{shown(expected)}' but found '{shown(found)}'")

    def _fault(self, node: int, text: str) -> None:
        self._faults.append(Fault(self._parsed.positions.get(node, 0), text))


def _qualified(node: Node) -> tuple[str, ...] | None:
    """The parts of ``a.b.c``, if a node is nothing but that."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return (node.name, *reversed(parts))

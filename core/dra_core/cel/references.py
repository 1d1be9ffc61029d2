"""Which attributes and capacities of a device an expression names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dra_core.cel.syntax import Call, Const, Ident, Node, Select, children


@dataclass(frozen=True, slots=True)
class Named:
    """``device.attributes["domain"].identifier``, or the same of ``capacity``."""

    field: str
    domain: str
    identifier: str

    def __str__(self) -> str:
        return f'device.{self.field}["{self.domain}"].{self.identifier}'


def names_used(root: Node) -> tuple[Named, ...]:
    """The names in an expression, in their order, as far as they are written out."""
    found: dict[Named, None] = {}
    todo = [root]
    while todo:
        node = todo.pop()
        named = _named(node)
        if named is not None:
            found[named] = None
        todo.extend(reversed(list(children(node))))
    return tuple(found)


def _named(node: Node) -> Named | None:
    part = next(_parts(node), None)
    if part is None:
        return None
    identifier, operand = part
    inner = next(_parts(operand), None)
    if inner is None:
        return None
    domain, owner = inner
    if not isinstance(owner, Select) or owner.field not in ("attributes", "capacity"):
        return None
    if not isinstance(owner.operand, Ident) or owner.operand.name.removeprefix(".") != "device":
        return None
    return Named(owner.field, domain, identifier)


def _parts(node: Node) -> Iterator[tuple[str, Node]]:
    """The key and the container of ``container.key``, ``container["key"]``, optional or not."""
    if isinstance(node, Select):
        yield node.field, node.operand
    elif isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._"):
        container, key = node.args
        if isinstance(key, Const) and isinstance(key.value, str):
            yield key.value, container

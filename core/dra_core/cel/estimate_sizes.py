"""Sizes of the parts of an expression, as far as they are known before it runs.

What is known comes from literals, from the declaration of the device (found by the path of a node)
and from the functions that made a value; variables of loops and ``cel.bind`` hand it on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from dra_core.cel import device_sizes
from dra_core.cel.celtypes import DYN, Kind, Type
from dra_core.cel.estimates import UNKNOWN_SIZE, Operand, SizeEstimate, fixed_size
from dra_core.cel.syntax import Checked, Const, Ident, ListNode, MapNode, Node

_ONE: Final = fixed_size(1)
_SCALARS: Final = frozenset(
    {Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT}
)
_RESULTS: Final = ("__result__", "@result")


class Path:
    """The way from a variable to a value, ``device, attributes, @values, model``.

    Two paths that grow out of the same one can share the memory of their last part, as slices of Go
    do: it doubles when it is full, and until then the one that grew later renames the end of the
    other. Estimates depend on it (a loop with two variables over ``device.attributes["a"]`` takes
    its keys for values), so it is the same here.
    """

    __slots__ = ("_cells", "_length")

    def __init__(self, cells: list[str], length: int) -> None:
        self._cells = cells
        self._length = length

    def to(self, part: str) -> Path:
        """One part further."""
        cells, length = self._cells, self._length
        if length == len(cells):
            cells = cells + [""] * (length or 1)
        cells[length] = part
        return Path(cells, length + 1)

    def parts(self) -> tuple[str, ...]:
        """The parts, as they are named now."""
        return tuple(self._cells[: self._length])

    @property
    def is_result(self) -> bool:
        """Whether it starts at the result of a loop."""
        return self._length > 0 and self._cells[0] in _RESULTS


_NOWHERE: Final = Path([], 0)


class EntrySize(NamedTuple):
    """The sizes of the keys and values of a map; those of a list's values, with ``keys`` 1."""

    is_list: bool
    keys: SizeEstimate
    values: SizeEstimate

    def union(self, other: EntrySize) -> EntrySize:
        """What covers both."""
        return EntrySize(self.is_list, self.keys.union(other.keys), self.values.union(other.values))


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of a loop or of ``cel.bind``."""

    path: Path
    size: SizeEstimate | None
    entries: EntrySize | None = None


class Sizes:
    """What is known at some point of the walk over an expression."""

    def __init__(self, checked: Checked) -> None:
        self._types = checked.types
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, SizeEstimate] = {}
        self._entries: dict[int, EntrySize] = {}
        self._locals: dict[str, list[_Local]] = {}

    def type(self, node: Node) -> Type:
        """The type of a node; what the checker gave none is taken for unknown."""
        return self._types.get(node.id, DYN)

    # -- paths -------------------------------------------------------------------------------------
    def path(self, node: Node) -> Path:
        """The way to the value of a node; empty where there is none."""
        if type(node) is Ident and (local := self._local(node.name)) is not None:
            return local.path
        return self._paths.get(node.id, _NOWHERE)

    def set_path(self, node: Node, path: Path) -> None:
        """Say where the value of a node is."""
        self._paths[node.id] = path

    def set_variable(self, node: Ident) -> None:
        """Say where the value of a variable is."""
        local = self._local(node.name)
        self._paths[node.id] = Path([node.name], 1) if local is None else local.path

    # -- sizes -------------------------------------------------------------------------------------
    def size(self, node: Node) -> SizeEstimate | None:
        """The size of a node's value."""
        known = self._sizes.get(node.id) or _literal_size(node)
        if known is not None:
            return known
        known = device_sizes.estimate_size(self.path(node).parts())
        if known is not None:
            self._sizes[node.id] = known
            return known
        if _is_scalar(self.type(node)):
            return _ONE
        local = self._local(node.name) if type(node) is Ident else None
        return None if local is None else local.size

    def size_or_unknown(self, node: Node) -> SizeEstimate:
        """The size of a node's value, without bound if it is not known."""
        return self.size(node) or UNKNOWN_SIZE

    def set_size(self, node: Node, size: SizeEstimate | None) -> None:
        """Say how large a node's value is; None changes nothing."""
        if size is not None:
            self._sizes[node.id] = size

    def entries(self, node: Node) -> EntrySize | None:
        """The sizes of the items of a node's value."""
        known = self._entries.get(node.id)
        if known is None and type(node) is Ident:
            local = self._local(node.name)
            return None if local is None else local.entries
        return known

    def set_entries(self, node: Node, entries: EntrySize | None) -> None:
        """Say how large the items of a node's value are; None changes nothing."""
        if entries is not None:
            self._entries[node.id] = entries

    def copy(self, target: Node, source: Node) -> None:
        """One node has the value of another."""
        self.set_size(target, self.size(source))
        self.set_entries(target, self.entries(source))

    # -- variables ---------------------------------------------------------------------------------
    def _local(self, name: str) -> _Local | None:
        known = self._locals.get(name)
        return known[-1] if known else None

    def bind(self, name: str, node: Node) -> None:
        """A variable gets the value of a node."""
        path, entries = self.path(node), self.entries(node)
        self._push(name, _Local(path, self.size(node), entries))

    def bind_items(self, var: str, var2: str, over: Node) -> None:
        """The variables of a loop: items or keys; with a second one, what belongs to each."""
        if not var2:
            self._bind_item(var, over, keys=not self._over_list(over))
            return
        self._bind_item(var, over, keys=True)
        self._bind_item(var2, over, keys=False)

    def _bind_item(self, var: str, over: Node, *, keys: bool) -> None:
        # All is looked up anew for the second variable: the first may hide what is looped over.
        entries, is_list = self.entries(over), self._over_list(over)
        if keys:
            part, size = "@indices" if is_list else "@keys", entries and entries.keys
        else:
            part, size = "@items" if is_list else "@values", entries and entries.values
        self._push(var, _Local(self.path(over).to(part), size))

    def _over_list(self, over: Node) -> bool:
        entries = self.entries(over)
        return self.type(over).kind is Kind.LIST if entries is None else entries.is_list

    def unbind(self, *names: str) -> None:
        """Variables end."""
        for name in names:
            if name:
                self._locals[name].pop()

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)


class Argument:
    """A target or argument, with its size at the time when it was looked at."""

    __slots__ = ("node", "path", "size", "type")

    def __init__(self, sizes: Sizes, node: Node) -> None:
        path = sizes.path(node)
        self.node = node
        self.type = sizes.type(node)
        self.path = _NOWHERE if path.is_result else path
        self.size = sizes.size(node)

    def operand(self) -> Operand:
        """As the estimates of libraries take it."""
        return Operand(self.node, self.type, self.path.parts(), self.size)


def _literal_size(node: Node) -> SizeEstimate | None:
    if type(node) is Const:
        value = node.value
        return fixed_size(len(value)) if type(value) in {str, bytes} else _ONE
    if type(node) is ListNode:
        return fixed_size(len(node.items))
    if type(node) is MapNode:
        return fixed_size(len(node.entries))
    return None


def _is_scalar(of: Type) -> bool:
    while of.is_optional:
        of = of.params[0]
    return of.kind in _SCALARS

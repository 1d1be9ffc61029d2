"""Lists, maps and objects while they are read: parts with commas between, and after the last."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from dra_core.cel.lexer import NAME, QUOTED
from dra_core.cel.reading import Frame, Reading
from dra_core.cel.syntax import Entry, FieldInit, ListNode, MapNode, Node, StructNode


class _Container(Frame):
    """What all three have in common. A single comma is an empty one, ``[,]``."""

    __slots__ = ("_at", "_height", "_is_optional")

    _closer: ClassVar[str]

    def __init__(self, at: int) -> None:
        #: The offset of the opening bracket.
        self._at = at
        self._height = 0
        #: Whether the part that is read has a ``?``.
        self._is_optional = False

    def begin(self, reading: Reading) -> bool:
        """After the opening bracket."""
        if reading.skip(","):
            if not reading.skip(self._closer):
                reading.next()
                reading.unexpected(f"'{self._closer}'")
            return self._finish(reading)
        if reading.skip(self._closer):
            return self._finish(reading)
        reading.open(self, self._at)
        return self._part(reading)

    def _part(self, reading: Reading) -> bool:
        """Before an item, key or field."""
        self._is_optional = reading.skip("?")
        return False

    def _pop(self, reading: Reading) -> Node:
        """The value that was read last."""
        node, height = reading.operands.nodes.pop()
        self._height = max(self._height, height)
        return node

    def _next(self, reading: Reading, sign: str) -> bool:
        """After a part: another one, or the end."""
        if sign == "," and not reading.skip(self._closer):
            return self._part(reading)
        if sign not in (",", self._closer):
            reading.unexpected(f"an operator, ',' or '{self._closer}'")
        reading.close()
        return self._finish(reading)

    def _finish(self, reading: Reading) -> bool:
        node = self._node(reading.builder.new_id(self._at))
        reading.operands.nodes.append((node, self._height))
        return True

    @abstractmethod
    def _node(self, number: int) -> Node:
        """Of what was read."""


class Items(_Container):
    """``[a, ?b]``."""

    __slots__ = ("_items", "_optional")
    wanted = "an operator, ',' or ']'"
    _closer = "]"

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self._items: list[Node] = []
        self._optional: set[int] = set()

    def end(self, reading: Reading, sign: str) -> bool:
        """One item is complete."""
        if self._is_optional:
            self._optional.add(len(self._items))
        self._items.append(self._pop(reading))
        return self._next(reading, sign)

    def _node(self, number: int) -> Node:
        return ListNode(number, self._items, frozenset(self._optional))


class Entries(_Container):
    """``{a: b, ?c: d}``."""

    __slots__ = ("_colon", "_entries", "_key")
    wanted = "an operator, ',', ':' or '}'"
    _closer = "}"

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self._colon = 0
        self._entries: list[Entry] = []
        self._key: Node | None = None

    def end(self, reading: Reading, sign: str) -> bool:
        """A key or a value is complete."""
        node = self._pop(reading)
        key = self._key
        if key is None:
            if sign != ":":
                reading.unexpected("an operator or ':'")
            self._key = node
            self._colon = reading.at
            return False
        self._key = None
        number = reading.builder.new_id(self._colon)
        self._entries.append(Entry(number, key, node, self._is_optional))
        return self._next(reading, sign)

    def _node(self, number: int) -> Node:
        return MapNode(number, self._entries)


class Fields(_Container):
    """``a.Type{b: c, ?d: e}``."""

    __slots__ = ("_colon", "_fields", "_name", "_type_name")
    wanted = "an operator, ',' or '}'"
    _closer = "}"

    def __init__(self, type_name: str, at: int) -> None:
        super().__init__(at)
        self._type_name = type_name
        self._colon = 0
        self._name = ""
        self._fields: list[FieldInit] = []

    def _part(self, reading: Reading) -> bool:
        super()._part(reading)
        kind, text, _ = reading.next()
        if kind == QUOTED:
            text = text[1:-1]
        elif kind != NAME:
            reading.unexpected("the name of a field")
        self._name = text
        sign, _, self._colon = reading.next()
        if sign != ":":
            reading.unexpected("':'")
        return False

    def end(self, reading: Reading, sign: str) -> bool:
        """A value is complete."""
        node = self._pop(reading)
        number = reading.builder.new_id(self._colon)
        self._fields.append(FieldInit(number, self._name, node, self._is_optional))
        return self._next(reading, sign)

    def _node(self, number: int) -> Node:
        return StructNode(number, self._type_name, self._fields)

"""What can be open while an expression is read, and what comes of it when it closes.

Lists, maps and objects are in ``containers``.
"""

from __future__ import annotations

from dra_core.cel import macros
from dra_core.cel.reading import Frame, Reading
from dra_core.cel.syntax import Call, Node


class Whole(Frame):
    """The whole text."""

    __slots__ = ()
    wanted = "an operator or the end"

    def end(self, reading: Reading, sign: str) -> bool | None:
        """Only the end ends it."""
        if sign:
            reading.unexpected(self.wanted)
        return None


class Group(Frame):
    """``(a)``: leaves no node."""

    __slots__ = ()
    wanted = "an operator or ')'"

    def end(self, reading: Reading, sign: str) -> bool:
        """The value stays as it is."""
        if sign != ")":
            reading.unexpected(self.wanted)
        reading.close()
        return True


class Arguments(Frame):
    """``f(a, b)`` or ``a.f(b)``."""

    __slots__ = ("_args", "_at", "_function", "_height", "_target")
    wanted = "an operator, ',' or ')'"

    def __init__(
        self,
        function: str,
        at: int,
        *,
        target: Node | None = None,
        height: int = 0,
    ) -> None:
        self._function = function
        self._at = at
        self._args: list[Node] = []
        self._target = target
        #: The highest part so far.
        self._height = height

    def begin(self, reading: Reading) -> bool:
        """After the opening bracket."""
        if reading.skip(")"):
            return self._finish(reading)
        reading.open(self, self._at)
        return False

    def end(self, reading: Reading, sign: str) -> bool:
        """One argument is complete."""
        node, height = reading.operands.nodes.pop()
        self._args.append(node)
        self._height = max(self._height, height)
        if sign == ",":
            return False
        if sign != ")":
            reading.unexpected(self.wanted)
        reading.close()
        return self._finish(reading)

    def _finish(self, reading: Reading) -> bool:
        operands, builder = reading.operands, reading.builder
        function, target, args, at = self._function, self._target, self._args, self._at
        node = macros.expand(builder, at, function, target, args)
        if node is None:
            node = Call(builder.new_id(at), function, args, target)
        if target is None:
            operands.nodes.append((node, self._height))
        else:
            operands.counted(node, self._height, at)
        return True


class Index(Frame):
    """``a[b]`` or ``a[?b]``."""

    __slots__ = ("_at", "_function")
    wanted = "an operator or ']'"

    def __init__(self, reading: Reading, at: int) -> None:
        self._at = at
        self._function = "_[?_]" if reading.skip("?") else "_[_]"

    def end(self, reading: Reading, sign: str) -> bool:
        """The index is complete; the value before it lies below it."""
        if sign != "]":
            reading.unexpected(self.wanted)
        reading.close()
        operands = reading.operands
        index, height = operands.nodes.pop()
        target, target_height = operands.nodes.pop()
        call = Call(reading.builder.new_id(self._at), self._function, [target, index])
        operands.counted(call, max(height, target_height), self._at)
        return True


class Then(Frame):
    """``a ? b``: up to the colon. It cannot be another ``?:`` without brackets."""

    __slots__ = ("at",)
    wanted = "an operator or ':'"

    def __init__(self, at: int) -> None:
        self.at = at

    def end(self, reading: Reading, sign: str) -> bool:
        """Only a colon ends it."""
        if sign != ":":
            reading.unexpected(self.wanted)
        reading.operands.deeper(reading.at)
        reading.frames[-1] = Else(self.at)
        return False


class Else(Frame):
    """``a ? b : c``: ends where what it stands in ends."""

    __slots__ = ("_at",)
    wanted = "an operator or the end"

    def __init__(self, at: int) -> None:
        self._at = at

    def end(self, reading: Reading, sign: str) -> bool:  # noqa: ARG002 - Frame's shape
        """It has no end of its own: whoever meets one finishes it first."""
        reading.unexpected(self.wanted)

    def finish(self, reading: Reading) -> None:
        """The three parts become one value."""
        operands = reading.operands
        operands.shallower()
        parts = operands.nodes[-3:]
        del operands.nodes[-3:]
        node = Call(reading.builder.new_id(self._at), "_?_:_", [part for part, _ in parts])
        operands.counted(node, max(height for _, height in parts), self._at)

"""What the reading of an expression has at hand: words, values, and what is open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NoReturn

from dra_core.cel import lexer
from dra_core.cel.builder import Builder
from dra_core.cel.lexer import BAD, END, Word
from dra_core.cel.operands import Operands


class Frame(ABC):
    """Something that is open: a bracket, a call, the parts of a ``?:``."""

    __slots__ = ()

    #: What may follow a value here besides an operator.
    wanted: ClassVar[str]

    @abstractmethod
    def end(self, reading: Reading, sign: str) -> bool | None:
        """A comma, colon, closing bracket or the end (an empty sign) comes after a value.

        Answers whether a value was read now, ``False`` when another one is expected, ``None`` when
        everything was read; what does not fit here is ``reading.unexpected``.
        """


class Reading:
    """One reading of one text."""

    __slots__ = ("braces", "builder", "frames", "index", "operands", "words")

    def __init__(self, builder: Builder, outermost: Frame) -> None:
        self.builder = builder
        self.words = lexer.words(builder.source)
        #: Of the word after the one at hand.
        self.index = 0
        self.operands = Operands(builder)
        self.frames = [outermost]
        #: Whether names have to be looked at for ``a.b.Type{``.
        self.braces = "{" in builder.source
        kind, _, at = self.words[-1]
        if kind == BAD:
            builder.faults.append(lexer.fault_of(builder.source, at))

    @property
    def at(self) -> int:
        """The offset of the word at hand."""
        return self.words[self.index - 1][2]

    def next(self) -> Word:
        """Goes on to the next word."""
        word = self.words[self.index]
        self.index += 1
        return word

    def skip(self, kind: str) -> bool:
        """Goes past the next word if it is of a kind."""
        if self.words[self.index][0] != kind:
            return False
        self.index += 1
        return True

    def unexpected(self, wanted: str) -> NoReturn:
        """The word at hand cannot stand here; no more is read."""
        kind, text, at = self.words[self.index - 1]
        if kind == BAD:  # noted when the words were found
            self.builder.fail()
        found = "the expression ends" if kind == END else f"there is {text[:40]!r}"
        self.builder.stop(at, f"{found} where {wanted} is expected")

    def open(self, frame: Frame, at: int) -> None:
        """Brackets open at an offset."""
        self.operands.enter(at)
        self.frames.append(frame)

    def close(self) -> None:
        """The brackets that are open close."""
        self.frames.pop()
        self.operands.leave()

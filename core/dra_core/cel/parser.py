"""Reads an expression: text to tree, macros expanded.

The language is that of cel-go 0.29.2 as Kubernetes sets it up. Reading goes word by word in two
states, "a value is expected" and "a value was read"; what is open (brackets, calls, lists, ``?:``)
lies on a stack of frames. The first word that cannot stand where it does ends the reading. Literals
that have no value, reserved names and arguments that a macro cannot take are all collected.

Nodes stand where the reference has them: operators at their sign, calls and macros at the opening
bracket, fields at the dot, entries at the colon, names and literals at their start.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dra_core.cel import literals
from dra_core.cel.builder import Builder
from dra_core.cel.containers import Entries, Fields, Items
from dra_core.cel.faults import CompileError, Fault
from dra_core.cel.frames import Arguments, Else, Group, Index, Then, Whole
from dra_core.cel.lexer import DOUBLE, END, INT, NAME, QUOTED, STRING, Word
from dra_core.cel.operands import AND, OR, PRODUCT, RELATION, SUM, UNARY
from dra_core.cel.reading import Reading
from dra_core.cel.syntax import Call, Const, Ident, Node, Parsed, Select

#: Longer texts are not read at all. The limit of the API is lower and in bytes: see ``program``.
CODE_POINTS_MAX: Final = 100_000

#: Names that only fields and member functions can have.
RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"}
    | {"package", "namespace", "return", "var", "void", "while"}
)

#: Takes a word (its text and offset) and answers like ``Frame.end``.
_Take = Callable[[Reading, str, int], bool | None]

_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def parse(source: str) -> Parsed:
    """The tree of an expression. Raises ``CompileError`` with all faults that were found.

    A lone surrogate, which no UTF-8 text has, reads as U+FFFD, as JSON readers in Go have it.
    """
    if len(source) > CODE_POINTS_MAX:
        text = f"the expression has {len(source)} characters; at most {CODE_POINTS_MAX} are read"
        raise CompileError(source[:80], (Fault(0, text),))
    if not source.isascii():
        source = _SURROGATES.sub("\ufffd", source)
    builder = Builder(source)
    root = _read(Reading(builder, Whole()))
    if builder.faults:
        builder.fail()
    return Parsed(source, root, builder.positions())


def _read(reading: Reading) -> Node:
    """Reads everything, word by word."""
    read: bool | None = False
    while read is not None:
        kind, text, at = reading.next()
        take = (_AFTER_VALUE if read else _VALUES).get(kind)
        if take is None:
            reading.unexpected(reading.frames[-1].wanted if read else "a value")
        read = take(reading, text, at)
    return reading.operands.nodes.pop()[0]


# Words that can stand where a value is expected.


def _name(reading: Reading, text: str, at: int) -> bool:
    return _named(reading, text, text, at, at)


def _leading_dot(reading: Reading, _text: str, dot: int) -> bool:
    kind, text, at = reading.next()
    if kind != NAME:
        reading.unexpected("a name")
    return _named(reading, "." + text, text, at, dot)


def _named(reading: Reading, full: str, name: str, at: int, start: int) -> bool:
    """A variable, a function or a type; ``start`` is where its fault would stand."""
    following, _, opened = reading.words[reading.index]
    if reading.braces and (following in ("{", ".")):
        found = _type_name(reading, full)
        if found is not None:
            return found.begin(reading)
    builder = reading.builder
    refused = None
    if name in RESERVED:
        refused = builder.refuse(start, f"{name} is reserved and cannot be a name")
    if following == "(":
        reading.index += 1
        return Arguments(full, opened).begin(reading)
    reading.operands.nodes.append((refused or Ident(builder.new_id(at), full), 0))
    return True


def _type_name(reading: Reading, first: str) -> Fields | None:
    """What follows ``first`` if it is a type: names after dots, then a brace."""
    words = reading.words
    index = reading.index
    parts = [first]
    while words[index][0] == "." and words[index + 1][0] == NAME:
        parts.append(words[index + 1][1])
        index += 2
    kind, _, at = words[index]
    if kind != "{":
        return None
    reading.index = index + 1
    return Fields(".".join(parts), at)


def _string(reading: Reading, text: str, at: int) -> bool:
    builder = reading.builder
    node: Node
    try:
        node = Const(builder.new_id(at), literals.string(text))
    except ValueError as error:
        node = builder.refuse(at, str(error))
    reading.operands.nodes.append((node, 0))
    return True


def _int(reading: Reading, text: str, at: int) -> bool:
    return _number(reading, INT, text, at)


def _double(reading: Reading, text: str, at: int) -> bool:
    return _number(reading, DOUBLE, text, at)


def _number(reading: Reading, kind: str, text: str, at: int, *, negative: bool = False) -> bool:
    """A number; ``at`` is the offset of its sign if it has one."""
    builder = reading.builder
    read = literals.integer if kind == INT else literals.double
    node: Node
    try:
        node = Const(builder.new_id(at), read(text, negative=negative))
    except ValueError as error:
        node = builder.refuse(at, str(error))
    reading.operands.nodes.append((node, 0))
    return True


def _constant(value: bool | None) -> _Take:
    def take(reading: Reading, _text: str, at: int) -> bool:
        reading.operands.nodes.append((Const(reading.builder.new_id(at), value), 0))
        return True

    return take


def _is_signed(word: Word) -> bool:
    """Whether a word is a number that can have a sign of its own."""
    kind, text, _ = word
    return kind == DOUBLE or (kind == INT and text[-1] not in "uU")


def _not(reading: Reading, _text: str, at: int) -> bool:
    """Any number of ``!``: pairs are dropped. A ``-`` may follow, but only as a number's sign."""
    count = 1
    while reading.skip("!"):
        count += 1
    if count % 2:
        reading.operands.waiting.append((UNARY, "!_", at, []))
    sign = reading.words[reading.index][2]
    if not reading.skip("-"):
        return False
    word = reading.next()
    if not _is_signed(word):
        reading.unexpected("a number")
    return _number(reading, word[0], word[1], sign, negative=True)


def _minus(reading: Reading, _text: str, at: int) -> bool:
    """Any number of ``-``: pairs are dropped, and a single one belongs to a number after it."""
    count = 1
    while reading.skip("-"):
        count += 1
    word = reading.words[reading.index]
    if count == 1 and _is_signed(word):
        reading.index += 1
        return _number(reading, word[0], word[1], at, negative=True)
    if reading.skip("!"):
        reading.unexpected("a value")
    if count % 2:
        reading.operands.waiting.append((UNARY, "-_", at, []))
    return False


def _group(reading: Reading, _text: str, at: int) -> bool:
    reading.open(Group(), at)
    return False


def _list(reading: Reading, _text: str, at: int) -> bool:
    return Items(at).begin(reading)


def _map(reading: Reading, _text: str, at: int) -> bool:
    return Entries(at).begin(reading)


# Words that can stand after a value.


def _dot(reading: Reading, _text: str, dot: int) -> bool:
    optional = reading.skip("?")
    kind, name, at = reading.next()
    if kind == QUOTED:
        name = name[1:-1]
    elif kind != NAME:
        reading.unexpected("the name of a field")
    operands, builder = reading.operands, reading.builder
    target, height = operands.nodes.pop()
    if optional:
        field = Const(builder.new_id(at), name)
        operands.counted(Call(builder.new_id(dot), "_?._", [target, field]), height, dot)
    elif kind == NAME and reading.words[reading.index][0] == "(":
        opened = reading.next()[2]
        return Arguments(name, opened, target=target, height=height).begin(reading)
    else:
        operands.counted(Select(builder.new_id(dot), target, name), height, dot)
    return True


def _index(reading: Reading, _text: str, at: int) -> bool:
    reading.open(Index(reading, at), at)
    return False


def _question(reading: Reading, _text: str, at: int) -> bool:
    reading.operands.settle(OR)
    if isinstance(reading.frames[-1], Then):
        reading.unexpected(Then.wanted)
    reading.frames.append(Then(at))
    return False


def _binary(strength: int, function: str) -> _Take:
    def take(reading: Reading, _text: str, at: int) -> bool:
        reading.operands.binary(strength, function, at)
        return False

    return take


def _logical(strength: int, function: str) -> _Take:
    def take(reading: Reading, _text: str, at: int) -> bool:
        reading.operands.logical(strength, function, at)
        return False

    return take


def _ending(reading: Reading, text: str, _at: int) -> bool | None:
    """A comma, colon, closing bracket or the end of the text."""
    reading.operands.settle(OR)
    frames = reading.frames
    while isinstance(frame := frames[-1], Else):
        frames.pop()
        frame.finish(reading)
    return frame.end(reading, text)


_VALUES: Final[dict[str, _Take]] = {
    NAME: _name,
    INT: _int,
    DOUBLE: _double,
    STRING: _string,
    "true": _constant(value=True),
    "false": _constant(value=False),
    "null": _constant(value=None),
    ".": _leading_dot,
    "!": _not,
    "-": _minus,
    "(": _group,
    "[": _list,
    "{": _map,
}
_AFTER_VALUE: Final[dict[str, _Take]] = {
    ".": _dot,
    "[": _index,
    "?": _question,
    "||": _logical(OR, "_||_"),
    "&&": _logical(AND, "_&&_"),
    **{sign: _binary(RELATION, f"_{sign}_") for sign in ("<", "<=", ">", ">=", "==", "!=")},
    "in": _binary(RELATION, "@in"),
    "+": _binary(SUM, "_+_"),
    "-": _binary(SUM, "_-_"),
    **{sign: _binary(PRODUCT, f"_{sign}_") for sign in "*/%"},
    **dict.fromkeys((")", "]", "}", ",", ":", END), _ending),
}

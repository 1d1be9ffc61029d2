"""Types of CEL and templates of expressions with typed slots, for the generators.

A template is one line of text::

    quantity: quantity = {quantity}.add({int})

The word before the colon is the library, then come the type of the result, ``=`` and the
expression. ``{type}`` is a slot for an expression of that type, ``{#word}`` one for a literal of a
special form (:mod:`dra_testing.cel_literals`), ``{@x:list(A)}`` is the range of a macro that
binds ``$x`` to its elements (``{@x=A}`` to itself), ``{x|bool}`` a slot in which that variable may
be used, and ``{=A}`` one whose static type must be the one asked for, never dyn. Capital letters
are type variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple


class Type(NamedTuple):
    """A type, a type variable (one capital letter), or ``dyn``."""

    name: str
    args: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})" if self.args else self.name

    @property
    def variable(self) -> bool:
        return len(self.name) == 1 and self.name.isupper()

    @property
    def open(self) -> bool:
        """Whether there is a type variable in it."""
        return self.variable or any(arg.open for arg in self.args)


def parse_type(text: str) -> Type:
    """``map(string, list(A))`` as a :class:`Type`."""
    found, rest = _parse(text.replace(" ", ""))
    if rest:
        raise ValueError(f"type {text!r}: {rest!r} is left over")
    return found


def _parse(text: str) -> tuple[Type, str]:
    word = re.match(r"\w+", text)
    if not word:
        raise ValueError(f"no type at {text!r}")
    rest = text[word.end() :]
    if not rest.startswith("("):
        return Type(word[0]), rest
    args = []
    while rest[0] in "(,":
        one, rest = _parse(rest[1:])
        args.append(one)
    if rest[0] != ")":
        raise ValueError(f"no closing bracket at {rest!r}")
    return Type(word[0], tuple(args)), rest[1:]


Binding = dict[str, Type]


def unify(pattern: Type, concrete: Type, bound: Binding) -> Binding | None:
    """``bound`` and what makes ``pattern`` the type ``concrete``; None if nothing does."""
    if pattern.variable:
        known = bound.get(pattern.name)
        if known is None:
            return {**bound, pattern.name: concrete}
        return bound if known == concrete else None
    if pattern.name != concrete.name or len(pattern.args) != len(concrete.args):
        return None
    for mine, theirs in zip(pattern.args, concrete.args, strict=True):
        result = unify(mine, theirs, bound)
        if result is None:
            return None
        bound = result
    return bound


def substitute(pattern: Type, bound: Binding) -> Type:
    """``pattern`` with its bound variables replaced."""
    if pattern.variable:
        return bound.get(pattern.name, pattern)
    return Type(pattern.name, tuple(substitute(arg, bound) for arg in pattern.args))


def variables(pattern: Type) -> list[str]:
    """The names of the type variables in ``pattern``, each once."""
    if pattern.variable:
        return [pattern.name]
    return list(dict.fromkeys(name for arg in pattern.args for name in variables(arg)))


#: How tightly operators bind; a slot says what it needs and an expression what it has.
TERNARY, OR, AND, RELATION, ADD, MULTIPLY, UNARY, PRIMARY = range(8)
_OPERATORS = {
    "||": OR, "&&": AND, "==": RELATION, "!=": RELATION, "<": RELATION, "<=": RELATION,
    ">": RELATION, ">=": RELATION, "in": RELATION, "+": ADD, "-": ADD, "*": MULTIPLY,
    "/": MULTIPLY, "%": MULTIPLY,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slot:
    """A hole of a template."""

    type: Type
    needs: int = TERNARY
    word: str = ""
    """A special text and no expression of the type."""
    binds: tuple[str, ...] = ()
    """Placeholders of the variables that the macro binds over this range."""
    whole: bool = False
    """They are bound to the value itself and not to its elements."""
    uses: tuple[str, ...] = ()
    """Those that may be used here."""
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed line of a table."""

    library: str
    result: Type
    parts: tuple[str | Slot, ...]
    precedence: int
    names: tuple[str, ...]
    """Placeholders of variables, written ``$x`` in the text."""
    dynamic: bool = False
    """The checker calls the result dyn (``~`` after the library): not for strict slots."""

    @property
    def slots(self) -> list[Slot]:
        return [part for part in self.parts if isinstance(part, Slot)]


_SLOT = re.compile(r"(?<![A-Za-z])\{([A-Za-z#@=][^{}]*)\}")


def parse_template(line: str) -> Template:
    """One line of a table."""
    library, rest = line.split(":", 1)
    result, text = rest.split("=", 1)
    pieces = _SLOT.split(text.strip())  # text, slot, text, slot, ..., text
    parts: list[str | Slot] = []
    for number, piece in enumerate(pieces):
        if number % 2:
            parts.append(_slot(piece, _needs(pieces[number - 1], pieces[number + 1])))
        elif piece:
            parts.append(piece)
    names = re.findall(r"\$(\w+)", text)
    return Template(
        library.strip().removesuffix("~"),
        parse_type(result),
        tuple(parts),
        _precedence(pieces[::2]),
        tuple(dict.fromkeys(names)),
        dynamic=library.endswith("~"),
    )


def _precedence(texts: list[str]) -> int:
    """That of the loosest operator outside brackets."""
    if texts[0].startswith(("!", "-")):
        return UNARY
    depth = 0
    found = PRIMARY
    for word in re.findall(r"[()\[\]{}]|[^\s()\[\]{}]+", "\0".join(texts).replace("\0", " ")):
        depth += (word in "([{") - (word in ")]}")
        if depth == 0:
            found = min(found, TERNARY if word == "?" else _OPERATORS.get(word, PRIMARY))
    return found


def _needs(before: str, after: str) -> int:
    """How tightly a slot between these two texts must bind."""
    if after.startswith((".", "[")):
        return PRIMARY
    if before.endswith(("!", "-")):
        return UNARY
    word_before = (before.split() or [""])[-1]
    word_after = (after.split() or [""])[0]
    if word_after == "?" or word_before == "?":
        return OR
    # Operators are left-associative.
    left = _OPERATORS[word_before] + 1 if word_before in _OPERATORS else TERNARY
    return max(left, _OPERATORS.get(word_after, TERNARY))


def _slot(text: str, needs: int) -> Slot:
    if text.startswith("#"):
        word, _, kind = text[1:].partition(":")
        return Slot(parse_type(kind or "string"), needs, word=word)
    if text.startswith("@"):
        names, whole, kind = re.split("([:=])", text[1:], maxsplit=1)
        return Slot(parse_type(kind), needs, binds=tuple(names.split(",")), whole=whole == "=")
    uses: tuple[str, ...] = ()
    if "|" in text:
        listed, text = text.split("|")
        uses = tuple(listed.split(","))
    strict = text.startswith("=")
    return Slot(parse_type(text.removeprefix("=")), needs, uses=uses, strict=strict)

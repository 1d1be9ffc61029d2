"""Random texts for a parser: expressions of every form, mutilated ones, and heaps of words.

Unlike :mod:`dra_testing.cel_expressions` nothing is declared or well typed here; what counts is the
form. About half of :func:`expression` has a fault that is found after the syntax (reserved names,
literals without a value, macros whose variable is none).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

_WORDS = """
    a b x for in true null 1 -1 1u 0x1F 0xu 1.5 .5 1. 1e5 99999999999999999999 1e999 ( ) [ ] { } . .
    , : ? ! - + * / % < == && || & # ' " \\ ` `x-y` `x has( .all( .map( cel.bind( .optMap( .sortBy(
    .transformMap( x, T{ a.b{ f( .f( .? [? {? __result__ \u00e9 r'\\z' 's' "q" b'\\xff' b'\\u0041'
    '\\ud800' '\\q' '''t'''
"""
_SPACES = (" ", "\n", "\r", "\t", "\f", "\v", "\u00a0", "// c\n")
WORDS: Final = (*_WORDS.split(), *_SPACES, "i, v,", '"""', '"""m\nn"""')
_VALUES = """
    a b x 1 -1 --3 1u 0x10 1.5 -.5 's' "t" b'x' r'\\d' true null .a [] {} [,] {,} T{} .T{,} a.b.T{}
    for 99999999999999999999
"""
_LEAVES: Final = (*_VALUES.split(), "- 2", '"""m\nn"""')
_ONE: Final = ("all", "exists", "exists_one", "existsOne", "map", "filter", "sortBy")
_OPTIONAL: Final = ("optMap", "optFlatMap")
_TWO: Final = ("all", "exists", "exists_one", "existsOne", "map", "bind")
_TRANSFORM: Final = ("transformList", "transformMap", "transformMapEntry")
_OPERATORS: Final = (*("+", "-", "*", "/", "%"), *("<", "<=", ">", ">=", "==", "!=", "in"))
_LOGICAL: Final = ("&&", "||")
_VARIABLES: Final = ("x", "x", "y", ".x", "a.b", "__result__")


def heap(rng: random.Random) -> str:
    """Some words, mostly nonsense."""
    count = rng.randint(1, rng.choice([3, 6, 12]))
    return "".join(rng.choice(WORDS) + rng.choice(["", "", " "]) for _ in range(count))


def mutilated(rng: random.Random, text: str) -> str:
    """One or two pieces of a text cut out or replaced by words."""
    for _ in range(rng.randint(1, 2)):
        begin = rng.randint(0, len(text))
        end = min(len(text), begin + rng.choice([0, 0, 1, 1, 2, 4]))
        text = text[:begin] + rng.choice(("", *WORDS)) + text[end:]
    return text


def expression(rng: random.Random, depth: int) -> str:
    """An expression that has the form of one."""
    if depth <= 0:
        return rng.choice(_LEAVES)
    return rng.choice(_FORMS)(rng, lambda: expression(rng, depth - 1))


_Part = Callable[[], str]


def _several(part: _Part, count: int, between: str = ", ") -> str:
    return between.join(part() for _ in range(count))


def _list(rng: random.Random, part: _Part) -> str:
    items = _several(lambda: rng.choice(["", "", "?"]) + part(), rng.randint(1, 3))
    return f"[{items}{rng.choice(['', ','])}]"


def _map(rng: random.Random, part: _Part) -> str:
    entries = _several(lambda: f"{rng.choice(['', '?'])}{part()}: {part()}", rng.randint(1, 3))
    return f"{{{entries}{rng.choice(['', ','])}}}"


def _object(rng: random.Random, part: _Part) -> str:
    name = rng.choice(["", ".", "a.b.", ".a.", "for."])
    fields = _several(
        lambda: f"{rng.choice(['', '?'])}{rng.choice(['f', 'for', '`a-b`'])}: {part()}",
        rng.randint(1, 2),
    )
    return f"{name}T{{{fields}}}"


def _macro(rng: random.Random, part: _Part) -> str:
    first = rng.choice((*_VARIABLES, part()))
    return f"{part()}.{rng.choice(_ONE + _OPTIONAL)}({first}, {part()})"


def _macro_of_two(rng: random.Random, part: _Part) -> str:
    first, second = rng.choice(["x", "i", "__result__", "1"]), rng.choice(["v", "x", part()])
    more = rng.choice(["", f", {part()}"])
    return f"{part()}.{rng.choice(_TWO + _TRANSFORM)}({first}, {second}, {part()}{more})"


def _group(_: random.Random, part: _Part) -> str:
    return f"({part()})"


def _choice(_: random.Random, part: _Part) -> str:
    return f"{part()} ? {part()} : {part()}"


_FORMS: Final[tuple[Callable[[random.Random, _Part], str], ...]] = (
    lambda rng, part: f"{part()} {rng.choice(_OPERATORS + _LOGICAL)} {part()}",
    lambda rng, part: f"{part()}{rng.choice(_OPERATORS + _LOGICAL)}{part()}",
    lambda rng, part: rng.choice("!-") * rng.randint(1, 3) + part(),
    lambda rng, part: f"{part()}.{rng.choice(['f', 'for', '`a-b`', '?g', '?`x y`'])}",
    lambda rng, part: f"{part()}[{rng.choice(['', '', '?'])}{part()}]",
    lambda rng, part: f"f({_several(part, rng.randint(0, 3))})",
    lambda rng, part: f"{part()}.g({_several(part, rng.randint(0, 3))})",
    lambda rng, part: f"has({part()}{rng.choice(['', '.b', '.c'])})",
    lambda rng, part: f"{rng.choice(['cel', '.cel', 'a'])}.bind(x, {part()}, {part()})",
    lambda rng, part: _several(part, rng.randint(2, 9), rng.choice([" && ", " || "])),
    _group,
    _choice,
    _list,
    _map,
    _object,
    _macro,
    _macro,
    _macro_of_two,
    _macro_of_two,
)

"""The words of an expression.

A word is the longest text that can be one: ``index-1`` is three, ``1.e5`` is ``1``, ``.`` and
``e5``, ``rb"x"`` is a name and a string. The first text that cannot be a word ends the list.
"""

from __future__ import annotations

import re
from typing import Final

from dra_core.cel.faults import Fault

#: Kind, text, offset.
Word = tuple[str, str, int]

#: Kinds of words. Signs and keywords (``+``, ``(``, ``in``, ``true`` …) are their own kind.
NAME: Final = "name"
QUOTED: Final = "quoted"
INT: Final = "int"
DOUBLE: Final = "double"
STRING: Final = "string"
BAD: Final = "bad"
END: Final = "end"
_SIGN: Final = "sign"

#: Unlike reserved names these cannot even be the name of a field.
_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})

_ESCAPE: Final = (
    r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
)


def _strings(quote: str) -> str:
    """Strings in one kind of quote. Repetitions are possessive: one without an end is one pass."""
    three = quote * 3
    return (
        rf"{three}(?:[^{quote}\\]++|{_ESCAPE}|{quote}(?!{quote * 2}))*+{three}"
        rf"|{quote}(?:[^{quote}\\\n\r]++|{_ESCAPE})*+{quote}"
    )


def _raw_strings(quote: str) -> str:
    """The same where a backslash is a character like any other."""
    three = quote * 3
    return (
        rf"{three}(?:[^{quote}]++|{quote}(?!{quote * 2}))*+{three}|{quote}[^{quote}\n\r]*+{quote}"
    )


_EXPONENT: Final = r"[eE][+-]?[0-9]++"

# The order of the alternatives makes the longest word win: strings come before the names that
# their prefixes could be, doubles before their integer part and before the dot some start with.
_WORD: Final = re.compile(
    rf"""
    (?: [\t\n\f\r ]++ | //[^\n]*+ )*+
    (?:
        (?P<{STRING}> [bB]? (?: {_strings('"')} | {_strings("'")}
                              | [rR] (?: {_raw_strings('"')} | {_raw_strings("'")} ) ) )
      | (?P<{NAME}> [a-zA-Z_][a-zA-Z0-9_]*+ )
      | (?P<{DOUBLE}> [0-9]++ (?: \.[0-9]++ (?:{_EXPONENT})? | {_EXPONENT} )
                    | \.[0-9]++ (?:{_EXPONENT})? )
      | (?P<{_SIGN}> == | != | <= | >= | && | \|\| | [-\[\](){{}}.,!?:+*/%<>] )
      | (?P<{INT}> (?: 0x[0-9a-fA-F]++ | [0-9]++ ) [uU]? )
      | (?P<{QUOTED}> `[a-zA-Z0-9_./ -]++` )
      | (?P<{BAD}> . )
      | \Z
    )
    """,
    re.VERBOSE | re.DOTALL,
)

#: The part of a string before what is wrong in it.
_GOOD: Final = {
    quote: re.compile(rf"{quote}(?:[^{quote}\\\n\r]++|{_ESCAPE})*+") for quote in ('"', "'")
}


def words(source: str) -> list[Word]:
    """The words of a text. The last one is ``END``, or ``BAD`` where nothing is a word."""
    found: list[Word] = []
    for match in _WORD.finditer(source):
        kind = match.lastgroup
        if kind is None:
            break
        text = match[kind]
        at = match.start(kind)
        if kind == _SIGN or (kind == NAME and text in _KEYWORDS):
            kind = text
        found.append((kind, text, at))
        if kind == BAD:
            return found
    found.append((END, "", len(source)))
    return found


def fault_of(source: str, at: int) -> Fault:
    """What is wrong with the text that starts at the offset of a ``BAD`` word."""
    first = source[at]
    good = _GOOD.get(first)
    if good is not None:
        found = good.match(source, at)
        end = len(source) if found is None else found.end()
        if source.startswith("\\", end):
            escape = source[end : end + 2].strip()
            return Fault(at, f"this string has an escape that does not exist or end: {escape}")
        return Fault(at, "this string does not end")
    if first == "`":
        return Fault(at, "a name between backticks has letters, digits and _ . - / or blanks only")
    hint = {"&": ": write &&", "|": ": write ||", "=": ": write =="}.get(first, "")
    return Fault(at, f"{first!r} does not belong to the language{hint}")

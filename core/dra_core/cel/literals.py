"""The values of literals: numbers, strings and bytes as they are written.

Every function takes the text of one word and raises ``ValueError`` with a sentence when there is no
such value. That the text has the form of a literal was seen by the lexer.
"""

from __future__ import annotations

import math
import re
from typing import Final

from dra_core.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

#: More digits than any 64-bit number; Python refuses to read integers with thousands of them.
_DIGITS_MAX: Final = 20

_ESCAPE: Final = re.compile(r"\\(?:([0-3][0-7][0-7])|[xX](..)|u(.{4})|U(.{8})|(.))", re.DOTALL)
_CHARACTERS: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def _whole(text: str) -> int | None:
    """A number without sign, decimal or hexadecimal; ``None`` if it is far too large."""
    if text.startswith("0x"):
        return int(text, 16)
    digits = text.lstrip("0")
    return int(digits or "0") if len(digits) <= _DIGITS_MAX else None


def integer(text: str, *, negative: bool = False) -> int:
    """An int, or a ``Uint`` for a text that ends with u; only an int has a sign."""
    if text[-1] in "uU":
        value = _whole(text[:-1])
        if value is None or value > UINT_MAX:
            raise ValueError(f"an unsigned integer is at most {UINT_MAX}")
        return Uint(value)
    value = _whole(text)
    if value is not None and negative:
        value = -value
    if value is None or not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"an integer is from {INT_MIN} to {INT_MAX}")
    return value


def double(text: str, *, negative: bool = False) -> float:
    """A double; one that rounds to infinity is refused, one that rounds to zero is not."""
    value = float(text)
    if math.isinf(value):
        raise ValueError("this number is larger than any double")
    return -value if negative else value


def string(text: str) -> str | bytes:
    """What a string literal, with its quotes and prefixes, stands for."""
    is_bytes = text[0] in "bB"
    content = text[1:] if is_bytes else text
    raw = content[0] in "rR"
    if raw:
        content = content[1:]
    quotes = 3 if len(content) >= 6 and content[1] == content[2] == content[0] else 1
    content = content[quotes:-quotes]
    if "\r" in content:  # the ends of lines are the same whoever wrote the text
        content = content.replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in content:
        return content.encode() if is_bytes else content
    return _unescaped_bytes(content) if is_bytes else _ESCAPE.sub(_character, content)


def _character(match: re.Match[str]) -> str:
    """The character of an escape; octal and hexadecimal ones are code points."""
    octal, two, four, eight, one = match.groups()
    if one is not None:
        return _CHARACTERS.get(one, one)
    code = int(octal, 8) if octal else int(two or four or eight, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"there is no character {match[0]}")
    return chr(code)


def _unescaped_bytes(content: str) -> bytes:
    """Bytes: text stands for its UTF-8, octal and hexadecimal escapes for single bytes."""
    parts: list[bytes] = []
    done = 0
    for match in _ESCAPE.finditer(content):
        octal, two, four, eight, one = match.groups()
        if four or eight:
            raise ValueError(f"bytes cannot have the escape {match[0]}")
        parts.append(content[done : match.start()].encode())
        if one is not None:
            parts.append(_CHARACTERS.get(one, one).encode())
        else:
            parts.append(bytes((int(octal, 8) if octal else int(two, 16),)))
        done = match.end()
    parts.append(content[done:].encode())
    return b"".join(parts)

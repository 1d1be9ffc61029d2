"""Text within messages of the reference that an expression can see."""

from __future__ import annotations

from typing import Final

_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


def quoted(text: str) -> str:
    """In quotes, as Go's ``%q`` writes it."""
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if (escape := _ESCAPES.get(character)) is not None:
        return escape
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

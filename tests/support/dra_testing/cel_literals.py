"""Literals for the generators: values of every type, and texts of special forms.

Words of templates (``{#regex}``) are the names of the pools and functions below. One text in
fifteen or so is wrong on purpose.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from dra_testing.cel_devices import STRINGS
from dra_testing.cel_texts import RAW, SPECIAL, WRONG_TEXTS

WRONG = 0.06
"""The share of texts that are not of the form that is asked for."""


def quoted(rng: random.Random, text: str) -> str:
    """``text`` as a string literal in one of the ways to write it."""
    roll = rng.random()
    plain = text.isprintable() and "\\" not in text
    if roll < 0.08 and plain and "'" not in text:
        return f"'{text}'"
    if roll < 0.12 and plain and '"' not in text:
        return f'{rng.choice("rR")}"{text}"'
    if roll < 0.15 and plain and '"' not in text:
        return f'"""{text}"""'
    escaped = "".join(_escape(rng, c) for c in text)
    return f"'{escaped}'" if rng.random() < 0.1 else f'"{escaped}"'


_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\0": "\\000", "\v": "\\v"}


def _escape(rng: random.Random, c: str) -> str:
    if c in _SHORT:
        return _SHORT[c]
    if c in "\"'\\":
        return "\\" + c
    code = ord(c)
    if rng.random() < 0.02 or not c.isprintable():
        if code < 256:
            return rng.choice([f"\\x{code:02x}", f"\\{code:03o}", f"\\u{code:04X}"])
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return c


def a_string(rng: random.Random) -> str:
    return quoted(rng, rng.choice([*STRINGS, *SPECIAL["part"]]))


def an_int(rng: random.Random) -> str:
    return rng.choice(
        ["0", "1", "2", "3", "5", "7", "10", "42", "100", "-1", "-7", "0x1F", "1024", "8", "4"]
        + ["9223372036854775807", "-9223372036854775808", "4294967296", "-0x10"]
        * (rng.random() < 0.2)
    )


def a_uint(rng: random.Random) -> str:
    large = ["18446744073709551615u", "9223372036854775808u"] * (rng.random() < 0.2)
    return rng.choice(["0u", "1u", "2u", "3u", "7U", "42u", "0x10u", "100u", *large])


def a_double(rng: random.Random) -> str:
    odd = ["1e308", "-0.0", "5e-324", "1.7976931348623157e308", "double('NaN')", "1e300"]
    pool = ["0.0", "1.0", "1.5", "-2.25", "0.1", "3.0", ".5", "1e3", "2.5E-3", "42.0", "100.125"]
    return rng.choice(pool + ["double('inf')", *odd] * (rng.random() < 0.2))


def a_bytes(rng: random.Random) -> str:
    pool = [
        'b""',
        'b"abc"',
        "b'a'",
        r'b"\xff\x00"',
        r'b"\303\277"',
        'B"xyz"',
        'b"\u00fc"',
        r"b'\101'",
    ]
    return rng.choice([*pool, "b'''q'''", r"br'\d'", 'b"hello world"'])


LITERALS: dict[str, Callable[[random.Random], str]] = {
    "bool": lambda rng: rng.choice(["true", "false"]),
    "int": an_int,
    "uint": a_uint,
    "double": a_double,
    "string": a_string,
    "bytes": a_bytes,
    "duration": lambda rng: f"duration({special(rng, 'duration')})",
    "timestamp": lambda rng: f"timestamp({special(rng, 'timestamp')})",
    "quantity": lambda rng: f"quantity({special(rng, 'quantity')})",
    "semver": lambda rng: f"semver({special(rng, 'version')})",
    "url": lambda rng: f"url({special(rng, 'url')})",
    "ip": lambda rng: f"ip({special(rng, 'ip')})",
    "cidr": lambda rng: f"cidr({special(rng, 'cidr')})",
    "format": lambda rng: rng.choice(RAW["format"]),
}


def special(rng: random.Random, word: str) -> str:
    """A literal of the special form ``word``."""
    if word in RAW:
        return rng.choice(RAW[word])
    if word in WRONG_TEXTS and rng.random() < WRONG:
        return quoted(rng, rng.choice(WRONG_TEXTS[word]))
    return quoted(rng, rng.choice(SPECIAL[word]))

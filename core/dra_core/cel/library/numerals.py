"""Numbers from text and as text, by the rules of Go's ``strconv``.

They are not quite Python's: Go takes hexadecimal floats, and ``_`` between the digits of floats
but not of integers; too large a float is an error; ``1e+06`` is how a million is written.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from dra_core.cel.values import INT_MAX, INT_MIN, UINT_MAX

_INTEGER: Final = re.compile(r"([+-]?)([0-9]+)")
#: More digits than 64 bits need.
_TOO_MANY_DIGITS: Final = 21
_SPECIAL: Final = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_DECIMAL: Final = re.compile(
    r"([+-]?)([0-9_]*)(?:\.([0-9_]*))?(?:e([+-]?)([0-9][0-9_]*))?", re.IGNORECASE
)
_HEX: Final = re.compile(
    r"([+-]?)0x([0-9a-f_]*)(?:\.([0-9a-f_]*))?p([+-]?)([0-9][0-9_]*)", re.IGNORECASE
)
#: ``_`` stands between digits, or behind ``0x``.
_LOOSE_UNDERSCORE: Final = re.compile(r"(?<![0-9])_|_(?![0-9])")
_LOOSE_IN_HEX: Final = re.compile(r"(?<![0-9a-fx])_|_(?![0-9a-f])", re.IGNORECASE)
#: The digits of an exponent that count; what is longer is far out of range anyway.
_EXPONENT_DIGITS: Final = 5

_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def parse_int(text: str) -> int | None:
    """An int of 64 bits: a sign and decimal digits; ``None`` if it is none."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    digits = found[2].lstrip("0") or "0"
    if len(digits) >= _TOO_MANY_DIGITS:
        return None
    number = -int(digits) if found[1] == "-" else int(digits)
    return number if INT_MIN <= number <= INT_MAX else None


def parse_uint(text: str) -> int | None:
    """A uint of 64 bits: decimal digits, and no sign; ``None`` if it is none."""
    found = _INTEGER.fullmatch(text)
    if found is None or found[1]:
        return None
    digits = found[2].lstrip("0") or "0"
    if len(digits) >= _TOO_MANY_DIGITS:
        return None
    number = int(digits)
    return number if number <= UINT_MAX else None


def parse_bool(text: str) -> bool | None:
    """``true`` or ``false`` in one of their spellings, else ``None``."""
    return _BOOLS.get(text)


def parse_double(text: str) -> float | None:
    """A double, the nearest there is; ``None`` for what is no number or too large."""
    if _SPECIAL.fullmatch(text):
        return float(text)
    found = _HEX.fullmatch(text)
    if found is not None:
        number = _hexadecimal(text, found)
    else:
        found = _DECIMAL.fullmatch(text)
        number = None if found is None else _decimal(text, found)
    return None if number is None or math.isinf(number) else number


def _decimal(text: str, found: re.Match[str]) -> float | None:
    sign, whole, fraction, exponent_sign, exponent = (part or "" for part in found.groups())
    digits = f"{whole}.{fraction}"
    if "_" in text and _LOOSE_UNDERSCORE.search(text):
        return None
    if not any(digit.isdigit() for digit in digits):
        return None
    return float(f"{sign}{digits}e{exponent_sign}{_exponent(exponent)}".replace("_", ""))


def _hexadecimal(text: str, found: re.Match[str]) -> float | None:
    sign, whole, fraction, exponent_sign, exponent = (part or "" for part in found.groups())
    digits = f"{whole}.{fraction}"
    if "_" in text and _LOOSE_IN_HEX.search(text):
        return None
    if not digits.strip("._"):
        return None
    plain = f"{sign}0x{digits}p{exponent_sign}{_exponent(exponent)}".replace("_", "")
    try:
        return float.fromhex(plain)
    except OverflowError:
        return None


def _exponent(digits: str) -> str:
    return digits.replace("_", "").lstrip("0")[:_EXPONENT_DIGITS] or "0"


def double_text(number: float) -> str:
    """A double with the fewest digits that are read as the same one.

    From 1e6 on, and below 1e-4, it has an exponent.
    """
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    text = repr(number).removesuffix(".0")
    if abs(number) < 1e6 or "e" in text:
        return text
    sign, size = ("-", text[1:]) if number < 0 else ("", text)
    whole, _, fraction = size.partition(".")
    digits = (whole + fraction).rstrip("0")
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{mantissa}e+{len(whole) - 1:02d}"


def plain_text(number: float) -> str:
    """The same digits without an exponent."""
    text = repr(number)
    if "e" in text:
        text = format(Decimal(text), "f")
    return text.removesuffix(".0")

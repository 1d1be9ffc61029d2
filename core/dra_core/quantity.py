"""Exact quantities, as ``resource.Quantity`` of the Kubernetes API has them.

A quantity is a whole number of 10^-9 units (finer fractions are rounded away from zero) and the
format it was written in, which decides the canonical text: ``1024Mi`` becomes ``1Gi``, ``1000m``
becomes ``1``. Equality is equality of value. No float is involved anywhere.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Final

from dra_core.errors import InvalidQuantity

_NANO: Final = 10**9
#: The API caps magnitudes at 2^63-1.
_CAP: Final = (2**63 - 1) * _NANO


class Format(enum.Enum):
    """How a quantity is written."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


_BINARY: Final = {f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_TEXT: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]{1,9})"
)
_MAX_TEXT: Final = 256


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact quantity: ``nanos`` units of 10^-9, and the format for its text."""

    nanos: int
    format: Format = field(default=Format.DECIMAL_SI)

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read what the API accepts: ``'80Gi'``, ``'100m'``, ``'1.5'``, ``'12e6'``."""
        match = _TEXT.fullmatch(text) if len(text) <= _MAX_TEXT else None
        if match is None or not (match["whole"] or match["fraction"]):
            shown = text if len(text) <= 40 else text[:37] + "..."
            raise InvalidQuantity(
                f"quantity {shown!r} is not valid: write a number with an optional suffix "
                "(n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3)"
            )
        digits = int((match["whole"] or "") + (match["fraction"] or "") or "0")
        scale = 10 ** len(match["fraction"] or "")
        factor, divisor, fmt = _suffix(match["suffix"])
        nanos = min(-(-digits * factor * _NANO // (scale * divisor)), _CAP)
        return cls(-nanos if match["sign"] == "-" else nanos, fmt)

    def __str__(self) -> str:
        if self.nanos == 0:
            return "0"
        whole = self.nanos % _NANO == 0
        if self.format is Format.BINARY_SI and whole and abs(self.nanos) >= 1024 * _NANO:
            return _binary_text(self.nanos // _NANO)
        mantissa, exponent = _decimal_parts(self.nanos)
        if self.format is Format.DECIMAL_EXPONENT:
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        letter = next(name for name, power in _DECIMAL.items() if power == exponent)
        return f"{mantissa}{letter}"

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


def _suffix(suffix: str) -> tuple[int, int, Format]:
    """Factor, divisor and format that a suffix stands for."""
    if suffix in _BINARY:
        return _BINARY[suffix], 1, Format.BINARY_SI
    if suffix in _DECIMAL:
        exponent, fmt = _DECIMAL[suffix], Format.DECIMAL_SI
    else:
        exponent, fmt = int(suffix[1:]), Format.DECIMAL_EXPONENT
    # Beyond these every non-zero number is capped, or rounds to one nano unit.
    exponent = max(-600, min(600, exponent))
    return 10 ** max(exponent, 0), 10 ** max(-exponent, 0), fmt


def _binary_text(value: int) -> str:
    letter = ""
    for name, factor in _BINARY.items():
        if value % factor == 0:
            letter = name
    return f"{value // _BINARY[letter] if letter else value}{letter}"


def _decimal_parts(nanos: int) -> tuple[int, int]:
    """Mantissa and exponent (a multiple of three, at most 18) without a fraction."""
    mantissa, exponent = nanos, -9
    while exponent < 18 and mantissa % 1000 == 0:
        mantissa //= 1000
        exponent += 3
    return mantissa, exponent

"""Exact quantities, as ``resource.Quantity`` of the Kubernetes API has them.

A quantity is ``unscaled * 10^exponent`` and the format it was written in, which decides the
canonical text: ``1024Mi`` becomes ``1Gi``, ``1000m`` becomes ``1``. Equality is equality of value.
No float is involved anywhere.

The rules are those of k8s.io/apimachinery v0.37.2, ``pkg/api/resource``, where they do not follow
from the API documentation too:

* Go holds a number of at most 18 digits as an int64 and a power of ten, any other one (and results
  that do not fit) as a decimal of any length. The two round negative numbers and overflow
  differently, so ``fast`` says which one it would be.
* Only numbers with a binary suffix are capped at 2^63-1, and only when they are read; a finer
  fraction than 10^-9 is rounded away from zero.
* Text that looks canonical is kept as written (``+5``, ``1.500``, ``1E3``) until the first
  arithmetic. A missing number is zero: ``+``, ``.``, ``Gi`` and ``k`` are quantities, while ``Ei``
  is none.
* Decimal SI has no suffix above E or below n, and the text then lacks it: ``1000E`` is ``1``.

One limit is ours: a number that needs more than 4,000 digits is refused (Go computes it, which for
``1e999999999`` plus 1 takes the memory of the machine). Powers of ten are not written out before
they must be, so ``1e999999999`` itself can be read, compared, negated and written.
"""

from __future__ import annotations

import enum
import math
import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

from dra_core.errors import InvalidQuantity


class Format(enum.Enum):
    """How a quantity is written."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


_BINARY: Final = {f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL: Final = dict(zip(["n", "u", "m", "", *"kMGTPE"], range(-9, 19, 3), strict=True))
_BINARY_TEXT: Final = {power: suffix for suffix, power in _BINARY.items()}
_DECIMAL_TEXT: Final = {power: suffix for suffix, power in _DECIMAL.items()}

_TEXT: Final = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?(.*)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]++)")
#: White space that a JSON string may carry unescaped and the API server therefore trims. Control
#: characters, U+2028 and U+2029 arrive escaped and make the text invalid.
_TRIMMED: Final = " \x85\xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))

_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)
_FAST_DIGITS: Final = 18
_NANO: Final = -9
_MAX_DIGITS: Final = 4000
#: Powers of ten that a double can hold.
_FLOAT_MAX: Final = 308
_FLOAT_MIN: Final = -323
_MAX_BITS: Final = (10**_MAX_DIGITS).bit_length()


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact quantity: ``unscaled * 10^exponent``, and the format for its text.

    ``fast`` is whether Go holds it as an int64 and a power of ten. ``written`` is the text to show
    as it stands; empty means the canonical text. Use ``parse``, ``whole`` or ``of_milli`` to make
    one.
    """

    unscaled: int
    exponent: int = 0
    format: Format = Format.DECIMAL_SI
    fast: bool = True
    written: str = ""

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read what ``ParseQuantity`` accepts: ``'80Gi'``, ``'100m'``, ``'1.5'``, ``'12e6'``.

        Raises InvalidQuantity for anything else, white space at the ends included.
        """
        match = _TEXT.fullmatch(text) if 0 < len(text) <= _MAX_DIGITS else None
        if match is None:
            raise _invalid(text)
        sign, whole, fraction, suffix = match.groups()
        power, form = _suffix(suffix, text)
        digits = (whole or "0") + (fraction or "")
        places = len(fraction or "")
        if form is Format.BINARY_SI:
            fast = not places and len(digits) + power * 3 // 10 <= 14
            exponent = 0
        else:
            exponent = _wrap(power - places, 32)
            fast = exponent >= _NANO and len(digits) <= _FAST_DIGITS
        if fast:
            number = int(digits)
            if form is Format.BINARY_SI:
                keep = number % 8 != 0
                number <<= power
            else:
                keep = exponent % 3 == 0 and digits[0] != "0" and not digits.endswith("000")
            number = -number if sign == "-" else number
            return cls(number, exponent, form, written=text if keep else "")
        if not text[: match.start(4)].strip("+-."):
            # Go reads the number anew on this way, and misses it.
            raise _invalid(text)
        return _long(match, power, form)

    @classmethod
    def from_json(cls, value: object) -> Quantity:
        """Read a decoded JSON value as the API server does: text, a number, or null for zero.

        Spaces around the text are dropped. A number counts as its shortest text. Raises
        InvalidQuantity.
        """
        if value is None:
            return cls(0)
        if isinstance(value, str):
            return cls.parse(value.strip(_TRIMMED))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidQuantity(f"quantity of type {type(value).__name__} is not valid: {_FIX}")
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise _too_long("a whole number")
        return cls.parse(repr(value))

    @classmethod
    def whole(cls, number: int, form: Format = Format.DECIMAL_SI) -> Quantity:
        """``number`` units; Go's ``NewQuantity``."""
        return cls(_bounded(number), 0, form, fast=_is_int64(number))

    @classmethod
    def of_milli(cls, number: int, form: Format = Format.DECIMAL_SI) -> Quantity:
        """``number`` thousandths; Go's ``NewMilliQuantity``."""
        return cls(_bounded(number), -3, form, fast=_is_int64(number))

    # -- what it is --

    def __str__(self) -> str:
        return self.written or _canonical(self)

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1: less than, equal to or greater than ``other``, in bounded time."""
        if self.exponent == other.exponent:
            return _order(self.unscaled, other.unscaled)
        if self.sign() != other.sign() or not self.unscaled:
            return _order(self.sign(), other.sign())
        magnitudes = _order(_magnitude(self), _magnitude(other))
        if magnitudes:
            return magnitudes * self.sign()
        low = min(self.exponent, other.exponent)
        return _order(
            self.unscaled * _ten(self.exponent - low),
            other.unscaled * _ten(other.exponent - low),
        )

    def __eq__(self, other: object) -> bool:
        return self.compare(other) == 0 if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __hash__(self) -> int:
        number, times = _without_factors(self.unscaled, 10)
        return hash((number, self.exponent + times if number else 0))

    def is_zero(self) -> bool:
        """Whether it is nothing."""
        return self.unscaled == 0

    def sign(self) -> int:
        """-1, 0 or 1."""
        return _order(self.unscaled, 0)

    @property
    def nanos(self) -> int:
        """The value in 10^-9 units, a finer fraction rounded away from zero.

        Raises InvalidQuantity beyond 4,000 digits.
        """
        return _at(self.unscaled, self.exponent, _NANO)

    def value(self) -> int:
        """The value in whole units as an int64, as Go's ``Value()`` has it.

        Exact, and rounded up, from 0 to 2^63-1. Other values are what Go makes of them, which is
        seldom useful: too large ones wrap around or become 0, and of negative ones only the
        ``fast`` are rounded away from zero.
        """
        return _scaled(self, 0)

    def milli_value(self) -> int:
        """The value in thousandths as an int64, as Go's ``MilliValue()`` has it; see ``value``."""
        return _scaled(self, -3)

    def as_int64(self) -> int | None:
        """The whole number that Go's ``AsInt64()`` gives; None also for ``1000m`` and ``1.0``.

        This is what ``isInteger`` and ``asInteger`` of CEL look at.
        """
        if not self.fast or self.exponent < 0:
            return None
        result, fits = _up64(self.unscaled, self.exponent)
        return result if fits else None

    def approximate_float(self) -> float:
        """The value as a double, as Go's ``AsApproximateFloat64()`` computes it: the nearest double
        to the unscaled number, times a power of ten which is a product of two doubles itself.
        """
        try:
            number = float(self.unscaled)
        except OverflowError:
            number = math.inf * self.sign()
        return number * _float_ten(self.exponent) if self.exponent else number

    # -- arithmetic; all of it raises InvalidQuantity beyond 4,000 digits --

    def add(self, other: Quantity) -> Quantity:
        """The sum, in the format of ``self``, or of ``other`` where ``self`` is zero."""
        form = self.format if self.unscaled else other.format
        if self.fast and other.fast:
            if not other.unscaled:
                return Quantity(self.unscaled, self.exponent, form)
            if not self.unscaled:
                return Quantity(other.unscaled, other.exponent, form)
        low = min(self.exponent, other.exponent)
        left, right = (
            _at(self.unscaled, self.exponent, low),
            _at(other.unscaled, other.exponent, low),
        )
        fast = self.fast and other.fast and all(map(_is_int64, (left, right, left + right)))
        return Quantity(_bounded(left + right), low, form, fast=fast)

    def sub(self, other: Quantity) -> Quantity:
        """The difference, in the format of ``self``, or of ``other`` where ``self`` is zero."""
        if self.fast and other.fast:
            total = self.add(other.neg())
            if total.fast:
                return total
        return self.add(Quantity(-other.unscaled, other.exponent, other.format, fast=False))

    def mul(self, factor: int) -> Quantity:
        """``factor`` (an int64) times the quantity, in its format; Go's ``Mul``."""
        if self.fast:
            if not self.unscaled or not factor:
                exponent = self.exponent if not self.unscaled else 0
                return Quantity(0, exponent, self.format)
            product = self.unscaled * factor
            if self._holds(factor, product):
                return Quantity(product, self.exponent, self.format)
        return Quantity(_bounded(self.unscaled * factor), self.exponent, self.format, fast=False)

    def _holds(self, factor: int, product: int) -> bool:
        """Whether Go goes on with an int64 and a power of ten after a multiplication."""
        by_one = 1 in (self.unscaled, factor)
        if not _is_int64(product) or (_INT64_MIN in (self.unscaled, factor) and not by_one):
            return False
        if self.exponent >= 0:
            return _up64(product, self.exponent)[1]
        return product % _ten(-self.exponent) == 0

    def times(self, other: Quantity) -> Quantity:
        """The product of two quantities, exact, in the format of ``self``.

        The scheduler multiplies a consumed capacity by a ``capacityMultiplier`` other than 1 so.
        """
        product = _bounded(self.unscaled * other.unscaled)
        exponent = self.exponent + other.exponent
        if self.format is Format.BINARY_SI and product and exponent > _MAX_DIGITS:
            raise _too_long("it")
        return Quantity(product, exponent, self.format, fast=False)

    def neg(self) -> Quantity:
        """The quantity with its sign changed (Go leaves a fast -2^63 as it is)."""
        number = _wrap(-self.unscaled, 64) if self.fast else -self.unscaled
        return Quantity(number, self.exponent, self.format, self.fast)


# -- reading --


_FIX: Final = (
    "write a number with an optional suffix "
    "(n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3)"
)


def _invalid(text: str) -> InvalidQuantity:
    if len(text) > _MAX_DIGITS:
        return _too_long("the text")
    shown = text if len(text) <= 40 else text[:37] + "..."
    return InvalidQuantity(f"quantity {shown!r} is not valid: {_FIX}")


def _too_long(what: str) -> InvalidQuantity:
    return InvalidQuantity(
        f"quantity is not valid: {what} has more than {_MAX_DIGITS} digits: "
        "write a smaller number, or one of fewer digits"
    )


def _suffix(suffix: str, text: str) -> tuple[int, Format]:
    """The power (of two for a binary suffix, else of ten) that a suffix stands for.

    Of an exponent, which must be an int64, Go goes on to use the lower 32 bits.
    """
    if (power := _DECIMAL.get(suffix)) is not None:
        return power, Format.DECIMAL_SI
    if (power := _BINARY.get(suffix)) is not None:
        return power, Format.BINARY_SI
    match = _EXPONENT.fullmatch(suffix)
    exponent = int(match[1]) if match else None
    if exponent is None or not _is_int64(exponent):
        raise _invalid(text)
    return exponent, Format.DECIMAL_EXPONENT


def _long(match: re.Match[str], power: int, form: Format) -> Quantity:
    """A number that Go holds as a decimal: rounded up to 10^-9, a binary one capped."""
    sign, whole, fraction, _ = match.groups()
    fraction = fraction or ""
    number, exponent = int(whole + fraction or "0"), -len(fraction)
    if form is Format.BINARY_SI:
        number <<= power
    else:
        exponent = _wrap(exponent + power, 32)
    if number:
        number, exponent = _at(number, exponent, _NANO), _NANO
    if form is Format.BINARY_SI:
        if number > _INT64_MAX * _ten(-_NANO):
            number, exponent = _INT64_MAX, 0
        elif 0 < number < _ten(-exponent):
            form = Format.DECIMAL_SI
    return Quantity(-number if sign == "-" else number, exponent, form, fast=False)


# -- writing --


def _canonical(quantity: Quantity) -> str:
    """The text of the largest suffix (or exponent) that needs no fraction."""
    if not quantity.unscaled:
        return "0"
    if quantity.format is Format.BINARY_SI and _is_binary(quantity):
        whole = _at(quantity.unscaled, quantity.exponent, 0)
        if quantity.fast and whole == _INT64_MIN:  # has no absolute value in Go
            return str(whole)
        number, times = _without_factors(whole, 1024)
        return f"{number}{_BINARY_TEXT.get(times * 10, '')}"
    number, times = _without_factors(quantity.unscaled, 10)
    exponent = _wrap(quantity.exponent + times, 32)
    number *= _ten(exponent % 3)
    exponent = _wrap(exponent - exponent % 3, 32)
    if quantity.format is Format.DECIMAL_EXPONENT:
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_TEXT.get(exponent, '')}"


def _is_binary(quantity: Quantity) -> bool:
    """Whether a binary suffix can show the value: whole, and 1024 or more in magnitude."""
    if quantity.exponent < 0 and quantity.unscaled % _ten(-quantity.exponent):
        return False
    return abs(_at(quantity.unscaled, quantity.exponent, 0)) >= 1024


# -- whole numbers --


def _ten(power: int) -> int:
    """10^power, which must not be negative."""
    return int(10**power)


def _float_ten(power: int) -> float:
    if power > _FLOAT_MAX or power < _FLOAT_MIN:
        return math.inf if power > 0 else 0.0
    if power >= 0:
        return float(f"1e{power - power % 32}") * float(f"1e{power % 32}")
    return float(f"1e{-(-power - -power % 32)}") / float(f"1e{-power % 32}")


def _order(left: int, right: int) -> int:
    return (left > right) - (left < right)


def _wrap(number: int, bits: int) -> int:
    """What a signed integer of so many bits makes of a number."""
    half = 1 << (bits - 1)
    return (number + half) % (1 << bits) - half


def _is_int64(number: int) -> bool:
    return _INT64_MIN <= number <= _INT64_MAX


def _bounded(number: int) -> int:
    if number.bit_length() > _MAX_BITS:
        raise _too_long("it")
    return number


def _at(number: int, exponent: int, target: int) -> int:
    """``number * 10^exponent`` in units of 10^target, rounded away from zero."""
    shift = exponent - target
    if not number or not shift:
        return number
    if shift > 0:
        if shift > _MAX_DIGITS:
            raise _too_long("it")
        return _bounded(number * _ten(shift))
    magnitude = 1 if -shift > number.bit_length() else -(-abs(number) // _ten(-shift))
    return magnitude if number > 0 else -magnitude


def _magnitude(quantity: Quantity) -> int:
    """The power of ten just above the value."""
    return len(str(abs(quantity.unscaled))) + quantity.exponent


def _without_factors(number: int, base: int) -> tuple[int, int]:
    """``number`` divided by ``base`` as often as possible, and how often that was."""
    times = 0
    while number and number % base == 0:
        number //= base
        times += 1
    return number, times


def _up64(number: int, shift: int) -> tuple[int, bool]:
    """``number * 10^shift`` in int64 arithmetic, and whether it fitted.

    Without a fit the answer is 0, or the wrapped product for the shifts that Go does in one step.
    """
    if not number or shift <= 0:
        return number, True
    product = number * _ten(shift) if shift <= _FAST_DIGITS else 0
    if product and _is_int64(product):
        return product, True
    in_one_step = shift in (1, 2, 3, 6, 9) and number != _INT64_MIN
    return (_wrap(product, 64) if in_one_step else 0), False


def _scaled(quantity: Quantity, target: int) -> int:
    """The value in units of 10^target as Go's ``ScaledValue`` gives it: an int64, come what may."""
    number, shift = quantity.unscaled, quantity.exponent - target
    if quantity.fast:
        # At the upper end of 32 bits the difference wraps around, and nothing is multiplied.
        return _at(number, shift, 0) if shift < 0 else _up64(number, _wrap(shift, 32))[0]
    if not number or not shift:
        return _wrap(number, 64)
    if shift > 0:
        # 10^19 and more is no int64; amd64 makes -2^63 of it.
        factor = _ten(shift) if shift <= _FAST_DIGITS else _INT64_MIN
        return _wrap(_wrap(number, 64) * factor, 64)
    divisor = _ten(-shift)
    if number > _INT64_MAX or -shift > _FAST_DIGITS:
        return _wrap(-(-number // divisor), 64)
    number = _wrap(number, 64)
    quotient = abs(number) // divisor
    return (quotient if number >= 0 else -quotient) + (number % divisor != 0)

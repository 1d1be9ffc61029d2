"""Timestamps and durations from text and as text, and the parts of a moment, by the rules of Go's
``time``.

Go reads more than RFC 3339 allows: one digit for the hour, a comma before the fraction, offsets up
to ``+24:60``. Digits of a fraction behind the ninth are cut off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from dra_core.cel.library.arithmetic import SECOND, moment
from dra_core.cel.library.numerals import plain_text
from dra_core.cel.values import Duration, Timestamp

DAY: Final = 86_400
#: The calendar repeats itself after 400 years, weekdays included.
CYCLE_DAYS: Final = 146_097
_CYCLE_YEARS: Final = 400
_DAYS_TO_1970: Final = date(1970, 1, 1).toordinal() - 1
_DIGITS_OF_NANOS: Final = 9

_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)

_PART: Final = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^.0-9]+)")
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3_600 * SECOND,
}
_LIMIT: Final = 2**63
_WRAP: Final = 2**64 - 1


def parse_timestamp(text: str) -> Timestamp | None:
    """A timestamp as in RFC 3339; ``None`` if it is none.

    Errors: ``EvalError`` "timestamp overflow" for one in the year 0, or out of range in UTC.
    """
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    offset = _offset(found[8], found[9], found[10])
    days = _days(year, month, day)
    if days is None or offset is None or hour > 23 or minute > 59 or second > 59:
        return None
    seconds = days * DAY + hour * 3_600 + minute * 60 + second - offset
    fraction = (found[7] or "")[:_DIGITS_OF_NANOS].ljust(_DIGITS_OF_NANOS, "0")
    return moment(seconds * SECOND + int(fraction), offset)


def _offset(sign: str | None, hours: str | None, minutes: str | None) -> int | None:
    if sign is None or hours is None or minutes is None:
        return 0
    if int(hours) > 24 or int(minutes) > 60:
        return None
    seconds = int(hours) * 3_600 + int(minutes) * 60
    return -seconds if sign == "-" else seconds


def _days(year: int, month: int, day: int) -> int | None:
    """Days from 1970-01-01 to a date, ``None`` if there is no such date."""
    cycles, rest = divmod(year, _CYCLE_YEARS)
    try:
        ordinal = date(rest + _CYCLE_YEARS, month, day).toordinal()
    except ValueError:
        return None
    return ordinal + (cycles - 1) * CYCLE_DAYS - 1 - _DAYS_TO_1970


def timestamp_text(time: Timestamp) -> str:
    """A timestamp as in RFC 3339, with the offset it was written with."""
    seconds, nanos = divmod(time.nanos, SECOND)
    parts = civil(seconds + time.offset)
    hour, minute, second = parts.clock
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return (
        f"{parts.year:04d}-{parts.day.month:02d}-{parts.day.day:02d}"
        f"T{hour:02d}:{minute:02d}:{second:02d}{fraction}{_zone(time.offset)}"
    )


def _zone(offset: int) -> str:
    if offset == 0:
        return "Z"
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


@dataclass(frozen=True, slots=True)
class Civil:
    """A moment on the calendar and the clock. The year may be any; ``day`` is the date in the first
    400 years that has the same place in its year and in its week.
    """

    year: int
    day: date
    second_of_day: int

    @property
    def clock(self) -> tuple[int, int, int]:
        """Hour, minute, second."""
        minutes, second = divmod(self.second_of_day, 60)
        return minutes // 60, minutes % 60, second

    @property
    def day_of_year(self) -> int:
        """Counted from 1."""
        return self.day.toordinal() - date(self.day.year, 1, 1).toordinal() + 1


def civil(seconds: int) -> Civil:
    """The date and the time of day, from local seconds since 1970."""
    days, second = divmod(seconds, DAY)
    cycles, rest = divmod(days + _DAYS_TO_1970, CYCLE_DAYS)
    day = date.fromordinal(rest + 1)
    return Civil(day.year + cycles * _CYCLE_YEARS, day, second)


def parse_duration(text: str) -> Duration | None:
    """A duration such as ``-1h2.5s``; ``None`` if it is none or does not fit 64 bits.

    A sum that is exactly 2^64 counts as 0, as in Go.
    """
    negative = text.startswith("-")
    rest = text[1:] if text.startswith(("-", "+")) else text
    if rest == "0":
        return Duration(0)
    nanos = _sum(rest)
    if nanos is None or (nanos == _LIMIT and not negative):
        return None
    return Duration(-nanos if negative else nanos)


def _sum(text: str) -> int | None:
    total = place = 0
    while place < len(text) or place == 0:
        found = _PART.match(text, place)
        nanos = None if found is None else _nanos(found)
        if found is None or nanos is None:
            return None
        total = (total + nanos) & _WRAP
        if total > _LIMIT:
            return None
        place = found.end()
    return total


def _nanos(found: re.Match[str]) -> int | None:
    """One number with its unit, at most 2^63."""
    whole, dot, fraction, name = found.groups()
    unit = _UNITS.get(name)
    digits = whole.lstrip("0")
    if unit is None or not (whole or (dot and fraction)) or len(digits) > len(str(_LIMIT)):
        return None
    number = int(digits or "0")
    if number > _LIMIT // unit:
        return None
    nanos = number * unit
    if fraction:
        part, scale = _fraction(fraction)
        nanos += int(float(part) * (unit / scale))
    return nanos if nanos <= _LIMIT else None


def _fraction(digits: str) -> tuple[int, float]:
    """As many digits as 63 bits hold, and the power of ten they are to be divided by."""
    part, scale = 0, 1.0
    for digit in digits:
        longer = part * 10 + int(digit)
        if part > (_LIMIT - 1) // 10 or longer > _LIMIT:
            break
        part, scale = longer, scale * 10
    return part, scale


def duration_text(span: Duration) -> str:
    """A duration in seconds."""
    return plain_text(amount(span.nanos, SECOND)) + "s"


def amount(nanos: int, unit: int) -> float:
    """How many units a span has: the whole ones and the rest as doubles, added up."""
    whole, rest = divmod(abs(nanos), unit)
    size = float(whole) + rest / unit
    return -size if nanos < 0 else size

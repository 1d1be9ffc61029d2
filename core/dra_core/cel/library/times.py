"""The parts of a timestamp, in UTC or in a time zone, and what a duration comes to.

A time zone is an offset such as ``+02:00``, or a name such as ``Europe/Berlin``. For names the
reference reads the time zone files of the machine it runs on; so does this module, with
``zoneinfo``. That is the one place where the core looks at a file: the answer depends on the time
zone database that is installed, there as here, and without one a name is an error. ``Local`` is the
zone of the machine there, which in a container is UTC, and always UTC here.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from dra_core.cel.celtypes import DURATION, INT, STRING, TIMESTAMP
from dra_core.cel.faults import EvalError
from dra_core.cel.library.arithmetic import SECOND
from dra_core.cel.library.moments import CYCLE_DAYS, DAY, Civil, amount, civil
from dra_core.cel.library.numerals import parse_int
from dra_core.cel.signatures import Overload
from dra_core.cel.values import Duration, Timestamp

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # wall time of a zone that is named apart
_CYCLE: Final = CYCLE_DAYS * DAY
#: Seconds between which every zone's wall time is one that ``datetime`` can hold.
_EARLY: Final = -62_135_596_800 + 2 * DAY
_LATE: Final = 253_402_300_799 - 2 * DAY
_WITHOUT_FILE: Final = frozenset(("", "UTC", "Local"))

Part = Callable[[Civil], int]

#: Function, the end of its overload's identifier, and the part.
_PARTS: Final[tuple[tuple[str, str, Part], ...]] = (
    ("getFullYear", "year", lambda parts: parts.year),
    ("getMonth", "month", lambda parts: parts.day.month - 1),
    ("getDayOfYear", "day_of_year", lambda parts: parts.day_of_year - 1),
    ("getDayOfMonth", "day_of_month", lambda parts: parts.day.day - 1),
    ("getDate", "day_of_month_1_based", lambda parts: parts.day.day),
    ("getDayOfWeek", "day_of_week", lambda parts: parts.day.isoweekday() % 7),
    ("getHours", "hours", lambda parts: parts.clock[0]),
    ("getMinutes", "minutes", lambda parts: parts.clock[1]),
    ("getSeconds", "seconds", lambda parts: parts.clock[2]),
)

#: Functions that durations have too: the end of the overload's identifier, and the unit. These are
#: the whole units of a double, which for very long spans may be one more than there are.
_UNITS: Final = {
    "getHours": ("hours", 3_600 * SECOND),
    "getMinutes": ("minutes", 60 * SECOND),
    "getSeconds": ("seconds", SECOND),
}


def local_seconds(time: Timestamp, zone: str) -> int:
    """Wall time in a zone, as seconds since 1970. Errors: ``EvalError`` for an unknown zone."""
    seconds = time.nanos // SECOND
    if ":" in zone:
        return seconds + _fixed_offset(zone)
    return seconds if zone in _WITHOUT_FILE else seconds + _named_offset(zone, seconds)


def _fixed_offset(zone: str) -> int:
    """Seconds east of UTC for ``hours:minutes``; neither has a limit.

    What is too long wraps around, in minutes and again in nanoseconds.
    """
    hours, minutes = (_number(part) for part in zone.split(":", 1))
    offset = _wrapped(hours * 60 - minutes if zone.startswith("-") else hours * 60 + minutes)
    return int(amount(_wrapped(offset * 60 * SECOND), SECOND))


def _number(text: str) -> int:
    number = parse_int(text)
    if number is None:
        raise EvalError(f"time zone offset: not a number: {text!r}")
    return number


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _named_offset(zone: str, seconds: int) -> int:
    try:
        rules = zoneinfo.ZoneInfo(zone)  # refuses names that lead out of the database
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        raise EvalError(f"unknown time zone {zone}") from None
    # At the ends of the range the same day 400 years away has the same offset.
    if seconds < _EARLY:
        seconds += _CYCLE
    elif seconds > _LATE:
        seconds -= _CYCLE
    moment = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=rules)
    offset = rules.fromutc(moment).utcoffset()
    return 0 if offset is None else offset.days * DAY + offset.seconds


def _accessors() -> Iterator[Overload]:
    for function, name, part in _PARTS:
        yield from _timestamp(function, name, _in_utc(part), _in_zone(part))
        if function in _UNITS:
            kind, unit = _UNITS[function]
            yield _duration(function, kind, _whole_units(unit))
    yield from _timestamp("getMilliseconds", "milliseconds", _milliseconds, _milliseconds_in)
    yield _duration("getMilliseconds", "milliseconds", _total_milliseconds)


def _timestamp(
    function: str,
    name: str,
    in_utc: Callable[[Timestamp], int],
    in_zone: Callable[[Timestamp, str], int],
) -> Iterator[Overload]:
    overload = f"timestamp_to_{name}"
    with_zone = f"{overload}_tz" if name == "seconds" else f"{overload}_with_tz"
    yield Overload(overload, function, (TIMESTAMP,), INT, in_utc, member=True)
    yield Overload(with_zone, function, (TIMESTAMP, STRING), INT, in_zone, member=True)


def _duration(function: str, name: str, call: Callable[[Duration], int]) -> Overload:
    return Overload(f"duration_to_{name}", function, (DURATION,), INT, call, member=True)


def _in_utc(part: Part) -> Callable[[Timestamp], int]:
    return lambda time: part(civil(time.nanos // SECOND))


def _in_zone(part: Part) -> Callable[[Timestamp, str], int]:
    return lambda time, zone: part(civil(local_seconds(time, zone)))


def _milliseconds(time: Timestamp) -> int:
    return time.nanos % SECOND // 1_000_000


def _milliseconds_in(time: Timestamp, zone: str) -> int:
    """No zone changes them, but there must be such a zone."""
    local_seconds(time, zone)
    return _milliseconds(time)


def _whole_units(unit: int) -> Callable[[Duration], int]:
    return lambda span: int(amount(span.nanos, unit))


def _total_milliseconds(span: Duration) -> int:
    millis = abs(span.nanos) // 1_000_000
    return -millis if span.nanos < 0 else millis


OVERLOADS: Final[tuple[Overload, ...]] = tuple(_accessors())

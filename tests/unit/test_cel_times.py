"""Timestamps and durations of CEL. What is expected here is what cel-go 0.29.2 gave (Go 1.26)."""

from __future__ import annotations

import random
import zoneinfo
from datetime import UTC, datetime, timedelta

import pytest

from dra_core.cel.faults import EvalError
from dra_core.cel.library.moments import (
    parse_duration,
    parse_timestamp,
    timestamp_text,
)
from dra_core.cel.values import INT_MAX, INT_MIN, Duration, Timestamp, Value
from dra_testing.cel_dynamic_calls import call

SECOND = 10**9
HOUR = 3600 * SECOND
LATEST = 253_402_300_799 * SECOND
EARLIEST = -62_135_596_800 * SECOND


# -- text of timestamps ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "written", "seconds"),
    [
        ("1970-01-01T00:00:00Z", "", 0),
        ("2020-02-29T23:59:59Z", "", 1583020799),
        ("2000-02-29T00:00:00Z", "", 951782400),
        ("0001-01-01T00:00:00Z", "", -62135596800),
        ("9999-12-31T23:59:59Z", "", 253402300799),
        ("2020-01-01T00:00:00+02:00", "", 1577829600),
        ("2020-01-01T00:00:00-12:34", "", 1577882040),
        ("2020-01-01T00:00:00-00:00", "2020-01-01T00:00:00Z", 1577836800),
        ("2020-01-01T00:00:00+24:60", "2020-01-01T00:00:00+25:00", 1577746800),
        ("2020-01-01T1:02:03Z", "2020-01-01T01:02:03Z", 1577840523),
        ("0001-01-01T00:30:00-00:30", "", -62135596800 + 3600),
    ],
)
def test_timestamps_as_text(text: str, written: str, seconds: int) -> None:
    time = parse_timestamp(text)
    assert time is not None
    assert time.nanos == seconds * SECOND
    assert call("string", time) == (written or text)


@pytest.mark.parametrize(
    ("fraction", "nanos", "written"),
    [
        (".5", 500_000_000, ".5"),
        (",5", 500_000_000, ".5"),
        (".123456789", 123_456_789, ".123456789"),
        (".1234567899", 123_456_789, ".123456789"),
        (".000000000", 0, ""),
        (".100", 100_000_000, ".1"),
    ],
)
def test_fractions(fraction: str, nanos: int, written: str) -> None:
    time = parse_timestamp(f"1969-12-31T23:59:59{fraction}Z")
    assert time is not None
    assert time.nanos == -SECOND + nanos
    assert timestamp_text(time) == f"1969-12-31T23:59:59{written}Z"


@pytest.mark.parametrize(
    "text",
    [
        *["", "2020-01-01", "2020-01-01T00:00:00", "2020-01-01 00:00:00Z", "2020-01-01t00:00:00Z"],
        *["2020-01-01T00:00:00z", "2020-1-01T00:00:00Z", "2020-13-01T00:00:00Z"],
        *["2019-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2020-01-00T00:00:00Z"],
        *["2020-01-01T24:00:00Z", "2020-01-01T00:60:00Z", "2020-01-01T00:00:60Z"],
        *["2020-01-01T00:00:00.Z", "2020-01-01T00:00:00+25:00", "2020-01-01T00:00:00+00:61"],
        *["2020-01-01T00:00:00+0000", "2020-01-01T00:00:00Z ", "-020-01-01T00:00:00Z"],
        *["2020-01-01T00:00:00Z\n", "\u0662020-01-01T00:00:00Z", "2020-01-01T00:00:00+02"],
    ],
)
def test_what_is_no_timestamp(text: str) -> None:
    with pytest.raises(EvalError, match="type conversion error from 'string'"):
        call("timestamp", text)


@pytest.mark.parametrize(
    "text",
    ["0000-02-29T00:00:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"],
)
def test_timestamps_out_of_range(text: str) -> None:
    with pytest.raises(EvalError, match="timestamp overflow"):
        call("timestamp", text)


def test_the_year_10000_can_be_written_with_an_offset() -> None:
    assert timestamp_text(Timestamp(LATEST - HOUR, 14 * 3600)) == "10000-01-01T12:59:59+14:00"
    assert timestamp_text(Timestamp(EARLIEST, -3600)) == "0000-12-31T23:00:00-01:00"


def test_the_offset_is_no_part_of_the_moment() -> None:
    east, west = (
        parse_timestamp("2020-01-01T02:00:00+02:00"),
        parse_timestamp("2020-01-01T00:00:00Z"),
    )
    assert east == west
    assert hash(east) == hash(west)
    assert call("string", east) != call("string", west)
    assert call("getHours", east) == 0


def test_dates_against_datetime() -> None:
    source = random.Random(400)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for _ in range(2000):
        nanos = source.randint(EARLIEST // SECOND, LATEST // SECOND) * SECOND
        other = epoch + timedelta(seconds=nanos // SECOND)
        text = other.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
        assert timestamp_text(Timestamp(nanos)) == text
        assert parse_timestamp(text) == Timestamp(nanos)
        assert call("getDayOfYear", Timestamp(nanos)) == other.timetuple().tm_yday - 1
        assert call("getDayOfWeek", Timestamp(nanos)) == (other.weekday() + 1) % 7


# -- text of durations -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "nanos", "written"),
    [
        ("0", 0, "0s"),
        ("-0", 0, "0s"),
        ("1h2.5s", HOUR + 2_500_000_000, "3602.5s"),
        ("-1.5h", -5400 * SECOND, "-5400s"),
        ("1ns", 1, "0.000000001s"),
        ("1us1\u00b5s1\u03bcs", 3_000, "0.000003s"),
        (".5s", 500_000_000, "0.5s"),
        ("5.s", 5 * SECOND, "5s"),
        ("1h1h", 2 * HOUR, "7200s"),
        ("0.3333333333333333333h", 1_200_000_000_000, "1200s"),
        ("1.9223372036854775808s", 1_922_337_203, "1.922337203s"),
        ("0.1ns", 0, "0s"),
        ("9223372036854775807ns", INT_MAX, "9223372036.854776s"),
        ("-9223372036854775808ns", INT_MIN, "-9223372036.854776s"),
        ("2562047h47m16.854775807s", INT_MAX, "9223372036.854776s"),
        ("9223372036854775808ns9223372036854775808ns", 0, "0s"),
        ("0" * 100 + "1s", SECOND, "1s"),
        (f"0.{'0' * 400}1h", 0, "0s"),
        (f"1.{'9' * 400}s", 2 * SECOND, "2s"),
    ],
)
def test_durations_as_text(text: str, nanos: int, written: str) -> None:
    assert parse_duration(text) == Duration(nanos)
    assert call("string", Duration(nanos)) == written


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "-",
            "+",
            "1",
            "1.5",
            ".s",
            "s",
            "1d",
            "1S",
            "1 s",
            " 1s",
            "1s ",
            "1e3s",
            "--1s",
            "1h-1s",
        ],
        *["1..5s", "1_0s", "9223372036854775808ns", "-9223372036854775809ns", "2562048h"],
        *["9223372036.854775808s", "00", "1m1", "\u0661s", "9" * 5000 + "ns"],
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(EvalError, match="type conversion error from 'string'"):
        call("duration", text)


# -- parts -----------------------------------------------------------------------------------------
TIME = parse_timestamp("2023-07-14T10:30:45.123456Z")


@pytest.mark.parametrize(
    ("function", "in_utc", "in_zones"),
    [
        ("getFullYear", 2023, {"Asia/Tokyo": 2023}),
        ("getMonth", 6, {"+14:00": 6}),
        ("getDayOfYear", 194, {"-12:00": 193}),
        ("getDayOfMonth", 13, {"-11:00": 12}),
        ("getDate", 14, {"+13:30": 15}),
        ("getDayOfWeek", 5, {"America/Los_Angeles": 5, "Pacific/Kiritimati": 6}),
        ("getHours", 10, {"America/Los_Angeles": 3, "UTC": 10, "": 10, "Local": 10, "+02:00": 12}),
        ("getMinutes", 30, {"Asia/Kathmandu": 15, "-00:45": 45}),
        ("getSeconds", 45, {"+01:01": 45}),
        ("getMilliseconds", 123, {"Asia/Tokyo": 123}),
    ],
)
def test_parts_of_a_timestamp(function: str, in_utc: int, in_zones: dict[str, int]) -> None:
    assert call(function, TIME) == in_utc
    assert {zone: call(function, TIME, zone) for zone in in_zones} == in_zones


@pytest.mark.parametrize(
    ("zone", "minute_of_day"),
    [
        ("+1:90", 150),
        ("+1:-90", 1410),
        ("1:2", 62),
        ("-1:-1", 1381),
        ("+0:0", 0),
        ("-00:30", 1410),
        ("+25:00", 60),
        ("+153722867280:0", 1385),
    ],
)
def test_offsets_are_not_looked_at_closely(zone: str, minute_of_day: int) -> None:
    midnight = Timestamp(1_577_836_800 * SECOND)
    assert (
        call("getHours", midnight, zone) * 60 + call("getMinutes", midnight, zone) == minute_of_day
    )


@pytest.mark.parametrize(
    "zone",
    [
        *[
            "Nowhere/X",
            "../UTC",
            "/etc/localtime",
            "\\UTC",
            "Europe",
            "europe/berlin",
            "zone.tab",
            "Europe/../UTC",
            "a\0b",
        ],
        *[
            ":",
            "+1:",
            ":30",
            "+a:0",
            "1:2:3",
            "99999999999999999999:0",
            "+1:x",
            "\u0661:00",
            "x" * 5000,
        ],
    ],
)
@pytest.mark.parametrize("function", ["getHours", "getMilliseconds"])
def test_unknown_zones(function: str, zone: str) -> None:
    with pytest.raises(EvalError, match="time zone"):
        call(function, TIME, zone)


@pytest.mark.parametrize(
    ("nanos", "zone", "year", "minute"),
    [
        (EARLIEST, "America/New_York", 0, 3),
        (EARLIEST, "-00:01", 0, 59),
        (LATEST, "Asia/Tokyo", 10000, 59),
        (LATEST, "+14:00", 10000, 59),
        (LATEST, "America/New_York", 9999, 59),
        (-2208988800 * SECOND, "Europe/Amsterdam", 1900, 19),
    ],
)
def test_zones_at_the_ends_of_time(nanos: int, zone: str, year: int, minute: int) -> None:
    if zone not in ("-00:01", "+14:00") and zone not in zoneinfo.available_timezones():
        pytest.skip("no time zone database")
    assert call("getFullYear", Timestamp(nanos), zone) == year
    assert call("getMinutes", Timestamp(nanos), zone) == minute


def test_summer_time() -> None:
    before = Timestamp(1_679_792_399 * SECOND)  # 2023-03-26T00:59:59Z
    assert call("getHours", before, "Europe/Berlin") == 1
    assert call("getHours", Timestamp(before.nanos + SECOND), "Europe/Berlin") == 3


@pytest.mark.parametrize(
    ("nanos", "zone", "year", "day"),
    [
        (EARLIEST, "-2562047:00", -292, 265),
        (LATEST, "+2562047:00", 10292, 100),
        (EARLIEST, "-24:00", 0, 365),
        (LATEST, "+00:01", 10000, 0),
    ],
)
def test_years_outside_of_datetime(nanos: int, zone: str, year: int, day: int) -> None:
    assert call("getFullYear", Timestamp(nanos), zone) == year
    assert call("getDayOfYear", Timestamp(nanos), zone) == day


@pytest.mark.parametrize(
    ("nanos", "parts"),
    [
        (2 * HOUR - 1, (1, 119, 7199, 7_199_999)),
        (-1_500_000_000, (0, 0, -1, -1500)),
        (-HOUR, (-1, -60, -3600, -3_600_000)),
        # a double cannot tell these from the full hour and minute
        (2562047 * HOUR - 1, (2562047, 153722820, 9223369200, 9_223_369_199_999)),
        (INT_MIN, (-2562047, -153722867, -9223372036, -9_223_372_036_854)),
    ],
)
def test_parts_of_a_duration(nanos: int, parts: tuple[int, ...]) -> None:
    functions = ("getHours", "getMinutes", "getSeconds", "getMilliseconds")
    assert tuple(call(function, Duration(nanos)) for function in functions) == parts


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("getHours", (1,)),
        ("getFullYear", (Duration(1),)),
        ("getHours", (Duration(1), "UTC")),
        ("getHours", (Timestamp(0), 1)),
        ("getDate", ("2020-01-01T00:00:00Z",)),
    ],
)
def test_what_has_no_such_part(function: str, args: tuple[Value, ...]) -> None:
    with pytest.raises(EvalError, match="no such overload"):
        call(function, *args)

"""Quantities: exact, canonical, bounded. The comparison with Go is in contract/test_values.py."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from dra_core.errors import InvalidQuantity
from dra_core.quantity import Format, Quantity

if TYPE_CHECKING:
    from collections.abc import Callable

Q = Quantity.parse


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("1024Mi", "1Gi"),
        ("1000Ki", "1000Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("512", "512"),
        ("1Ki", "1Ki"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("100m", "100m"),
        (".5", "500m"),
        ("-5", "-5"),
        ("1000", "1k"),
        ("1000000", "1M"),
        ("12e6", "12e6"),
        ("1000e3", "1e6"),
        ("1E", "1E"),
        ("9e30", "9e30"),
        ("100Ei", "9223372036854775807"),
        ("0.0000000001", "1n"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(Q(text)) == canonical
    assert Q(canonical) == Q(text)


def test_many_digits_are_kept() -> None:
    assert str(Q("9" * 300)) == "9" * 300


@pytest.mark.parametrize("text", ["+5", "5.", "1.500", "1E3", "005", "1e+3"])
def test_text_that_looks_canonical_stays_as_written_until_something_is_calculated(
    text: str,
) -> None:
    assert str(Q(text)) == text
    assert str(Q(text).add(Q("0"))) != text


def test_a_decimal_beyond_the_suffixes_is_written_without_one_as_the_api_server_does() -> None:
    assert str(Q("1000E")) == "1"
    assert Q("1000E") > Q("1")


@pytest.mark.parametrize("text", ["+", "-", ".", "Gi", "k", "e5", ".Ki"])
def test_a_missing_number_is_zero(text: str) -> None:
    assert Q(text).is_zero()


@pytest.mark.parametrize(
    "text",
    [
        *["", " 1", "1 ", "1\n", "Ei", "1.2.3", "1gi", "1KI", "0x10", "1e", "--1", "1_0", "\u0663"],
        *["80GB", "1e9223372036854775808", "inf", "1,5"],
    ],
)
def test_what_is_no_quantity_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidQuantity, match="write a number with an optional suffix"):
        Q(text)


def test_values_compare_whatever_they_are_written_in() -> None:
    assert Q("1Ki") == Q("1024")
    assert Q("1k") < Q("1Ki")
    assert Q("-1n") < Q("0") < Q("1n")
    assert len({Q("1"), Q("1000m"), Q("1.0"), Q("1e0")}) == 1
    assert Q("1") != "1"


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("1Ki", "1k", "2024"),
        ("0", "1Gi", "1Gi"),
        ("1Gi", "1Gi", "2Gi"),
        ("1k", "1Ki", "2024"),
        ("1e3", "1k", "2e3"),
        ("1", "1n", "1000000001n"),
        ("9223372036854775807", "1", "9223372036854775808"),
    ],
)
def test_a_sum_has_the_format_of_the_first_that_is_not_zero(
    left: str, right: str, total: str
) -> None:
    assert str(Q(left).add(Q(right))) == total
    assert Q(left).add(Q(right)).sub(Q(right)) == Q(left)


def test_the_least_int64_has_no_opposite_in_go() -> None:
    least = Q("1Ti").mul(-(2**23))
    assert least.fast
    assert str(least) == "-9223372036854775808"
    assert least.neg() == least
    assert Q("-1").sub(least) == Quantity.whole(2**63 - 1)
    assert Q("1").sub(least) == Quantity.whole(1 - 2**63)


def test_products() -> None:
    assert str(Q("64Mi").mul(3)) == "192Mi"
    assert str(Q("1500m").mul(2)) == "3"
    assert str(Q("3Gi").times(Q("0.5"))) == "1536Mi"
    assert str(Q("300m").times(Q("1.5"))) == "450m"
    assert Q("5").mul(0).is_zero()


@pytest.mark.parametrize(
    ("text", "value", "milli", "int64"),
    [
        ("300m", 1, 300, None),
        ("1.1m", 1, 2, None),
        ("1Ki", 1024, 1024000, 1024),
        ("1.0", 1, 1000, None),
        ("-1500m", -2, -1500, None),
        ("-1.0000000001", 0, -999, None),
        ("9E", 9 * 10**18, 0, 9 * 10**18),
        ("1e20", 0, 0, None),
    ],
)
def test_whole_numbers_are_those_of_go(
    text: str, value: int, milli: int, int64: int | None
) -> None:
    quantity = Q(text)
    assert (quantity.value(), quantity.milli_value(), quantity.as_int64()) == (value, milli, int64)


def test_nanos_are_exact_or_rounded_away_from_zero() -> None:
    assert Q("1Ki").nanos == 1024 * 10**9
    assert Q("1n").times(Q("0.1")).nanos == 1
    assert Q("-1n").times(Q("0.1")).nanos == -1


def test_made_from_numbers() -> None:
    assert str(Quantity.whole(2048, Format.BINARY_SI)) == "2Ki"
    assert str(Quantity.of_milli(1500)) == "1500m"
    assert Quantity.whole(2**70) == Q(str(2**70))


@pytest.mark.parametrize(
    ("value", "text"),
    [("1Gi", "1Gi"), (" 1Gi\u00a0", "1Gi"), (5, "5"), (1.5, "1500m"), (1e21, "1e+21"), (None, "0")],
)
def test_decoded_json_is_read_as_the_api_server_does(value: object, text: str) -> None:
    assert str(Quantity.from_json(value)) == text


@pytest.mark.parametrize("value", [True, [], {}, "1\t", "\n1", "", float("nan"), float("inf")])
def test_other_json_is_refused(value: object) -> None:
    with pytest.raises(InvalidQuantity, match="write a number with an optional suffix"):
        Quantity.from_json(value)


# --- bounds ---


def test_huge_exponents_are_read_written_and_compared_without_being_written_out() -> None:
    started = time.process_time()
    huge, tiny = Q("1e999999999"), Q("1e-999999999")
    assert str(huge) == "1e999999999"
    assert str(tiny) == "1e-9"
    assert huge > Q("9e999999998") > tiny
    assert huge.neg() < Q("-1")
    assert huge == Q("10e999999998")
    assert len({huge, Q("10e999999998")}) == 1
    assert (huge.value(), huge.milli_value(), huge.as_int64()) == (0, 0, None)
    assert str(huge.mul(7)) == "7e999999999"
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "calculation",
    [
        lambda: Q("1e999999999").add(Q("1")),
        lambda: Q("1").sub(Q("1e999999999")),
        lambda: Q("1e999999999").nanos,
        lambda: Q("1Ki").times(Q("1e999999999")),
        lambda: Q("9" * 19 + "e999999999"),
        lambda: Q("9" * 4001),
        lambda: Q("9" * 3000).times(Q("9" * 3000)),
        lambda: Quantity.whole(10**5000),
        lambda: Quantity.from_json(10**5000),
    ],
)
def test_numbers_of_more_than_4000_digits_are_refused(calculation: Callable[[], object]) -> None:
    started = time.process_time()
    with pytest.raises(InvalidQuantity, match="has more than 4000 digits: write a smaller number"):
        calculation()
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "text",
    ["0" * 3999 + "x", "1" * 3999 + "x", "1e" + "0" * 3990 + "x"],
    ids=["zeros", "ones", "exponent"],
)
def test_long_garbage_is_refused_in_no_time(text: str) -> None:
    started = time.process_time()
    with pytest.raises(InvalidQuantity) as caught:
        Q(text)
    assert time.process_time() - started < 0.1
    assert len(str(caught.value)) < 250

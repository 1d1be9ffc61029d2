"""Conversions and optional values of CEL. What is expected here is what cel-go 0.29.2 gave."""

from __future__ import annotations

import math
import random

import pytest

from dra_core.cel.faults import EvalError
from dra_core.cel.library import conversions
from dra_core.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    UINT_MAX,
    Duration,
    Map,
    Optional,
    QuantityValue,
    Timestamp,
    TypeValue,
    Uint,
    Value,
)
from dra_core.quantity import Quantity
from dra_testing.cel_dynamic_calls import call, same

SECOND = 10**9
INF, NAN = math.inf, math.nan
QUANTITY = QuantityValue(Quantity.parse("1"))
FIRST = Timestamp(-62_135_596_800 * SECOND)


CONVERTED: list[tuple[str, Value, Value]] = [
    ("int", 1.9, 1),
    ("int", -1.9, -1),
    ("int", -9223372036854774784.0, -9223372036854774784),
    ("int", Uint(2**63 - 1), INT_MAX),
    ("int", "+5", 5),
    ("int", "-9223372036854775808", INT_MIN),
    ("int", "0" * 5000 + "12", 12),
    ("int", Timestamp(-1), -1),
    ("int", Timestamp(1_500_000_000), 1),
    ("int", Duration(-5), -5),
    ("uint", -0.0, Uint(0)),
    ("uint", 18446744073709549568.0, Uint(18446744073709549568)),
    ("uint", "18446744073709551615", Uint(UINT_MAX)),
    ("uint", INT_MAX, Uint(INT_MAX)),
    ("double", INT_MAX, 2.0**63),
    ("double", Uint(UINT_MAX), 2.0**64),
    ("double", "1_00.5_0e1_0", 1005000000000.0),
    ("double", "0x_1.8p-2", 0.375),
    ("double", "0X1P+2", 4.0),
    ("double", ".5", 0.5),
    ("double", "5.", 5.0),
    ("double", "-INF", -INF),
    ("double", "+Infinity", INF),
    ("double", "nAn", NAN),
    ("double", "1e-400", 0.0),
    ("double", "-0", -0.0),
    ("double", "1.7976931348623158e308", 1.7976931348623157e308),
    ("double", "9007199254740993", 9007199254740992.0),
    ("bool", "t", True),
    ("bool", "TRUE", True),
    ("bool", "0", False),
    ("bytes", "\u00e9", b"\xc3\xa9"),
    ("string", b"\xc3\xa9", "\u00e9"),
    ("string", True, "true"),
    ("string", INT_MIN, "-9223372036854775808"),
    ("string", Uint(UINT_MAX), "18446744073709551615"),
    ("string", 1.0, "1"),
    ("string", -0.0, "-0"),
    ("string", 100000.0, "100000"),
    ("string", 1e6, "1e+06"),
    ("string", 123456789.0, "1.23456789e+08"),
    ("string", -1234567.5, "-1.2345675e+06"),
    ("string", 1e20, "1e+20"),
    ("string", 1e100, "1e+100"),
    ("string", 0.0001, "0.0001"),
    ("string", 0.00001, "1e-05"),
    ("string", 5e-324, "5e-324"),
    ("string", 0.1, "0.1"),
    ("string", NAN, "NaN"),
    ("string", INF, "+Inf"),
    ("string", -INF, "-Inf"),
    ("dyn", [1], [1]),
    ("type", 1, TypeValue("int")),
    ("type", Uint(1), TypeValue("uint")),
    ("type", None, TypeValue("null_type")),
    ("type", Duration(1), TypeValue("google.protobuf.Duration")),
    ("type", [1], TypeValue("list")),
    ("type", TypeValue("int"), TypeValue("type")),
    ("type", NONE, TypeValue("optional_type")),
    ("type", QUANTITY, TypeValue("kubernetes.Quantity")),
]


@pytest.mark.parametrize(("function", "value", "expected"), CONVERTED)
def test_conversions(function: str, value: Value, expected: Value) -> None:
    assert same(call(function, value), expected)


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        ("int", -9223372036854775808.0, "integer overflow"),
        ("int", 9223372036854775808.0, "integer overflow"),
        ("int", NAN, "integer overflow"),
        ("int", Uint(2**63), "integer overflow"),
        ("uint", -0.5, "unsigned integer overflow"),
        ("uint", 2.0**64, "unsigned integer overflow"),
        ("uint", -1, "unsigned integer overflow"),
        *[
            ("int", text, "from 'string' to 'int'")
            for text in (
                "",
                "1_0",
                "0x1",
                " 1",
                "1.0",
                "--1",
                "9223372036854775808",
                "\u0661",
                "9" * 6000,
            )
        ],
        *[
            ("uint", text, "from 'string' to 'uint'")
            for text in ("+5", "-0", "18446744073709551616", "5u")
        ],
        *[
            ("double", text, "from 'string' to 'double'")
            for text in (
                "",
                ".",
                "1e400",
                "-1e400",
                "0x1",
                "0x1p1024",
                "1__0",
                "_1",
                "1_",
                "1_.5",
                "1e_5",
                "+nan",
                "infi",
                " 1",
                "1e",
                "0b1",
                "1f",
            )
        ],
        *[("bool", text, "from 'string' to 'bool'") for text in ("", "tRUE", "yes", " true")],
        ("string", b"\xff", "invalid UTF-8 in bytes, cannot convert to string"),
        ("string", b"\xed\xa0\x80", "invalid UTF-8 in bytes, cannot convert to string"),
        ("timestamp", 253402300800, "timestamp overflow"),
        ("timestamp", -62135596801, "timestamp overflow"),
        *[("string", value, "no such overload") for value in (None, [1], TypeValue("int"), NONE)],
        ("bool", 1, "no such overload"),
        ("bytes", 1, "no such overload"),
        ("timestamp", 1.0, "no such overload"),
    ],
)
def test_what_cannot_be_converted(function: str, value: Value, text: str) -> None:
    with pytest.raises(EvalError) as caught:
        call(function, value)
    assert text in caught.value.text


def test_doubles_survive_their_text() -> None:
    source = random.Random(1)
    for _ in range(2000):
        number = float.fromhex(
            f"{source.choice('+-')}0x1.{source.getrandbits(52):013x}p{source.randint(-1022, 1023)}"
        )
        text = call("string", number)
        assert call("double", text) == number
        assert not text.endswith(".0")
        assert ("e" in text) is not (1e-4 <= abs(number) < 1e6)


def test_the_duration_of_a_number_never_had_a_value() -> None:
    overload = next(o for o in conversions.OVERLOADS if o.id == "int64_to_duration")
    assert overload.call is not None
    with pytest.raises(EvalError, match="type conversion error from 'int'"):
        overload.call(1)


# -- optional values -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "zero",
    [False, 0, Uint(0), 0.0, -0.0, "", b"", None, [], Map.of([]), Duration(0), FIRST],
)
def test_values_that_count_as_zero(zero: Value) -> None:
    assert call("optional.ofNonZeroValue", zero) is NONE
    assert call("optional.of", zero) == Optional(has_value=True, value=zero)


@pytest.mark.parametrize(
    "value",
    [
        True,
        1,
        NAN,
        "0",
        [None],
        Map({}, default=Map.of([])),
        Timestamp(0),
        NONE,
        QUANTITY,
        TypeValue("int"),
    ],
)
def test_values_that_do_not(value: Value) -> None:
    assert call("optional.ofNonZeroValue", value).value is value


def test_reading_an_optional() -> None:
    assert call("optional.none") is NONE
    assert call("value", Optional(has_value=True, value=5)) == 5
    assert call("hasValue", Optional(has_value=True, value=None)) is True
    assert call("hasValue", NONE) is False
    with pytest.raises(EvalError, match=r"optional.none\(\) dereference"):
        call("value", NONE)
    for function in ("value", "hasValue"):
        with pytest.raises(EvalError, match="no such overload"):
            call(function, 1)


def test_optionals_and_lists() -> None:
    some = [Optional(has_value=True, value=1), NONE, Optional(has_value=True, value=None)]
    for function in ("optional.unwrap", "unwrapOpt"):
        assert call(function, some) == [1, None]
        assert call(function, []) == []
        with pytest.raises(EvalError, match="not optional"):
            call(function, [*some, 1])
        with pytest.raises(EvalError, match="no such overload"):
            call(function, [1])  # the first item decides whether the list fits
    assert call("first", [1, 2]).value == 1
    assert call("last", [1, 2]).value == 2
    assert call("first", []) is call("last", []) is NONE

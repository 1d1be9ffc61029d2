"""Arithmetic of CEL. What is expected here is what cel-go 0.29.2 gave."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest

from dra_core.cel.faults import CostExceeded, EvalError
from dra_core.cel.library import bounds
from dra_core.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Map, Timestamp, Uint, Value
from dra_testing.cel_dynamic_calls import call, same

SECOND = 10**9
INF, NAN = math.inf, math.nan

SUMS: list[tuple[str, Value, Value, Value]] = [
    ("_+_", INT_MAX, 0, INT_MAX),
    ("_+_", INT_MAX, INT_MIN, -1),
    ("_-_", -1, INT_MAX, INT_MIN),
    ("_*_", 3037000499, 3037000499, 9223372030926249001),
    ("_*_", INT_MIN, 1, INT_MIN),
    ("_/_", 7, 2, 3),
    ("_/_", -7, 2, -3),
    ("_/_", 7, -2, -3),
    ("_/_", INT_MIN, 2, -(2**62)),
    ("_/_", INT_MAX, -1, -INT_MAX),
    ("_%_", 7, -3, 1),
    ("_%_", -7, 3, -1),
    ("_%_", INT_MIN, 3, -2),
    ("_+_", Uint(UINT_MAX), Uint(0), Uint(UINT_MAX)),
    ("_-_", Uint(5), Uint(5), Uint(0)),
    ("_*_", Uint(2**32), Uint(2**31), Uint(2**63)),
    ("_/_", Uint(UINT_MAX), Uint(2), Uint(2**63 - 1)),
    ("_%_", Uint(UINT_MAX), Uint(10), Uint(5)),
    ("_+_", 1e308, 1e308, INF),
    ("_-_", INF, INF, NAN),
    ("_*_", -0.0, 5.0, -0.0),
    ("_/_", 1.0, 0.0, INF),
    ("_/_", 1.0, -0.0, -INF),
    ("_/_", -INF, 0.0, -INF),
    ("_/_", 0.0, 0.0, NAN),
    ("_/_", NAN, 0.0, NAN),
    ("_/_", 1.0, INF, 0.0),
    ("_+_", "a", "\u00e9", "a\u00e9"),
    ("_+_", b"\xff", b"a", b"\xffa"),
    ("_+_", [1], ["a", 2.0], [1, "a", 2.0]),
    ("_+_", Duration(INT_MAX), Duration(INT_MIN), Duration(-1)),
    ("_-_", Duration(0), Duration(INT_MAX), Duration(-INT_MAX)),
    ("_+_", Duration(-1), Timestamp(0), Timestamp(-1)),
    ("_+_", Timestamp(5), Duration(SECOND), Timestamp(5 + SECOND)),
    ("_-_", Timestamp(0), Duration(INT_MAX), Timestamp(-INT_MAX)),
    ("_-_", Timestamp(INT_MAX), Timestamp(0), Duration(INT_MAX)),
    ("_-_", Timestamp(0), Timestamp(SECOND // 2), Duration(-SECOND // 2)),
]


@pytest.mark.parametrize(("function", "left", "right", "expected"), SUMS)
def test_sums(function: str, left: Value, right: Value, expected: Value) -> None:
    assert same(call(function, left, right), expected)


FIRST = Timestamp(-62_135_596_800 * SECOND)
LAST = Timestamp(253_402_300_799 * SECOND + 999_999_999)

OVERFLOWS: list[tuple[str, Value, Value, str]] = [
    ("_+_", INT_MAX, 1, "integer overflow"),
    ("_+_", INT_MIN, -1, "integer overflow"),
    ("_-_", INT_MIN, 1, "integer overflow"),
    ("_-_", 0, INT_MIN, "integer overflow"),
    ("_*_", 3037000500, 3037000500, "integer overflow"),
    ("_*_", INT_MIN, -1, "integer overflow"),
    ("_/_", INT_MIN, -1, "integer overflow"),
    ("_%_", INT_MIN, -1, "integer overflow"),
    ("_/_", 1, 0, "division by zero"),
    ("_%_", 1, 0, "modulus by zero"),
    ("_/_", Uint(1), Uint(0), "division by zero"),
    ("_%_", Uint(1), Uint(0), "modulus by zero"),
    ("_+_", Uint(UINT_MAX), Uint(1), "unsigned integer overflow"),
    ("_-_", Uint(0), Uint(1), "unsigned integer overflow"),
    ("_*_", Uint(2**32), Uint(2**32), "unsigned integer overflow"),
    ("_+_", Duration(INT_MAX), Duration(1), "integer overflow"),
    ("_-_", Duration(INT_MIN), Duration(1), "integer overflow"),
    ("_+_", LAST, Duration(1), "timestamp overflow"),
    ("_-_", FIRST, Duration(1), "timestamp overflow"),
    ("_-_", Timestamp(0), Duration(INT_MIN), "integer overflow"),
    ("_-_", LAST, FIRST, "integer overflow"),
    # -2^63 ns fits, but the reference scales -9223372037 s first
    ("_-_", Timestamp(INT_MIN), Timestamp(0), "integer overflow"),
]


@pytest.mark.parametrize(("function", "left", "right", "text"), OVERFLOWS)
def test_what_does_not_fit_is_an_error(function: str, left: Value, right: Value, text: str) -> None:
    with pytest.raises(EvalError) as caught:
        call(function, left, right)
    assert caught.value.text == text


def test_integers_against_wide_arithmetic() -> None:
    """Go's rules in exact numbers: truncation, and an error for whatever leaves the 64 bits."""
    source = random.Random(37)
    edges = [INT_MIN, INT_MIN + 1, -2, -1, 1, 2, INT_MAX - 1, INT_MAX, 2**32, -(2**31)]

    def number() -> int:
        return source.choice(
            [source.choice(edges), source.getrandbits(64) - 2**63, source.randint(-9, 9)]
        )

    wide: dict[str, Callable[[int, int], int]] = {
        "_+_": lambda a, b: a + b,
        "_-_": lambda a, b: a - b,
        "_*_": lambda a, b: a * b,
        "_/_": lambda a, b: int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b)),
        "_%_": lambda a, b: int(math.copysign(1, a)) * (abs(a) % abs(b)),
    }
    outcomes: Counter[bool] = Counter()
    for _ in range(3000):
        function, left, right = source.choice(list(wide)), number(), number() or 1
        exact = wide[function](left, right)
        fits = INT_MIN <= exact <= INT_MAX and (function != "_%_" or (left, right) != (INT_MIN, -1))
        outcomes[fits] += 1
        try:
            assert call(function, left, right) == exact
            assert fits
        except EvalError:
            assert not fits
    assert min(outcomes.values()) > 300


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, -5), (-INT_MAX, INT_MAX), (0.0, -0.0), (INF, -INF), (Duration(SECOND), Duration(-SECOND))],
)
def test_the_sign(value: Value, expected: Value) -> None:
    assert same(call("-_", value), expected)


@pytest.mark.parametrize(
    "value", [True, "a", Uint(1), None, Timestamp(0), INT_MIN, Duration(INT_MIN)]
)
def test_what_has_no_other_sign(value: Value) -> None:
    with pytest.raises(
        EvalError, match="integer overflow" if value in (INT_MIN, Duration(INT_MIN)) else "overload"
    ):
        call("-_", value)


@pytest.mark.parametrize(
    ("function", "left", "right"),
    [
        ("_+_", True, True),
        ("_+_", 1, 1.0),
        ("_+_", 1, Uint(1)),
        ("_+_", "a", b"a"),
        ("_+_", [1], Map.of([])),
        ("_+_", Timestamp(0), Timestamp(0)),
        ("_-_", Duration(1), Timestamp(0)),
        ("_*_", "a", 2),
        ("_%_", 1.0, 1.0),
        ("_<_", "a", 1),
        ("_<_", True, 1),
        ("_<_", [1], [2]),
        ("_<_", None, None),
        ("_<_", Timestamp(0), Duration(0)),
        ("@in", 1, 1),
        ("@in", "a", "abc"),
    ],
)
def test_kinds_that_do_not_go_together(function: str, left: Value, right: Value) -> None:
    with pytest.raises(EvalError, match="no such overload"):
        call(function, left, right)


def test_long_lists_are_refused_before_they_are_made() -> None:
    half = [None] * (bounds.MAX_ITEMS // 2)
    assert len(call("_+_", half, half)) == bounds.MAX_ITEMS
    with pytest.raises(CostExceeded, match="1000001 items"):
        call("_+_", half, [*half, None])

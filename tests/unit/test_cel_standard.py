"""Declarations, order, membership and size of CEL, as cel-go 0.29.2 has them."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from dra_core.cel.faults import Aborted, EvalError
from dra_core.cel.library import arithmetic, conversions, standard
from dra_core.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    Map,
    QuantityValue,
    SemverValue,
    Timestamp,
    Uint,
    Value,
)
from dra_core.quantity import Quantity
from dra_core.semver import SemVer
from dra_testing.cel_dynamic_calls import call, overloads

INF, NAN = math.inf, math.nan
SEMVER = SemverValue(SemVer.parse("1.0.0"))
QUANTITY = QuantityValue(Quantity.parse("1"))


def test_every_overload_is_declared_once() -> None:
    ids = Counter((o.function, o.id) for o in overloads())
    assert set(ids.values()) == {1}
    assert len(ids) == 197


@pytest.mark.parametrize(
    ("overload", "function", "params", "result", "member"),
    [
        ("add_list", "_+_", "list(<A>) list(<A>)", "list(<A>)", False),
        ("in_map", "@in", "<A> map(<A>, <B>)", "bool", False),
        ("less_uint64_double", "_<_", "uint double", "bool", False),
        ("bytes_size", "size", "bytes", "int", True),
        ("size_map", "size", "map(<A>, <B>)", "int", False),
        ("duration_to_int64", "int", "google.protobuf.Duration", "int", False),
        ("type", "type", "<A>", "type(<A>)", False),
        ("to_dyn", "dyn", "<A>", "dyn", False),
        (
            "timestamp_to_day_of_month_1_based_with_tz",
            "getDate",
            "google.protobuf.Timestamp string",
            "int",
            True,
        ),
        (
            "timestamp_to_seconds_tz",
            "getSeconds",
            "google.protobuf.Timestamp string",
            "int",
            True,
        ),
        ("string_format", "format", "string list(dyn)", "string", True),
        ("list_join_string", "join", "list(string) string", "string", True),
        (
            "optional_map_optindex_optional_value",
            "_[?_]",
            "optional_type(map(<K>, <V>)) <K>",
            "optional_type(<V>)",
            False,
        ),
        ("optional_unwrapOpt", "unwrapOpt", "list(optional_type(<V>))", "list(<V>)", True),
    ],
)
def test_signatures(overload: str, function: str, params: str, result: str, member: bool) -> None:
    found = [o for o in overloads() if (o.id, o.function) == (overload, function)]
    assert len(found) == 1
    shown = " ".join(map(str, found[0].params)), str(found[0].result), found[0].member
    assert shown == (params, result, member)


def test_what_the_evaluator_does_itself_has_no_function() -> None:
    own = {o.function for o in overloads() if o.call is None}
    assert own == {
        *("_&&_", "_||_", "_?_:_", "_==_", "_!=_", "_[_]", "_[?_]", "_?._", "or", "orValue"),
    }
    named = {o.function for o in conversions.OVERLOADS}
    assert named == standard.CONVERSIONS
    assert {o.function for o in arithmetic.OVERLOADS} < standard.SINGLETONS


# -- order, membership, size -----------------------------------------------------------------------
ORDERED: list[tuple[Value, Value]] = [
    (False, True),
    (INT_MIN, INT_MAX),
    (-1, Uint(0)),
    (INT_MAX, Uint(2**63)),
    (Uint(1), 2),
    (1, 1.5),
    (1.5, Uint(2)),
    (-INF, INT_MIN),
    (INT_MAX, INF),
    ("", "a"),
    ("Z", "a"),
    ("\uffff", "\U0001f600"),
    (b"a", b"\xff"),
    (Timestamp(-1), Timestamp(0)),
    (Duration(INT_MIN), Duration(INT_MAX)),
]


@pytest.mark.parametrize(("less", "more"), ORDERED)
def test_order(less: Value, more: Value) -> None:
    outcome = {
        f: (call(f, less, more), call(f, more, less), call(f, less, less))
        for f in ("_<_", "_<=_", "_>_", "_>=_")
    }
    assert outcome == {
        "_<_": (True, False, False),
        "_<=_": (True, False, True),
        "_>_": (False, True, False),
        "_>=_": (False, True, True),
    }


def test_an_integer_beside_a_double_is_a_double() -> None:
    assert call("_<=_", 2**53 + 1, float(2**53)) is True
    assert call("_<_", float(2**53), 2**53 + 1) is False
    assert call("_>=_", 2.0**64, Uint(UINT_MAX)) is True
    assert call("_>_", 2.0**64, Uint(UINT_MAX)) is False
    assert call("_<_", 0.0, -0.0) is False


@pytest.mark.parametrize("other", [NAN, 1.0, 1, Uint(1), INF])
@pytest.mark.parametrize("function", ["_<_", "_<=_", "_>_", "_>=_"])
def test_nan_has_no_order(function: str, other: Value) -> None:
    for pair in ((NAN, other), (other, NAN)):
        with pytest.raises(EvalError, match="NaN values cannot be ordered"):
            call(function, *pair)


@pytest.mark.parametrize(
    ("value", "container", "expected"),
    [
        (1, [2, 1.0], True),
        (Uint(1), [1], True),
        (True, [1], False),
        ("1", [1, "1"], True),
        (NAN, [NAN], False),
        ([1], [[2], [1.0]], True),
        (None, [0, None], True),
        (SEMVER, ["1.0.0", SEMVER], True),
        (SEMVER, ["1.0.0"], False),
        (1, Map.of([(1, "a")]), True),
        (1.0, Map.of([(1, "a")]), True),
        (Uint(1), Map.of([(1, "a")]), True),
        (True, Map.of([(1, "a")]), False),
        ([1], Map.of([(1, "a")]), False),
        (Map.of([]), Map.of([(1, "a")]), False),
        (QUANTITY, Map.of([(1, "a")]), False),
        (b"a", Map.of([]), False),
        ("x", Map({}, default=Map.of([])), False),
    ],
)
def test_membership(value: Value, container: Value, expected: bool) -> None:
    assert call("@in", value, container) is expected


@pytest.mark.parametrize("key", [b"a", SEMVER])
def test_keys_that_end_the_evaluation_of_the_reference(key: Value) -> None:
    with pytest.raises(Aborted):
        call("@in", key, Map.of([("a", 1)]))


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", 0), ("a\u00e9\U0001f600", 3), (b"\xc3\xa9", 2), ([1, 2], 2), (Map.of([(1, 2)]), 1)],
)
def test_size(value: Value, expected: int) -> None:
    assert call("size", value) == expected


def test_not() -> None:
    assert call("!_", True) is False
    assert call("!_", False) is True
    others: list[Value] = [1, 0, None, "", []]
    for value in others:
        with pytest.raises(EvalError, match="no such overload"):
            call("!_", value)

"""What calls cost, when they run and before. Expected values are those of Kubernetes 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from dra_core.cel.call_costs import MAY_ABORT, call_cost, coster, is_fixed
from dra_core.cel.celtypes import (
    BYTES,
    CIDR,
    DYN,
    INT,
    IP,
    NAMED_FORMAT,
    QUANTITY,
    SEMVER,
    STRING,
    URL,
    Type,
    list_of,
)
from dra_core.cel.estimates import (
    MAX,
    UNKNOWN_COST,
    CallEstimate,
    CostEstimate,
    Operand,
    SizeEstimate,
    fixed_cost,
    fixed_size,
)
from dra_core.cel.faults import Aborted, EvalError
from dra_core.cel.library.addresses import parse_cidr, parse_ip
from dra_core.cel.library_estimates import estimate_call
from dra_core.cel.syntax import Const
from dra_core.cel.values import NONE, Map, Optional, Uint
from dra_testing.cel_calls import OVERLOADS, call, quantity, semver


def text(size: int) -> str:
    return "x" * size


@pytest.mark.parametrize(
    ("function", "overload", "args", "result", "expected"),
    [
        # Lists and sets, by the overload.
        ("slice", "list_slice", [[1, 2, 3], 0, 2], [1, 2], 13),
        ("lists.range", "lists_range", [3], [0, 1, 2], 14),
        ("reverse", "list_reverse", [[1, 2]], [2, 1], 13),
        ("reverse", "list_reverse", [[]], [], 11),
        ("flatten", "list_flatten", [[[1], [2]]], [1, 2], 13),
        ("flatten", "list_flatten_int", [[[1], [2]], 3], [1, 2], 17),
        ("flatten", "list_flatten_int", [[[1], [2]], 0], [[1], [2]], 11),
        ("flatten", "list_flatten_int", [[[1], [2]], -1], None, 13),
        ("flatten", "list_flatten_int", [[1, 2], 2**63 - 1], [1, 2], 2**63 + 11),
        ("distinct", "list_distinct", [[1, 2, 3]], [1, 2, 3], 29),
        ("distinct", "list_distinct", [["a", "b", "c"]], ["a", "b", "c"], 29),
        ("distinct", "list_distinct", [[]], [], 11),
        ("sort", "list_int_sort", [[2, 1]], [1, 2], 19),
        ("sort", "list_string_sort", [["b", "a", "c", "d"]], [], 44),
        ("sort", "", [[2, 1]], [1, 2], 1),
        ("@sortByAssociatedKeys", "list_int_sortByAssociatedKeys", [["a"], [1]], ["a"], 13),
        ("sets.contains", "list_sets_contains_list", [[1, 2], [3, 4, 5]], False, 7),
        ("sets.intersects", "list_sets_intersects_list", [[1, 2], []], False, 1),
        ("sets.equivalent", "list_sets_equivalent_list", [[1, 2], [3, 4, 5]], False, 13),
        # Lists of Kubernetes, by the name: what is walked over.
        ("sum", "list_int_sum_int", [[1, 2, 3]], 6, 3),
        ("min", "", [[1, 2, 3]], 1, 3),
        ("max", "list_string_max_string", [[text(9), text(10), text(29)]], "", 3),
        ("isSorted", "list_bytes_is_sorted_bool", [[b"x" * 19]], True, 1),
        ("indexOf", "list_a_index_of_int", [[], 1], -1, 0),
        ("indexOf", "string_index_of_string", ["\u00e9" * 5, "x"], -1, 1),
        ("lastIndexOf", "string_last_index_of_string", ["\u00e9" * 4, "x"], -1, 0),
        ("includes", "list_includes_dyn_dyn", [[[1, 2], Map.of([("a" * 10, 1)])], 1], False, 4),
        ("includes", "list_includes_dyn_dyn", [None, 1], False, 1),
        # Texts: rounded up.
        ("url", "string_to_url", [text(71)], None, 8),
        ("trim", "string_trim", [text(30)], "", 3),
        ("quantity", "string_to_quantity", [""], None, 0),
        ("semver", "string_bool_to_semver", [text(5), True], None, 1),
        ("isIP", "is_ip", [text(11)], False, 2),
        ("ip", "string_to_ip", [text(11)], None, 2),
        ("ip", "cidr_ip", [parse_cidr("::/128")], parse_ip("::"), 1),
        ("ip.isCanonical", "ip_is_canonical", [text(36)], True, 8),
        ("replace", "string_replace_string_string", [text(36), "a", "b"], "", 8),
        ("split", "string_split_string", [text(4), ""], [], 1),
        ("join", "list_join", [[text(9)]], text(9), 2),
        ("find", "string_find_string", [text(10), text(5)], "", 4),
        ("findAll", "string_find_all_string", ["", ""], [], 0),
        ("matches", "matches_string", ["", text(4)], False, 1),
        ("matches", "matches", [text(9), text(9)], False, 3),
        ("contains", "contains_string", [text(11), text(11)], False, 4),
        ("startsWith", "starts_with_string", [text(99), text(11)], False, 2),
        ("string", "bytes_to_string", [b"x" * 11], "", 2),
        ("format", "string_format", [text(11), [1]], "", 2),
        ("_+_", "add_string", [text(5), text(6)], "", 2),
        ("_+_", "", [text(500), text(6)], "", 1),
        ("_<_", "less_string", [text(50), text(11)], False, 2),
        ("_<_", "less_int64", [1, 2], True, 1),
        ("@in", "in_list", [1, [1, 2, 3]], True, 3),
        ("@in", "in_map", ["a", Map({})], False, 1),
        # Networks: bytes.
        ("containsIP", "cidr_contains_ip_ip", [parse_cidr("::/128"), parse_ip("::")], True, 4),
        ("containsIP", "cidr_contains_ip_string", [parse_cidr("10.0.0.0/8"), text(11)], True, 3),
        ("containsIP", "", [parse_cidr("10.0.0.0/8"), text(11)], True, 1),
        ("containsCIDR", "cidr_contains_cidr", [parse_cidr("::/0")] * 2, True, 1),
        ("containsCIDR", "cidr_contains_cidr_string", [parse_cidr("::/128"), text(11)], True, 9),
        # Formats: as if a pattern was matched.
        ("validate", "format-validate", [call("format.uri"), text(3)], NONE, 276),
        ("validate", "format-validate", [call("format.date"), text(9)], NONE, 18),
        ("validate", "format-validate", ["no format", text(99)], NONE, 1),
        # Equality.
        ("_==_", "equals", [text(11), text(90)], False, 2),
        ("_==_", "equals", [[1] * 21, [1] * 11], False, 2),
        ("_==_", "equals", [[], [1]], False, 0),
        ("_==_", "equals", [Optional(True, text(21)), Optional(True, text(31))], False, 3),
        ("_==_", "equals", [quantity("1"), text(99)], False, 1),
        ("_==_", "equals", [parse_ip("::"), parse_ip("::")], True, 1),
        ("_!=_", "not_equals", [parse_ip("::"), parse_ip("::")], True, 2),
        ("_!=_", "not_equals", [parse_cidr("::/0"), parse_cidr("::/128")], True, 0),
        ("_!=_", "not_equals", [semver("1.0.0"), 1], True, 1),
        # All others.
        ("compareTo", "quantity_compare_to", [quantity("1"), quantity("2")], -1, 1),
        ("getQuery", "url_get_query", ["url"], Map({}), 1),
        ("size", "size_string", [text(99)], 99, 1),
        ("uint", "int64_to_uint64", [1], Uint(1), 1),
        ("check", "", ["a", "b"], None, 350_000),
        ("fieldSelector", "authorizer_fieldselector", [1, text(61)], None, 1567),
    ],
)
def test_cost_of_a_call(
    function: str, overload: str, args: list[Any], result: Any, expected: int
) -> None:
    assert call_cost(function, overload, args, result) == expected
    assert coster(function, overload)(tuple(args), result) == expected


def test_errors_count_as_size_one() -> None:
    error = EvalError("none")
    assert call_cost("lists.range", "lists_range", [-1], error) == 12
    assert call_cost("trim", "string_trim", [error], error) == 1
    assert call_cost("sets.contains", "list_sets_contains_list", [error, [1, 2]], error) == 3
    assert call_cost("join", "list_join", [error], error) == 1
    assert call_cost("_==_", "equals", [error, text(30)], error) == 1


@pytest.mark.parametrize(
    ("function", "overload", "args"),
    [
        ("sort", "list_int_sort", [EvalError("none")]),
        ("distinct", "list_distinct", [1]),
        ("@sortByAssociatedKeys", "list_int_sortByAssociatedKeys", [[1], EvalError("none")]),
        ("flatten", "list_flatten_int", [[1], 1.0]),
        ("flatten", "list_flatten_int", [[1], EvalError("none")]),
    ],
)
def test_where_the_reference_breaks_down(function: str, overload: str, args: list[Any]) -> None:
    assert overload in MAY_ABORT
    with pytest.raises(Aborted):
        call_cost(function, overload, args, EvalError("none"))


def test_what_always_costs_one() -> None:
    fixed = {overload.id for overload in OVERLOADS if is_fixed(overload.function, overload.id)}
    assert {"url_get_host", "quantity_add", "cidr_ip", "ip_family", "semver_major"} <= fixed
    assert not {"list_slice", "string_to_ip", "format-validate", "list_int_sum_int"} & fixed


# -- estimates --


def operand(
    of: Type, least: int = 0, most: int = MAX, path: tuple[str, ...] = (), node: Any = None
) -> Operand:
    size = None if (least, most) == (0, MAX) else SizeEstimate(least, most)
    return Operand(node, of, path, size)


def number(value: Any) -> Operand:
    return Operand(Const(1, value), INT, (), fixed_size(1))


STRINGS = ("device", "attributes", "@values", "tags")
S10 = operand(STRING, 10, 10)
UNKNOWN = operand(STRING)


def cost(least: int, most: int) -> CallEstimate:
    return CallEstimate(CostEstimate(least, most))


def cost_and_size(least: int, most: int, size: tuple[int, int]) -> CallEstimate:
    return CallEstimate(CostEstimate(least, most), SizeEstimate(*size))


@pytest.mark.parametrize(
    ("function", "overload", "target", "args", "expected"),
    [
        (
            "slice",
            "list_slice",
            operand(list_of(INT), 3, 3),
            [number(1), number(3)],
            cost_and_size(13, 13, (2, 2)),
        ),
        (
            "slice",
            "list_slice",
            operand(list_of(INT), 3, 9),
            [number(-2), operand(INT, 1, 1)],
            cost_and_size(20, 20, (9, 9)),
        ),
        (
            "slice",
            "list_slice",
            operand(list_of(INT), 3, 3),
            [number(2), number(1)],
            cost_and_size(MAX, MAX, (MAX, MAX)),
        ),
        ("lists.range", "lists_range", None, [number(5)], cost_and_size(16, 16, (5, 5))),
        (
            "lists.range",
            "lists_range",
            None,
            [operand(INT, 1, 1)],
            cost_and_size(MAX, MAX, (MAX, MAX)),
        ),
        (
            "flatten",
            "list_flatten_int",
            operand(list_of(DYN), 2, 2),
            [number(3)],
            cost_and_size(17, 17, (2, 2)),
        ),
        ("sort", "list_int_sort", operand(list_of(INT), 2, 3), [], cost_and_size(19, 29, (4, 9))),
        (
            "sort",
            "list_string_sort",
            operand(list_of(STRING), 3, 3),
            [],
            cost_and_size(30, 30, (9, 9)),
        ),
        (
            "sets.equivalent",
            "list_sets_equivalent_list",
            None,
            [operand(list_of(INT), 2, 2), operand(list_of(INT), 3, 4)],
            cost(13, 17),
        ),
        ("min", "list_int_min_int", operand(list_of(INT), 3, 4), [], cost(3, 4)),
        (
            "min",
            "list_string_min_string",
            operand(list_of(STRING), 2, 2),
            [],
            cost(2, 3689348814741910530),
        ),
        (
            "join",
            "list_join_string",
            operand(list_of(STRING), 2, 3),
            [operand(STRING, 1, 1)],
            cost_and_size(1, 1844674407370955264, (1, MAX)),
        ),
        ("indexOf", "string_index_of_string", operand(STRING, 11, 25), [S10], cost(2, 3)),
        ("includes", "list_includes_dyn_dyn", operand(DYN, 0, 64, STRINGS), [S10], cost(0, 64)),
        ("trim", "string_trim", operand(STRING, 5, 35), [], cost_and_size(1, 4, (5, 35))),
        ("split", "string_split_string", S10, [S10], cost_and_size(2, 2, (0, 10))),
        (
            "split",
            "string_split_string_int",
            S10,
            [S10, number(-1)],
            cost_and_size(2, 2, (0, MAX)),
        ),
        (
            "replace",
            "string_replace_string_string",
            operand(STRING, 4, 10),
            [fixed := operand(STRING, 2, 2), operand(STRING, 3, 3)],
            cost_and_size(1, 2, (4, 15)),
        ),
        (
            "replace",
            "string_replace_string_string",
            operand(STRING, 4, 10),
            [operand(STRING, 0, 0), operand(STRING, 1, 1)],
            cost_and_size(1, 2, (9, 21)),
        ),
        (
            "replace",
            "string_replace_string_string",
            operand(STRING, 4, 10),
            [fixed, operand(STRING, 1, 1)],
            cost_and_size(1, 2, (2, 10)),
        ),
        ("find", "string_find_string", S10, [operand(STRING, 5, 5)], cost_and_size(4, 4, (0, 10))),
        ("validate", "format-validate", operand(NAMED_FORMAT), [S10], cost(32, 32)),
        ("ip", "cidr_ip", operand(CIDR), [], cost(1, 1)),
        ("ip.isCanonical", "ip_is_canonical", None, [S10], cost(2, 2)),
        ("containsIP", "cidr_contains_ip_ip", operand(CIDR), [operand(IP)], cost(1, 4)),
        ("containsIP", "cidr_contains_ip_string", operand(CIDR), [S10], cost(2, 5)),
        ("containsCIDR", "cidr_contains_cidr_string", operand(CIDR), [S10], cost(4, 8)),
        ("_==_", "equals", None, [operand(URL), operand(URL, 46, 46)], cost(1, 5)),
        ("_==_", "equals", None, [operand(URL, 46, 46), operand(URL)], cost(1, 1)),
        ("_==_", "equals", None, [operand(QUANTITY)] * 2, cost(1, 1)),
        ("_==_", "equals", None, [operand(NAMED_FORMAT)] * 2, cost(1, 7)),
        ("_==_", "equals", None, [operand(SEMVER), operand(DYN)], None),
        ("_==_", "equals", None, [S10, S10], None),
        ("contains", "contains_string", S10, [S10], None),
        ("charAt", "string_char_at_int", S10, [number(1)], None),
        ("check", "pathcheck_check", operand(DYN), [S10], cost(350_000, 350_000)),
    ],
)
def test_estimate_of_a_call(
    function: str,
    overload: str,
    target: Operand | None,
    args: list[Operand],
    expected: CallEstimate | None,
) -> None:
    assert estimate_call(function, overload, target, args) == expected


def test_items_of_a_device_have_a_size() -> None:
    known = operand(list_of(STRING), 1, 32, ("device", "attributes"))
    assert estimate_call("min", "list_string_min_string", known, []) == cost(1, 160)
    of_bytes = operand(list_of(BYTES), 2, 2, ("x",))
    assert estimate_call("max", "list_bytes_max_bytes", of_bytes, []) == cost(
        2, 3689348814741910530
    )


# -- ranges --


def test_ranges_saturate() -> None:
    large = CostEstimate(2, MAX)
    assert large.add(fixed_cost(5)) == CostEstimate(7, MAX)
    assert large.multiply(fixed_cost(3)) == CostEstimate(6, MAX)
    assert large.multiply_by_cost_factor(0.5) == CostEstimate(1, 2**63)
    assert fixed_cost(MAX).multiply_by_cost_factor(0) == fixed_cost(0)
    assert SizeEstimate(3, MAX).multiply_by_cost_factor(1.1) == CostEstimate(4, MAX)
    assert SizeEstimate(71, 30).multiply_by_cost_factor(0.1) == CostEstimate(8, 3)
    assert SizeEstimate(2, MAX).multiply_by_cost(CostEstimate(0, 2)) == UNKNOWN_COST
    assert SizeEstimate(2, 5).union(SizeEstimate(1, 3)) == SizeEstimate(1, 5)
    assert CostEstimate(2, 5).union(CostEstimate(3, 9)) == CostEstimate(2, 9)

"""Functions of lists, sets and maps. Expected values are those of Kubernetes 1.37."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dra_core.cel.faults import CostExceeded, EvalError
from dra_core.cel.library import sorting, two_variable
from dra_core.cel.values import Duration, Map, Timestamp, Uint
from dra_testing.cel_calls import OVERLOADS, call, quantity

NAN = math.nan


def test_every_overload_has_an_identifier_of_its_own() -> None:
    assert len(OVERLOADS) == len({overload.id for overload in OVERLOADS})


# -- lists of Kubernetes --


@pytest.mark.parametrize(
    ("overload", "items", "expected"),
    [
        ("list_int_sum_int", [], 0),
        ("list_int_sum_int", [1, 2, 3], 6),
        ("list_uint_sum_uint", [Uint(1), Uint(2)], Uint(3)),
        ("list_double_sum_double", [0.5, 1.0], 1.5),
        ("list_double_sum_double", [], 0.0),
        ("list_duration_sum_duration", [Duration(1), Duration(2)], Duration(3)),
        ("list_duration_sum_duration", [Duration(1), Timestamp(2)], Timestamp(3)),
        ("list_int_max_int", [1, 3, 2], 3),
        ("list_int_max_int", [3, 2.5], 3),
        ("list_int_max_int", [3, 3.5, Uint(2)], 3.5),
        ("list_int_min_int", [3, 2.5], 2.5),
        ("list_string_max_string", ["a", "\U0001f600", "\uffff"], "\U0001f600"),
        ("list_bytes_min_bytes", [b"b", b"a"], b"a"),
        ("list_bool_max_bool", [False, True], True),
        ("list_duration_min_duration", [Duration(2), Duration(-1)], Duration(-1)),
        ("list_int_is_sorted_bool", [], True),
        ("list_int_is_sorted_bool", [1, 1, 2], True),
        ("list_int_is_sorted_bool", [2, 1], False),
        ("list_string_is_sorted_bool", ["b", 3, "a"], True),
        ("list_timestamp_is_sorted_bool", [Timestamp(2), Timestamp(1)], False),
    ],
)
def test_aggregates(overload: str, items: list[Any], expected: Any) -> None:
    result = call(overload, items)
    assert (type(result), result) == (type(expected), expected)


def test_nan_decides_nothing() -> None:
    assert math.isnan(call("list_double_max_double", [NAN, 1.0]))
    assert call("list_double_max_double", [1.0, NAN]) == 1.0
    assert call("list_double_is_sorted_bool", [2.0, NAN, 1.0])


@pytest.mark.parametrize(
    ("overload", "items", "text"),
    [
        ("list_int_max_int", [], "max called on empty list"),
        ("list_int_min_int", [], "min called on empty list"),
        ("list_int_sum_int", [2**63 - 1, 1], "integer overflow"),
        ("list_uint_sum_uint", [Uint(2**64 - 1), Uint(1)], "unsigned integer overflow"),
        ("list_int_sum_int", [1, 1.5], "no such overload"),
        ("list_int_sum_int", [1, True], "no such overload"),
        ("list_duration_sum_duration", [Duration(2**63 - 1), Duration(1)], "integer overflow"),
        ("list_int_max_int", [1, None], "no such overload"),
        ("list_int_is_sorted_bool", [1, Map({})], "no such overload"),
    ],
)
def test_aggregates_without_a_value(overload: str, items: list[Any], text: str) -> None:
    with pytest.raises(EvalError) as caught:
        call(overload, items)
    assert caught.value.text == text


def test_places_of_items() -> None:
    items = [1, "a", 1.0, Uint(1), "a"]
    assert call("list_a_index_of_int", items, 1.0) == 0
    assert call("list_a_last_index_of_int", items, 1) == 3
    assert call("list_a_index_of_int", items, "b") == -1
    assert call("list_a_last_index_of_int", items, "b") == -1
    assert call("list_a_index_of_int", [quantity("1"), "x"], "x") == 1


@pytest.mark.parametrize("overload", ["list_includes_dyn_dyn", "dra_includes_dyn_dyn"])
@pytest.mark.parametrize(
    ("target", "value", "expected"),
    [
        ([1, 2], 2.0, True),
        ([1, 2], 3, False),
        ("abc", "abc", True),
        ("abc", "a", False),
        (None, None, True),
        ([None], None, True),
        (Map.of([("a", 1)]), Map.of([("a", 1.0)]), True),
        (True, 1, False),
    ],
)
def test_includes(overload: str, target: Any, value: Any, expected: bool) -> None:
    assert call(overload, target, value) is expected


def test_what_cannot_be_compared_is_not_included() -> None:
    assert not call("list_includes_dyn_dyn", quantity("1"), "1")
    assert not call("list_includes_dyn_dyn", [quantity("1")], None)


def test_includes_of_1_36_takes_48_items() -> None:
    assert call("dra_includes_dyn_dyn", [0] * 48, 1) is False
    assert call("dra_includes_dyn_dyn", [*[0] * 47, 1, 0], 1) is True
    with pytest.raises(EvalError, match="lists longer than 48 values"):
        call("dra_includes_dyn_dyn", [*[0] * 48, 1], 1)


# -- lists of the language --


def test_parts_of_lists() -> None:
    assert call("list_slice", [1, 2, 3], 1, 3) == [2, 3]
    assert call("list_slice", [1, 2, 3], 3, 3) == []
    assert call("list_slice", [1, 2, 3], 0, 2) == [1, 2]
    assert call("list_reverse", [1, 2, 3]) == [3, 2, 1]
    assert call("lists_range", 3) == [0, 1, 2]
    assert call("lists_range", 0) == []


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (-1, 1, "cannot slice(-1, 1), negative indexes not supported"),
        (0, 4, "cannot slice(0, 4), list is length 3"),
        (2, 1, "cannot slice(2, 1), start index must be less than or equal to end index"),
    ],
)
def test_slices_out_of_bounds(start: int, end: int, text: str) -> None:
    with pytest.raises(EvalError) as caught:
        call("list_slice", [1, 2, 3], start, end)
    assert caught.value.text == text


@pytest.mark.parametrize("size", [-1, 1_000_001])
def test_ranges_that_are_refused(size: int) -> None:
    with pytest.raises(EvalError, match=r"lists\.range: size"):
        call("lists_range", size)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (([[1], [2, [3]]],), [1, 2, [3]]),
        (([1, [2, [3, [4]]]], 2), [1, 2, 3, [4]]),
        (([1, [2]], 0), [1, [2]]),
        (([1, [[[2]]]], 2**62), [1, 2]),
        (([],), []),
        (([1, 2],), [1, 2]),
    ],
)
def test_flatten(args: tuple[Any, ...], expected: list[Any]) -> None:
    assert call("list_flatten_int" if len(args) == 2 else "list_flatten", *args) == expected


@pytest.mark.parametrize("args", [([1], -1), ("a", 1), ([1], 1.0)])
def test_flatten_refused(args: tuple[Any, ...]) -> None:
    with pytest.raises(EvalError):
        call("list_flatten_int", *args)


def test_distinct_keeps_the_first_of_equal_items() -> None:
    result = call("list_distinct", [1, 1.0, "a", Uint(1), True, "a", None, None])
    assert [(type(item), item) for item in result] == [
        (int, 1),
        (str, "a"),
        (bool, True),
        (type(None), None),
    ]
    assert call("list_distinct", ["b", "b", "c", "a", "c"]) == ["b", "c", "a"]
    computed = call("quantity_add_int", quantity("1"), 0)
    assert len(call("list_distinct", [quantity("1"), computed])) == 1
    assert len(call("list_distinct", [computed, computed])) == 2


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([3, 1, 2], [1, 2, 3]),
        (["b", "\u00e9", "a"], ["a", "b", "\u00e9"]),
        ([True, False], [False, True]),
        ([Duration(2), Duration(1)], [Duration(1), Duration(2)]),
        ([], []),
        ([[]][:0], []),
    ],
)
def test_sort(items: list[Any], expected: list[Any]) -> None:
    before = list(items)
    assert call("list_int_sort", items) == expected
    assert items == before


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([1, "a"], "list elements must have the same type"),
        ([1, 1.5], "list elements must have the same type"),
        ([1, True], "list elements must have the same type"),
        ([[1]], "list elements must be comparable"),
        ([None, None], "list elements must be comparable"),
    ],
)
def test_sort_refused(items: list[Any], text: str) -> None:
    with pytest.raises(EvalError) as caught:
        call("list_int_sort", items)
    assert caught.value.text == text


def test_sort_by_keys() -> None:
    call_it = "list_int_sortByAssociatedKeys"
    assert call(call_it, ["a", "b", "c"], [3, 1, 2]) == ["b", "c", "a"]
    assert call(call_it, ["a", "b", "c"], [1, 0, 1]) == ["b", "a", "c"]
    with pytest.raises(EvalError, match="got 1 and 2 elements"):
        call(call_it, ["a"], [1, 2])


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        # What sort.Slice of Go 1.26 makes of keys that repeat.
        ([i % 2 for i in range(12)], [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]),
        ([i % 2 for i in range(13)], [8, 12, 2, 0, 4, 10, 6, 3, 7, 9, 5, 11, 1]),
        (
            [i % 3 for i in range(20)],
            [9, 18, 15, 3, 12, 0, 6, 10, 7, 4, 13, 16, 1, 19, 8, 5, 11, 14, 2, 17],
        ),
        (
            [(i * i) % 7 for i in range(60)],
            [
                35,
                49,
                28,
                56,
                0,
                21,
                14,
                7,
                42,
                22,
                6,
                43,
                1,
                8,
                27,
                15,
                41,
                36,
                48,
                34,
                20,
                50,
                13,
                55,
                29,
                57,
                31,
                11,
                25,
                24,
                59,
                3,
                32,
                4,
                53,
                18,
                17,
                52,
                38,
                39,
                10,
                46,
                45,
                51,
                37,
                12,
                16,
                47,
                40,
                9,
                5,
                44,
                19,
                26,
                54,
                33,
                23,
                2,
                58,
                30,
            ],
        ),
    ],
)
def test_equal_keys_are_left_as_go_leaves_them(keys: list[int], expected: list[int]) -> None:
    assert sorting.sorted_places(keys) == expected


def test_places_do_not_depend_on_the_algorithm_where_keys_differ() -> None:
    keys = [(i * 7919) % 1009 for i in range(300)]
    assert sorting.sorted_places(keys) == sorted(range(300), key=keys.__getitem__)


def test_nan_and_signed_zeros_are_sorted_as_go_sorts_them() -> None:
    assert [str(x) for x in call("list_double_sort", [0.0, 1.0, -0.0, -1.0])] == [
        "-1.0",
        "0.0",
        "-0.0",
        "1.0",
    ]
    assert [str(x) for x in call("list_double_sort", [2.0, NAN, 1.0])] == ["2.0", "nan", "1.0"]


# -- sets --


@pytest.mark.parametrize(
    ("left", "right", "contains", "equivalent", "intersects"),
    [
        ([], [], True, True, False),
        ([], [1], False, False, False),
        ([1], [], True, False, False),
        ([1, 2], [2.0, Uint(1)], True, True, True),
        ([1, 1], [1], True, True, True),
        ([1, 2], [2, 3], False, False, True),
        ([1], ["1"], False, False, False),
        ([[1], [2, 3]], [[2, 3.0]], True, False, True),
        (["a", "b"], ["b"], True, False, True),
        ([True], [1], False, False, False),
    ],
)
def test_sets(
    left: list[Any], right: list[Any], contains: bool, equivalent: bool, intersects: bool
) -> None:
    assert call("list_sets_contains_list", left, right) is contains
    assert call("list_sets_equivalent_list", left, right) is equivalent
    assert call("list_sets_intersects_list", left, right) is intersects


def test_sets_of_what_cannot_be_compared() -> None:
    assert not call("list_sets_contains_list", ["1"], [quantity("1")])
    assert not call("list_sets_intersects_list", [quantity("1")], ["1"])


# -- maps that loops make --


def test_entries_are_added_to_a_copy() -> None:
    before = Map.of([("a", 1)])
    after = call("@mapInsert_map_key_value", before, "b", 2)
    assert list(after.items()) == [("a", 1), ("b", 2)]
    assert len(before) == 1
    merged = call("@mapInsert_map_map", after, Map.of([(1, "x"), (True, "y")]))
    assert len(merged) == 4
    assert len(after) == 2


def test_entries_do_not_replace_each_other() -> None:
    for key in (1, 1.0, Uint(1)):
        with pytest.raises(EvalError, match="insert failed"):
            call("@mapInsert_map_key_value", Map.of([(1, "x")]), key, "y")
    with pytest.raises(EvalError, match="insert failed"):
        call("@mapInsert_map_map", Map.of([("a", 1)]), Map.of([("b", 1), ("a", 2)]))


def test_entries_can_be_added_in_place() -> None:
    made = Map({})
    assert two_variable.insert_in_place(made, "a", 1) is made
    assert two_variable.merge_in_place(made, Map.of([("b", 2)])) is made
    assert list(made.items()) == [("a", 1), ("b", 2)]


# -- how much work there may be --


def test_comparisons_beyond_the_cost_limit_are_not_begun() -> None:
    for overload, args in (
        ("list_distinct", [list(range(708))]),
        ("list_sets_contains_list", [list(range(1001)), [1] * 1000]),
        ("list_sets_equivalent_list", [list(range(1001)), [1] * 1000]),
        ("list_sets_intersects_list", [list(range(1001)), [1] * 1000]),
    ):
        with pytest.raises(CostExceeded):
            call(overload, *args)
    assert call("list_distinct", [1] * 707) == [1]
    assert call("list_sets_contains_list", [1] * 1000, [1] * 1000)

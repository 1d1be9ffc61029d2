"""CEL where the reference does what nobody would expect: answers and costs are those it gave."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dra_testing.cel_compare import fast_answer, our_answer, verdict

DEVICE: Final = {
    "driver": "d",
    "attributes": {
        "a": {"string": "b"},
        "b": {"int": 1},
        "ss": {"strings": ["x", "y"]},
        "v": {"version": "1.2.3"},
    },
    "capacity": {"m": "1Gi"},
}
ERROR: Final = "evalError"


def check(expression: str, expected: object, cost: int) -> None:
    question = {"kind": "selector", "expression": expression, "device": DEVICE}
    ours: dict[str, Any] = our_answer(question)
    kind, value = verdict(ours)
    assert (ERROR if kind == ERROR else value) == expected, ours
    assert ours["cost"] == cost
    assert verdict(fast_answer(question)) == (kind, value)


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        ('[1, 2].all(device, .device.driver == "d")', True, 11),
        ('[1].exists(device, .device.attributes["d"].b == device)', True, 8),
        ("[1].exists(device, has(.device.driver))", True, 5),
        ('[1].exists(device, .device.attributes[.device.driver].a == "b")', True, 7),
        ('["d"].exists(x, [1].exists(device, .device.attributes["a" + "b"] == {}))', True, 11),
        ('["d"].exists(x, [1].exists(device, .device.attributes[x] == {}))', ERROR, 11),
        ('["d"].exists(device, .device.attributes[device] == {})', ERROR, 6),
    ],
)
def test_a_path_with_a_leading_dot_is_read_outside_all_loops(
    expression: str, expected: object, cost: int
) -> None:
    """Where a variable hides ``device``: at no cost, and without the variables of loops."""
    check(expression, expected, cost)


@pytest.mark.parametrize(
    "key",
    ["dyn([1])", "dyn({})", "dyn(null)", 'dyn(b"a")', "dyn(int)", 'dyn(duration("1s"))'],
)
def test_a_computed_key_is_text_a_number_or_a_bool(key: str) -> None:
    check(f"cel.bind(k, {key}, device.attributes[k] == {{}})", ERROR, 3)
    check(f"[{key}].exists(k, device.attributes[?k].hasValue()) || true", True, 8)


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        ("[1, 2][?dyn(18446744073709551615u)].hasValue()", ERROR, 2),
        ("[1, 2][?dyn(1e300)].hasValue()", ERROR, 2),
        ("[1, 2][?dyn(9223372036854775807)].hasValue()", False, 2),
    ],
)
def test_a_place_beyond_64_bits_is_no_place(expression: str, expected: object, cost: int) -> None:
    check(expression, expected, cost)


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        # A map made by the expression breaks down over such a key, and all else with it.
        ('dyn(b"a") in {"d": 1} || true', ERROR, 0),
        ('format.dns1123Label() in dyn({"d": 1}) || true', ERROR, 1),
        # One that came from elsewhere does not.
        ('dyn(b"a") in device.attributes', False, 3),
        ('dyn(semver("1.0.0")) in device.attributes["d"]', False, 6),
        ('dyn(b"a") in google.protobuf.Struct{fields: {"a": 1}}', False, 41),
        ("{dyn([1]): 1} == {dyn([1]): 1}", False, 1),
        ("cel.bind(k, dyn([1]), {k: 1} == {k: 1})", True, 63),
        ("cel.bind(k, dyn(optional.of(1)), {k: 1, k: 2}.size() == 2)", True, 36),
    ],
)
def test_keys_that_no_map_can_have(expression: str, expected: object, cost: int) -> None:
    check(expression, expected, cost)


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        # Any domain is found in the attributes, which compare as empty to what cannot be compared.
        ('dyn({"a": quantity("1")}) == dyn(device.attributes)', True, 36),
        ('dyn({"a": 1}) == dyn(device.attributes)', False, 4),
        ('optional.of(dyn(quantity("1"))) == optional.of(dyn(null))', ERROR, 5),
        ('dyn(quantity("1")) == dyn(null)', False, 3),
    ],
)
def test_equality_with_what_cannot_be_compared(
    expression: str, expected: object, cost: int
) -> None:
    check(expression, expected, cost)


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        # A constant pattern is matched against the name of a type.
        ('dyn(int).matches("^int$")', True, 2),
        ('dyn(type("a")).find("str") == "str"', True, 2),
        ('dyn(int).matches("" + "int") || true', True, 2),
        ('google.protobuf.StringValue{value: dyn(quantity("1000Ki"))} == "1000Ki"', True, 43),
        ('google.protobuf.Value{string_value: dyn(ip("::1"))} == "::1"', True, 43),
        ('google.protobuf.Value{string_value: device.attributes["d"].v} == "1.2.3"', True, 45),
        ('google.protobuf.Value{string_value: dyn(cidr("::1/8"))} == "::1/8"', True, 43),
        ('google.protobuf.Value{string_value: dyn(url("/a"))} == "/a"', True, 43),
        ("google.protobuf.Value{string_value: dyn(int)} == null", ERROR, 41),
    ],
)
def test_what_is_text_to_the_reference(expression: str, expected: object, cost: int) -> None:
    check(expression, expected, cost)

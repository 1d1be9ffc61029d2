"""Objects by the names of messages, and functions that nothing fits. Expected values are those of
Kubernetes 1.37 (``dra_testing.cel_named``).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_core.cel.deep import deep
from dra_core.cel.environment import for_validation
from dra_core.cel.faults import CompileError
from dra_core.cel.packed import unpacked
from dra_core.cel.program import compile_derived, compile_selector
from dra_testing.cel_compare import fast_answer, our_answer, verdict
from dra_testing.cel_named import OBJECTS, question, row

ROWS: list[list[Any]] = json.loads(OBJECTS.read_text("utf-8"))


@pytest.mark.parametrize("expected", ROWS, ids=[line[0] for line in ROWS])
def test_outcome_cost_and_estimate_are_those_of_kubernetes(expected: list[Any]) -> None:
    asked = question(expected[0])
    answer = our_answer(asked)
    assert row(expected[0], answer) == expected
    assert verdict(fast_answer(asked)) == verdict(answer)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("google.protobuf.Int32Value{value: 2147483648} == 1", "integer overflow"),
        (
            "google.protobuf.Int64Value{value: dyn('a')} == 1",
            "google.protobuf.Int64Value.value: type conversion error from string to int64",
        ),
        ("kubernetes.DRADevice{driver: 'a'}.driver == 'a'", "unknown type 'kubernetes.DRADevice'"),
        ("dyn(google.protobuf.Empty{}).a == 1", "no such field 'a'"),
        ("google.protobuf.Any{} == 1", "unsupported conversion of a google.protobuf.Any"),
        ("dyn(1).group('').resource('a').check('b').allowed()", "no such overload: group"),
    ],
)
def test_errors_say_what_is_wrong(expression: str, text: str) -> None:
    assert text in our_answer(question(expression))["evalError"]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("google.protobuf.Empty{a: 1} == 1", "undefined field 'a'"),
        (
            "google.protobuf.Int64Value{value: 'a'} == 1",
            "expected type of field 'value' is 'int' but provided type is 'string'",
        ),
        ("int{} == 1", "'int' is not a message type"),
        ("google.protobuf.Foo{} == 1", "undeclared reference to 'google.protobuf.Foo'"),
        ("type(1) == kubernetes.DRADevice", "undefined type: kubernetes.DRADevice"),
        ("google.protobuf.StringValue{}", "not wrapper(string)"),
    ],
)
def test_what_does_not_compile(expression: str, text: str) -> None:
    with pytest.raises(CompileError, match=text.replace("(", r"\(").replace(")", r"\)")):
        compile_selector(expression)


def test_wrapped_values_are_what_an_expression_may_give() -> None:
    compile_selector("google.protobuf.BoolValue{}")
    for name in ("BoolValue", "Int64Value", "StringValue"):
        compile_derived(f"google.protobuf.{name}{{}}")
    for name in ("DoubleValue", "BytesValue", "Timestamp", "Empty"):
        with pytest.raises(CompileError):
            compile_derived(f"google.protobuf.{name}{{}}")


def test_the_fields_of_a_device_are_those_of_the_environment() -> None:
    expression = "kubernetes.DRADevice{allowMultipleAllocations: true}.driver == 'a'"
    with_field = for_validation(37, consumable_capacity=True, list_attributes=True)
    without = for_validation(37, consumable_capacity=False, list_attributes=True)
    assert with_field is not None
    assert without is not None
    compile_selector(expression, with_field)
    with pytest.raises(CompileError, match="undefined field"):
        compile_selector(expression, without)


def test_messages_in_messages_are_read_only_so_deep() -> None:
    value = "/google.protobuf.Value"
    assert deep(lambda: unpacked(value, _nested(500))) is not None
    assert deep(lambda: unpacked(value, _nested(5000))) is None


def _nested(depth: int) -> bytes:
    """``[[[true]]]`` as a packed ``Value``."""
    data = b"\x20\x01"
    for _ in range(depth):
        for tag in (b"\x0a", b"\x32"):
            data = tag + _varint(len(data)) + data
    return data


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes([number])
    return bytes([number & 0x7F | 0x80]) + _varint(number >> 7)

"""Compiled expressions: budgets, deadlines, devices that are not in order, what is kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from dra_cli.cel_devices import from_data
from dra_core.cel.deadline import FREQUENCY, Clock
from dra_core.cel.devices import DeviceInput, device_input
from dra_core.cel.faults import (
    CompileError,
    CostExceeded,
    DeadlineExceeded,
    EvaluationFailed,
)
from dra_core.cel.program import MAX_BYTES, compile_derived, compile_selector
from dra_core.cel.tracker import LIMIT
from dra_core.model.devices import Device, Version
from dra_core.names import DeviceName

TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
LOOPS = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, a + b + c > 0)))"


def device(driver: str = "gpu.example.com", **attributes: Any) -> DeviceInput:
    return device_input(driver, Device(DeviceName("d"), attributes=attributes))


def test_an_error_is_not_no_match() -> None:
    program = compile_selector('device.attributes["gpu.example.com"].model == "a"')
    assert program.matches(device(model="a"))
    assert not program.matches(device(model="b"))
    with pytest.raises(EvaluationFailed, match="no such key: model"):
        program.matches(device())


def test_a_domain_that_no_attribute_has_is_empty() -> None:
    assert not compile_selector('has(device.attributes["x.io"].model)').matches(device())
    assert not compile_selector('"x.io" in device.attributes').matches(device())
    assert compile_selector('device.attributes["x.io"].size() == 0').matches(device())


def test_the_deadline_is_looked_at_every_hundred_iterations_and_ends_everything() -> None:
    ticks = itertools.count()
    clock = Clock(lambda: next(ticks), until=2)
    with pytest.raises(DeadlineExceeded):
        compile_selector(f"{LOOPS} || true").matches(device(), clock)
    assert next(ticks) == 4  # 0, 1, 2 and 3, which was too late
    counted = compile_selector(f"{LOOPS} || true").evaluate(
        device(), clock=Clock(lambda: 1.0, until=0.5)
    )
    assert isinstance(counted.error, DeadlineExceeded)


def test_a_loop_shorter_than_that_never_asks_the_clock() -> None:
    def asked() -> float:
        raise AssertionError

    short = f"lists.range({FREQUENCY - 1}).all(x, x >= 0)"
    assert compile_selector(short).matches(device(), Clock(asked, until=1))


def test_the_budget_ends_the_evaluation_even_beside_true() -> None:
    program = compile_selector(f"{LOOPS} || true")
    whole = program.evaluate(device())
    assert whole.error is None
    assert whole.value is True
    assert program.evaluate(device(), limit=whole.cost).error is None
    short = program.evaluate(device(), limit=whole.cost - 1)
    assert isinstance(short.error, CostExceeded)
    assert short.cost == whole.cost


def test_an_expression_that_may_cost_too_much_is_counted_when_it_runs() -> None:
    costly = f"{TEN}.all(d, {TEN}.all(e, {LOOPS.replace('a + b', 'd + e + a + b')}))"
    program = compile_selector(costly)
    assert program.max_cost > LIMIT
    with pytest.raises(CostExceeded):
        program.matches(device())


@pytest.mark.parametrize(
    "made",
    [
        "cel.bind(a, lists.range(90000), {all}.map(x, a + [x]).size() > 0)",
        "cel.bind(a, [lists.range(90000)], {all}.map(x, a.flatten()).size() > 0)",
        'cel.bind(a, "{a}", {all}.map(x, a.replace("a", "{a}")).size() > 0)',
        'cel.bind(a, "{a}".replace("a", "{a}"), {all}.map(x, "%s%d".format([a, x])).size() > 0)',
        "cel.bind(a, lists.range(9000), {all}.map(x, google.protobuf.ListValue{values: a}) != [])",
    ],
)
def test_what_takes_more_memory_than_it_costs_is_refused(made: str) -> None:
    """The reference shares, or takes gigabytes."""
    program = compile_selector(
        made.replace("{all}", "lists.range(2000)").replace("{a}", "a" * 3000)
    )
    assert isinstance(program.evaluate(device()).error, CostExceeded)
    with pytest.raises(CostExceeded):
        program.matches(device())


def test_a_device_beyond_the_limits_of_the_api_is_counted() -> None:
    model = 'device.attributes["gpu.example.com"].model'
    text = f'{TEN}.all(a, {TEN}.all(b, !{model}.matches("(a|b|c)*x")))'
    program = compile_selector(text)
    assert program.max_cost <= LIMIT
    with pytest.raises(CostExceeded):
        program.matches(device(model="abcdef" * 10_000))
    assert program.matches(device(model="abcdef" * 10))


@pytest.mark.parametrize(
    "expression",
    [
        # What ``join`` gives counts as empty in the estimate.
        '{ss}.join().split("").sort().size() > 0',
        "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].all(x, {ss}.join().contains({ss}.join()) || true)",
        # A function of lists walks over lists in lists, too.
        (
            "cel.bind(a, [0].map(x, lists.range(900)), "
            "{all}.all(x, {all}.all(y, !a.includes(dyn(1)))))"
        ),
        # A named format is as costly for an empty text.
        '{all}.all(x, {all}.all(y, format.uri().validate("").hasValue()))',
        # The right side is evaluated although the left one has no value.
        "{all}.all(x, {all}.all(y, (1 / 0 == {ss}.join().size()) || true))",
        '{all}.all(x, {all}.all(y, dyn({ss}.join()).matches("a" + {ss}.join()) || true))',
        "{all}.all(x, {all}.all(y, {ss}.join() != {ss}.join() || true))",
        "{all}.all(x, {all}.all(y, cel.bind(z, {ss}.join(), (z + z).size() > 0)))",
    ],
)
def test_the_limit_holds_where_the_estimate_is_too_low(expression: str) -> None:
    tags = 'device.attributes["gpu.example.com"].ss'
    text = expression.replace("{ss}", tags).replace("{all}", "lists.range(90)")
    program = compile_selector(text)
    assert program.max_cost <= LIMIT
    subject = device(ss=("abcdefgh" * 8,) * 48)
    assert isinstance(program.evaluate(subject).error, CostExceeded)
    with pytest.raises(CostExceeded):
        program.matches(subject)


def test_a_version_that_is_none_fails_every_expression() -> None:
    broken = device(driverVersion=Version("not a version"))
    runs: list[Callable[[], object]] = [
        lambda: compile_selector("true").matches(broken),
        lambda: compile_derived("1").attribute(broken),
    ]
    for run in runs:
        with pytest.raises(EvaluationFailed, match="attribute driverVersion"):
            run()
    assert compile_selector("true").evaluate(broken).error is not None


def test_the_length_is_counted_in_bytes_before_anything_is_read() -> None:
    text = '"a' + "ü" * ((MAX_BYTES - 6) // 2) + '"!=""'
    assert len(text.encode()) == MAX_BYTES + 1
    with pytest.raises(CompileError, match=f"{MAX_BYTES + 1} bytes"):
        compile_selector(text)
    assert compile_selector('"' + "u" * (MAX_BYTES - 6) + '"!=""').matches(device())


def test_the_place_of_an_error_is_known() -> None:
    with pytest.raises(CompileError) as caught:
        compile_selector("true &&\n  nosuch")
    (fault,) = caught.value.faults
    assert fault.offset == len("true &&\n  ")
    assert str(caught.value).splitlines()[1:] == [" |   nosuch", " | ..^"]


@pytest.mark.parametrize(
    "expression", ["1.5", "1u", 'b"a"', "duration('1s')", "[[1]]", "{1: 2}", "optional.of(1)"]
)
def test_output_types_that_no_attribute_has(expression: str) -> None:
    with pytest.raises(CompileError, match="must evaluate to a primitive scalar"):
        compile_derived(expression)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'a'", "a"),
        ("1", 1),
        ("true", True),
        ("semver('1.2.3')", Version("1.2.3")),
        ("['a']", ("a",)),
        ("[1, 2]", (1, 2)),
        ("[semver('1.2.3')]", (Version("1.2.3"),)),
        ("dyn([])", ()),
    ],
)
def test_values_of_derived_attributes(expression: str, value: object) -> None:
    found = compile_derived(expression).attribute(device())
    assert found == value
    assert type(found) is type(value)


def test_what_compiled_is_kept_and_what_did_not_is_not() -> None:
    assert compile_selector("1 == 1") is compile_selector("1 == 1")
    assert compile_selector("true") is not compile_derived("true")
    for _ in range(2):
        with pytest.raises(CompileError):
            compile_selector("1 ==")


def test_both_forms_of_capacity() -> None:
    program = compile_selector('device.capacity["a.io"].memory.isGreaterThan(quantity("1Gi"))')
    for capacity in ("2Gi", {"value": "2Gi"}):
        subject = from_data({"driver": "a.io", "capacity": {"memory": capacity}})
        assert program.matches(subject.input)


def joined(times: int) -> str:
    """Makes lists of 200,000 to 1,000,000 items for the cost of one: 2.8 million, so often."""
    return f"[lists.range(200000)].all(l, {times * [0]}.all(x, (l + l + l + l + l).size() > 0))"


def test_copies_are_counted_for_each_evaluation_by_itself() -> None:
    clock = Clock()
    program = compile_selector(joined(2))
    for _ in range(2):
        assert program.matches(device(), clock)
        assert program.evaluate(device(), clock=clock).error is None


def test_too_many_copies_end_an_evaluation() -> None:
    program = compile_selector(joined(4))
    with pytest.raises(CostExceeded, match="items were copied"):
        program.matches(device())
    assert isinstance(program.evaluate(device()).error, CostExceeded)

"""Derived attributes: what constraints find under a name, when it is evaluated, what errors say."""

from __future__ import annotations

from typing import Any

import pytest

from dra_core import wire
from dra_core.cel import derived
from dra_core.cel.deadline import Clock
from dra_core.cel.derived import Candidate, DerivedAttributes, DerivedFailed
from dra_core.cel.devices import device_input
from dra_core.cel.environment import Environment
from dra_core.cel.faults import CompileError, DeadlineExceeded, EvaluationFailed
from dra_core.cel.program import compile_derived, compile_selector
from dra_core.model.devices import AttributeValue, Version
from dra_core.model.requests import DerivedAttribute

DRIVER = "gpu.example.com"
OWN = f'device.attributes["{DRIVER}"]'


def candidate(name: str = "d", pool: str = "p", **attributes: Any) -> Candidate:
    named = {key.replace("__", "/").replace("_", "."): value for key, value in attributes.items()}
    device = wire.device_from_json({"name": name, "attributes": named})
    return Candidate(DRIVER, pool, device, device_input(DRIVER, device))


def attributes(**expressions: str) -> DerivedAttributes:
    return DerivedAttributes(
        [DerivedAttribute(f"derived/{name}", text) for name, text in expressions.items()]
    )


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('"a" + "b"', "ab"),
        (f"{OWN}.numa / 2", 3),
        (f"{OWN}.numa > 5", True),
        (f"{OWN}.version", Version("1.2.3")),
        ("[1, 2].map(x, x * 2)", (2, 4)),
        (f'[dyn("x"), {OWN}.model]', ("x", "A100")),
        ("[]", ()),
        (f"{OWN}.?nope.orValue(7)", 7),
        ("device.driver", DRIVER),
    ],
)
def test_values_of_every_type(expression: str, value: AttributeValue) -> None:
    device = candidate(numa={"int": 6}, version={"version": "1.2.3"}, model={"string": "A100"})
    found = DerivedAttributes([DerivedAttribute("derived/x", expression)])
    assert found.values(device) == {"derived/x": value}
    looked_up = found.lookup("derived/x", device)
    assert (looked_up, type(looked_up)) == (value, type(value))


def test_the_capacity_and_driver_of_the_device_are_there() -> None:
    device = wire.device_from_json({"name": "d", "capacity": {"memory": {"value": "40Gi"}}})
    one = Candidate(DRIVER, "p", device, device_input(DRIVER, device))
    text = f'device.capacity["{DRIVER}"].memory.asInteger() / 1073741824'
    assert attributes(gib=text).lookup("derived/gib", one) == 40


def test_a_derived_attribute_hides_one_of_the_device() -> None:
    device = candidate(gpu_example_com__numa={"int": 1}, other_org__numa={"int": 2})
    hiding = DerivedAttributes([DerivedAttribute(f"{DRIVER}/numa", '"derived"')])
    assert hiding.lookup(f"{DRIVER}/numa", device) == "derived"
    assert hiding.lookup("other.org/numa", device) == 2
    assert DerivedAttributes([]).lookup(f"{DRIVER}/numa", device) == 1


def test_a_derived_attribute_that_fails_does_not_give_way_to_one_of_the_device() -> None:
    device = candidate(numa={"int": 1})
    failing = DerivedAttributes([DerivedAttribute(f"{DRIVER}/numa", f"{OWN}.nope")])
    with pytest.raises(DerivedFailed):
        failing.lookup(f"{DRIVER}/numa", device)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"{DRIVER}/bare", 1),
        (f"{DRIVER}/both", "full"),
        (f"{DRIVER}/zero", 0),
        ("other.org/bare", None),
        ("other.org/full", 3),
        (f"{DRIVER}/full", None),
        ("bare", 1),
        ("nope", None),
        (f"{DRIVER}/", None),
    ],
)
def test_own_attributes_are_found_with_the_domain_of_the_driver(name: str, value: Any) -> None:
    """As the scheduler does: the full name first, then without it if the domain is the driver."""
    device = candidate(
        bare={"int": 1},
        both={"string": "bare"},
        zero={"int": 5},
        gpu_example_com__zero={"int": 0},
        gpu_example_com__both={"string": "full"},
        other_org__full={"int": 3},
    )
    assert derived.own(name, device) == value
    assert DerivedAttributes([]).lookup(name, device) == value


def test_false_zero_and_empty_are_values() -> None:
    device = candidate(no={"bool": False}, zero={"int": 0}, empty={"string": ""})
    for name, value in (("no", False), ("zero", 0), ("empty", "")):
        assert derived.own(f"{DRIVER}/{name}", device) == value
    false = attributes(no="1 > 2")
    assert false.lookup("derived/no", device) is False


def test_selectors_and_other_derived_attributes_do_not_see_them() -> None:
    device = candidate(numa={"int": 1})
    both = attributes(a="1", b='device.attributes["derived"].a')
    assert both.lookup("derived/a", device) == 1
    with pytest.raises(DerivedFailed, match="no such key: a"):
        both.lookup("derived/b", device)
    selector = compile_selector('"a" in device.attributes["derived"]')
    assert not selector.matches(device.input)


def test_evaluated_when_asked_for_and_once_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def counted(expression: str, environment: Environment) -> Any:
        program = compile_derived(expression, environment)

        class Counted:
            def attribute(self, device: Any, clock: Any) -> AttributeValue:
                value = program.attribute(device, clock)
                asked.append((expression, str(value)))
                return value

        return Counted()

    monkeypatch.setattr("dra_core.cel.derived.compile_derived", counted)
    found = attributes(a=f"{OWN}.numa", b=f"{OWN}.numa", c="1 / 0", d="nonsense(")
    first, second = candidate(numa={"int": 1}), candidate("e", numa={"int": 2})
    elsewhere = candidate(pool="q", numa={"int": 3})
    assert asked == []
    for _ in range(3):
        values = [found.lookup("derived/a", one) for one in (first, second, elsewhere)]
        assert values == [1, 2, 3]
    assert asked == [(f"{OWN}.numa", str(number)) for number in (1, 2, 3)]
    found.lookup("derived/b", first)
    assert len(asked) == 3, "the same expression under another name"


def test_an_error_names_attribute_device_and_expression() -> None:
    with pytest.raises(DerivedFailed) as failed:
        attributes(a=f"{OWN}.nope").lookup("derived/a", candidate())
    error = failed.value
    assert (error.attribute, error.device) == ("derived/a", f"{DRIVER}/p/d")
    assert error.expression == f"{OWN}.nope"
    assert "no such key: nope" in str(error)
    for part in ("derived/a", f"{DRIVER}/p/d", "nope"):
        assert part in str(error)
    assert isinstance(error.__cause__, EvaluationFailed)


@pytest.mark.parametrize("expression", ["1 +", "nosuch", "device.capacity", "1.5", 'b"a"'])
def test_one_that_does_not_compile_fails_when_it_is_asked_for(expression: str) -> None:
    found = attributes(good="1", bad=expression)
    assert found.lookup("derived/good", candidate()) == 1
    with pytest.raises(DerivedFailed, match="does not compile: 1:") as failed:
        found.lookup("derived/bad", candidate())
    assert isinstance(failed.value.__cause__, CompileError)
    with pytest.raises(DerivedFailed, match="derived/bad"):
        found.values(candidate())


def test_a_broken_version_of_the_device_fails_every_one() -> None:
    device = candidate(v={"version": "not one"}, numa={"int": 1})
    with pytest.raises(DerivedFailed, match="attribute v: parse semantic version"):
        attributes(a="1").lookup("derived/a", device)
    assert DerivedAttributes([]).lookup(f"{DRIVER}/numa", device) == 1


def test_the_last_of_two_with_one_name_counts() -> None:
    twice = [DerivedAttribute("derived/x", "1"), DerivedAttribute("derived/x", "2")]
    assert DerivedAttributes(twice).lookup("derived/x", candidate()) == 2


def test_time_is_bounded() -> None:
    text = "lists.range(1000).map(x, x).size()"
    late = DerivedAttributes(
        [DerivedAttribute("derived/x", text)], clock=lambda: Clock(lambda: 2.0, 1.0)
    )
    with pytest.raises(DerivedFailed, match="deadline") as failed:
        late.lookup("derived/x", candidate())
    assert isinstance(failed.value.__cause__, DeadlineExceeded)


def test_the_environment_is_that_of_a_version() -> None:
    """1.37 has fields in backquotes."""
    given = [DerivedAttribute("derived/x", "{'a-b': 1}.`a-b`")]
    assert DerivedAttributes(given).lookup("derived/x", candidate()) == 1
    with pytest.raises(DerivedFailed, match="not understood before"):
        DerivedAttributes(given, Environment((1, 36))).lookup("derived/x", candidate())

"""Expressions as an API server judges them: length, compilation, cost; by version and gates."""

from __future__ import annotations

from typing import Any

import pytest

from dra_core.cel.program import MAX_BYTES, compile_derived, compile_selector
from dra_core.validation import expressions, objects
from dra_core.validation.expressions import COST_MAX, DerivedCost
from dra_core.validation.problems import ErrorType, Path, Problem
from dra_core.validation.servers import Server
from dra_testing import cel_golden

JSON = dict[str, Any]
AT = Path("x")
INVALID, FORBIDDEN = ErrorType.INVALID, ErrorType.FORBIDDEN
V1 = "resource.k8s.io/v1"
OWN = 'device.attributes["gpu.example.com"]'
DERIVED = {"DRADerivedAttributes": True}
LISTS = {"DRAListTypeAttributes": True}


def server(minor: int = 37, **gates: bool) -> Server:
    return Server(minor, gates)


def loops(depth: int, body: str = "true") -> str:
    """So many loops over ten items in one another: each is ten times as costly as the next."""
    names = "abcdefgh"[:depth]
    over = "".join(f"[1,2,3,4,5,6,7,8,9,10].all({name}, " for name in names)
    return f"{over}{body}{')' * depth}"


def _near(line: JSON) -> range:
    cost = int(line.get("maxCost", 0))
    return range(cost - 1, cost + 2)


def selector(text: str, at: Server | None = None, *, unchanged: bool = False) -> list[Problem]:
    return list(expressions.selector(text, AT, at or server(), unchanged=unchanged))


def types(found: list[Problem]) -> list[ErrorType]:
    assert all(problem.field == "x" for problem in found)
    return [problem.type for problem in found]


class TestLength:
    @pytest.mark.parametrize("filling", [" ", "\u00fc", "\U0001f600"])
    def test_bytes_count_not_characters(self, filling: str) -> None:
        """An expression of the limit is taken, one byte more is not."""
        size = len(filling.encode())
        rest = MAX_BYTES - len('"" != "x"')
        text = f'"{filling * (rest // size)}{"a" * (rest % size)}" != "x"'
        assert len(text.encode()) == MAX_BYTES
        assert selector(text) == []
        assert types(selector(f"{text} ")) == [ErrorType.TOO_LONG]

    def test_of_one_that_is_too_long_nothing_else_is_said(self) -> None:
        cost = DerivedCost()
        long = "1 + " * MAX_BYTES
        assert types(selector(long)) == [ErrorType.TOO_LONG]
        assert types(list(expressions.derived(long, AT, server(), cost))) == [ErrorType.TOO_LONG]
        assert cost.total == 0


class TestCompilation:
    @pytest.mark.parametrize(
        ("text", "detail"),
        [
            ("device.nope", "does not compile: 1:7: undefined field 'nope'"),
            ("true &&", "does not compile: 1:8: "),
            ("1", "does not compile: 1:1: must evaluate to bool"),
            ("", "does not compile: 1:1: "),
            ("true &&\n (device.driver == 1)", "does not compile: 2:17: "),
            ("a + b", "(and 1 more)"),
            ('device.driver.matches("(")', "does not compile: 1:"),
        ],
    )
    def test_where_and_why(self, text: str, detail: str) -> None:
        (problem,) = selector(text)
        assert (problem.field, problem.type) == ("x", INVALID)
        assert detail in problem.detail

    @pytest.mark.parametrize(
        ("text", "good"),
        [
            ("1", True),
            ('"a"', True),
            ("true", True),
            ('semver("1.2.3")', True),
            (f"{OWN}.x", True),
            ("1.5", False),
            ('quantity("1")', False),
            ("device", False),
            ("{}", False),
        ],
    )
    def test_types_of_derived_attributes(self, text: str, good: bool) -> None:
        found = types(list(expressions.derived(text, AT, server(), DerivedCost())))
        assert found == ([] if good else [INVALID])


class TestCost:
    def test_below_and_above_the_limit(self) -> None:
        """The estimate decides, whatever the expression would cost on a device."""
        below, above = loops(5), loops(6)
        assert compile_selector(below).max_cost <= COST_MAX < compile_selector(above).max_cost
        assert selector(below) == []
        (problem,) = selector(above)
        assert problem.type == FORBIDDEN
        cost = compile_selector(above).max_cost
        assert f"costs up to {cost} units, 1000000 are allowed" in problem.detail

    def test_exactly_the_limit(self) -> None:
        """Expressions of which the reference says that they cost one more, one less and that."""
        asked = [line for line in cel_golden.read("near-limit") if COST_MAX in _near(line)]
        for line in asked:
            found = types(selector(line["expression"], server(**LISTS)))
            assert found == ([] if line["maxCost"] <= COST_MAX else [FORBIDDEN]), line
        assert {line["maxCost"] for line in asked} == {COST_MAX - 1, COST_MAX, COST_MAX + 1}

    def test_derived_attributes_alone_and_together(self) -> None:
        cost = DerivedCost()
        text = f"{loops(5)} ? 1 : 2"
        one = compile_derived(text).max_cost
        assert one <= COST_MAX < 3 * one
        for _ in range(3):
            assert list(expressions.derived(text, AT, server(), cost)) == []
        assert cost.total == 3 * one
        (problem,) = cost.problems(Path("spec.devices"))
        assert (problem.field, problem.type) == ("spec.devices", FORBIDDEN)
        assert f"cost up to {3 * one} units together" in problem.detail

    def test_one_that_is_too_costly_is_said_of_it_and_of_the_sum(self) -> None:
        cost = DerivedCost()
        found = list(expressions.derived(f"{loops(6)} ? 1 : 2", AT, server(), cost))
        assert types(found) == [FORBIDDEN]
        assert len(list(cost.problems(AT))) == 1

    def test_a_sum_at_the_limit_is_taken(self) -> None:
        cost = DerivedCost()
        cost.add(COST_MAX)
        assert list(cost.problems(AT)) == []
        cost.add(1)
        assert len(list(cost.problems(AT))) == 1

    def test_one_that_does_not_compile_costs_nothing(self) -> None:
        cost = DerivedCost()
        assert types(list(expressions.derived("nope", AT, server(), cost))) == [INVALID]
        assert cost.total == 0


class TestVersionsAndGates:
    @pytest.mark.parametrize(
        ("text", "gates", "minors"),
        [
            ("device.allowMultipleAllocations", {}, (36, 37)),
            ("device.allowMultipleAllocations", {"DRAConsumableCapacity": False}, ()),
            (f"{OWN}.x.exists(x, x == 1)", {}, ()),
            (f"{OWN}.x.exists(x, x == 1)", LISTS, (36, 37)),
            (f'{OWN}.x.includes("a")', {}, ()),
            (f'{OWN}.x.includes("a")', LISTS, (36, 37)),
            ('{"a-b": true}.`a-b`', {}, (37,)),
            ('string(duration(size(device.driver))) == ""', {}, (36,)),
            ('device.driver == "x"', {}, (36, 37)),
        ],
    )
    def test_new_expressions(
        self, text: str, gates: dict[str, bool], minors: tuple[int, ...]
    ) -> None:
        taken = tuple(minor for minor in (36, 37) if not selector(text, server(minor, **gates)))
        assert taken == minors

    def test_patterns_are_estimated_since_137(self) -> None:
        call = loops(5, "matches(device.driver, '((a|b)*c)+')")
        method = loops(5, "device.driver.matches('((a|b)*c)+')")
        assert [types(selector(call, server(minor))) for minor in (36, 37)] == [[], [FORBIDDEN]]
        assert [types(selector(method, server(minor))) for minor in (36, 37)] == [[FORBIDDEN]] * 2

    @pytest.mark.parametrize("text", ["nonsense(", loops(6), "1", "x" * (MAX_BYTES + 1)])
    def test_unchanged_selectors_of_classes(self, text: str) -> None:
        """1.37 does not look at them; 1.36 does, though with all there is."""
        assert selector(text, server(37), unchanged=True) == []
        assert selector(text, server(36), unchanged=True) != []

    def test_unchanged_selectors_of_136_may_use_what_is_off(self) -> None:
        off = server(36, DRAConsumableCapacity=False)
        assert selector("device.allowMultipleAllocations", off) != []
        assert selector("device.allowMultipleAllocations", off, unchanged=True) == []


def class_(*texts: str) -> JSON:
    spec = {"selectors": [{"cel": {"expression": text}} for text in texts]}
    return {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": "c"}, "spec": spec}


def asked(texts: list[str], derived: list[str]) -> JSON:
    return {
        "deviceClassName": "c",
        "selectors": [{"cel": {"expression": text}} for text in texts],
        "derivedAttributes": [
            {"name": f"derived/x{number}", "expression": text}
            for number, text in enumerate(derived)
        ],
    }


def claim(requests: list[JSON], names: int, *, template: bool = False) -> JSON:
    constraints = [{"matchAttribute": f"derived/x{number}"} for number in range(names)]
    spec: JSON = {"devices": {"requests": requests, "constraints": constraints}}
    kind = "ResourceClaimTemplate" if template else "ResourceClaim"
    return {
        "apiVersion": V1,
        "kind": kind,
        "metadata": {"name": "c"},
        "spec": {"spec": spec} if template else spec,
    }


def verdict(obj: JSON, at: Server) -> set[tuple[str, ErrorType]]:
    return {(p.field, p.type) for p in objects.validate_create(obj, at)}


class TestObjects:
    def test_every_selector_has_its_path(self) -> None:
        found = verdict(class_("true", "nope", loops(6)), server())
        at = "spec.selectors[{}].cel.expression"
        assert found == {(at.format(1), INVALID), (at.format(2), FORBIDDEN)}

    @pytest.mark.parametrize("template", [False, True])
    def test_requests_and_subrequests(self, template: bool) -> None:
        bad = asked(["nope"], [])
        requests: list[JSON] = [
            {"name": "a", "exactly": bad},
            {"name": "b", "firstAvailable": [{"name": "s", **bad}, {"name": "t", **bad}]},
        ]
        where = "spec.spec.devices" if template else "spec.devices"
        places = ("[0].exactly", "[1].firstAvailable[0]", "[1].firstAvailable[1]")
        assert verdict(claim(requests, 0, template=template), server()) == {
            (f"{where}.requests{place}.selectors[0].cel.expression", INVALID) for place in places
        }

    def test_derived_attributes_of_all_requests_count_together(self) -> None:
        text = f"{loops(5)} ? 1 : 2"
        one = compile_derived(text).max_cost
        fits = COST_MAX // one
        each: JSON = {"name": "a", "exactly": asked([], [text] * fits)}
        assert verdict(claim([each], fits), server(**DERIVED)) == set()
        other: JSON = {"name": "b", "exactly": asked([], [text])}
        found = verdict(claim([each, other], fits), server(**DERIVED))
        assert found == {("spec.devices", FORBIDDEN)}

    def test_derived_attributes_are_dropped_where_their_gate_is_off(self) -> None:
        bad = claim([{"name": "a", "exactly": asked([], ["nope", loops(6)])}], 2)
        assert verdict(bad, server()) == set()
        assert verdict(bad, server(36)) == set()
        at = "spec.devices.requests[0].exactly.derivedAttributes[{}].expression"
        assert verdict(bad, server(**DERIVED)) == {
            (at.format(0), INVALID),
            (at.format(1), FORBIDDEN),
            ("spec.devices", FORBIDDEN),
        }

    def test_an_update_of_a_class(self) -> None:
        stored = class_("nonsense(", "true")
        same = {**class_("nonsense(", "true"), "metadata": {"name": "c", "labels": {"a": "b"}}}
        other = class_("nonsense(", "false")
        at = ("spec.selectors[0].cel.expression", INVALID)

        def updated(new: JSON, minor: int) -> set[tuple[str, ErrorType]]:
            return {(p.field, p.type) for p in objects.validate_update(new, stored, server(minor))}

        assert updated(same, 37) == set()
        assert updated(same, 36) == {at}
        assert updated(other, 37) == {at}
        assert updated(other, 36) == {at}

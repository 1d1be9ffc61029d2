"""Warnings about selectors beside devices: what fails, what matches nothing, and hints."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from dra_core import selector_lint, wire
from dra_core.cel.deadline import Clock
from dra_core.lint import Warned

DRIVER = "gpu.example.com"
OWN = f'device.attributes["{DRIVER}"]'
V1 = "resource.k8s.io/v1"
JSON = dict[str, Any]


def device(name: str, capacity: Mapping[str, str] | None = None, **attributes: object) -> JSON:
    kinds = {str: "string", int: "int", bool: "bool", list: "strings"}
    named = {
        key.replace("__", "/").replace("_", "."): {kinds[type(value)]: value}
        for key, value in attributes.items()
    }
    amounts = {key: {"value": value} for key, value in (capacity or {}).items()}
    return {"name": name, "attributes": named, "capacity": amounts}


def slice_(*devices: JSON, driver: str = DRIVER, pool: str = "p") -> JSON:
    spec = {
        "driver": driver,
        "nodeName": "n1",
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
        "devices": list(devices),
    }
    name = f"{pool}.{driver}"
    return {"apiVersion": V1, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def selectors(expressions: tuple[str, ...]) -> list[JSON]:
    return [{"cel": {"expression": text}} for text in expressions]


def class_(*expressions: str, name: str = "gpu") -> JSON:
    spec = {"selectors": selectors(expressions)}
    return {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def claim(*expressions: str, of: str = "gpu", template: bool = False) -> JSON:
    exactly = {"deviceClassName": of, "selectors": selectors(expressions)}
    spec: JSON = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    kind = "ResourceClaimTemplate" if template else "ResourceClaim"
    spec = {"spec": spec} if template else spec
    return {"apiVersion": V1, "kind": kind, "metadata": {"name": "c"}, "spec": spec}


def warned(*objects: JSON) -> list[Warned]:
    return list(selector_lint.warnings([wire.read(o) for o in objects]))


def codes(*objects: JSON) -> list[tuple[str, str]]:
    return [(w.code, w.subject) for w in warned(*objects)]


def message(*objects: JSON) -> str:
    (one,) = warned(*objects)
    return one.message


AB = slice_(device("a", model="A100"), device("b"))


class TestErrors:
    def test_the_device_the_error_and_what_to_do_are_named(self) -> None:
        (one,) = warned(AB, claim(f'{OWN}.model == "x"'))
        assert one.code == "selector-error"
        assert one.subject == "ResourceClaim c"
        assert one.field == "spec.devices.requests[0].exactly.selectors[0].cel.expression"
        assert "fails on 1 of 2 devices, on gpu.example.com/p/b" in one.message
        assert "'no such key: model'" in one.message
        assert "gives up on the claim" in one.message
        assert "has(…)" in one.message
        assert one.message.endswith(f"1 of 2 devices have {OWN}.model")

    @pytest.mark.parametrize(
        "expression",
        [
            f'has({OWN}.model) && {OWN}.model == "A100"',
            f'"model" in {OWN} && {OWN}.model == "A100"',
            f'{OWN}.?model.orValue("") == "A100"',
            f'{OWN}[?"model"].orValue("") == "A100"',
        ],
    )
    def test_a_guard_is_a_clean_no(self, expression: str) -> None:
        assert warned(AB, claim(expression)) == []

    def test_a_foreign_driver_gets_to_a_selector_without_a_guard(self) -> None:
        nic = slice_(device("eth0", speed=100), driver="nic.example.com", pool="q")
        gpu = slice_(device("a", model="A100"))
        text = message(gpu, nic, claim(f'{OWN}.model == "A100"'))
        assert "fails on 1 of 2 devices, on nic.example.com/q/eth0" in text
        assert f"1 of 2 devices have {OWN}.model" in text
        assert (
            warned(gpu, nic, claim(f'device.driver == "{DRIVER}" && {OWN}.model == "A100"')) == []
        )

    @pytest.mark.parametrize(
        ("expression", "error"),
        [
            (f'{OWN}.model == "A100" && 1 / {OWN}.n == 1', "division by zero"),
            (f"{OWN}.model", "could not be converted to bool"),
            (f"{OWN}.tags[5] == 'x'", "index out of bounds"),
            (f"{OWN}.model > 5", "no such overload"),
        ],
    )
    def test_other_errors(self, expression: str, error: str) -> None:
        found = slice_(device("a", model="A100", n=0, tags=["x"]))
        assert error in message(found, claim(expression))

    def test_a_broken_version_fails_for_every_selector(self) -> None:
        broken = slice_({"name": "a", "attributes": {"v": {"version": "nope"}}})
        assert "attribute v" in message(broken, claim("true"))


class TestNothing:
    def test_a_misspelt_key(self) -> None:
        text = message(AB, claim(f'has({OWN}.modle) && {OWN}.modle == "A100"'))
        assert text == (
            "does not match any of the 2 devices that it is asked about; "
            f"0 of 2 devices have {OWN}.modle, did you mean 'model'?"
        )

    def test_the_nearest_of_several_keys(self) -> None:
        devices = slice_(device("a", model="A100", modem="x", vendor="y"))
        text = message(devices, claim(f"has({OWN}.modell)"))
        assert text.endswith("did you mean 'model'?")

    def test_a_misspelt_domain(self) -> None:
        wrong = 'device.attributes["gpu.exmaple.com"]'
        text = message(AB, claim(f'has({wrong}.model) && {wrong}.model == "A100"'))
        assert f"0 of 2 devices have {wrong}.model, did you mean the domain '{DRIVER}'?" in text

    def test_nothing_is_near(self) -> None:
        text = message(AB, claim(f"has({OWN}.bandwidth)"))
        assert text.endswith(f"0 of 2 devices have {OWN}.bandwidth")

    def test_a_value_that_no_device_has(self) -> None:
        text = message(slice_(device("a", model="A100")), claim(f'{OWN}.model == "H100"'))
        assert text == "does not match the only device that it is asked about"

    def test_a_capacity(self) -> None:
        found = slice_(device("a", capacity={"memory": "40Gi"}))
        big = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0'
        assert "does not match the only device" in message(found, claim(big))
        wrong = big.replace("memory", "memori")
        text = message(found, claim(f'"memori" in device.capacity["{DRIVER}"] && {wrong}'))
        assert "0 of 1 devices have device.capacity" in text
        assert "did you mean 'memory'?" in text

    def test_hints_do_not_mix_attributes_and_capacity(self) -> None:
        found = slice_(device("a", capacity={"memory": "1"}, model="x"))
        text = message(found, claim(f"has({OWN}.memory)"))
        assert f"0 of 1 devices have {OWN}.memory" in text
        assert "did you mean" not in text

    def test_a_match_is_silent(self) -> None:
        assert warned(AB, claim("true"), class_(f'device.driver == "{DRIVER}"')) == []


class TestClasses:
    def test_the_selectors_of_the_class_come_first(self) -> None:
        """A class that guards for its driver saves the request from devices of others."""
        nic = slice_(device("eth0"), driver="nic.example.com", pool="q")
        gpu = slice_(device("a", model="A100"))
        own = claim(f'{OWN}.model == "A100"')
        guarding = class_(f'device.driver == "{DRIVER}"')
        assert warned(gpu, nic, guarding, own) == []
        assert codes(gpu, nic, class_("true"), own) == [("selector-error", "ResourceClaim c")]

    def test_an_error_of_the_class_is_said_once_and_of_the_class(self) -> None:
        bad = class_(f'{OWN}.model == "A100"')
        assert codes(AB, bad, claim("true")) == [("selector-error", "DeviceClass gpu")]

    def test_a_class_is_asked_about_devices_of_every_driver(self) -> None:
        nic = slice_(device("eth0"), driver="nic.example.com", pool="q")
        text = message(slice_(device("a", x=1)), nic, class_(f"{OWN}.x == 1"))
        assert "on nic.example.com/q/eth0" in text

    def test_selectors_of_one_object_are_asked_in_their_order(self) -> None:
        first, second = f'"model" in {OWN}', f'{OWN}.model == "A100"'
        assert warned(AB, claim(first, second)) == []
        assert codes(AB, claim(second, first)) == [("selector-error", "ResourceClaim c")]

    def test_a_selector_that_nothing_reaches_is_not_judged(self) -> None:
        def places(*expressions: str) -> list[str]:
            return [
                w.field.removesuffix(".cel.expression")[-12:]
                for w in warned(AB, claim(*expressions))
            ]

        assert places("false", f'{OWN}.nope == "x"') == ["selectors[0]"]
        assert places("true", f'{OWN}.nope == "x"') == ["selectors[1]"]

    def test_a_request_of_another_class_or_one_that_is_not_there(self) -> None:
        other = class_("false", name="other")
        found = codes(AB, other, claim(f'{OWN}.model == "x"'))
        assert found == [
            ("selector-matches-nothing", "DeviceClass other"),
            ("selector-error", "ResourceClaim c"),
        ]


class TestWhere:
    def test_templates(self) -> None:
        (one,) = warned(AB, claim("false", template=True))
        assert one.subject == "ResourceClaimTemplate c"
        assert one.field == "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression"

    def test_subrequests(self) -> None:
        data = claim()
        sub = {"name": "s", "deviceClassName": "gpu", "selectors": selectors(("false",))}
        data["spec"]["devices"]["requests"] = [{"name": "r", "firstAvailable": [sub, sub]}]
        fields = [w.field for w in warned(AB, data)]
        place = "spec.devices.requests[0].firstAvailable[{}].selectors[0].cel.expression"
        assert fields == [place.format(0), place.format(1)]

    def test_without_devices_nothing_is_said(self) -> None:
        bad = claim(f"{OWN}.nope == 1"), class_("false")
        assert warned(*bad) == []
        assert warned(slice_(), *bad) == []
        assert len(warned(AB, *bad)) == 1, "of the class only: no device reaches the claim"

    def test_devices_of_several_slices_and_drivers_are_counted_together(self) -> None:
        slices = [
            slice_(device("a", model="x"), pool="p"),
            slice_(device("a", model="y"), device("b", model="z"), pool="q"),
            slice_(device("a"), driver="nic.example.com", pool="r"),
        ]
        text = message(*slices, claim(f'{OWN}.model == "z"'))
        assert "fails on 1 of 4 devices, on nic.example.com/r/a" in text
        assert f"3 of 4 devices have {OWN}.model" in text
        text = message(*slices, claim(f"has({OWN}.nope)"))
        assert "does not match any of the 4 devices" in text

    def test_what_is_an_error_already_is_no_warning(self) -> None:
        ten = "[1,2,3,4,5,6,7,8,9,10]"
        over = f"{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, {ten}.all(e, {ten}.all(f, "
        assert warned(AB, claim("nonsense(", over + "false))))))", "")) == []
        assert len(warned(AB, claim("nonsense(", "false"))) == 1

    def test_the_order_of_objects_does_not_matter(self) -> None:
        nic = slice_(device("eth0"), driver="nic.example.com", pool="q")
        objects = [AB, nic, class_(f'device.driver == "{DRIVER}"'), claim(f"has({OWN}.nope)")]
        found = {tuple(codes(*order)) for order in itertools.permutations(objects)}
        assert len(found) == 1


class TestTime:
    def test_it_says_that_the_time_was_over(self) -> None:
        now = itertools.count()
        objects = [wire.read(o) for o in (AB, claim("false"), claim(f"{OWN}.model == 'x'"))]
        found = list(selector_lint.warnings(objects, lambda: Clock(lambda: next(now), 0.5)))
        assert [w.code for w in found] == ["selector-undecided", "selector-undecided"]
        assert found[0].message == "asked about 1 of 2 devices only: the time was over"
        assert found[1].message == "asked about 0 of 2 devices only: the time was over"

    def test_an_evaluation_that_takes_too_long_is_no_error_of_the_selector(self) -> None:
        times = iter([0.0, 9.0, 9.0, 9.0])
        objects = [wire.read(o) for o in (AB, claim("lists.range(200).all(x, x >= 0)"))]
        found = list(selector_lint.warnings(objects, lambda: Clock(lambda: next(times), 1.0)))
        assert [w.code for w in found] == ["selector-undecided"]

    def test_an_error_that_was_found_is_said_all_the_same(self) -> None:
        times = iter([0.0, 9.0])
        objects = [wire.read(o) for o in (slice_(device("b"), device("c")), claim(f"{OWN}.x == 1"))]
        found = list(selector_lint.warnings(objects, lambda: Clock(lambda: next(times), 1.0)))
        assert [w.code for w in found] == ["selector-error"]

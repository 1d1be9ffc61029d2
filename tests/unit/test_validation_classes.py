"""Rules for DeviceClass and DeviceTaintRule: both sides of each boundary, by table."""

from __future__ import annotations

from typing import Any

import pytest

from dra_core.validation import classes, taint_rules
from dra_core.validation.problems import ErrorType, Problem
from dra_core.validation.servers import Server

JSON = dict[str, Any]
V137, V136 = Server(37), Server(36)
LIMIT = 10 * 1024

REQUIRED, INVALID = ErrorType.REQUIRED, ErrorType.INVALID
TOO_MANY, TOO_LONG = ErrorType.TOO_MANY, ErrorType.TOO_LONG
NOT_SUPPORTED, DUPLICATE = ErrorType.NOT_SUPPORTED, ErrorType.DUPLICATE
Found = set[tuple[str, ErrorType]]


def found(problems: list[Problem]) -> Found:
    return {(p.field, p.type) for p in problems}


def device_class(**spec: Any) -> JSON:
    return {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": spec}


def selectors(count: int, expression: str = "true") -> list[JSON]:
    return [{"cel": {"expression": expression}}] * count


def configs(count: int, parameters: Any = None) -> list[JSON]:
    return [{"opaque": {"driver": "d", "parameters": parameters or {}}}] * count


CLASSES: list[tuple[str, Any, Any, Found]] = [
    ("selectors", selectors(32), selectors(33), {("spec.selectors", TOO_MANY)}),
    ("selectors", selectors(1), [{}], {("spec.selectors[0].cel", REQUIRED)}),
    ("selectors", selectors(1), selectors(1, ""), {("spec.selectors[0].cel.expression", INVALID)}),
    ("config", configs(32), configs(33), {("spec.config", TOO_MANY)}),
    ("config", configs(1), [{}], {("spec.config[0].opaque", REQUIRED)}),
    (
        "extendedResourceName",
        "a.b/" + "n" * 63,
        "a.b/" + "n" * 64,
        {("spec.extendedResourceName", INVALID)},
    ),
    (
        "extendedResourceName",
        "d" * 244 + "/a",
        "d" * 245 + "/a",
        {("spec.extendedResourceName", INVALID)},
    ),
    (
        "extendedResourceName",
        "kubernetes.example/a",
        "a.kubernetes.io/b",
        {("spec.extendedResourceName", INVALID)},
    ),
    (
        "extendedResourceName",
        "request.a/b",
        "requests.a/b",
        {("spec.extendedResourceName", INVALID)},
    ),
    ("extendedResourceName", None, "gpu", {("spec.extendedResourceName", INVALID)}),
]


@pytest.mark.parametrize(("field", "good", "bad", "said"), CLASSES)
def test_rules_of_classes(field: str, good: Any, bad: Any, said: Found) -> None:
    old = device_class()
    for server in (V136, V137):
        assert classes.validate_create(device_class(**{field: good}), server) == []
        assert classes.validate_update(device_class(**{field: good}), old, server) == []
        assert found(classes.validate_create(device_class(**{field: bad}), server)) == said
        assert found(classes.validate_update(device_class(**{field: bad}), old, server)) == said


def test_names_of_classes() -> None:
    def named(**metadata: str) -> Found:
        return found(classes.validate_create({"metadata": metadata, "spec": {}}, V137))

    assert named(name="n" * 253) == set()
    assert named(generateName="gpu-") == set()
    assert named(name="n" * 254) == {("metadata.name", INVALID)}
    assert named(generateName="GPU-") == {("metadata.name", INVALID)}, "not generateName as well"
    assert named() == {("metadata.name", REQUIRED)}


def test_stored_parameters_may_be_too_large() -> None:
    old = device_class(config=configs(1, {"a": "x" * LIMIT}))
    assert found(classes.validate_create(old, V137)) == {
        ("spec.config[0].opaque.parameters", TOO_LONG)
    }
    assert (
        classes.validate_update(device_class(**old["spec"], selectors=selectors(1)), old, V137)
        == []
    )
    more = device_class(config=[*old["spec"]["config"], *configs(1)])
    said = {("spec.config[0].opaque.parameters", TOO_LONG)}
    assert found(classes.validate_update(more, old, V137)) == said


def test_stored_expressions_are_trusted_since_137() -> None:
    old = device_class(selectors=selectors(1, "1" * (LIMIT + 1)))
    new = {**old, "metadata": {"name": "c", "labels": {"a": "b"}}}
    assert classes.validate_update(new, old, V137) == []
    said = {("spec.selectors[0].cel.expression", TOO_LONG)}
    assert found(classes.validate_update(new, old, V136)) == said


def rule(effect: str = "None", key: str = "k", value: str = "", **selector: Any) -> JSON:
    taint = {"key": key, "effect": effect, "value": value}
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": selector, "taint": taint},
    }


AT = "spec.taint"
BY = "spec.deviceSelector"


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        (rule(driver="D" * 63), rule(driver="d" * 64), {(f"{BY}.driver", TOO_LONG)}),
        (rule(driver=None), rule(driver=""), {(f"{BY}.driver", REQUIRED)}),
        (rule(driver="a.b"), rule(driver="a_b"), {(f"{BY}.driver", INVALID)}),
        (
            rule(pool="p" * 253),
            rule(pool="p" * 254),
            {(f"{BY}.pool", TOO_LONG), (f"{BY}.pool", INVALID)},
        ),
        (rule(pool="a/b"), rule(pool="a//b"), {(f"{BY}.pool", INVALID)}),
        (rule(pool="a/b"), rule(pool=""), {(f"{BY}.pool", REQUIRED)}),
        (rule(device="d" * 63), rule(device="d" * 64), {(f"{BY}.device", INVALID)}),
        (rule(device="d"), rule(device=""), {(f"{BY}.device", INVALID)}),
        (rule(key="k" * 63), rule(key="k" * 64), {(f"{AT}.key", INVALID)}),
        (rule(key="a.b/k"), rule(key=""), {(f"{AT}.key", INVALID)}),
        (rule(value="v" * 63), rule(value="v" * 64), {(f"{AT}.value", INVALID)}),
        (rule("NoExecute"), rule("noExecute"), {(f"{AT}.effect", NOT_SUPPORTED)}),
        (rule("NoSchedule"), rule(""), {(f"{AT}.effect", REQUIRED)}),
    ],
)
def test_rules_of_rules(good: JSON, bad: JSON, said: Found) -> None:
    for server in (V136, V137):
        assert taint_rules.validate_create(good, server) == []
        assert taint_rules.validate_update(good, rule(), server) == []
        assert found(taint_rules.validate_create(bad, server)) == said
        assert found(taint_rules.validate_update(bad, rule(), server)) == said


def test_a_stored_effect_may_stay() -> None:
    assert taint_rules.validate_update(rule("Later", value="v"), rule("Later"), V137) == []


def test_in_v1_an_update_names_its_resource_version() -> None:
    new = {**rule(), "apiVersion": "resource.k8s.io/v1"}
    said = {("metadata.resourceVersion", INVALID)}
    assert found(taint_rules.validate_update(new, rule(), V137)) == said
    assert found(taint_rules.validate_status_update(new, rule(), V137)) == said
    new["metadata"] = {"name": "r", "resourceVersion": "1"}
    assert taint_rules.validate_update(new, rule(), V137) == []


def test_the_status_of_a_rule_has_at_most_8_conditions_each_once() -> None:
    condition = {"status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "A"}

    def said(*types: str) -> Found:
        status = {"conditions": [{**condition, "type": t} for t in types]}
        return found(taint_rules.validate_status_update({**rule(), "status": status}, rule(), V137))

    assert said(*"abcdefgh") == set()
    assert said(*"abcdefghi") == {("status.conditions", TOO_MANY)}
    assert said("a", "a") == {("status.conditions[1]", DUPLICATE)}

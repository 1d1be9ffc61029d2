"""Warnings about what is legal and likely wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dra_core import lint, pod_lint, taints, wire
from dra_core.model.taints import DeviceTaint, DeviceToleration
from dra_core.validation import objects
from dra_core.validation.problems import ErrorType
from dra_core.validation.servers import Server

V1 = "resource.k8s.io/v1"


def slice_(name: str, *devices: dict[str, Any], count: int = 1, generation: int = 1) -> Any:
    pool = {"name": "p", "generation": generation, "resourceSliceCount": count}
    spec: dict[str, Any] = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool}
    body = {"apiVersion": V1, "kind": "ResourceSlice", "metadata": {"name": name}}
    return body | {"spec": spec | {"devices": list(devices)}}


def claim(**exactly: Any) -> Any:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}
    spec = {"devices": {"requests": [request]}}
    return {"apiVersion": V1, "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec}


def class_(name: str = "gpu", driver: str = "gpu.example.com") -> Any:
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    body = {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": name}}
    return body | {"spec": {"selectors": [selector]}}


def rule() -> Any:
    taint = {"key": "sick", "value": "yes", "effect": "NoExecute"}
    body = {"apiVersion": V1, "kind": "DeviceTaintRule", "metadata": {"name": "r"}}
    return body | {"spec": {"deviceSelector": {}, "taint": taint}}


def codes(*objects: Any) -> list[str]:
    return [w.code for w in lint.warnings([wire.read(o) for o in objects])]


def messages(*objects: Any) -> str:
    return "\n".join(w.message for w in lint.warnings([wire.read(o) for o in objects]))


def test_a_good_set_has_no_warnings() -> None:
    assert codes(slice_("a", {"name": "d"}), class_(), claim()) == []


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        ([slice_("a", count=2)], "incomplete: 1 of 2 slices"),
        ([slice_("a"), slice_("b")], "has 2 slices where resourceSliceCount says 1"),
        ([slice_("a", count=2), slice_("b", count=3)], r"disagree on resourceSliceCount \(2, 3\)"),
        (
            [slice_("a", {"name": "d"}, count=2), slice_("b", {"name": "d"}, count=2)],
            "invalid: device 'd' is there 2 times",
        ),
        (
            [slice_("a", {"name": "d", "consumesCounters": [{"counterSet": "x"}]})],
            "consumes from counter set 'x', which no slice of the pool has",
        ),
    ],
)
def test_pools_that_nothing_is_allocated_from(slices: list[Any], message: str) -> None:
    assert set(codes(*slices)) == {"pool"}
    assert re.search(message, messages(*slices))
    assert messages(*slices) == messages(*reversed(slices))


def test_older_generations_do_not_count() -> None:
    assert codes(slice_("a", {"name": "d"}, generation=2), slice_("b", count=5)) == []


def test_a_counter_that_its_set_does_not_have() -> None:
    consumed = [{"counterSet": "s", "counters": {"x": {"value": "1"}}}]
    counters = slice_("b", count=2)
    counters["spec"]["sharedCounters"] = [{"name": "s", "counters": {"y": {"value": "1"}}}]
    device = {"name": "d", "consumesCounters": consumed}
    assert "counter 'x', which counter set 's' does not have" in messages(
        slice_("a", device, count=2), counters
    )


@pytest.mark.parametrize("kind", ["attributes", "capacity"])
def test_names_that_hide_each_other(kind: str) -> None:
    value = {"int": 1} if kind == "attributes" else {"value": "1"}
    device = {"name": "d", kind: {"x": value, "gpu.example.com/x": value, "other.org/x": value}}
    assert codes(slice_("a", device)) == ["shadowed-name"]


def test_a_derived_attribute_that_hides_a_published_one() -> None:
    device = {"name": "d", "attributes": {"numa": {"int": 1}}}
    derived = {"name": "gpu.example.com/numa", "expression": "1"}
    assert codes(slice_("a", device), claim(derivedAttributes=[derived])) == ["shadowed-name"]


def test_a_class_of_a_driver_that_no_slice_has() -> None:
    assert codes(class_(driver="nic.example.com")) == [], "nothing is known about slices"
    found = codes(slice_("a", {"name": "d"}), class_(driver="nic.example.com"))
    assert found == ["class-without-devices"]


def test_a_class_that_is_not_there() -> None:
    assert codes(claim()) == [], "nothing is known about classes"
    assert codes(claim(), class_("other")) == ["unknown-class"]


@pytest.mark.parametrize(
    ("toleration", "found"),
    [
        ({"operator": "Exists"}, []),
        ({"key": "sick", "operator": "Exists"}, []),
        ({"key": "sick", "value": "yes"}, []),
        ({"key": "sick", "value": "no"}, ["tolerates-nothing"]),
        ({"key": "well", "operator": "Exists"}, ["tolerates-nothing"]),
        ({"key": "sick", "operator": "Exists", "effect": "NoSchedule"}, ["tolerates-nothing"]),
        ({"operator": "Exists", "tolerationSeconds": 5}, ["ignored-seconds"]),
        ({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}, []),
    ],
)
def test_tolerations_that_do_nothing(toleration: dict[str, Any], found: list[str]) -> None:
    assert codes(rule(), claim(tolerations=[toleration])) == found


def test_without_taints_tolerations_are_not_judged() -> None:
    assert codes(claim(tolerations=[{"key": "well", "operator": "Exists"}])) == []


def test_rules_that_servers_do_not_enforce() -> None:
    assert codes(claim(tolerations=[{"key": "k", "operator": "Exists"}] * 17)) == [
        "many-tolerations"
    ]
    assert codes(claim(tolerations=[{"key": "k", "operator": "Exists"}] * 16)) == []
    assert codes(claim(tolerations=[{"value": "v"}])) == ["empty-key"]
    policy = {"default": "1", "validRange": {"min": "-1", "max": "8"}}
    device = {"name": "d", "capacity": {"c": {"value": "8", "requestPolicy": policy}}}
    assert codes(slice_("a", device)) == ["negative-minimum"]


@pytest.mark.parametrize(
    ("driver", "found"), [("gpu", ["vendor-domain"]), ("GPU.example.com", ["lower-case"])]
)
def test_names_of_drivers(driver: str, found: list[str]) -> None:
    data = slice_("a", {"name": "d"})
    data["spec"]["driver"] = driver
    assert codes(data) == found


def test_an_update_does_not_change_the_kind() -> None:
    (problem,) = objects.validate_update(claim(), class_(), Server())
    assert (problem.field, problem.type) == ("kind", ErrorType.INVALID)
    assert objects.validate_update(class_(), class_(), Server()) == []


def test_an_empty_key_needs_exists() -> None:
    taint = DeviceTaint("k", "NoSchedule")
    assert taints.tolerates(DeviceToleration(operator="Exists"), taint)
    assert not taints.tolerates(DeviceToleration(), taint)


def test_a_resource_in_both_shapes_is_named() -> None:
    data = json.loads(
        (Path(__file__).parents[1] / "data" / "wire" / "objects" / "slice.json").read_text()
    )
    assert "counted-twice" in codes(data)


@pytest.mark.parametrize(
    ("resources", "found"),
    [
        ({"claims": [{"name": "gpu"}], "requests": {"cpu": "4"}}, ["counted-twice"]),
        ({"claims": [{"name": "gpu"}], "limits": {"cpu": "4"}}, ["counted-twice"]),
        ({"claims": [{"name": "gpu"}], "requests": {"memory": "1Gi"}}, []),
        ({"requests": {"cpu": "4"}}, []),
        ({}, []),
    ],
)
@pytest.mark.parametrize("shape", ["nodeAllocatableResources", "nodeAllocatableResourceMappings"])
def test_a_pod_that_requests_what_its_claim_brings(
    resources: dict[str, Any], found: list[str], shape: str
) -> None:
    mapping: dict[str, Any] = {"mapping": {"deviceMultiplier": "8"}}
    device = {"name": "d", shape: {"cpu": mapping if shape.endswith("Resources") else {}}}
    objects_ = [wire.read(o) for o in (slice_("a", device), class_(), claim())]
    container = {"name": "c", "resources": resources}
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    pod = {"metadata": {"name": "p"}, "spec": {"resourceClaims": claims, "containers": [container]}}
    assert [w.code for w in pod_lint.warnings([pod], objects_)] == found


@pytest.mark.parametrize("pod", [{}, {"spec": 5}, {"spec": {"containers": [5, {"resources": []}]}}])
def test_a_pod_that_makes_no_sense_is_passed_over(pod: dict[str, Any]) -> None:
    assert list(pod_lint.warnings([pod], [])) == []

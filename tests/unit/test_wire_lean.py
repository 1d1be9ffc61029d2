"""wire.lean: what is kept of pods, claims, slices and rules, in every version that is served."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dra_core import wire
from dra_core.errors import InvalidObject
from dra_core.model.claims import Consumer
from dra_core.model.taints import DeviceTaint, DeviceToleration
from dra_core.model.usage import Controller, Pod, PodClaim
from dra_core.names import DeviceName, PodUID
from dra_core.wire import lean
from dra_testing.cases import case

TIME = "2026-01-02T03:04:05Z"
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TAINT = {"key": "k", "effect": "NoExecute", "timeAdded": TIME}


def api(kind: str, version: str = "v1", **body: Any) -> dict[str, Any]:
    metadata = {"name": "n", "namespace": "ns", "uid": "u", "managedFields": [{"x": 1}]}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": kind,
        "metadata": metadata | body.pop("metadata", {}),
        **body,
    }


def test_a_claim_keeps_devices_tolerations_consumers_and_its_controller() -> None:
    toleration = {"key": "k", "operator": "Exists", "tolerationSeconds": 5}
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x", "adminAccess": True}
    data = api(
        "ResourceClaim",
        metadata={
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "no", "uid": "w"},
                {
                    "apiVersion": "scheduling.k8s.io/v1alpha1",
                    "kind": "PodGroup",
                    "name": "g",
                    "uid": "v",
                    "controller": True,
                },
            ]
        },
        spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
        status={
            "allocation": {
                "devices": {
                    "results": [{**result, "tolerations": [toleration], "unheard": 1}],
                    "config": [{"opaque": {}}],
                },
                "nodeSelector": {"nodeSelectorTerms": []},
            },
            "reservedFor": [{"resource": "pods", "name": "web", "uid": "pu"}],
            "devices": [{"driver": "d", "pool": "p", "device": "x", "data": {"big": 1}}],
        },
    )
    claim = lean.claim(data)
    assert (claim.namespace, claim.name, claim.uid) == ("ns", "n", "u")
    (kept,) = claim.results
    assert (kept.driver, kept.pool, kept.device, kept.admin_access) == ("d", "p", "x", True)
    assert kept.tolerations == (DeviceToleration("k", "Exists", toleration_seconds=5),)
    assert kept.unknown == {}
    assert claim.reserved_for == (Consumer("pods", "web", "pu"),)
    assert claim.controller == Controller("scheduling.k8s.io", "PodGroup", "g", "v")


@pytest.mark.parametrize("status", [None, {}, {"allocation": None, "reservedFor": None}])
def test_a_claim_that_is_not_allocated_has_no_devices(status: object) -> None:
    claim = lean.claim(api("ResourceClaim", spec={"devices": {}}, status=status))
    assert claim.results == ()
    assert claim.reserved_for == ()


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_a_slice_keeps_names_and_taints(version: str) -> None:
    devices = [{"name": "a", "taints": [TAINT], "attributes": {"x": {"int": 1}}}, {"name": "b"}]
    spec = {
        "driver": "d",
        "nodeName": "node",
        "pool": {"name": "p", "generation": 3, "resourceSliceCount": 2},
        "devices": devices,
    }
    data = wire.from_v1(api("ResourceSlice", spec=spec), version)
    found = lean.resource_slice(data)
    assert (found.driver, found.pool, found.generation, found.slice_count) == ("d", "p", 3, 2)
    assert found.devices == {"a", "b"}
    assert found.taints == {DeviceName("a"): (DeviceTaint("k", "NoExecute", "", MOMENT),)}


@case("EVCT-03")
@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1alpha3"])
@pytest.mark.parametrize(
    ("spec", "selector"),
    [({}, "none"), ({"deviceSelector": None}, "none"), ({"deviceSelector": {}}, "empty")],
)
def test_a_rule_keeps_the_difference_between_no_selector_and_an_empty_one(
    version: str, spec: dict[str, Any], selector: str
) -> None:
    status = {"conditions": [{"type": "x", "status": "True"}]}
    data = api("DeviceTaintRule", version, spec={"taint": TAINT, **spec}, status=status)
    rule = lean.rule(data)
    assert (rule.spec.selector is None) == (selector == "none")
    assert rule.spec.taint.time_added == MOMENT
    assert rule.status is None
    assert rule.metadata.unknown == {}


@case("EVCT-02")
def test_the_claims_of_a_pod_are_found_in_all_places() -> None:
    pod = lean.pod(
        {
            "metadata": {
                "name": "web",
                "namespace": "ns",
                "uid": "u",
                "creationTimestamp": TIME,
                "labels": {"a": "b"},
            },
            "spec": {
                "nodeName": "node",
                "priority": 7,
                "schedulingGroup": {"podGroupName": "g"},
                "resourceClaims": [
                    {"name": "direct", "resourceClaimName": "c1"},
                    {"name": "template", "resourceClaimTemplateName": "t"},
                    {"name": "pending", "resourceClaimTemplateName": "t"},
                    {"name": "unneeded", "resourceClaimTemplateName": "t"},
                ],
            },
            "status": {
                "phase": "Running",
                "resourceClaimStatuses": [
                    {"name": "template", "resourceClaimName": "c2"},
                    {"name": "unneeded"},
                ],
                "extendedResourceClaimStatus": {"resourceClaimName": "c3"},
            },
        }
    )
    assert pod == Pod(
        "ns",
        "web",
        PodUID("u"),
        (PodClaim("c1"), PodClaim("c2", made=True), PodClaim("c3", made=True)),
        node="node",
        priority=7,
        created=MOMENT,
        group="g",
    )


@pytest.mark.parametrize(
    ("data", "deleting", "finished"),
    [
        ({"metadata": {}}, False, False),
        ({"metadata": {"deletionTimestamp": TIME}}, True, False),
        ({"metadata": {}, "status": {"phase": "Succeeded"}}, False, True),
        ({"metadata": {}, "status": {"phase": "Failed"}}, False, True),
        ({"metadata": {}, "status": {"phase": "Pending"}}, False, False),
    ],
)
def test_whether_a_pod_is_on_its_way_out(
    data: dict[str, Any], deleting: bool, finished: bool
) -> None:
    pod = lean.pod(data)
    assert (pod.deleting, pod.finished) == (deleting, finished)
    assert not lean.has_claims(data)


@pytest.mark.parametrize(
    "data",
    [
        {"spec": {"resourceClaims": [{"name": "x"}]}},
        {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}},
    ],
)
def test_a_pod_with_claims_is_told_from_one_without(data: dict[str, Any]) -> None:
    assert lean.has_claims(data)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (lean.claim, api("ResourceClaim", status=[])),
        (lean.claim, api("ResourceClaim", status={"allocation": {"devices": {"results": [1]}}})),
        (lean.resource_slice, api("ResourceSlice", spec={"driver": "d"})),
        (lean.resource_slice, api("ResourceSlice", "v7")),
        (lean.rule, api("DeviceTaintRule")),
        (lean.pod, {"spec": {"priority": "high"}}),
        (lean.pod, {"metadata": []}),
    ],
)
def test_data_of_the_wrong_kind_is_named(read: Any, data: dict[str, Any]) -> None:
    with pytest.raises(InvalidObject):
        read(data)


def test_a_claim_with_binding_conditions_keeps_what_they_need() -> None:
    named = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    condition = {"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": TIME}
    entry = {"driver": "d", "pool": "p", "device": "x", "conditions": [condition]}
    status: dict[str, Any] = {
        "allocation": {
            "allocationTimestamp": TIME,
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [named]}]},
            "devices": {"results": [{**result, "bindingConditions": ["Ready"]}]},
        },
        "devices": [{**entry, "data": {"large": 1}}],
    }
    found = lean.claim(api("ResourceClaim", status=status))
    assert found.results[0].binding_conditions == ("Ready",)
    assert (found.node, found.allocated_at) == ("n1", MOMENT)
    assert found.devices[0].conditions[0].type == "Ready"
    assert found.devices[0].data is None
    status["allocation"]["devices"]["results"] = [result]
    found = lean.claim(api("ResourceClaim", status=status))
    assert (found.node, found.allocated_at, found.devices) == ("", None, ())


@pytest.mark.parametrize(
    "terms",
    [
        [],
        [{"matchFields": []}],
        [{"matchExpressions": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}],
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}],
        [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}],
    ],
)
def test_an_allocation_for_no_single_node_names_none(terms: list[dict[str, Any]]) -> None:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x", "bindingConditions": ["c"]}
    allocation = {
        "nodeSelector": {"nodeSelectorTerms": terms},
        "devices": {"results": [result]},
    }
    assert lean.claim(api("ResourceClaim", status={"allocation": allocation})).node == ""

"""Devices attached while pods wait, with the real scheduler and the rights of the shipped account.

The scheduler's bindingTimeout is 30 s, the operator's deadline 20 s. There are nodes, but no
kubelets: a pod that is bound is as far as it gets.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dra_core import binding
from dra_core.binding import Outcome, Report
from dra_core.errors import ApiConflict, ApiInvalid, ApiNotFound
from dra_core.model.claims import ClaimReference
from dra_core.names import ClaimUID, DriverName
from dra_operator.adapters.kube import KubeApi
from dra_operator.adapters.kube_claims import KubeClaimStatus
from dra_testing import binding_stand
from dra_testing.binding_stand import DRIVER, OTHER, READY, FabricProcess, Stand
from dra_testing.cases import case
from dra_testing.operator_stand import GROUP, Operator
from dra_testing.polling import until
from testcluster import fixtures
from testcluster.cluster import Cluster
from testcluster.errors import ApiError

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """1.37.2 with nodes that stay ready without a kubelet."""
    wanted: dict[str, Any] = {
        "version": "1.37.2",
        "controllers": "*,-node-lifecycle-controller,-device-taint-eviction-controller",
    }
    with fixtures._running(pytestconfig, **wanted) as made:
        binding_stand.install(made)
        yield made


@pytest.fixture
def stand(cluster: Cluster) -> Iterator[Stand]:
    made = Stand(cluster)
    yield made
    made.close()


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[FabricProcess]:
    with binding_stand.fabric(tmp_path / "fabric.log", "--latency=1", "--slots=200") as made:
        yield made


@pytest.fixture
def operator(cluster: Cluster, fabric: FabricProcess, tmp_path: Path) -> Iterator[Operator]:
    with binding_stand.operator(cluster, tmp_path / "operator.log", {DRIVER: fabric}) as made:
        made.ready()
        yield made
        assert made.process.stop() == 0
        assert not [r for r in made.process.records() if r.get("level") == "error"]
        assert not [r for r in made.process.records() if r.get("raw")]


def gone(fabric: FabricProcess) -> bool:
    return not fabric.attachments()


@case("BIND-01")
@case("BIND-03")
def test_a_pod_is_bound_once_its_device_is_attached_and_the_device_goes_with_it(
    operator: Operator, fabric: FabricProcess, stand: Stand
) -> None:
    stand.slice(2)
    fabric.client.set(latency=4)
    stand.pod("a")
    until("a device is being attached", lambda: stand.conditions("a").get(READY), timeout=30)
    assert stand.bound("a") == ""
    fabric.client.set(latency=1)
    until("the pod is bound", lambda: stand.bound("a"), timeout=40)
    (item,) = fabric.attachments()
    assert (item.state, item.node) == ("attached", stand.bound("a"))
    assert item.tag["uid"] == stand.claim("a")["metadata"]["uid"]
    assert stand.conditions("a") == {READY: ("True", "Attached")}
    metrics = operator.get("/metrics")[1]
    assert f'dra_operator_attached_total{{driver="{DRIVER}",result="attached"}} 1' in metrics
    stand.end("a")
    until("the device is detached", lambda: gone(fabric), timeout=30)
    until(
        "events tell the story",
        lambda: stand.events("a") == ["DeviceAttaching", "DeviceAttached", "DeviceDetached"],
    )
    assert "DeviceAttached" in stand.cluster.kubectl(
        "describe", "resourceclaim", "a", "--namespace", stand.name
    )


@case("BIND-04")
def test_after_a_failure_the_pod_gets_another_device(
    operator: Operator, fabric: FabricProcess, stand: Stand
) -> None:
    stand.slice(2)
    fabric.client.fault(operation="attach", kind="refuse", device="fab-0", count=100)
    stand.pod("a")
    until("the first device failed", stand.rules, timeout=30)
    (rule,) = stand.rules()
    assert rule["spec"]["deviceSelector"] == {"driver": DRIVER, "pool": "fabric", "device": "fab-0"}
    assert rule["spec"]["taint"]["effect"] == "NoSchedule"
    until("the pod is bound", lambda: stand.bound("a"), timeout=60)
    assert stand.devices("a") == ["fab-1"]
    assert fabric.attached() == {"fab-1": "a"}
    failures = operator.process.events("attaching failed")
    assert [record["reason"] for record in failures] == ["PortDown"]


@case("BIND-04")
def test_what_takes_too_long_fails_before_the_scheduler_gives_up_and_is_taken_back(
    operator: Operator, fabric: FabricProcess, stand: Stand
) -> None:
    stand.slice(2)
    fabric.client.set(stuck=["fab-0", "fab-1"])
    stand.pod("a")
    until("the first device failed", stand.rules, timeout=60)
    fabric.client.set(stuck=[])
    until("the pod is bound", lambda: stand.bound("a"), timeout=60)
    assert [r["reason"] for r in operator.process.events("attaching failed")] == ["AttachTimedOut"]
    (device,) = stand.devices("a")
    until("only one device is attached", lambda: len(fabric.attachments()) == 1)
    assert fabric.attached() == {device: "a"}


@case("BIND-04")
def test_a_time_out_of_the_scheduler_ends_in_another_attempt(
    cluster: Cluster, fabric: FabricProcess, stand: Stand, tmp_path: Path
) -> None:
    """The operator would go on, as its deadline is longer here."""
    log, late = tmp_path / "operator.log", "--attach-deadline=600"
    with binding_stand.operator(cluster, log, {DRIVER: fabric}, late) as operator:
        operator.ready()
        stand.slice(1)
        fabric.client.set(linksDown=["fab-0"])
        stand.pod("a", node="node-a")
        first = until("a device is allocated", lambda: allocated_at(stand, "a"), timeout=30)
        until("it is not verified", lambda: stand.conditions("a")[READY][1] == "NotVerified")
        until(
            "it is allocated anew",
            lambda: allocated_at(stand, "a") not in ("", first),
            timeout=90,
        )
        fabric.client.set(linksDown=[])
        until("the pod is bound", lambda: stand.bound("a"), timeout=60)
        until("it is attached once", lambda: fabric.attached() == {"fab-0": "a"})


def allocated_at(stand: Stand, claim: str) -> str:
    allocation = stand.claim(claim).get("status", {}).get("allocation") or {}
    return str(allocation.get("allocationTimestamp") or "")


def test_a_claim_that_is_deleted_while_its_device_is_attached_leaves_nothing(
    operator: Operator, fabric: FabricProcess, stand: Stand
) -> None:
    stand.slice(1)
    fabric.client.set(latency=8)
    stand.pod("a")
    until("it is being attached", fabric.attachments, timeout=30)
    stand.drop_claim("a")
    stand.end("a")
    fabric.client.set(latency=1)
    until("nothing is attached", lambda: gone(fabric), timeout=40)
    until("an event", lambda: "DeviceDetached" in stand.events("a"))
    assert "DeviceAttached" not in stand.events("a")
    with pytest.raises(ApiError):
        stand.claim("a")


@case("BIND-01")
def test_two_drivers_in_one_claim(
    cluster: Cluster, fabric: FabricProcess, stand: Stand, tmp_path: Path
) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "other-driver"},
        "rules": [
            {
                "apiGroups": ["resource.k8s.io"],
                "resources": ["resourceclaims/driver"],
                "resourceNames": [OTHER],
                "verbs": ["arbitrary-node:patch"],
            }
        ],
    }
    cluster.kubectl("apply", "-f", "-", input=json.dumps(role))
    account = "--serviceaccount=dragoman-operator:dragoman-operator"
    cluster.kubectl("create", "clusterrolebinding", "other", "--clusterrole=other-driver", account)
    log = tmp_path / "operator.log"
    with binding_stand.fabric(tmp_path / "other.log", "--latency=3") as other:
        both = {DRIVER: fabric, OTHER: other}
        with binding_stand.operator(cluster, log, both) as operator:
            operator.ready()
            stand.slice(1)
            stand.slice(1, OTHER)
            stand.pod("a", DRIVER, OTHER)
            until("the pod is bound", lambda: stand.bound("a"), timeout=60)
            for driver in both:
                assert stand.conditions("a", driver) == {READY: ("True", "Attached")}
            assert fabric.attached() == other.attached() == {"fab-0": "a"}
            stand.end("a")
            until("both are detached", lambda: gone(fabric) and gone(other), timeout=40)
            assert not [r for r in operator.process.records() if r.get("level") == "error"]


@pytest.mark.parametrize("state", ["attaching", "ready", "failed", "releasing"])
def test_the_operator_is_killed(
    cluster: Cluster, fabric: FabricProcess, stand: Stand, tmp_path: Path, state: str
) -> None:
    stand.slice(2)
    fabric.client.set(latency=5)
    if state == "failed":
        fabric.client.fault(operation="attach", kind="refuse", device="fab-0", count=100)
    with binding_stand.operator(cluster, tmp_path / "first", {DRIVER: fabric}) as first:
        first.ready()
        stand.pod("a")
        if state == "attaching":
            until("it is being attached", fabric.attachments, timeout=30)
        elif state == "failed":
            until("it failed", lambda: stand.rules() and stand.conditions("a"), timeout=30)
        else:
            until("the pod is bound", lambda: stand.bound("a"), timeout=40)
        if state == "releasing":
            stand.end("a")
            until("it is being detached", lambda: detaching(fabric), timeout=30)
        first.process.kill()
    if state == "ready":
        stand.end("a")
    with binding_stand.operator(cluster, tmp_path / "second", {DRIVER: fabric}) as second:
        second.ready()
        if state in ("attaching", "failed"):
            until("the pod is bound", lambda: stand.bound("a"), timeout=60)
            device = "fab-1" if state == "failed" else "fab-0"
            until("one device is attached", lambda: fabric.attached() == {device: "a"})
            assert len(fabric.attachments()) == 1
            stand.end("a")
        until("nothing is attached", lambda: gone(fabric), timeout=40)


def detaching(fabric: FabricProcess) -> bool:
    return any(item.state == "detaching" for item in fabric.attachments())


def test_a_hundred_claims_at_once(operator: Operator, fabric: FabricProcess, stand: Stand) -> None:
    fabric.client.set(devices=100)
    stand.slice(100)
    for index in range(100):
        stand.pod(f"p-{index}")
    until(
        "all pods are bound",
        lambda: all(stand.bound(f"p-{index}") for index in range(100)),
        timeout=120,
        interval=1.0,
    )
    items = fabric.attachments()
    assert len({item.device for item in items}) == len(items) == 100
    assert {item.device: item.tag["name"] for item in items} == {
        stand.devices(f"p-{index}")[0]: f"p-{index}" for index in range(100)
    }
    for index in range(100):
        stand.end(f"p-{index}")
    until("all are detached", lambda: gone(fabric), timeout=60)
    counter = f'dra_operator_detached_total{{driver="{DRIVER}"}} 100'
    until("it is counted", lambda: counter in operator.get("/metrics")[1])


@case("BIND-01")
def test_what_others_have_written_into_the_entry_stays_to_the_byte(
    operator: Operator, fabric: FabricProcess, stand: Stand
) -> None:
    stand.slice(1)
    fabric.client.set(latency=6)
    stand.pod("a")
    until("a condition is there", lambda: stand.conditions("a").get(READY), timeout=30)
    theirs = {"type": "example.com/Seen", "status": "True", "reason": "Seen", "message": "hello"}
    theirs["lastTransitionTime"] = "2026-01-02T03:04:05Z"
    data = {"firmware": "1.2"}
    stand.apply("a", {"conditions": [theirs], "data": data}, manager="node-agent")
    until("it is ready", lambda: stand.conditions("a").get(READY) == ("True", "Attached"))
    (entry,) = stand.claim("a")["status"]["devices"]
    assert [c for c in entry["conditions"] if c["type"] == "example.com/Seen"] == [theirs]
    assert entry["data"] == data
    later = {"firmware": "1.3"}
    stand.apply("a", {"conditions": [theirs], "data": later}, manager="node-agent")
    assert stand.conditions("a")[READY] == ("True", "Attached")
    fields = stand.claim("a")["metadata"]["managedFields"]
    (ours,) = [f for f in fields if f["manager"].startswith("dragoman-binding-")]
    assert (ours["operation"], ours["subresource"]) == ("Apply", "status")


@case("BIND-01")
def test_a_condition_that_somebody_else_holds_is_left_alone_and_the_pod_goes_elsewhere(
    operator: Operator, fabric: FabricProcess, stand: Stand
) -> None:
    stand.slice(2)
    fabric.client.set(latency=6)
    stand.pod("a")
    until("it is being attached", fabric.attachments, timeout=30)
    odd = {"type": READY, "status": "Unknown", "reason": "Odd", "message": ""}
    odd["lastTransitionTime"] = "2026-01-02T03:04:05Z"
    stand.apply("a", {"conditions": [odd]}, manager="somebody", force=True)
    until("that is said", lambda: "DeviceConditionContested" in stand.events("a"), timeout=30)
    assert stand.conditions("a")[READY] == ("Unknown", "Odd")
    first = stand.devices("a")
    until("the pod is bound", lambda: stand.bound("a"), timeout=60)
    assert stand.devices("a") != first
    assert fabric.attached() == {stand.devices("a")[0]: "a"}


@case("BIND-03")
def test_without_the_right_to_a_driver_one_message_says_which_is_missing(
    cluster: Cluster, fabric: FabricProcess, stand: Stand, tmp_path: Path
) -> None:
    role = cluster.kubectl_json("get", "clusterrole", "dragoman-operator-attaching")
    less = [r for r in role["rules"] if "resourceclaims/driver" not in r["resources"]]
    with binding_stand.operator(cluster, tmp_path / "log", {DRIVER: fabric}) as operator:
        operator.ready()
        stand.slice(1)
        path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/dragoman-operator-attaching"
        cluster.api("PATCH", path, {"rules": less})
        try:
            stand.pod("a")
            said = operator.process.wait_for(
                "a right is missing; grant update of conditions to the operator's service account"
            )
            assert "arbitrary-node:patch" in said["needed"]
            assert DRIVER in said["needed"]
        finally:
            cluster.api("PATCH", path, {"rules": role["rules"]})
        until("the pod is bound", lambda: stand.bound("a"), timeout=60)
        errors = [r for r in operator.process.records() if r.get("level") == "error"]
        assert len(errors) == 1


def test_the_account_may_write_no_rules_but_its_own(cluster: Cluster) -> None:
    account = cluster.service_account_kubeconfig("dragoman-operator", "dragoman-operator")
    one = {"driver": DRIVER, "pool": "p", "device": "d"}

    def tried(name: str, effect: str, selector: dict[str, str]) -> str:
        rule = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": name},
            "spec": {"deviceSelector": selector, "taint": {"key": "k", "effect": effect}},
        }
        said = cluster.kubectl(
            "create", "-f", "-", input=json.dumps(rule), kubeconfig=account, check=False
        )
        return "" if "created" in said else said

    assert tried("dragoman-hold-x", "NoSchedule", one) == ""
    assert "may write rules of its own only, not mine" in tried("mine", "NoSchedule", one)
    assert "may not make a rule with effect NoExecute" in tried("dragoman-hold-y", "NoExecute", one)
    assert "must name one device" in tried("dragoman-hold-y", "NoSchedule", {"driver": DRIVER})
    cluster.api("DELETE", f"{GROUP}/devicetaintrules/dragoman-hold-x")


@case("BIND-01")
def test_a_claim_that_has_changed_since_it_was_read_is_not_written(
    cluster: Cluster, stand: Stand
) -> None:
    stand.slice(2)
    stand.pod("a")
    until("a device is allocated", lambda: stand.devices("a"), timeout=30)
    account = cluster.service_account_kubeconfig("dragoman-operator", "dragoman-operator")
    folder = f"{GROUP}/resourceclaims"
    claims = KubeClaimStatus(KubeApi.connect(account), lambda _: folder)
    uid = stand.claim("a")["metadata"]["uid"]
    reference = ClaimReference(stand.name, "a", uid)
    fresh = claims.read(reference)
    (target,) = binding.targets(fresh.claim, {DriverName(DRIVER): frozenset()}).values()
    report = Report(Outcome.WAITING, "Soon", "in a moment")
    entries = binding.report_entries(target, report, (), dt.datetime.now(dt.UTC))
    claims.report(target.device, fresh, entries)
    with pytest.raises(ApiConflict, match="has been modified"):
        claims.report(target.device, fresh, entries)
    # Not allocated any more, at the version that was read: the server knows better, too.
    odd = [replace(entry, device="fab-9") for entry in entries]
    with pytest.raises(ApiInvalid, match="must be an allocated device"):
        claims.report(target.device, claims.read(reference), odd)
    with pytest.raises(ApiNotFound, match="another one has its name"):
        claims.read(ClaimReference(stand.name, "a", ClaimUID("another")))
    with pytest.raises(ApiNotFound):
        claims.read(ClaimReference(stand.name, "gone", uid))
    assert stand.conditions("a") == {READY: ("False", "Soon")}


def test_where_rules_are_not_served_that_is_said_once(
    make_control_plane: fixtures.Factory, fabric: FabricProcess, tmp_path: Path
) -> None:
    """Kubernetes 1.36 as it comes: binding conditions, but no DeviceTaintRules."""
    off = "resource.k8s.io/v1beta2=false,resource.k8s.io/v1alpha3=false"
    cluster = make_control_plane(
        version="1.36.3",
        gates="none",
        controllers="*,-node-lifecycle-controller",
        flags={"kube-apiserver": (f"--runtime-config={off}",)},
    )
    binding_stand.install(cluster)
    stand = Stand(cluster)
    fabric.client.fault(operation="attach", kind="refuse", count=1)
    with binding_stand.operator(cluster, tmp_path / "log", {DRIVER: fabric}) as operator:
        operator.ready()
        stand.slice(1)
        stand.pod("a")
        until("the pod is bound", lambda: stand.bound("a"), timeout=60)
        assert stand.conditions("a") == {READY: ("True", "Attached")}
        event = "a device that cannot be attached may be picked again at once; attempts with it "
        (said,) = operator.process.events(f"{event}are delayed instead")
        assert said["why"] == "DeviceTaintRules are not served"
        stand.end("a")
        until("the device is detached", lambda: gone(fabric), timeout=40)

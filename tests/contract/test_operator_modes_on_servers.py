"""Mode auto on real servers, with the in-tree evictor on and off, and what may or may not be read.

Each test has an operator of its own, with the rights of the shipped service account.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_testing import operator_stand
from dra_testing.cases import case
from dra_testing.operator_stand import Operator, Stand
from dra_testing.polling import until
from testcluster import fixtures
from testcluster.cluster import Cluster

pytestmark = pytest.mark.control_plane

BAD = {"key": "example.com/bad", "effect": "NoExecute"}
ALONE = ("--no-leader-election", "--pool-share=1")
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/dragoman-operator"


@contextlib.contextmanager
def a_cluster(pytestconfig: pytest.Config, **wanted: Any) -> Iterator[Cluster]:
    """Without a scheduler: tests allocate by hand."""
    with fixtures._running(pytestconfig, without=("kube-scheduler",), **wanted) as made:
        operator_stand.install(made)
        yield made


@pytest.fixture(scope="module")
def in_tree(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """1.37.2 as it comes: kube-controller-manager evicts."""
    with a_cluster(pytestconfig) as made:
        yield made


@pytest.fixture(scope="module")
def without_rules(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """1.36.3 as it comes: slice taints, and no rules."""
    off = ",".join(f"resource.k8s.io/{version}=false" for version in ("v1beta2", "v1alpha3"))
    flags = {"kube-apiserver": (f"--runtime-config={off}",)}
    with a_cluster(pytestconfig, version="1.36.3", gates="none", flags=flags) as made:
        yield made


@pytest.fixture(scope="module")
def deaf(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """1.36.3 that serves rules which its evictor takes no notice of."""
    with a_cluster(pytestconfig, version="1.36.3", gates="none") as made:
        yield made


@pytest.fixture(scope="module")
def evictor_off(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """1.37.2 without the in-tree evictor."""
    with a_cluster(pytestconfig, controllers="*,-device-taint-eviction-controller") as made:
        yield made


@contextlib.contextmanager
def operating(cluster: Cluster, log: Path, *arguments: str) -> Iterator[tuple[Operator, Stand]]:
    stand = Stand(cluster)
    try:
        with operator_stand.running(cluster, log, *ALONE, *arguments) as operator:
            operator.process.wait_for("everything has been read", timeout=30)
            yield operator, stand
            assert operator.process.stop() == 0
    finally:
        stand.close()


def rule_names(stand: Stand) -> list[str]:
    return [item["metadata"]["name"] for item in stand.cluster.api("GET", stand.rules)["items"]]


@case("EVCT-08")
def test_where_the_in_tree_evictor_works_auto_observes_and_writes_nothing(
    in_tree: Cluster, tmp_path: Path
) -> None:
    with operating(in_tree, tmp_path / "log", "--mode=auto") as (operator, stand):
        chosen = operator.process.wait_for("mode chosen", timeout=30)
        assert chosen["mode"] == "observe"
        assert rule_names(stand) == [], "what asked is gone"
        stand.claim("c", "dev-0")
        stand.pod("a", "c")
        stand.rule("r", device="dev-0")
        until("kube-controller-manager evicts it", lambda: stand.here() == set(), timeout=40)
        until("its condition is there", lambda: stand.condition("r"), timeout=40)
        status, text = operator.get("/metrics")
        assert status == 200
        assert "attempts_total" not in text
        assert "rule_conditions_total" not in text
        assert 'dra_operator_mode{mode="observe"} 1' in text
        assert 'dra_operator_probes_total{result="answered"} 1' in text
        assert "auto: observe, since the in-tree evictor works" in operator.get("/readyz")[1]
        writers = {entry["manager"] for entry in stand.read_rule("r")["metadata"]["managedFields"]}
        assert "device-taint-eviction-controller" in writers
        assert "dragoman-operator" not in writers
        assert stand.events("a") == []


def test_where_it_is_off_auto_evicts_once_two_rules_were_left_without_an_answer(
    evictor_off: Cluster, tmp_path: Path
) -> None:
    with operating(evictor_off, tmp_path / "log", "--mode=auto") as (operator, stand):
        stand.claim("c", "dev-0")
        stand.pod("a", "c")
        stand.rule("r", device="dev-0")
        # It waits for each of two answers for 30 s.
        operator.process.wait_for("the in-tree evictor did not answer", timeout=60)
        assert stand.here() == {"a"}, "nobody goes before it is decided"
        assert "auto: not decided" in operator.get("/readyz")[1]
        chosen = operator.process.wait_for("mode chosen", timeout=60)
        assert chosen["mode"] == "evict"
        until("the pod is gone", lambda: stand.here() == set())
        assert rule_names(stand) == [f"{stand.name}-r"]
        until("it says so", lambda: stand.condition("r").get("status") == "False", timeout=30)


@case("OPER-05")
def test_without_rules_auto_observes_and_says_how_to_choose_and_evict_goes_by_slices(
    without_rules: Cluster, tmp_path: Path
) -> None:
    with operating(without_rules, tmp_path / "auto", "--mode=auto") as (operator, stand):
        chosen = operator.process.wait_for("mode chosen", timeout=30)
        assert (chosen["mode"], chosen["level"]) == ("observe", "warning")
        assert "does not serve devicetaintrules" in chosen["reason"]
        assert "--mode=evict" in chosen["hint"]
        assert operator.get("/readyz")[0] == 200
    with operating(without_rules, tmp_path / "evict", "--mode=evict") as (operator, stand):
        stand.claim("c", "dev-0")
        stand.pod("a", "c", grace=30)
        stand.slice("s", {"name": "dev-0", "taints": [BAD]})
        until("the pod is going", lambda: stand.here() == set())
        assert not [r for r in operator.process.records() if r.get("level") == "error"]


@case("OPER-05")
def test_an_evictor_that_answers_no_rules_is_not_taken_for_none(
    deaf: Cluster, tmp_path: Path
) -> None:
    with operating(deaf, tmp_path / "log", "--mode=auto") as (operator, stand):
        chosen = operator.process.wait_for("mode chosen", timeout=30)
        assert chosen["mode"] == "observe"
        assert "before Kubernetes 1.37 it may evict without answering rules" in chosen["reason"]
        stand.rule("served", effect="None")
        stand.claim("c", "dev-0")
        stand.pod("a", "c")
        stand.slice("s", {"name": "dev-0", "taints": [BAD]})
        until("kube-controller-manager evicts it", lambda: stand.here() == set(), timeout=40)
        assert "attempts_total" not in operator.get("/metrics")[1]
        assert stand.condition("served") == {}, "no evictor takes notice of rules here"


def change_role(cluster: Cluster, resource: str, verbs: list[str]) -> None:
    """The shipped role, with other rights to one resource."""
    role = cluster.api("GET", ROLE)
    rules = []
    for rule in role["rules"]:
        kept = [item for item in rule["resources"] if item != resource]
        if kept:
            rules.append({**rule, "resources": kept})
    if verbs:
        rules.append({"apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": verbs})
    cluster.api("PUT", ROLE, {**role, "rules": rules})


@case("OPER-05")
def test_rights_that_are_missing_are_done_without_and_noticed_when_they_come(
    in_tree: Cluster, tmp_path: Path
) -> None:
    whole = in_tree.api("GET", ROLE)
    change_role(in_tree, "devicetaintrules", ["get", "list"])
    try:
        with operating(in_tree, tmp_path / "log", "--mode=observe") as (operator, stand):
            (said,) = [r for r in operator.process.records() if "may not" in str(r)]
            assert said["level"] == "warning"
            assert "watch devicetaintrules" in str(said)
            text = operator.get("/metrics")[1]
            assert 'dra_operator_unreadable{resource="devicetaintrules"} 1' in text
            assert operator.get("/readyz")[0] == 200
            stand.claim("c", "dev-0")
            stand.pod("a", "c", grace=30)
            stand.slice("s", {"name": "dev-0", "taints": [BAD]})
            operator.process.wait_for("pod is to go")
            change_role(in_tree, "devicetaintrules", ["get", "list", "watch"])
            operator.process.wait_for("a resource can be read now", timeout=60)
            watched = 'dra_operator_watch_up{resource="devicetaintrules"} 1'
            until("it watches", lambda: watched in operator.get("/metrics")[1])
            stand.claim("d", "dev-1")
            stand.pod("b", "d", grace=30)
            stand.rule("r", device="dev-1")
            operator.process.wait_for("pod is to go", count=2)
    finally:
        current = in_tree.api("GET", ROLE)
        in_tree.api("PUT", ROLE, {**current, "rules": whole["rules"]})


def test_without_the_right_to_ask_auto_observes(in_tree: Cluster, tmp_path: Path) -> None:
    whole = in_tree.api("GET", ROLE)
    change_role(in_tree, "devicetaintrules", ["get", "list", "watch"])
    try:
        with operating(in_tree, tmp_path / "log", "--mode=auto") as (operator, _):
            chosen = operator.process.wait_for("mode chosen", timeout=30)
            assert chosen["mode"] == "observe"
            assert "a rule that asks the in-tree evictor may not be made" in chosen["reason"]
    finally:
        current = in_tree.api("GET", ROLE)
        in_tree.api("PUT", ROLE, {**current, "rules": whole["rules"]})


@case("PKG-01")
def test_the_operator_may_make_no_rules_but_its_own(in_tree: Cluster) -> None:
    account = in_tree.service_account_kubeconfig(operator_stand.NAMESPACE, "dragoman-operator")

    one = {"driver": "none.example.com", "pool": "p", "device": "d"}

    def made(name: str, effect: str, where: dict[str, str] = one) -> str:
        taint = {"key": "example.com/x", "effect": effect}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": name},
            "spec": {"deviceSelector": where, "taint": taint},
        }
        arguments = ("create", "--dry-run=server", "-f", "-")
        text = json.dumps(body)
        return in_tree.kubectl(*arguments, input=text, check=False, kubeconfig=account)

    until("the policy is in force", lambda: "of its own only" in made("foreign", "None"))
    assert "created" in made("dragoman-probe-x", "None")
    assert "created" in made("dragoman-hold-x", "NoSchedule")
    assert "may not make a rule with effect NoExecute" in made("dragoman-x", "NoExecute")
    assert "must name one device" in made("dragoman-hold-x", "NoSchedule", {"driver": "x"})
    assert "created" in made("dragoman-probe-x", "None", {"driver": "x"})
    stand = Stand(in_tree)
    try:
        stand.rule("theirs", effect="None")
        printed = in_tree.kubectl(
            "delete",
            "devicetaintrule",
            f"{stand.name}-theirs",
            check=False,
            kubeconfig=account,
        )
        assert "the operator may write rules of its own only" in printed
    finally:
        stand.close()


@case("PUB-12")
def test_a_pod_that_waits_for_a_driver_that_is_gone_is_told(
    in_tree: Cluster, tmp_path: Path
) -> None:
    arguments = ("--mode=observe", "--report-unstarted=3")
    with operating(in_tree, tmp_path / "log", *arguments) as (operator, stand):
        stand.slice("s", {"name": "dev-0"})
        for name, device in (("waits", "dev-0"), ("runs", "dev-0")):
            stand.claim(name, device)
            stand.pod(name, name)
        path = f"/api/v1/namespaces/{stand.name}/pods/waits/status"
        begun = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = {"phase": "Pending", "startTime": begun}
        stand.cluster.api("PATCH", path, {"status": status}, patch="strategic")
        slices = f"{operator_stand.GROUP}/resourceslices/{stand.name}-s"
        stand.cluster.api("DELETE", slices)
        told = [("Warning", "DeviceDriverMissing")]
        until("the pod is told", lambda: stand.events("waits") == told)
        assert stand.events("runs") == []
        assert "dra_operator_pods_without_driver 1" in operator.get("/metrics")[1]

"""The operator on a real control plane, with the rights of the shipped service account.

The in-tree evictor is off. There is no kubelet: pods are bound by hand, and one with a grace period
of zero is gone as soon as it is deleted.
"""

from __future__ import annotations

import datetime as dt
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

EXISTS = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}
EVICTED = ("Normal", "DeviceTaintEviction")
BLOCKED = ("Warning", "DeviceTaintEvictionBlocked")
CANCELLED = ("Normal", "DeviceTaintEvictionCancelled")


@pytest.fixture(scope="module")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """1.37.2 without the in-tree evictor and without a scheduler."""
    wanted: dict[str, Any] = {
        "version": "1.37.2",
        "controllers": "*,-device-taint-eviction-controller",
        "without": ("kube-scheduler",),
    }
    with fixtures._running(pytestconfig, **wanted) as made:
        operator_stand.install(made)
        yield made


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One for all tests of the module that evict."""
    log = tmp_path_factory.mktemp("operator") / "log"
    with operator_stand.running(cluster, log, "--mode=evict", "--pool-share=1") as made:
        made.ready()
        yield made
        assert made.process.stop() == 0
        assert not [r for r in made.process.records() if r.get("level") == "error"]
        assert not [r for r in made.process.records() if r.get("raw")]


@pytest.fixture
def stand(cluster: Cluster) -> Iterator[Stand]:
    made = Stand(cluster)
    yield made
    made.close()


def planned(operator: Operator, stand: Stand, pod: str) -> dict[str, Any]:
    """The operator's record that a pod is to go."""
    found = [
        r for r in operator.process.events("pod is to go") if r["pod"] == f"{stand.name}/{pod}"
    ]
    assert found
    return found[-1]


@case("EVCT-01")
@case("EVCT-05")
def test_a_rule_on_a_device_evicts_its_pods_and_no_others(operator: Operator, stand: Stand) -> None:
    stand.claim("hit", "dev-0")
    stand.claim("spared", "dev-1")
    stand.claim("tolerant", "dev-0", tolerations=[EXISTS])
    stand.pod("victim", "hit")
    stand.pod("sharing", "hit")
    stand.pod("neighbour", "spared")
    stand.pod("tolerating", "tolerant")
    stand.rule("r", device="dev-0")
    until("both pods are gone", lambda: stand.here() == {"neighbour", "tolerating"})
    until("an event", lambda: stand.events("victim") == [EVICTED])
    reason = planned(operator, stand, "victim")["reason"]
    assert reason == (
        f"example.com/bad=yes:NoExecute of DeviceTaintRule {stand.name}-r on "
        f"evict.example.com/{stand.name}/dev-0 (claim hit) is not tolerated"
    )
    assert stand.here() == {"neighbour", "tolerating"}


@case("EVCT-05")
def test_the_eviction_api_marks_a_pod_that_takes_its_time(operator: Operator, stand: Stand) -> None:
    stand.claim("c", "dev-0")
    uid = stand.pod("slow", "c", grace=30)
    stand.rule("r", device="dev-0")
    until("the pod is going", lambda: stand.here() == set())
    pod = stand.pods()["slow"]
    assert pod["metadata"]["uid"] == uid
    conditions = {c["type"]: c for c in pod["status"]["conditions"]}
    assert conditions["DisruptionTarget"]["status"] == "True"
    until("an event", lambda: stand.events("slow") == [EVICTED])


def test_a_taint_in_a_slice_evicts_and_one_that_only_keeps_others_away_does_not(
    operator: Operator, stand: Stand
) -> None:
    stand.claim("c", "dev-0")
    stand.claim("d", "dev-1")
    stand.pod("a", "c")
    stand.pod("b", "d")
    plain = [{"name": "dev-0"}, {"name": "dev-1"}]
    stand.slice("s", *plain)
    taint = {"key": "example.com/slice", "effect": "NoExecute"}
    soft = {"key": "example.com/slice", "effect": "NoSchedule"}
    stand.slice("s", {**plain[0], "taints": [taint]}, {**plain[1], "taints": [soft]})
    until("the pod is gone", lambda: stand.here() == {"b"})


@case("EVCT-03")
def test_a_rule_with_effect_none_or_for_another_pool_evicts_nobody(
    operator: Operator, stand: Stand
) -> None:
    stand.claim("c", "dev-0")
    stand.pod("a", "c")
    stand.rule("preview", effect="None")
    stand.rule("elsewhere", pool="another")
    stand.claim("late", "dev-9")
    stand.pod("b", "late")
    stand.rule("real", device="dev-9")
    until("the last rule has worked", lambda: stand.here() == {"a"})


@case("EVCT-04")
def test_a_toleration_for_some_seconds_delays_and_an_unlimited_one_keeps(
    operator: Operator, stand: Stand
) -> None:
    stand.claim("short", "dev-0", tolerations=[{**EXISTS, "tolerationSeconds": 3}])
    stand.claim("long", "dev-0", tolerations=[{**EXISTS, "tolerationSeconds": 3}, EXISTS])
    stand.pod("short", "short")
    stand.pod("long", "long")
    stand.rule("r", device="dev-0")
    until("the plan is made", lambda: planned(operator, stand, "short"))
    assert stand.here() == {"short", "long"}
    until("the pod is gone", lambda: stand.here() == {"long"})
    path = f"{operator_stand.GROUP}/devicetaintrules/{stand.name}-r"
    added = stand.cluster.api("GET", path)["spec"]["taint"]["timeAdded"]
    at = dt.datetime.fromisoformat(planned(operator, stand, "short")["at"])
    assert at == dt.datetime.fromisoformat(added) + dt.timedelta(seconds=3)
    (done,) = [
        r for r in operator.process.events("pod evicted") if r["pod"] == f"{stand.name}/short"
    ]
    assert 0.0 <= done["seconds_after_its_moment"] < 1.0


@case("EVCT-04")
def test_a_rule_removed_before_the_moment_cancels(operator: Operator, stand: Stand) -> None:
    stand.claim("c", "dev-0", tolerations=[{**EXISTS, "tolerationSeconds": 3}])
    stand.claim("d", "dev-1", tolerations=[{**EXISTS, "tolerationSeconds": 4}])
    stand.pod("kept", "c")
    stand.pod("clock", "d")
    stand.rule("r", device="dev-0")
    until("the plan is made", lambda: planned(operator, stand, "kept"))
    stand.rule("later", device="dev-1")
    stand.drop_rule("r")
    until("an event", lambda: stand.events("kept") == [CANCELLED])
    (cancelled,) = [
        r for r in operator.process.events("eviction cancelled") if r["pod"].endswith("/kept")
    ]
    at = dt.datetime.fromisoformat(planned(operator, stand, "kept")["at"])
    assert dt.datetime.fromisoformat(cancelled["timestamp"]) < at, "as soon as the rule was gone"
    until("the moment has passed", lambda: stand.here() == {"kept"})


def test_a_budget_blocks_until_it_allows(operator: Operator, stand: Stand) -> None:
    stand.claim("c", "dev-0")
    stand.pod("guarded", "c", app="web")
    stand.budget(1, app="web")
    until("the budget allows nothing", lambda: stand.budget_allows() == 0)
    stand.rule("r", device="dev-0")
    until("an event", lambda: stand.events("guarded") == [BLOCKED])
    assert stand.here() == {"guarded"}
    stand.budget(0, app="web")
    # The server asks to wait for 10 s.
    until("the pod is gone", lambda: stand.here() == set(), timeout=30)
    until("an event", lambda: sorted(stand.events("guarded")) == sorted([BLOCKED, EVICTED]))


@case("OPER-02")
def test_a_deadline_outlives_the_api_server(operator: Operator, stand: Stand) -> None:
    stand.claim("c", "dev-0", tolerations=[{**EXISTS, "tolerationSeconds": 6}])
    stand.pod("a", "c")
    stand.rule("r", device="dev-0")
    until("the plan is made", lambda: planned(operator, stand, "a"))
    stand.cluster.stop_component("kube-apiserver", kill=True)
    assert operator.get("/healthz")[0] == 200
    stand.cluster.start_component("kube-apiserver")
    until("the pod is gone", lambda: stand.here() == set(), timeout=30)
    stand.claim("d", "dev-1")
    stand.pod("b", "d")
    stand.rule("after", device="dev-1")
    until("watches work as before", lambda: stand.here() == set(), timeout=30)


@case("OPER-01")
@case("OPER-04")
def test_nothing_of_ours_stays_in_the_objects(operator: Operator, stand: Stand) -> None:
    stand.claim("c", "dev-0")
    stand.pod("a", "c")
    stand.slice("s", {"name": "dev-0"})
    stand.rule("r", effect="None")
    stand.claim("gone", "dev-1")
    stand.pod("b", "gone")
    stand.rule("real", device="dev-1")
    until("the operator has seen all of it", lambda: stand.here() == {"a"})
    paths = [
        f"/api/v1/namespaces/{stand.name}/pods/a",
        f"{operator_stand.GROUP}/namespaces/{stand.name}/resourceclaims/c",
        f"{operator_stand.GROUP}/resourceslices/{stand.name}-s",
        f"{operator_stand.GROUP}/devicetaintrules/{stand.name}-r",
    ]
    for path in paths:
        metadata = stand.cluster.api("GET", path)["metadata"]
        assert "annotations" not in metadata
        ours = {"resource.kubernetes.io/delete-protection"}
        assert set(metadata.get("finalizers", [])) <= ours
        writers = {entry["manager"] for entry in metadata["managedFields"]}
        assert not [writer for writer in writers if "dragoman" in writer or "kopf" in writer]


def test_probes_and_metrics_say_how_it_is(operator: Operator) -> None:
    assert operator.get("/healthz")[0] == 200
    status, body = operator.get("/readyz")
    assert status == 200, body
    assert "this instance" in body
    text = operator.get("/metrics")[1]
    assert "dra_operator_leading 1" in text
    for plural in ("pods", "resourceclaims", "resourceslices", "devicetaintrules"):
        assert f'dra_operator_watch_up{{resource="{plural}"}} 1' in text
    assert 'dra_operator_attempts_total{result="evicted"}' in text


def test_a_second_instance_waits_and_observing_evicts_nobody(
    cluster: Cluster, operator: Operator, stand: Stand, tmp_path: Path
) -> None:
    stand.claim("c", "dev-0")
    stand.pod("a", "c", app="web")
    stand.budget(1, app="web")
    until("the budget allows nothing", lambda: stand.budget_allows() == 0)
    with (
        operator_stand.running(cluster, tmp_path / "second", "--mode=evict") as second,
        operator_stand.running(
            cluster, tmp_path / "third", "--mode=observe", "--no-leader-election"
        ) as observer,
    ):
        for other in (second, observer):
            other.process.wait_for("everything has been read", timeout=30)
        stand.rule("r", device="dev-0")
        would = observer.process.wait_for("pod would be evicted, but mode is observe")
        assert would["pod"] == f"{stand.name}/a"
        second.process.wait_for("pod is to go")
        until("the first one has tried", lambda: stand.events("a") == [BLOCKED])
        observed = 'dra_operator_pods{state="observed"} 1'
        until("the gauge says so", lambda: observed in observer.get("/metrics")[1])
        assert "attempts_total" not in observer.get("/metrics")[1]
        assert "attempts_total" not in second.get("/metrics")[1]
        assert "another one" in second.get("/readyz")[1]
        assert second.process.stop() == 0
        assert observer.process.stop() == 0

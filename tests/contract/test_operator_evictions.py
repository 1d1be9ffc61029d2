"""The operator on a real control plane, with the rights of the shipped service account.

The in-tree evictor is off. There is no kubelet: pods are bound by hand, and one with a grace period
of zero is gone as soon as it is deleted.
"""

from __future__ import annotations

import datetime as dt
import signal
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


@pytest.fixture(scope="module", params=["1.37.2", "1.36.3"])
def cluster(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Without the in-tree evictor and without a scheduler; 1.36 serves rules as v1beta2."""
    wanted: dict[str, Any] = {
        "version": request.param,
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
    stand.claim("short", "dev-0", tolerations=[{**EXISTS, "tolerationSeconds": 6}])
    stand.claim("long", "dev-0", tolerations=[{**EXISTS, "tolerationSeconds": 6}, EXISTS])
    stand.pod("short", "short")
    stand.pod("long", "long")
    stand.rule("r", device="dev-0")
    until("the plan is made", lambda: planned(operator, stand, "short"))
    assert stand.here() == {"short", "long"}
    until("the pod is gone", lambda: stand.here() == {"long"})
    added = stand.read_rule("r")["spec"]["taint"]["timeAdded"]
    at = dt.datetime.fromisoformat(planned(operator, stand, "short")["at"])
    assert at == dt.datetime.fromisoformat(added) + dt.timedelta(seconds=6)
    (done,) = [
        r for r in operator.process.events("pod evicted") if r["pod"] == f"{stand.name}/short"
    ]
    assert 0.0 <= done["seconds_after_its_moment"] < 1.0


@case("EVCT-04")
def test_a_rule_removed_before_the_moment_cancels(operator: Operator, stand: Stand) -> None:
    stand.claim("c", "dev-0", tolerations=[{**EXISTS, "tolerationSeconds": 8}])
    stand.claim("d", "dev-1", tolerations=[{**EXISTS, "tolerationSeconds": 9}])
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
        f"{stand.rules}/{stand.name}-r",
    ]
    for path in paths:
        metadata = stand.cluster.api("GET", path)["metadata"]
        assert "annotations" not in metadata
        ours = {"resource.kubernetes.io/delete-protection"}
        assert set(metadata.get("finalizers", [])) <= ours
        ours = {"dragoman-operator"} if path.startswith(stand.rules) else set()
        fields = [entry for entry in metadata["managedFields"] if entry["manager"] not in ours]
        writers = {entry["manager"] for entry in fields}
        assert not [writer for writer in writers if "dragoman" in writer or "kopf" in writer]
        assert all(
            e["subresource"] == "status" for e in metadata["managedFields"] if e not in fields
        )


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


# -- what a rule selects, and who tolerates it -----------------------------------------------------
@case("EVCT-03")
@pytest.mark.parametrize(
    ("selector", "gone"),
    [
        ({"device": "dev-0"}, {"zero"}),
        ({}, {"zero", "one"}),
        ({"pool": None}, {"zero", "one"}),
        ({"driver": None, "device": "dev-1"}, {"one"}),
        ({"driver": "other.example.com"}, set()),
    ],
    ids=["device", "pool", "driver", "pool and device of any driver", "another driver"],
)
def test_what_a_selector_selects(
    operator: Operator, stand: Stand, selector: dict[str, Any], gone: set[str]
) -> None:
    for name, device in (("zero", "dev-0"), ("one", "dev-1"), ("clock", "dev-2")):
        other = {"pool": f"{stand.name}-other"} if name == "clock" else {}
        stand.claim(name, device, **other)
        stand.pod(name, name)
    stand.rule("r", **selector)
    stand.rule("last", pool=f"{stand.name}-other")
    until("those are gone", lambda: stand.here() == {"zero", "one"} - gone)
    assert stand.here() == {"zero", "one"} - gone


@case("EVCT-05")
def test_a_pod_that_goes_with_its_namespace_is_nobodys_trouble(
    operator: Operator, stand: Stand
) -> None:
    """The API server takes no Eviction there."""
    stand.claim("c", "dev-0")
    stand.pod("a", "c")
    path = f"/api/v1/namespaces/{stand.name}/pods/a"
    keep = {"metadata": {"finalizers": ["example.com/keep"]}}
    namespace = f"/api/v1/namespaces/{stand.name}"
    stand.cluster.api("PATCH", path, keep)
    stand.cluster.stop_component("kube-controller-manager")
    try:
        stand.cluster.api("DELETE", namespace)
        stand.rule("r", device="dev-0")
        until("it is tried", lambda: _gone_already(operator, f"{stand.name}/a"))
        assert "deletionTimestamp" not in stand.cluster.api("GET", path)["metadata"]
    finally:
        stand.cluster.start_component("kube-controller-manager")
    stand.cluster.api("PATCH", path, {"metadata": {"finalizers": None}})
    until("it has gone with its namespace", lambda: stand.here() == set())


def _gone_already(operator: Operator, pod: str) -> bool:
    return any(r["pod"] == pod for r in operator.process.events("pod is gone already"))


SOON = {"tolerationSeconds": 1}
TOLERATIONS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "none": ([], False),
    "exists": ([EXISTS], True),
    "every-key": ([{"operator": "Exists"}], True),
    "equal": ([{"key": "example.com/bad", "value": "yes", "effect": "NoExecute"}], True),
    "other-value": ([{"key": "example.com/bad", "value": "no", "effect": "NoExecute"}], False),
    "other-key": ([{**EXISTS, "key": "example.com/good"}], False),
    "no-schedule": ([{**EXISTS, "effect": "NoSchedule"}], False),
    "empty-effect": ([{"key": "example.com/bad", "operator": "Exists"}], True),
    "a-second": ([{**EXISTS, **SOON}], False),
    "negative": ([{**EXISTS, "tolerationSeconds": -5}], False),
    "two-limits": ([{**EXISTS, "tolerationSeconds": 3600}, {**EXISTS, **SOON}], False),
    "one-unlimited": ([{**EXISTS, **SOON}, EXISTS], True),
}


@case("EVCT-01")
@case("EVCT-04")
def test_every_form_of_toleration(operator: Operator, stand: Stand) -> None:
    for name, (tolerations, _) in TOLERATIONS.items():
        stand.claim(name, "dev-0", **({"tolerations": tolerations} if tolerations else {}))
        stand.pod(name, name)
    stand.rule("r", device="dev-0")
    stay = {name for name, (_, stays) in TOLERATIONS.items() if stays}
    until("the others are gone", lambda: stand.here() == stay)
    assert stand.here() == stay


@case("EVCT-03")
@case("EVCT-08")
def test_a_rule_that_is_too_wide_waits_for_a_confirmation(operator: Operator, stand: Stand) -> None:
    stand.claim("c", "dev-0")
    pods = {f"p{number}" for number in range(12)}
    for name in sorted(pods):
        stand.pod(name, "c")
    stand.rule("wide")
    until("it is held", lambda: stand.condition("wide")["reason"] == "Held")
    wide = f"{stand.name}-wide"
    held = ("Warning", "DeviceTaintEvictionHeld")
    until("an event", lambda: stand.events(wide, "default") == [held])
    assert stand.here() == pods
    note = {"metadata": {"annotations": {"dragoman/confirmed": "true"}}}
    stand.cluster.api("PATCH", f"{stand.rules}/{wide}", note)
    until("all are gone", lambda: stand.here() == set())


# -- slices, extended resources, shared claims -----------------------------------------------------
@case("EVCT-04")
def test_a_taint_that_goes_from_the_slice_before_the_moment_cancels(
    operator: Operator, stand: Stand
) -> None:
    taint = {"key": "example.com/bad", "effect": "NoExecute"}
    stand.claim("c", "dev-0", tolerations=[{**EXISTS, "tolerationSeconds": 8}])
    stand.pod("a", "c")
    stand.slice("s", {"name": "dev-0", "taints": [taint]})
    until("the plan is made", lambda: planned(operator, stand, "a"))
    stand.slice("s", {"name": "dev-0"})
    until("an event", lambda: stand.events("a") == [CANCELLED])
    assert stand.here() == {"a"}


@case("EVCT-02")
def test_the_pod_of_an_extended_resource_goes_too(operator: Operator, stand: Stand) -> None:
    stand.claim("c", "dev-0")
    stand.claim("d", "dev-1")
    stand.pod("hit", "c", extended=True)
    stand.pod("spared", "d", extended=True)
    stand.rule("r", device="dev-0")
    until("the pod is gone", lambda: stand.here() == {"spared"})
    until("an event", lambda: stand.events("hit") == [EVICTED])


def test_a_shared_claim_is_seen_deallocated_once_its_last_pod_is_gone(
    operator: Operator, stand: Stand
) -> None:
    stand.claim("c", "dev-0")
    for name in ("a", "b", "d"):
        stand.pod(name, "c")
    stand.rule("r", device="dev-0")
    until("all three are gone", lambda: stand.here() == set())
    until("it is free", lambda: "allocation" not in stand.read_claim("c").get("status", {}))

    def seen() -> bool:
        records = operator.process.events("claim is deallocated")
        return any(record["claim"] == f"{stand.name}/c" for record in records)

    until("the operator has seen it", seen)


# -- what a rule says ------------------------------------------------------------------------------
@case("EVCT-08")
def test_a_rule_says_how_far_it_is_and_can_be_waited_for(operator: Operator, stand: Stand) -> None:
    stand.claim("c", "dev-0")
    stand.pod("slow", "c", grace=30)
    stand.rule("r", device="dev-0")
    # Of a pod that the operator has heard of a moment later it says so at its next look.
    until("it is in progress", lambda: stand.condition("r")["status"] == "True")
    begun = stand.condition("r")
    assert begun["reason"] == "PodsPendingEviction"
    assert begun["message"].startswith("1 pod in 1 namespace has to go")
    assert begun["observedGeneration"] == 1
    until("the pod is going", lambda: stand.here() == set())
    path = f"/api/v1/namespaces/{stand.name}/pods/slow"
    stand.cluster.api("DELETE", path, {"gracePeriodSeconds": 0})
    printed = stand.cluster.kubectl(
        "wait",
        "--for=condition=EvictionInProgress=false",
        f"devicetaintrule/{stand.name}-r",
        "--timeout=20s",
    )
    assert "condition met" in printed
    done = stand.condition("r")
    assert (done["status"], done["reason"]) == ("False", "Completed")
    assert done["message"] == "1 pod gone, none left."


@case("EVCT-03")
@case("EVCT-08")
def test_effect_none_says_what_would_happen(operator: Operator, stand: Stand) -> None:
    stand.slice("s", {"name": "dev-0"}, {"name": "dev-1"}, {"name": "dev-2"})
    stand.claim("c", "dev-0")
    stand.claim("d", "dev-1", tolerations=[EXISTS])
    for name, claim in (("a", "c"), ("b", "c"), ("e", "d")):
        stand.pod(name, claim)
    # It counts once a minute, so it has to know all of them by now: this pod is the last one.
    stand.claim("clock", "dev-0", pool=f"{stand.name}-other")
    stand.pod("clock", "clock")
    stand.rule("last", pool=f"{stand.name}-other")
    until("the operator has seen all of it", lambda: stand.here() == {"a", "b", "e"})
    stand.rule("preview", effect="None")
    found = until("it says something", lambda: stand.condition("preview"))
    assert (found["status"], found["reason"]) == ("False", "NoEffect")
    assert found["message"] == (
        "3 published devices and 2 allocated devices selected; with effect NoExecute 2 pods in "
        "1 namespace would have to go."
    )
    assert stand.here() == {"a", "b", "e"}


@case("EVCT-08")
def test_a_condition_of_another_writer_stays(operator: Operator, stand: Stand) -> None:
    theirs = {
        "type": "EvictionInProgress",
        "status": "True",
        "reason": "Theirs",
        "message": "written by somebody else",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    stand.rule("r", device="dev-9", effect="NoSchedule")
    path = f"{stand.rules}/{stand.name}-r"
    until("ours is there", lambda: stand.condition("r")["reason"] == "OtherEffect")
    stand.cluster.api("PATCH", f"{path}/status", {"status": {"conditions": [theirs]}})
    stand.cluster.api("PATCH", path, {"spec": {"taint": {"effect": "NoExecute"}}})

    def left() -> bool:
        records = operator.process.events("condition left alone")
        return any(record["rule"] == f"{stand.name}-r" for record in records)

    until("the operator has looked", left)
    assert stand.condition("r")["reason"] == "Theirs"


def test_a_leader_that_is_paused_is_replaced_and_stays_quiet_afterwards(
    cluster: Cluster, operator: Operator, stand: Stand, tmp_path: Path
) -> None:
    stand.claim("c", "dev-0")
    stand.pod("a", "c")
    with operator_stand.running(
        cluster, tmp_path / "second", "--mode=evict", "--pool-share=1"
    ) as second:
        second.process.wait_for("everything has been read", timeout=30)
        operator.process.signal(signal.SIGSTOP)
        try:
            stand.rule("r", device="dev-0")
            second.process.wait_for("leading", timeout=30)
            until("the pod is gone", lambda: stand.here() == set())
        finally:
            operator.process.signal(signal.SIGCONT)
        until("the first one knows", lambda: "another one" in operator.get("/readyz")[1])
        stand.claim("d", "dev-1")
        stand.pod("b", "d")
        stand.rule("later", device="dev-1")
        until("the second one goes on", lambda: stand.here() == set())
        done = {r["pod"] for r in operator.process.events("pod evicted")}
        assert not done & {f"{stand.name}/a", f"{stand.name}/b"}
        assert second.process.stop() == 0
    until("the first one leads again", lambda: "this instance" in operator.get("/readyz")[1])

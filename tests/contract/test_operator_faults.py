"""The operator through faults: killed, its token revoked, the API server away.

Each test has an operator of its own; the in-tree evictor is off.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_testing import operator_stand
from dra_testing.cases import case
from dra_testing.fault_proxy import FaultProxy, Rule
from dra_testing.operator_stand import Operator, Stand
from dra_testing.polling import until
from testcluster import fixtures
from testcluster.cluster import Cluster

pytestmark = pytest.mark.control_plane

ALONE = ("--mode=evict", "--no-leader-election", "--pool-share=1")
EXISTS = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}
#: Seconds without an API server: a minute in long runs.
SOAK = "DRAGOMAN_SOAK" in os.environ
AWAY = 60.0 if SOAK else 8.0
FAULTS: dict[str, dict[str, Any]] = {
    "500": {"status": 500},
    "403": {"status": 403},
    "410": {"status": 410},
    "cut": {"cut": True},
}


@pytest.fixture(scope="module")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """1.37.2 without the in-tree evictor and without a scheduler."""
    with fixtures._running(
        pytestconfig,
        controllers="*,-device-taint-eviction-controller",
        without=("kube-scheduler",),
    ) as made:
        operator_stand.install(made)
        yield made


@pytest.fixture
def stand(cluster: Cluster) -> Iterator[Stand]:
    made = Stand(cluster)
    yield made
    made.close()


def test_an_operator_that_is_killed_is_succeeded_by_the_next_one(
    cluster: Cluster, stand: Stand, tmp_path: Path
) -> None:
    stand.claim("c", "dev-0")
    stand.claim("spared", "dev-1")
    pods = {f"p{number}" for number in range(8)}
    for name in sorted(pods):
        stand.pod(name, "c")
    stand.pod("spared", "spared")
    slow = (*ALONE, "--pods-per-second=1")
    with operator_stand.running(cluster, tmp_path / "first", *slow) as first:
        first.process.wait_for("everything has been read", timeout=30)
        stand.rule("r", device="dev-0")
        first.process.wait_for("pod evicted")
        until("the rule says so", lambda: stand.condition("r")["status"] == "True")
        first.process.kill()
    assert stand.here() & pods, "it was killed in the midst of it"
    with operator_stand.running(cluster, tmp_path / "second", *ALONE):
        until("the rest is gone", lambda: stand.here() == {"spared"}, timeout=30)
        until("the rule says so", lambda: stand.condition("r")["status"] == "False", timeout=30)
    assert stand.condition("r")["reason"] == "Completed"


@case("OPER-02")
def test_the_api_server_goes_away_for_a_while(
    cluster: Cluster, stand: Stand, tmp_path: Path
) -> None:
    """Deadlines in between are met as soon as it is back, and nothing has to be started again."""
    stand.claim("c", "dev-0", tolerations=[{**EXISTS, "tolerationSeconds": 3}])
    stand.pod("a", "c")
    with operator_stand.running(cluster, tmp_path / "log", *ALONE) as operator:
        operator.process.wait_for("everything has been read", timeout=30)
        stand.rule("r", device="dev-0")
        operator.process.wait_for("pod is to go")
        cluster.stop_component("kube-apiserver", kill=True)
        try:
            end = time.monotonic() + AWAY
            until("the time is over", lambda: time.monotonic() > end, timeout=AWAY + 5)
            assert operator.process.process.poll() is None
        finally:
            cluster.start_component("kube-apiserver")
        until("the pod is gone", lambda: stand.here() == set(), timeout=40)
        # It reserves claims for the tests, and after a minute it looks again a minute later.
        cluster.stop_component("kube-controller-manager")
        cluster.start_component("kube-controller-manager")
        until("it is healthy", lambda: operator.get("/healthz")[0] == 200, timeout=40)
        stand.claim("d", "dev-1")
        stand.pod("b", "d")
        stand.rule("after", device="dev-1")
        until("watches work as before", lambda: stand.here() == set(), timeout=40)
        assert operator.process.stop() == 0


@case("OPER-02")
def test_a_token_that_is_revoked_is_noticed_and_a_new_one_is_read(
    cluster: Cluster, stand: Stand, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    account = revocable(cluster, token, "bound-1")
    with operator_stand.running(
        cluster,
        tmp_path / "log",
        *ALONE,
        account=account,
    ) as operator:
        operator.process.wait_for("everything has been read", timeout=30)
        pods = f"/api/v1/namespaces/{operator_stand.NAMESPACE}/pods"
        cluster.api("DELETE", f"{pods}/bound-1", {"gracePeriodSeconds": 0})
        operator.process.wait_for("the API server refuses our credentials", timeout=60)
        assert operator.process.process.poll() is None
        revocable(cluster, token, "bound-2")
        until("all is well", lambda: operator.get("/readyz")[0] == 200, timeout=90)
        stand.claim("c", "dev-0")
        stand.pod("a", "c")
        stand.rule("r", device="dev-0")
        until("it evicts", lambda: operator.process.events("pod evicted"), timeout=90)


@contextlib.contextmanager
def proxied(
    cluster: Cluster, folder: Path, *arguments: str
) -> Iterator[tuple[FaultProxy, Operator]]:
    """An operator that has read everything through a proxy, which may begin to make faults."""
    account = cluster.service_account_kubeconfig(operator_stand.NAMESPACE, "dragoman-operator")
    proxy = FaultProxy(account, folder)
    try:
        with operator_stand.running(
            cluster, folder / "log", *ALONE, *arguments, account=proxy.kubeconfig
        ) as operator:
            operator.process.wait_for("everything has been read", timeout=30)
            yield proxy, operator
    finally:
        proxy.close()


def used(rule: Rule, times: int) -> bool:
    return rule.used > times


@case("OPER-02")
def test_refusals_errors_and_broken_watches_are_survived(
    cluster: Cluster, stand: Stand, tmp_path: Path
) -> None:
    """Of every request for some seconds, then everything works as before, without a restart.

    Long runs try all, others refused credentials and another one of them.
    """
    others = list(FAULTS) if SOAK else random.sample(list(FAULTS), 1)
    faults = {"401": {"status": 401}} | {name: FAULTS[name] for name in others}
    with proxied(cluster, tmp_path) as (proxy, operator):
        for name, action in faults.items():
            until("it watches", proxy.cut_watches, timeout=60)
            met = proxy.add(lambda _: True, **action)
            proxy.cut_watches()
            # More than all watches at once.
            until(f"{name} was met", partial(used, met, 5), timeout=60)
            proxy.clear()
            stand.claim(name, f"dev-{name}")
            stand.pod(f"pod-{name}", name)
            stand.rule(name, device=f"dev-{name}")
            until(f"it evicts after {name}", lambda: stand.here() == set(), timeout=90)
        until("it is healthy", lambda: operator.get("/healthz")[0] == 200, timeout=90)
        assert operator.process.stop() == 0


def test_an_operator_that_stops_waits_for_no_connection_and_leaves_none(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The proxy never answers that a TLS connection is to end."""
    with proxied(cluster, tmp_path) as (_, operator):
        assert operator.process.stop(timeout=20) == 0
        assert not [r for r in operator.process.records() if r.get("raw")]


@case("OPER-02")
def test_a_watch_that_has_gone_silent_turns_the_probe_red(
    cluster: Cluster, stand: Stand, tmp_path: Path
) -> None:
    with proxied(cluster, tmp_path, "--compare-interval=1") as (proxy, operator):
        stand.claim("heard", "dev-1")
        stand.pod("a", "heard")
        stand.rule("r", device="dev-1")
        until("it hears", lambda: stand.here() == set())
        proxy.add(lambda call: call.watch, silent=True)
        assert proxy.cut_watches() > 0
        stand.claim("c", "dev-0")
        assert operator.get("/healthz")[0] == 200

        def stalled() -> bool:
            status, text = operator.get("/healthz")
            return status == 503 and "watches are stalled" in text

        until("the probe is red", stalled, timeout=100)


def revocable(cluster: Cluster, token: Path, pod: str) -> Path:
    """A kubeconfig whose token stands in a file and is good as long as a pod exists."""
    metadata = {"name": pod, "namespace": operator_stand.NAMESPACE}
    container = {
        "name": "c",
        "image": "none",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {
        "serviceAccountName": "dragoman-operator",
        "containers": [container],
        "securityContext": security,
        "nodeSelector": {"nowhere": "true"},
    }
    path = f"/api/v1/namespaces/{operator_stand.NAMESPACE}/pods"
    cluster.api("POST", path, {"metadata": metadata, "spec": spec})
    fresh = cluster.service_account_token(operator_stand.NAMESPACE, "dragoman-operator", pod=pod)
    token.with_suffix(".new").write_text(fresh)
    token.with_suffix(".new").replace(token)
    base = yaml.safe_load(
        cluster.service_account_kubeconfig(
            operator_stand.NAMESPACE, "dragoman-operator"
        ).read_text()
    )
    base["users"][0]["user"] = {"tokenFile": str(token)}
    file = token.with_suffix(".kubeconfig")
    file.write_text(yaml.safe_dump(base))
    return file

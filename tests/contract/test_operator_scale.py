"""The operator with some hundred objects on a real API server; ``make bench NAME=scale`` has more.

No controllers run: pods are bound, and claims reserved, by hand.
"""

from __future__ import annotations

import math
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_operator import handlers
from dra_testing import operator_stand, process_figures
from dra_testing.audit import Audit
from dra_testing.crowd import DRIVER, Crowd, Requests
from dra_testing.operator_stand import GROUP, USER
from dra_testing.polling import until
from testcluster import fixtures
from testcluster.cluster import Cluster

pytestmark = pytest.mark.control_plane

PODS, SLICES = 250, 60
#: Seconds until all is read, and MB at the peak: most of both is Python's own start.
MOST_TIME, MOST_MEMORY = 20.0, 200.0


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """Of the operator."""
    return Audit(tmp_path_factory.mktemp("audit"), (USER,))


@pytest.fixture(scope="module")
def cluster(pytestconfig: pytest.Config, audit: Audit) -> Iterator[Cluster]:
    """1.37.2: an API server and nothing else."""
    wanted: dict[str, Any] = {
        "version": "1.37.2",
        "without": ("kube-controller-manager", "kube-scheduler"),
        "flags": {"kube-apiserver": audit.flags()},
    }
    with fixtures._running(pytestconfig, **wanted) as made:
        operator_stand.install(made)
        yield made


@pytest.fixture
def requests(cluster: Cluster) -> Iterator[Requests]:
    made = Requests(cluster)
    yield made
    made.close()


def pods(cluster: Cluster, namespace: str) -> int:
    return len(cluster.api("GET", f"/api/v1/namespaces/{namespace}/pods")["items"])


def rule(cluster: Cluster, name: str, pool: str) -> None:
    taint = {"key": "example.com/bad", "value": "yes", "effect": "NoExecute"}
    spec = {"deviceSelector": {"driver": DRIVER, "pool": pool}, "taint": taint}
    cluster.api("POST", f"{GROUP}/devicetaintrules", {"metadata": {"name": name}, "spec": spec})


def pages(events: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Lists by resource and the limit that was asked for, "" if there was none."""
    found: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event["verb"] == "list":
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(event["requestURI"]).query)
            found[event["objectRef"]["resource"], query.get("limit", [""])[0]] += 1
    return found


def test_it_reads_hundreds_of_objects_page_by_page_and_keeps_up(
    cluster: Cluster, requests: Requests, audit: Audit, tmp_path: Path
) -> None:
    crowd = Crowd(requests, ["read-0", "read-1"], pools=SLICES, whole=True, prefix="read-")
    crowd.make_namespaces()
    crowd.make(PODS)
    crowd.make_slices(SLICES)
    since, begun = audit.position(), time.monotonic()
    arguments = ("--mode=evict", "--pool-share=1", "--hold-share=1")
    with operator_stand.running(cluster, tmp_path / "log", *arguments) as operator:
        operator.ready()
        assert time.monotonic() - begun < MOST_TIME
        assert process_figures.peak(operator.process.pid) < MOST_MEMORY
        found = pages(audit.events(USER, since))
        assert {limit for _, limit in found} == {"1", str(handlers.CHUNK)}
        for plural, count in (("pods", PODS), ("resourceclaims", PODS), ("resourceslices", SLICES)):
            assert found[plural, str(handlers.CHUNK)] == math.ceil(count / handlers.CHUNK)
        rule(cluster, "read", "read-pool-7")
        hit = sum(crowd.pool(number) == "read-pool-7" for number in range(PODS))
        left = PODS - hit
        until(
            "its pods are gone", lambda: pods(cluster, "read-0") + pods(cluster, "read-1") == left
        )
    cluster.api("DELETE", f"{GROUP}/devicetaintrules/read")


def test_a_rule_with_many_devices_is_asked_for_once_a_second(
    cluster: Cluster, requests: Requests, audit: Audit, tmp_path: Path
) -> None:
    crowd = Crowd(requests, ["evicted"], prefix="evicted-")
    crowd.make_namespaces()
    crowd.make(100)
    arguments = ("--mode=evict", "--pool-share=1", "--hold-share=1", "--pods-per-second=1000")
    with operator_stand.running(cluster, tmp_path / "log", *arguments) as operator:
        operator.ready()
        since, begun = audit.position(), time.monotonic()
        rule(cluster, "evicted", "evicted-pool-0")
        until("all pods are gone", lambda: pods(cluster, "evicted") == 0, 60)
        seconds = time.monotonic() - begun
        until("all events are there", lambda: audit.asked(USER, since)["create events"] == 100)
        asked = audit.asked(USER, since)
        assert asked["create pods/eviction"] == 100
        assert 1 <= asked["get devicetaintrules"] <= seconds + 2
    cluster.api("DELETE", f"{GROUP}/devicetaintrules/evicted")

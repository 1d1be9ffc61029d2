"""Devices attached while pods wait, with the real scheduler and the rights of the shipped account.

The scheduler's bindingTimeout is 30 s, the operator's deadline 20 s. There are nodes, but no
kubelets: a pod that is bound is as far as it gets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_testing import binding_stand
from dra_testing.binding_stand import DRIVER, FAILED, OTHER, READY, FabricProcess, Stand
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
    stand.pod("a")
    until("a device is being attached", lambda: stand.conditions("a").get(READY), timeout=30)
    assert stand.bound("a") == ""
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
    until("the first device failed", lambda: stand.rules(), timeout=30)
    (rule,) = stand.rules()
    assert rule["spec"]["deviceSelector"] == {"driver": DRIVER, "pool": "fabric", "device": "fab-0"}
    assert rule["spec"]["taint"]["effect"] == "NoSchedule"
    until("the pod is bound", lambda: stand.bound("a"), timeout=60)
    assert stand.devices("a") == ["fab-1"]
    assert fabric.attached() == {"fab-1": "a"}
    failures = operator.process.events("attaching failed")
    assert [record["reason"] for record in failures] == ["PortDown"]

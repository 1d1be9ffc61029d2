"""Devices that stand for CPU and memory of a real node: what scheduler and kubelet make of them.

Facts are read from the API and from cgroup files. A device is of a kind; see ``DEVICES``.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dra_testing import pod_cgroups
from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess
from dra_testing.places import SUPPORT
from dra_testing.pod_cgroups import Granted
from dra_testing.pods import Namespace, claim, device_class, pod, request
from dra_testing.polling import until
from dra_testing.slices import driver_kubeconfig
from testcluster.cluster import Cluster

pytestmark = pytest.mark.node

_numbers = itertools.count(1)
DRIVER = "pools.example.com"
MI = 2**20

JSON = dict[str, Any]


def devices(kind: str, count: int = 1, **fields: Any) -> list[JSON]:
    """Devices ``<kind>-<n>`` with an attribute that says of which kind they are."""
    attributes = {"kind": {"string": kind}}
    return [{"name": f"{kind}-{n}", "attributes": attributes, **fields} for n in range(count)]


DEVICES = [
    # 1 unit is 100m of CPU and 8Mi; claims share it.
    *devices(
        "shared",
        allowMultipleAllocations=True,
        capacity={"units": {"value": "8"}},
        nodeAllocatableResources={
            "cpu": {"mapping": {"capacityKey": "units", "capacityMultiplier": "100m"}},
            "memory": {"mapping": {"capacityKey": "units", "capacityMultiplier": "8Mi"}},
        },
    ),
    *devices(
        "whole",
        4,
        nodeAllocatableResources={
            "cpu": {"mapping": {"deviceMultiplier": "50m"}},
            "memory": {"mapping": {"deviceMultiplier": "16Mi"}},
        },
    ),
    *devices(
        "costly",
        4,
        nodeAllocatableResources={
            "cpu": {
                "mapping": {"deviceMultiplier": "50m"},
                "overhead": {"perPod": "20m", "perContainer": "10m"},
            }
        },
    ),
    *devices(
        "overhead",
        4,
        nodeAllocatableResources={"cpu": {"overhead": {"perPod": "20m", "perContainer": "10m"}}},
    ),
]


@pytest.fixture(scope="module")
def driver(
    cluster_node: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverProcess]:
    node = cluster_node.require_node()
    folder = tmp_path_factory.mktemp("pools")
    pools = folder / "pools.json"
    pools.write_text(json.dumps({"pools": [{"devices": DEVICES}]}))
    arguments = [
        f"--option=pools={pools}",
        f"--node-name={node.name}",
        f"--kubeconfig={driver_kubeconfig(cluster_node, node.name)}",
        f"--kubelet-root={node.kubelet_root}",
        f"--cdi-dir={node.cdi_dir}",
    ]
    path = os.pathsep.join([str(SUPPORT), *filter(None, [os.getenv("PYTHONPATH")])])
    driver = DriverProcess(
        arguments,
        folder / "driver.log",
        {"PYTHONPATH": path},
        (sys.executable, "-m", "dra_testing.pools_driver"),
    )
    driver.wait_for("registered with the kubelet", timeout=30.0)
    driver.wait_for("pool published", timeout=30.0)
    classes = "/apis/resource.k8s.io/v1/deviceclasses"
    cluster_node.api("POST", classes, device_class(DRIVER, DRIVER))
    yield driver
    cluster_node.kubectl("delete", "deviceclass", DRIVER)
    driver.finish()
    cluster_node.kubectl("delete", "resourceslices", "--all")


@pytest.fixture
def namespace(cluster_node: Cluster, driver: DriverProcess) -> Iterator[Namespace]:
    made = Namespace(cluster_node, f"resources-{next(_numbers)}")
    yield made
    made.close()


def of_kind(kind: str, **exactly: Any) -> JSON:
    """A request for devices of this kind."""
    expression = f'device.attributes["{DRIVER}"].kind == "{kind}"'
    return request("devices", DRIVER, selectors=[{"cel": {"expression": expression}}], **exactly)


def limited(cpu: str, memory: str, *names: str) -> JSON:
    """A pod ``p``: these containers have limits, ``a`` references the claim ``c``."""
    made = pod("p", {"c": {"resourceClaimName": "c"}}, {n: ["c"] for n in names or ("a",)})
    for container in made["spec"]["containers"]:
        container["resources"]["limits"] = {"cpu": cpu, "memory": memory}
    return made


def started(namespace: Namespace, wanted: JSON, *others: JSON) -> JSON:
    namespace.apply(*others, wanted)
    (found,) = namespace.running(wanted["metadata"]["name"], timeout=60.0)
    return found


def statuses(found: JSON) -> JSON:
    """What the API says that the claim brings, amounts by resource."""
    (status,) = found["status"]["nodeAllocatableResourceClaimStatuses"]
    assert status.pop("resourceClaimName") == "c"
    return {
        "containers": status["containers"],
        **{
            part: {m.pop("name"): m.get("quantity", m) for m in status[part]}
            for part in ("mapping", "overhead")
            if part in status
        },
    }


def limits(granted: Granted) -> tuple[int | None, int | None]:
    return granted.cpu, granted.memory


def unschedulable(namespace: Namespace, name: str, why: str) -> None:
    def refused() -> bool:
        conditions = namespace.get("pod", name)["status"].get("conditions", [])
        (found,) = (c for c in conditions if c["type"] == "PodScheduled")
        return found.get("reason") == "Unschedulable" and why in found["message"]

    until(f"pod {name} cannot be scheduled: {why}", refused, timeout=60.0)


@case("PUB-10")
def test_consumed_capacity_counts_times_its_multiplier(namespace: Namespace) -> None:
    three = of_kind("shared", capacity={"requests": {"units": "3"}})
    found = started(namespace, limited("100m", "32Mi"), claim("c", three))
    assert statuses(found) == {
        "containers": ["a"],
        "mapping": {"cpu": "300m", "memory": str(24 * MI)},
    }
    assert limits(pod_cgroups.of_container(found, "a")) == (40_000, 56 * MI)
    # The pod is granted what one without a claim is that asks for it all.
    plain = pod("plain", {}, {"a": []})
    plain["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "400m", "memory": "56Mi"}}
    assert pod_cgroups.of_pod(found) == pod_cgroups.of_pod(started(namespace, plain))


@case("PUB-10")
def test_devices_count_for_the_container_that_references_the_claim(namespace: Namespace) -> None:
    wanted = limited("100m", "32Mi", "a", "b")
    del wanted["spec"]["containers"][1]["resources"]["claims"]
    found = started(namespace, wanted, claim("c", of_kind("whole", count=2)))
    mapped = {"cpu": "100m", "memory": "32Mi"}
    assert statuses(found) == {"containers": ["a"], "mapping": mapped}
    assert limits(pod_cgroups.of_container(found, "a")) == (20_000, 64 * MI)
    assert limits(pod_cgroups.of_container(found, "b")) == (10_000, 32 * MI)
    assert limits(pod_cgroups.of_pod(found)) == (30_000, 96 * MI)
    # Requests of a container stay what they are.
    weights = {pod_cgroups.of_container(found, name).weight for name in ("a", "b")}
    assert len(weights) == 1


@case("PUB-10")
def test_overhead_counts_once_for_the_pod_and_for_each_container(namespace: Namespace) -> None:
    wanted = limited("100m", "32Mi", "a", "b")
    found = started(namespace, wanted, claim("c", of_kind("costly", count=2)))
    assert statuses(found) == {
        "containers": ["a", "b"],
        "mapping": {"cpu": "100m"},
        "overhead": {"cpu": {"perPod": "40m", "perContainer": "20m"}},
    }
    # 100m of its own, 100m mapped, 40m for the pod, 20m for the container.
    for name in ("a", "b"):
        assert limits(pod_cgroups.of_container(found, name)) == (26_000, 32 * MI)
    # Twice 100m, 100m mapped, 40m once, 20m twice.
    assert limits(pod_cgroups.of_pod(found)) == (38_000, 64 * MI)


@case("PUB-10")
def test_where_there_is_no_limit_there_is_none_to_raise(namespace: Namespace) -> None:
    wanted = limited("100m", "32Mi", "a", "b")
    del wanted["spec"]["containers"][1]["resources"]["limits"]
    found = started(namespace, wanted, claim("c", of_kind("whole", count=2)))
    assert limits(pod_cgroups.of_container(found, "a")) == (20_000, 64 * MI)
    assert limits(pod_cgroups.of_container(found, "b")) == (None, None)
    assert limits(pod_cgroups.of_pod(found)) == (None, None)


@case("PUB-10")
def test_a_pod_that_asks_for_nothing_else_gets_no_weight(namespace: Namespace) -> None:
    """Here the kubelet does not do what the API's text says: the pod stays BestEffort."""
    wanted = pod("p", {"c": {"resourceClaimName": "c"}}, {"a": ["c"]})
    found = started(namespace, wanted, claim("c", of_kind("whole", count=2)))
    assert statuses(found)["mapping"] == {"cpu": "100m", "memory": "32Mi"}
    assert found["status"]["qosClass"] == "BestEffort"
    plain = started(namespace, pod("plain", {}, {"a": []}))
    assert pod_cgroups.of_pod(found) == pod_cgroups.of_pod(plain)
    assert limits(pod_cgroups.of_pod(found)) == (None, None)


@case("PUB-10")
@pytest.mark.parametrize("kind", ["whole", "costly", "shared"])
def test_a_mapped_claim_is_for_one_pod(namespace: Namespace, kind: str) -> None:
    source = {"c": {"resourceClaimName": "c"}}
    started(namespace, pod("p", source, {"a": ["c"]}), claim("c", of_kind(kind)))
    namespace.apply(pod("q", source, {"a": ["c"]}))
    unschedulable(namespace, "q", "claim c has a mapped device and cannot be shared across pods")


@case("PUB-10")
def test_a_claim_with_overhead_alone_is_for_many(namespace: Namespace) -> None:
    source = {"c": {"resourceClaimName": "c"}}
    found = started(namespace, limited("100m", "32Mi"), claim("c", of_kind("overhead", count=2)))
    other = started(namespace, pod("q", source, {"a": ["c"]}))
    overhead = {"cpu": {"perPod": "40m", "perContainer": "20m"}}
    for one in (found, other):
        assert statuses(one) == {"containers": ["a"], "overhead": overhead}
    assert limits(pod_cgroups.of_container(found, "a")) == (16_000, 32 * MI)
    assert limits(pod_cgroups.of_pod(found)) == (16_000, 32 * MI)


@case("PUB-10")
def test_resources_of_the_pod_must_cover_the_claim(namespace: Namespace) -> None:
    wanted = limited("100m", "32Mi")
    enough = {"cpu": "150m", "memory": "64Mi"}
    namespace.apply(claim("c", of_kind("whole")))
    # Without requests of its own the pod's are those of its containers.
    for short in ({"requests": enough | {"cpu": "120m"}}, {}):
        wanted["spec"]["resources"] = {"limits": enough, **short}
        namespace.apply(wanted)
        unschedulable(namespace, "p", "pod level request for cpu is insufficient")
        namespace.delete("pod", "p")
    wanted["spec"]["resources"] = {"requests": enough, "limits": enough}
    found = started(namespace, wanted)
    assert limits(pod_cgroups.of_pod(found)) == (15_000, 64 * MI)
    assert limits(pod_cgroups.of_container(found, "a")) == (15_000, 48 * MI)


@case("PUB-10")
def test_what_a_claim_brings_is_not_there_for_others(
    cluster_node: Cluster, namespace: Namespace
) -> None:
    node = cluster_node.api("GET", f"/api/v1/nodes/{cluster_node.require_node().name}")
    cpus = int(node["status"]["allocatable"]["cpu"])
    eight = of_kind("shared", capacity={"requests": {"units": "8"}})
    wanted = pod("p", {"c": {"resourceClaimName": "c"}}, {"a": ["c"]})
    started(namespace, wanted, claim("c", eight))
    plain = pod("plain", {}, {"a": []})
    # The claim took 800m.
    resources = {"requests": {"cpu": f"{cpus * 1000 - 700}m"}}
    plain["spec"]["containers"][0]["resources"] = resources
    namespace.apply(plain)
    unschedulable(namespace, "plain", "Insufficient cpu")
    namespace.delete("pod", "p")
    namespace.running("plain", timeout=60.0)

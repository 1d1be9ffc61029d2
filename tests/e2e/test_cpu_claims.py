"""Claims for CPUs on a real node: what the claim brings counts for the pod, down to its cgroup."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from dra_testing import pod_cgroups
from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess
from dra_testing.pods import Namespace, claim, device_class, pod, request
from dra_testing.polling import until
from dra_testing.slices import driver_kubeconfig
from testcluster.cluster import Cluster

pytestmark = pytest.mark.node

_numbers = itertools.count(1)
CPU = "cpu.example.com"
#: As the node has two CPUs or more, a simulated topology must not offer more than it has.
TOPOLOGY = "2x1"


@pytest.fixture(scope="module")
def cpu_driver(
    cluster_node: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverProcess]:
    node = cluster_node.require_node()
    arguments = [
        "--profile=cpu",
        f"--node-name={node.name}",
        f"--kubeconfig={driver_kubeconfig(cluster_node, node.name)}",
        f"--kubelet-root={node.kubelet_root}",
        f"--cdi-dir={node.cdi_dir}",
        f"--option=topology={TOPOLOGY}",
    ]
    log = tmp_path_factory.mktemp("cpu") / "driver.log"
    driver = DriverProcess(arguments, log)
    driver.wait_for("registered with the kubelet", timeout=30.0)
    driver.wait_for("pool published", timeout=30.0)
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    cluster_node.api("POST", path, device_class(CPU, CPU))
    yield driver
    cluster_node.kubectl("delete", "deviceclass", CPU)
    driver.finish()
    cluster_node.kubectl("delete", "resourceslices", "--all")


@pytest.fixture
def namespace(cluster_node: Cluster, cpu_driver: DriverProcess) -> Iterator[Namespace]:
    made = Namespace(cluster_node, f"cpus-{next(_numbers)}")
    yield made
    made.close()


def quotas(pod_uid: str) -> list[int]:
    """The CPU limits of the pod's cgroup and those in it, where there are any (cgroup v1, v2)."""
    found = []
    for file in ("cpu.cfs_quota_us", "cpu.max"):
        for path in pod_cgroups.files(f"pod{pod_uid}", file):
            text = path.read_text().split()[0]
            if text not in ("-1", "max"):
                found.append(int(text))
    return found


@case("PUB-10")
def test_a_claim_raises_the_limit_of_pod_and_container(
    cpu_driver: DriverProcess, namespace: Namespace
) -> None:
    one_cpu = request("cpus", CPU, capacity={"requests": {"cpus": "1"}})
    wanted = pod("p", {"cpus": {"resourceClaimName": "one"}}, {"a": ["cpus"]})
    limits = {"limits": {"cpu": "100m", "memory": "32Mi"}}
    wanted["spec"]["containers"][0]["resources"] |= limits
    namespace.apply(claim("one", one_cpu), wanted)
    (found,) = namespace.running("p", timeout=60.0)
    (status,) = found["status"]["nodeAllocatableResourceClaimStatuses"]
    assert [(m["name"], m["quantity"]) for m in status["mapping"]] == [("cpu", "1")]
    (device,) = namespace.allocated("one")
    number = device.removeprefix("numa-")
    assert f"DRA_CPUS_NUMA_{number}=1" in namespace.sh("p", "a", "env")
    # 100m of its own and one CPU of the claim, in microseconds per 100 ms: pod and container.
    assert quotas(found["metadata"]["uid"]) == [110_000, 110_000]


@case("PUB-10")
def test_a_device_gives_no_more_than_it_has(namespace: Namespace) -> None:
    """One CPU a NUMA node: the third claim finds nothing, whatever pods ask for otherwise."""
    one_cpu = request("cpus", CPU, capacity={"requests": {"cpus": "1"}})
    names = ("p1", "p2")
    for name in names:
        claimed = {"cpus": {"resourceClaimName": name}}
        namespace.apply(claim(name, one_cpu), pod(name, claimed, {"a": ["cpus"]}))
    # The node's other pods may leave room for one only: what is said then names cpu.
    namespace.running("p1", timeout=60.0)
    namespace.apply(
        claim("p3", one_cpu), pod("p3", {"cpus": {"resourceClaimName": "p3"}}, {"a": ["cpus"]})
    )

    def refused() -> bool:
        conditions = namespace.get("pod", "p3")["status"].get("conditions", [])
        return any(c.get("reason") == "Unschedulable" for c in conditions)

    until("the third pod cannot be scheduled", refused, timeout=60.0)

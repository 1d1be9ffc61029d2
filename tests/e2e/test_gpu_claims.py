"""Claims on a real node: scheduler, kubelet, containerd and runc, and the driver as a process.

The device node of a simulated GPU has no driver behind it in the kernel, so opening it answers
ENXIO where the container may open it and EPERM where it may not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_testing.driver_process import DriverProcess
from dra_testing.pods import Namespace, claim, device_class, pod, request, template
from dra_testing.polling import until
from dra_testing.slices import Watcher, driver_kubeconfig
from testcluster.cluster import Cluster

pytestmark = pytest.mark.node

_numbers = itertools.count(1)
GPUS = 12
ENXIO = "No such device or address"
EPERM = "Operation not permitted"


class GpuNode:
    """The node, and the driver that serves it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.node = cluster.require_node()
        self._folder = folder
        self._kubeconfig = driver_kubeconfig(cluster, self.node.name)
        self.driver = self.start()

    def start(self) -> DriverProcess:
        self.driver = DriverProcess(
            [
                f"--node-name={self.node.name}",
                f"--kubeconfig={self._kubeconfig}",
                f"--kubelet-root={self.node.kubelet_root}",
                f"--cdi-dir={self.node.cdi_dir}",
                f"--option=count={GPUS}",
            ],
            self._folder / f"driver-{next(_numbers)}.log",
        )
        self.driver.wait_for("registered with the kubelet", timeout=30.0)
        return self.driver

    def cdi_files(self) -> list[Path]:
        return sorted(Path(self.node.cdi_dir).iterdir())

    def slices(self) -> dict[str, str]:
        items = self.cluster.kubectl_json("get", "resourceslices")["items"]
        return {i["metadata"]["name"]: i["metadata"]["resourceVersion"] for i in items}


@pytest.fixture(scope="module")
def gpu_node(cluster_node: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuNode]:
    made = GpuNode(cluster_node, tmp_path_factory.mktemp("driver"))
    body = device_class("gpu.example.com", "gpu.example.com")
    cluster_node.api("POST", "/apis/resource.k8s.io/v1/deviceclasses", body)
    until("slices are published", made.slices)
    yield made
    cluster_node.kubectl("delete", "deviceclass", "gpu.example.com")
    made.driver.finish()
    cluster_node.kubectl("delete", "resourceslices", "--all")


@pytest.fixture
def namespace(gpu_node: GpuNode) -> Iterator[Namespace]:
    made = Namespace(gpu_node.cluster, f"claims-{next(_numbers)}")
    yield made
    made.close()
    until("no CDI file is left", lambda: not gpu_node.cdi_files(), timeout=30.0)


def opens(namespace: Namespace, pod_name: str, container: str, device: str) -> str:
    """What the kernel says when the container opens the node of ``device``."""
    index = device.removeprefix("gpu-")
    return namespace.sh(pod_name, container, f"exec 3</dev/sim-gpu{index} && echo opened")


def may_open(answer: str) -> bool:
    return ENXIO in answer or "opened" in answer


def opens_own_node(namespace: Namespace, pod_name: str, container: str, device: str) -> str:
    """The same for a node that the container makes itself."""
    index = device.removeprefix("gpu-")
    script = f"mknod /own-{index} c 120 {index} && exec 3</own-{index} && echo opened"
    return namespace.sh(pod_name, container, script)


def containers(found: dict[str, Any]) -> dict[str, tuple[str, int]]:
    return {
        s["name"]: (s["containerID"], s["restartCount"])
        for s in found["status"]["containerStatuses"]
    }


def test_a_claim_from_a_template_gives_one_container_the_device(
    gpu_node: GpuNode, namespace: Namespace
) -> None:
    namespace.apply(
        template("one-gpu", request("gpu")),
        pod("p", {"gpu": {"resourceClaimTemplateName": "one-gpu"}}, {"with": ["gpu"], "bare": []}),
    )
    (found,) = namespace.running("p")
    claim_name = found["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    (device,) = namespace.allocated(claim_name)
    assert namespace.environment("p", "with") == {f"GPU_DEVICE_{device[4:]}": device}
    assert namespace.environment("p", "bare") == {}

    assert may_open(opens(namespace, "p", "with", device))
    listing = namespace.sh("p", "with", f"ls -l /dev/sim-gpu{device[4:]}")
    assert listing.startswith("crw-rw-rw-")
    assert " 120, " in listing
    assert EPERM in opens_own_node(namespace, "p", "bare", device), "the device is isolated"
    assert "sim-gpu" not in namespace.sh("p", "bare", "ls /dev")

    mounted = f"/run/sim-gpu/{device}.json"
    assert '"uuid": "GPU-' in namespace.sh("p", "with", f"cat {mounted}")
    assert "Read-only file system" in namespace.sh("p", "with", f"echo x > {mounted}")
    assert "No such file" in namespace.sh("p", "bare", f"cat {mounted}")

    assert len(gpu_node.cdi_files()) == 1
    namespace.delete("pod", "p")
    until("the claim is gone", lambda: not namespace.get("resourceclaims")["items"])
    until("its CDI file is gone", lambda: not gpu_node.cdi_files())


def test_two_containers_and_two_pods_share_a_claim(gpu_node: GpuNode, namespace: Namespace) -> None:
    reference = {"gpu": {"resourceClaimName": "shared"}}
    namespace.apply(
        claim("shared", request("gpu")),
        pod("p1", reference, {"a": ["gpu"], "b": ["gpu"]}),
        pod("p2", reference, {"a": ["gpu"]}),
    )
    namespace.running("p1", "p2")
    (device,) = namespace.allocated("shared")
    for pod_name, container in (("p1", "a"), ("p1", "b"), ("p2", "a")):
        assert namespace.environment(pod_name, container) == {f"GPU_DEVICE_{device[4:]}": device}
        assert may_open(opens(namespace, pod_name, container, device))
    assert len(gpu_node.cdi_files()) == 1

    namespace.delete("pod", "p1")
    assert len(gpu_node.cdi_files()) == 1, "the second pod still uses it"
    assert may_open(opens(namespace, "p2", "a", device))
    namespace.delete("pod", "p2")
    until("its CDI file is gone", lambda: not gpu_node.cdi_files())


def test_two_requests_of_a_claim_go_to_the_containers_that_name_them(
    namespace: Namespace,
) -> None:
    namespace.apply(
        claim("two", request("left"), request("right")),
        pod(
            "p",
            {"gpus": {"resourceClaimName": "two"}},
            {
                "left": [{"name": "gpus", "request": "left"}],
                "right": [{"name": "gpus", "request": "right"}],
                "both": ["gpus"],
            },
        ),
    )
    namespace.running("p")
    left, right = namespace.allocated("two")
    assert namespace.environment("p", "left") == {f"GPU_DEVICE_{left[4:]}": left}
    assert namespace.environment("p", "right") == {f"GPU_DEVICE_{right[4:]}": right}
    assert set(namespace.environment("p", "both").values()) == {left, right}
    assert EPERM in opens_own_node(namespace, "p", "left", right)
    assert may_open(opens(namespace, "p", "both", left))


def test_selectors_counts_and_all(namespace: Namespace) -> None:
    expression = "device.attributes['gpu.example.com'].index == 7"
    namespace.apply(
        claim("seventh", request("gpu", selectors=[{"cel": {"expression": expression}}])),
        claim("pair", request("gpu", count=2)),
        pod("seventh", {"gpu": {"resourceClaimName": "seventh"}}, {"a": ["gpu"]}),
        pod("pair", {"gpu": {"resourceClaimName": "pair"}}, {"a": ["gpu"]}),
    )
    namespace.running("seventh", "pair")
    assert namespace.environment("seventh", "a") == {"GPU_DEVICE_7": "gpu-7"}
    pair = namespace.allocated("pair")
    assert len(set(pair)) == 2
    assert "gpu-7" not in pair
    assert namespace.environment("pair", "a") == {f"GPU_DEVICE_{d[4:]}": d for d in pair}
    namespace.delete("pod", "seventh", "pair")
    namespace.delete("resourceclaim", "seventh", "pair")

    namespace.apply(
        claim("all", request("gpus", allocationMode="All")),
        pod("all", {"gpu": {"resourceClaimName": "all"}}, {"a": ["gpu"]}),
    )
    namespace.running("all")
    everything = {f"GPU_DEVICE_{i}": f"gpu-{i}" for i in range(GPUS)}
    assert namespace.environment("all", "a") == everything
    assert all(may_open(opens(namespace, "all", "a", f"gpu-{i}")) for i in (0, GPUS - 1))


def test_the_kubelet_restarts_and_the_pod_keeps_its_device(
    gpu_node: GpuNode, namespace: Namespace
) -> None:
    namespace.apply(
        claim("kept", request("gpu")),
        pod("p", {"gpu": {"resourceClaimName": "kept"}}, {"a": ["gpu"]}),
    )
    (before,) = namespace.running("p")
    (device,) = namespace.allocated("kept")
    registrations = len(gpu_node.driver.events("registered with the kubelet"))
    slices = gpu_node.slices()

    gpu_node.node.restart_kubelet()

    gpu_node.driver.wait_for("registered with the kubelet", registrations + 1, timeout=30.0)
    until("slices are back after the kubelet's wipe", lambda: set(gpu_node.slices()) == set(slices))
    (after,) = namespace.running("p")
    assert containers(after) == containers(before)
    assert may_open(opens(namespace, "p", "a", device))
    # A second pod of the claim is prepared anew by a kubelet that remembers nothing.
    namespace.apply(pod("p2", {"gpu": {"resourceClaimName": "kept"}}, {"a": ["gpu"]}))
    namespace.running("p2")
    assert may_open(opens(namespace, "p2", "a", device))


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_driver_restarts_and_nothing_else_notices(
    gpu_node: GpuNode, namespace: Namespace, end: str
) -> None:
    namespace.apply(
        claim("kept", request("gpu")),
        pod("p", {"gpu": {"resourceClaimName": "kept"}}, {"a": ["gpu"]}),
    )
    (before,) = namespace.running("p")
    (device,) = namespace.allocated("kept")
    slices, files = gpu_node.slices(), gpu_node.cdi_files()
    modified = [file.stat().st_mtime_ns for file in files]

    getattr(gpu_node.driver, end)()
    gpu_node.start()

    (after,) = namespace.running("p")
    assert containers(after) == containers(before)
    assert may_open(opens(namespace, "p", "a", device))
    namespace.apply(pod("p2", {"gpu": {"resourceClaimName": "kept"}}, {"a": ["gpu"]}))
    namespace.running("p2")
    assert gpu_node.slices() == slices
    assert [file.stat().st_mtime_ns for file in files] == modified
    namespace.delete("pod", "p", "p2")
    until("the new driver unprepares what the old one prepared", lambda: not gpu_node.cdi_files())


def test_slices_deleted_by_hand_are_back_within_5_seconds(gpu_node: GpuNode) -> None:
    watcher = Watcher(gpu_node.cluster, gpu_node.node.name)
    expected = watcher.now.devices
    assert expected is not None
    gpu_node.cluster.kubectl("delete", "resourceslices", "--all")
    until("the deletion is seen", lambda: any(m.devices is None for m in watcher.moments))
    watcher.wait_for(expected, timeout=5.0)
    watcher.stop()


def test_a_device_that_is_gone_is_explained_to_the_pods_owner(
    gpu_node: GpuNode, namespace: Namespace
) -> None:
    """The allocation names a device that the driver does not have: an event says so."""
    namespace.apply(claim("stale", request("gpu")))
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace.name}/resourceclaims/stale"
    stale = gpu_node.cluster.api("GET", path)
    result = {
        "request": "gpu",
        "driver": "gpu.example.com",
        "pool": gpu_node.node.name,
        "device": "gpu-99",
    }
    fields = [{"key": "metadata.name", "operator": "In", "values": [gpu_node.node.name]}]
    stale["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    stale = gpu_node.cluster.api("PUT", path, stale)
    stale["status"] = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
        }
    }
    gpu_node.cluster.api("PUT", f"{path}/status", stale)
    body = pod("p", {"gpu": {"resourceClaimName": "stale"}}, {"a": ["gpu"]})
    body["spec"]["nodeName"] = gpu_node.node.name  # past the scheduler, as a static choice would
    namespace.apply(body)

    def explained() -> bool:
        events = [f"{e['reason']}: {e['message']}" for e in namespace.get("events")["items"]]
        failures = [e for e in events if e.startswith("FailedPrepareDynamicResources")]
        assert any("gpu-99" in e for e in failures), events
        return True

    # The claim has to be reserved first, and a pod that failed is tried again after up to 15 s.
    until("an event names the device", explained, timeout=60.0)

"""Real clusters come up whole, listen to nobody else, and go without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testcluster import cgroups, network, paths, processes, record, start, teardown
from testcluster.cluster import Cluster
from testcluster.deadline import wait_until
from testcluster.errors import ApiError, ClusterError
from testcluster.fixtures import Factory, unique_name
from testcluster.progress import Progress

SOURCE = Path(start.__file__).resolve().parent.parent


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "testcluster", *words]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE)}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), env=environment(), capture_output=True, text=True, check=False
    )


def traces(name: str) -> list[str]:
    """Whatever is left of a cluster on this machine."""
    folder = paths.run_folder(name)
    found = [f"process {identity.pid}" for identity in processes.marked(folder)]
    found += [f"process {identity.pid} in a cgroup" for identity in cgroups.processes(name)]
    found += [f"mount {point}" for point in teardown.mounts_below(folder)]
    found += [str(p) for p in Path("/sys/fs/cgroup").glob(f"*{cgroups.root_name(name)}")]
    found += network.node_traces(name)
    found += [str(folder)] if folder.exists() else []
    return found


def listeners(cluster: Cluster) -> set[str]:
    """The addresses on which processes of the cluster listen (TCP, v4 and v6)."""
    found: set[str] = set()
    for identity in processes.marked(cluster.run):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            found |= _listens(Path(f"/proc/{identity.pid}"))
    return found


def _listens(process: Path) -> set[str]:
    inodes = set()
    for descriptor in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    found = set()
    # Of the process: one on the node has a network namespace of its own.
    for table in ("tcp", "tcp6"):
        for line in (process / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(_address(fields[1].split(":")[0]))
    return found


def _address(text: str) -> str:
    """An address of /proc/net/tcp: words of four bytes in the machine's order."""
    words = [bytes.fromhex(text[n : n + 8])[::-1] for n in range(0, len(text), 8)]
    if len(words) > 1:
        return b"".join(words).hex()
    return ".".join(str(byte) for byte in words[0])


@pytest.fixture
def name() -> Iterator[str]:
    chosen = unique_name("l")
    yield chosen
    start.down(chosen, Progress())
    assert traces(chosen) == []


@pytest.mark.control_plane
def test_the_server_is_the_version_asked_for(
    control_plane: Cluster, control_plane_136: Cluster
) -> None:
    assert control_plane.api("GET", "/version")["gitVersion"] == "v1.37.2"
    assert control_plane_136.api("GET", "/version")["gitVersion"] == "v1.36.3"
    client = control_plane.kubectl_json("version")["clientVersion"]
    assert client["gitVersion"] == "v1.37.2"


OLD_SHAPE = {
    "nodeAllocatableResourceMappings": {
        "memory": {"capacityKey": "memory", "allocationMultiplier": "1"}
    }
}
NEW_SHAPE = {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "2"}}}}


def _kept(cluster: Cluster, shape: dict[str, Any]) -> set[str]:
    """Which fields of ``shape`` are still in the device after a dry run of creating a slice."""
    device = {"name": "d", "capacity": {"memory": {"value": "1Gi"}}, **shape}
    content = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n-x"},
        "spec": {
            "driver": "x.example.com",
            "nodeName": "by-hand",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }
    path = "/apis/resource.k8s.io/v1/resourceslices?dryRun=All"
    return set(cluster.api("POST", path, content)["spec"]["devices"][0]) & set(shape)


@contextlib.contextmanager
def node_by_hand(cluster: Cluster) -> Iterator[str]:
    """A Node object without a machine.

    A server accepts node-allocatable resources in a slice only if the node's kubelet declares the
    feature.
    """
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "by-hand"}}
    features = {"status": {"declaredFeatures": ["DRANodeAllocatableResources"]}}
    cluster.api("POST", "/api/v1/nodes", node)
    try:
        cluster.api("PATCH", "/api/v1/nodes/by-hand/status", features)
        yield "by-hand"
    finally:
        cluster.api("DELETE", "/api/v1/nodes/by-hand")


@pytest.mark.control_plane
def test_each_version_serves_its_own_shape(
    control_plane: Cluster, control_plane_136: Cluster
) -> None:
    with node_by_hand(control_plane), node_by_hand(control_plane_136):
        assert _kept(control_plane_136, OLD_SHAPE) == set(OLD_SHAPE)
        assert _kept(control_plane_136, NEW_SHAPE) == set()
        assert _kept(control_plane, OLD_SHAPE) == set()
        assert _kept(control_plane, NEW_SHAPE) == set(NEW_SHAPE)


@pytest.mark.control_plane
def test_two_control_planes_run_beside_each_other(
    control_plane: Cluster, make_control_plane: Factory
) -> None:
    other = make_control_plane(gates="none", without=("kube-scheduler", "kube-controller-manager"))

    assert other.url != control_plane.url
    assert set(other.components()) == {"etcd", "kube-apiserver"}
    other.api(
        "POST",
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "only-here"}},
    )
    assert "only-here" not in control_plane.kubectl("get", "namespaces")
    for cluster in (control_plane, other):
        assert listeners(cluster) == {network.LOOPBACK}
    with node_by_hand(other):
        assert _kept(other, NEW_SHAPE) == set(), "its gate is off by default"


@pytest.mark.control_plane
def test_a_user_has_the_rights_of_its_roles_only(control_plane: Cluster) -> None:
    nobody = control_plane.kubeconfig_for("jane/doe", groups=("team=a",))

    said = control_plane.kubectl("get", "pods", kubeconfig=nobody, check=False)
    assert 'User "jane/doe" cannot list' in said
    review = json.loads(control_plane.kubectl("auth", "whoami", "-o", "json", kubeconfig=nobody))
    assert "team=a" in review["status"]["userInfo"]["groups"]
    assert nobody.stat().st_mode & 0o077 == 0


@pytest.mark.control_plane
def test_a_service_account_can_be_bound_to_a_node(control_plane: Cluster) -> None:
    control_plane.kubectl("create", "serviceaccount", "plugin")
    with node_by_hand(control_plane) as node:
        bound = control_plane.service_account_kubeconfig("default", "plugin", node=node)
        who = control_plane.kubectl("auth", "whoami", "-o", "json", kubeconfig=bound)

    user = json.loads(who)["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:plugin"
    assert user["extra"]["authentication.kubernetes.io/node-name"] == [node]


@pytest.mark.control_plane
def test_an_error_of_the_server_is_told(control_plane: Cluster) -> None:
    with pytest.raises(ApiError, match="HTTP 404") as caught:
        control_plane.api("GET", "/api/v1/namespaces/nowhere")
    assert caught.value.reason == "NotFound"
    with pytest.raises(ClusterError, match="NotFound"):
        control_plane.kubectl("get", "namespace", "nowhere")


@pytest.mark.control_plane
@pytest.mark.parametrize("moment", ["etcd", "kube-apiserver", "kube-scheduler"])
def test_an_interrupted_start_leaves_nothing(name: str, moment: str) -> None:
    _interrupt(name, moment, "up", "--name", name)


@pytest.mark.node
@pytest.mark.parametrize("moment", ["containerd", "kubelet"])
def test_an_interrupted_start_of_a_node_leaves_nothing(name: str, moment: str) -> None:
    _interrupt(name, moment, "up", "--name", name, "--node")


def _interrupt(name: str, moment: str, *words: str) -> None:
    process = subprocess.Popen(
        command(*words), env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    _wait_for_component(name, moment)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)

    assert process.returncode == 128 + signal.SIGTERM, said.decode()
    assert b"interrupted by SIGTERM" in said
    assert traces(name) == []


def _wait_for_component(name: str, component: str) -> None:
    pid_file = record.Layout(paths.run_folder(name)).pid_file(component)
    wait_until(pid_file.exists, seconds=60, what=f"{component} is started", pause=0.02)


@pytest.mark.control_plane
def test_a_start_over_ruins_works_and_down_clears_a_crash(name: str) -> None:
    process = subprocess.Popen(
        command("up", "--name", name), env=environment(), stderr=subprocess.DEVNULL
    )
    _wait_for_component(name, "kube-apiserver")
    process.kill()
    process.wait()
    assert run("status", "--name", name).returncode == 1

    up = run("up", "--name", name)
    assert up.returncode == 0, up.stderr
    assert "clearing what an earlier run left" in up.stderr
    told = run("status", "--name", name, "-o", "json")
    assert told.returncode == 0
    (cluster,) = json.loads(told.stdout)["clusters"]
    assert cluster["state"] == "ready"
    assert f"export KUBECONFIG={cluster['kubeconfig']}" in up.stdout

    victims = [processes.of_pid(one["pid"]) for one in cluster["components"].values()]
    processes.stop([victim for victim in victims if victim], grace=0)
    assert run("status", "--name", name).returncode == 1
    assert run("down", "--name", name).returncode == 0
    assert traces(name) == []
    assert run("down", "--name", name).returncode == 0


@pytest.mark.control_plane
def test_a_cluster_goes_with_a_killed_owner(name: str) -> None:
    script = (
        "import os, signal, sys\n"
        "from testcluster import start\n"
        "from testcluster.progress import Progress\n"
        "from testcluster.record import Options\n"
        "left_out = ('kube-scheduler', 'kube-controller-manager')\n"
        "options = Options(sys.argv[1], without=left_out)\n"
        "start.up(options, Progress(), owner=os.getpid())\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, name], env=environment(), capture_output=True, check=False
    )

    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    wait_until(
        lambda: not traces(name),
        seconds=20,
        what=lambda: f"the watching process removed {traces(name)}",
    )


@pytest.mark.control_plane
def test_a_component_that_fails_is_told_with_its_log(name: str) -> None:
    options = record.Options(name, flags={"kube-apiserver": ("--no-such-flag",)})

    with pytest.raises(ClusterError, match=r"(?s)kube-apiserver ended early.*no-such-flag"):
        start.up(options, Progress())
    assert traces(name) == []


def _pod(name: str, script: str, **spec: Any) -> dict[str, Any]:
    mounts = [{"name": volume["name"], "mountPath": "/programs"} for volume in spec["volumes"]]
    container = {
        "name": "shell",
        "image": "localhost/busybox:1",
        "command": ["sh", "-c", script],
        "volumeMounts": mounts,
    }
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.mark.node
def test_a_pod_runs_and_outlives_the_kubelet(cluster_node: Cluster) -> None:
    node = cluster_node.require_node()
    pod = _pod("lifecycle", "echo begun; exec sleep 600", volumes=[])
    cluster_node.api("POST", "/api/v1/namespaces/default/pods", pod)
    cluster_node.kubectl("wait", "--for=condition=Ready", "pod/lifecycle", "--timeout=60s")

    node.restart_kubelet()

    assert cluster_node.kubectl("logs", "lifecycle") == "begun\n"
    assert "sleep" in cluster_node.kubectl("exec", "lifecycle", "--", "ps")
    containers = json.loads(node.crictl("ps", "-o", "json"))["containers"]
    assert [one["metadata"]["attempt"] for one in containers] == [0]
    assert "sleep" in node.crictl("exec", containers[0]["id"], "ps")
    cluster_node.kubectl("delete", "pod", "lifecycle", "--timeout=60s")


@pytest.mark.node
def test_a_pod_reaches_the_api_server_as_its_service_account(cluster_node: Cluster) -> None:
    programs = str(Path(cluster_node.record.program("kubectl")).parent)
    volume = {"name": "programs", "hostPath": {"path": programs}}
    pod = _pod(
        "client",
        "HOME=/tmp /programs/kubectl auth whoami",
        volumes=[volume],
        restartPolicy="Never",
    )
    cluster_node.api("POST", "/api/v1/namespaces/default/pods", pod)
    done = "--for=jsonpath={.status.phase}=Succeeded"
    cluster_node.kubectl("wait", done, "pod/client", "--timeout=60s")

    said = cluster_node.kubectl("logs", "client")
    assert "system:serviceaccount:default:default" in said
    assert f"[{cluster_node.require_node().name}]" in said
    cluster_node.kubectl("delete", "pod", "client", "--timeout=60s")


@pytest.mark.node
def test_a_crash_with_a_running_pod_is_cleared(name: str) -> None:
    cluster = start.up(record.Options(name, node=True, without=("kube-proxy",)), Progress())
    pod = _pod("left", "exec sleep 600", volumes=[])
    cluster.api("POST", "/api/v1/namespaces/default/pods", pod)
    cluster.kubectl("wait", "--for=condition=Ready", "pod/left", "--timeout=60s")

    processes.stop(processes.marked(cluster.run), grace=0)
    assert cgroups.processes(name), "the pod's processes live on"
    assert teardown.mounts_below(cluster.run)
    start.down(name, Progress())

    assert traces(name) == []
    targets = []
    for link in Path("/var/log/containers").glob("*"):
        with contextlib.suppress(OSError):  # of another cluster, gone meanwhile
            targets.append(link.readlink())
    assert not [target for target in targets if target.is_relative_to(cluster.run)]


@pytest.mark.node
def test_a_node_listens_on_loopback_and_our_own_link_only(cluster_node: Cluster) -> None:
    node = cluster_node.require_node()
    ours = {network.LOOPBACK, cluster_node.record.address, node.address}

    assert listeners(cluster_node) == ours
    assert len(network.node_traces(cluster_node.name)) == 2
    assert all(cluster_node.components().values())

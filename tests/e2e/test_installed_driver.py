"""The driver as it is shipped: image, DaemonSet, service account, rights, admission policy.

On a node of its own, so that nothing of other tests is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_testing.cases import case
from dra_testing.pods import Namespace, claim, pod, request
from dra_testing.polling import until
from dra_testing.slices import Watcher
from testcluster import installation
from testcluster.cluster import Cluster
from testcluster.driver_image import ensure_driver_image

pytestmark = pytest.mark.node

GPUS = tuple(f"gpu-{i}" for i in range(8))


class Installed:
    """The installation and what it looks like from outside."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.node = cluster.require_node()

    def driver_pods(self) -> list[dict[str, Any]]:
        """Driver pods that are not on their way out."""
        found = self.cluster.kubectl_json("-n", installation.NAMESPACE, "get", "pods")["items"]
        return [p for p in found if "deletionTimestamp" not in p["metadata"]]

    def ready_pod(self) -> str:
        """UID of the one driver pod, once it is ready."""

        def probe() -> str:
            (found,) = self.driver_pods()
            (status,) = found["status"]["containerStatuses"]
            assert status["ready"], status
            uid: str = found["metadata"]["uid"]
            return uid

        return until("one driver pod is ready", probe, timeout=60.0)

    def logs(self) -> str:
        return self.cluster.kubectl(
            "-n", installation.NAMESPACE, "logs", f"ds/{installation.DAEMONSET}"
        )

    def cdi_files(self) -> list[Path]:
        return sorted(Path(self.node.cdi_dir).iterdir())

    def sockets(self) -> list[str]:
        root = Path(self.node.kubelet_root)
        return sorted(p.name for p in root.glob("plugins*/**/*") if p.is_socket())

    def slices(self) -> dict[str, str]:
        items = self.cluster.kubectl_json("get", "resourceslices")["items"]
        return {i["metadata"]["name"]: i["metadata"]["uid"] for i in items}


@pytest.fixture(scope="module")
def installed(cluster_node: Cluster) -> Iterator[Installed]:
    made = Installed(cluster_node)
    made.node.import_image(ensure_driver_image())
    installation.apply(cluster_node)
    installation.wait_ready(cluster_node)
    yield made
    installation.delete(cluster_node)
    cluster_node.kubectl("delete", "resourceslices", "--all")  # the last test has seen them go


@pytest.fixture
def namespace(installed: Installed, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    made = Namespace(installed.cluster, f"installed-{abs(hash(request.node.name)) % 10**6}")
    yield made
    made.close()
    until("no CDI file is left", lambda: not installed.cdi_files(), timeout=60.0)


def consumer(namespace: Namespace, name: str = "user") -> dict[str, Any]:
    """A running pod with a claim of the same name."""
    namespace.apply(
        claim(name, request("gpu")),
        pod(name, {"gpu": {"resourceClaimName": name}}, {"a": ["gpu"]}),
    )
    (found,) = namespace.running(name, timeout=60.0)
    return found


def untouched(namespace: Namespace, before: dict[str, Any]) -> bool:
    """Same container, never restarted, device still there."""
    name = before["metadata"]["name"]
    now = namespace.get("pod", name)
    (old,), (new,) = before["status"]["containerStatuses"], now["status"]["containerStatuses"]
    same = (old["containerID"], 0) == (new["containerID"], new["restartCount"])
    return same and bool(namespace.environment(name, "a"))


@pytest.mark.parametrize("name", ["two-pods", "shared-claim", "selector"])
def test_examples_print_what_their_readme_says(installed: Installed, name: str) -> None:
    cluster = installed.cluster
    readme = (installation.MANIFESTS / "examples" / name / "README.md").read_text()
    expected = re.search(r"```output\n(.+?)```", readme, re.DOTALL)
    assert expected is not None
    commands = re.findall(r"^    kubectl (logs .+)$", readme, re.MULTILINE)
    folder = str(installation.example(cluster, name))
    cluster.kubectl("apply", "-k", folder)
    try:
        cluster.kubectl("wait", "--for=condition=Ready", "pods", "--all", "--timeout=60s")
        printed = [cluster.kubectl(*command.split()) for command in commands]
        # Which GPU a pod gets is the scheduler's choice, unless the example selects it.
        free = (lambda text: text) if name == "selector" else _without_numbers
        assert free("".join(printed)) == free(expected[1])
    finally:
        cluster.kubectl("delete", "-k", folder, "--wait=true")
    until("claims are gone", lambda: not cluster.kubectl_json("get", "resourceclaims")["items"])


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "N", text)


def test_it_runs_with_its_own_rights_and_is_ready(installed: Installed) -> None:
    installed.ready_pod()
    (found,) = installed.driver_pods()
    assert found["spec"]["serviceAccountName"] == "dragoman-driver"
    log = installed.logs()
    assert "forbidden" not in log
    events = {json.loads(line)["event"] for line in log.splitlines()}
    assert {"serving", "pool published", "registered with the kubelet"} <= events


@case("REG-02")
def test_a_rollout_disturbs_nobody(installed: Installed, namespace: Namespace) -> None:
    """The new instance serves beside the old one; slices keep their UIDs; claims go on."""
    before = consumer(namespace)
    old = installed.ready_pod()
    slices = installed.slices()
    watcher = Watcher(installed.cluster, installed.node.name)
    restart = ("-n", installation.NAMESPACE, "rollout", "restart", "daemonset/dragoman-driver")
    installed.cluster.kubectl(*restart)
    installation.wait_ready(installed.cluster)
    assert installed.ready_pod() != old
    assert untouched(namespace, before)
    assert installed.slices() == slices
    assert all(m.devices == GPUS for m in watcher.moments), "the pool was complete all the time"
    watcher.stop()
    until("only the new instance's sockets are there", lambda: len(installed.sockets()) == 2)
    assert not any(old in name for name in installed.sockets())
    # The new instance prepares and unprepares, also what the old one prepared.
    consumer(namespace, "second")
    namespace.delete("pod", "user", "second")
    until("no CDI file is left", lambda: not installed.cdi_files(), timeout=60.0)


def test_the_driver_pod_is_killed_and_comes_back(
    installed: Installed, namespace: Namespace
) -> None:
    before = consumer(namespace)
    old = installed.ready_pod()
    slices = installed.slices()
    kill = ("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=true")
    installed.cluster.kubectl("-n", installation.NAMESPACE, *kill)
    until("a new driver pod is ready", lambda: installed.ready_pod() != old, timeout=60.0)
    assert untouched(namespace, before)
    assert installed.slices() == slices
    consumer(namespace, "second")


def test_the_kubelet_restarts_under_the_driver(installed: Installed, namespace: Namespace) -> None:
    before = consumer(namespace)
    installed.node.restart_kubelet()
    until("slices are back after the kubelet's wipe", installed.slices, timeout=60.0)
    assert untouched(namespace, before)
    consumer(namespace, "second")
    assert untouched(namespace, before)


def test_uninstalled_with_a_claim_in_use_and_installed_again(
    installed: Installed, namespace: Namespace
) -> None:
    """The pod runs on without its driver, cannot end, and ends when the driver is back."""
    before = consumer(namespace)
    installation.delete(installed.cluster)
    assert untouched(namespace, before)
    assert installed.sockets() == []
    assert len(installed.cdi_files()) == 1, "a container of the pod may have to start again"
    namespace.cluster.kubectl("-n", namespace.name, "delete", "pod", "user", "--wait=false")
    until(
        "the pod's container has ended",
        lambda: (
            "terminated" in namespace.get("pod", "user")["status"]["containerStatuses"][0]["state"]
        ),
        timeout=60.0,
    )
    assert namespace.get("pod", "user")["metadata"]["deletionTimestamp"]

    installation.apply(installed.cluster)
    installation.wait_ready(installed.cluster)
    until("the pod is gone", lambda: not namespace.get("pods")["items"], timeout=120.0)
    until("its CDI file is gone", lambda: not installed.cdi_files())
    consumer(namespace, "second")


def test_uninstalled_without_claims_it_leaves_nothing(installed: Installed) -> None:
    installation.delete(installed.cluster)
    until("the kubelet has removed the slices", lambda: not installed.slices(), timeout=60.0)
    assert installed.sockets() == []
    assert installed.cdi_files() == []
    locks = list(Path(installed.node.kubelet_root).glob("plugins/**/*.lock"))
    assert locks == []
    running = json.loads(installed.node.crictl("ps", "-o", "json"))["containers"]
    assert running == []

"""A real node: a pod waits, its device is attached, the pod runs with it, ends, and it is detached.

The driver confirms from the node that it has found the device, with the rights of its service
account; the operator attaches with those of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_testing import binding_stand, operator_stand
from dra_testing.binding_stand import FabricProcess
from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess
from dra_testing.operator_stand import GROUP, Operator
from dra_testing.pods import Namespace, device_class, pod, request, template
from dra_testing.polling import until
from dra_testing.slices import driver_kubeconfig
from testcluster.cluster import Cluster

pytestmark = pytest.mark.node

DRIVER = "fabric.example.com"
_COMPONENTS = operator_stand.MANIFESTS.parent


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[FabricProcess]:
    with binding_stand.fabric(tmp_path / "fabric.log", "--latency=1", "--devices=3") as made:
        yield made


@pytest.fixture
def driver(cluster_node: Cluster, fabric: FabricProcess, tmp_path: Path) -> Iterator[DriverProcess]:
    node = cluster_node.require_node()
    credentials = driver_kubeconfig(cluster_node, node.name)
    rights = _COMPONENTS / "driver-conditions" / "rbac.yaml"
    cluster_node.kubectl("apply", "-f", str(rights))
    cluster_node.api("POST", f"{GROUP}/deviceclasses", device_class(DRIVER, DRIVER))
    made = DriverProcess(
        [
            "--profile=fabric",
            f"--node-name={node.name}",
            f"--kubeconfig={credentials}",
            f"--kubelet-root={node.kubelet_root}",
            f"--cdi-dir={node.cdi_dir}",
            *(f"--option=url={fabric.url}", "--option=publish=yes"),
            *("--option=confirm=yes", "--option=local=1"),
        ],
        tmp_path / "driver.log",
    )
    made.wait_for("registered with the kubelet", timeout=30.0)
    yield made
    made.finish()
    cluster_node.kubectl("delete", "deviceclass", DRIVER)
    cluster_node.kubectl("delete", "-f", str(rights))
    cluster_node.kubectl("delete", "resourceslices", "--all")


@pytest.fixture
def operator(cluster_node: Cluster, fabric: FabricProcess, tmp_path: Path) -> Iterator[Operator]:
    files = ["operator/namespace.yaml", "operator/rbac.yaml", "operator/admission.yaml"]
    files.append("operator-attaching/rbac.yaml")
    for file in files:
        cluster_node.kubectl("apply", "-f", str(_COMPONENTS / file))
    log = tmp_path / "operator.log"
    with binding_stand.operator(cluster_node, log, {DRIVER: fabric}) as made:
        made.ready()
        yield made
    for file in reversed(files):
        cluster_node.kubectl("delete", "-f", str(_COMPONENTS / file))


@pytest.fixture
def namespace(cluster_node: Cluster) -> Iterator[Namespace]:
    made = Namespace(cluster_node, "fabric-claims")
    yield made
    made.close()


def pools(cluster: Cluster) -> dict[str, list[str]]:
    """Names of devices by pool."""
    found: dict[str, list[str]] = {}
    for item in cluster.api("GET", f"{GROUP}/resourceslices")["items"]:
        spec: dict[str, Any] = item["spec"]
        if spec["driver"] == DRIVER:
            names = [device["name"] for device in spec.get("devices") or []]
            found.setdefault(spec["pool"]["name"], []).extend(names)
    return found


@case("BIND-01")
@case("BIND-03")
def test_a_pod_waits_gets_its_device_runs_and_gives_it_back(
    cluster_node: Cluster,
    fabric: FabricProcess,
    driver: DriverProcess,
    operator: Operator,
    namespace: Namespace,
) -> None:
    node = cluster_node.require_node().name
    offer = {node: ["local-0"], "fabric": ["fab-0", "fab-1", "fab-2"]}
    until("the pools are published", lambda: pools(cluster_node) == offer)
    model = f"device.attributes['{DRIVER}'].model"
    wanted = {"cel": {"expression": f"has({model}) && {model} == 'SIM-FABRIC'"}}
    ask = request("dev", DRIVER, selectors=[wanted])
    namespace.apply(
        template("one", ask),
        pod("p", {"dev": {"resourceClaimTemplateName": "one"}}, {"c": ["dev"]}),
    )
    (found,) = namespace.running("p", timeout=60.0)
    name = found["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    (device,) = namespace.allocated(name)
    assert fabric.attached() == {device: name}
    index = device.removeprefix("fab-")
    assert f"FABRIC_DEVICE_{index}={device}" in namespace.sh("p", "c", "env")
    status = namespace.get("resourceclaim", name)["status"]
    (entry,) = status["devices"]
    said = {c["type"]: (c["status"], c["reason"]) for c in entry["conditions"]}
    assert said == {
        f"{DRIVER}/Attached": ("True", "Attached"),
        f"{DRIVER}/NodeReady": ("True", "DeviceFound"),
    }
    assert pools(cluster_node) == offer, "an attached device is not offered by the node as well"
    driver.wait_for("condition set")
    namespace.delete("pod", "p")
    until("the device is detached", lambda: not fabric.attachments(), timeout=40.0)
    assert pools(cluster_node) == offer

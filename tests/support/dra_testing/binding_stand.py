"""A fabric manager and the operator as processes, and a cluster whose scheduler binds pods to nodes
without kubelets."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dra_fabric.client import Attachment, Client
from dra_testing import operator_stand
from dra_testing.driver_process import DriverProcess
from dra_testing.operator_stand import GROUP, Operator
from dra_testing.polling import until
from testcluster.cluster import Cluster
from testcluster.errors import ApiError

DRIVER, OTHER = "fabric.example.com", "other.example.com"
READY, FAILED = "fabric.example.com/Attached", "fabric.example.com/AttachFailed"
NODES = ("node-a", "node-b")
#: Seconds of the scheduler's bindingTimeout, and of our deadline.
TIMEOUT, DEADLINE = 30, 20
_COMPONENT = operator_stand.MANIFESTS.parent / "operator-attaching"
_numbers = itertools.count(1)


def install(cluster: Cluster) -> None:
    """Rights, nodes that are ready for ever, and a scheduler that waits less long."""
    operator_stand.install(cluster)
    cluster.kubectl("apply", "-f", str(_COMPONENT / "rbac.yaml"))
    for name in NODES:
        _node(cluster, name)
    for driver in (DRIVER, OTHER):
        selector = {"cel": {"expression": f"device.driver == '{driver}'"}}
        body = {"metadata": {"name": driver}, "spec": {"selectors": [selector]}}
        cluster.api("POST", f"{GROUP}/deviceclasses", body)
    _scheduler(cluster)


def _node(cluster: Cluster, name: str) -> None:
    labels = {"kubernetes.io/hostname": name}
    cluster.api("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    cluster.api("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    room = {"pods": "500", "cpu": "64", "memory": "64Gi"}
    ready = {"type": "Ready", "status": "True", "reason": "Test"}
    status = {"capacity": room, "allocatable": room, "conditions": [ready]}
    cluster.api("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})


def _scheduler(cluster: Cluster) -> None:
    file = cluster.layout.config / "kube-scheduler.json"
    content = json.loads(file.read_text())
    arguments = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "DynamicResourcesArgs",
        "bindingTimeout": f"{TIMEOUT}s",
    }
    plugin = {"name": "DynamicResources", "args": arguments}
    content["profiles"] = [{"schedulerName": "default-scheduler", "pluginConfig": [plugin]}]
    file.write_text(json.dumps(content))
    cluster.stop_component("kube-scheduler")
    cluster.start_component("kube-scheduler")


class FabricProcess:
    """A running fabric manager."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self.process = DriverProcess(
            ["--listen=127.0.0.1:0", *arguments],
            log,
            program=(sys.executable, "-m", "dra_fabric"),
        )
        (line,) = until("the fabric listens", lambda: self.process.records()[:1])
        self.url = f"http://{line['event'].removeprefix('listening on ')}"
        self.client = Client(self.url)

    def attachments(self) -> list[Attachment]:
        return self.client.attachments(10.0)

    def attached(self) -> dict[str, str]:
        """Claim names by device, of what is attached completely."""
        return {i.device: i.tag["name"] for i in self.attachments() if i.state == "attached"}


@contextlib.contextmanager
def fabric(log: Path, *arguments: str) -> Iterator[FabricProcess]:
    """A fabric manager for the length of a ``with`` block."""
    made = FabricProcess(log, *arguments)
    try:
        yield made
    finally:
        made.process.finish()


@contextlib.contextmanager
def operator(
    cluster: Cluster, log: Path, fabrics: dict[str, FabricProcess], *arguments: str
) -> Iterator[Operator]:
    """The operator with an attacher for each driver."""
    flags = [f"--attach-deadline={DEADLINE}"]
    for driver, made in fabrics.items():
        flags.append(f"--attacher={driver}=fabric")
        flags.append(f"--attacher-option={driver}:url={made.url}")
    with operator_stand.running(cluster, log, *flags, *arguments) as running:
        yield running


class Stand:
    """Pods, claims and devices of one test, in a namespace of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.name = f"bind-{next(_numbers)}"
        cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": self.name}})
        path = f"/api/v1/namespaces/{self.name}/serviceaccounts/default"
        until("the service account is there", lambda: _found(cluster, path))
        self._pods = f"/api/v1/namespaces/{self.name}/pods"
        self._claims = f"{GROUP}/namespaces/{self.name}/resourceclaims"

    def slice(self, count: int, driver: str = DRIVER, *more: str) -> None:
        """The pool of a fabric, with this many devices; replaces the one before."""
        name = f"pool-{driver}"
        devices = [
            {
                "name": f"fab-{index}",
                "bindsToNode": True,
                "bindingConditions": [READY, *more],
                "bindingFailureConditions": [FAILED],
            }
            for index in range(count)
        ]
        pool = {"name": "fabric", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "pool": pool, "allNodes": True, "devices": devices}
        with contextlib.suppress(ApiError):
            self.cluster.api("DELETE", f"{GROUP}/resourceslices/{name}")
        body = {"metadata": {"name": name}, "spec": spec}
        self.cluster.api("POST", f"{GROUP}/resourceslices", body)

    def pod(self, name: str, *drivers: str, node: str = "") -> None:
        """A pod, and a claim of the same name with a device of each driver."""
        requests = [
            {"name": f"r{i}", "exactly": {"deviceClassName": driver}}
            for i, driver in enumerate(drivers or (DRIVER,))
        ]
        claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        self.cluster.api("POST", self._claims, claim)
        self.pod_of(name, name, node)

    def pod_of(self, name: str, claim: str, node: str = "") -> None:
        """A pod that uses a claim that is there."""
        container = {"name": "c", "image": "none", "resources": {"claims": [{"name": "x"}]}}
        spec: dict[str, Any] = {
            "automountServiceAccountToken": False,
            "containers": [container],
            "resourceClaims": [{"name": "x", "resourceClaimName": claim}],
        }
        if node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        self.cluster.api("POST", self._pods, {"metadata": {"name": name}, "spec": spec})

    def bound(self, pod: str) -> str:
        """The node of a pod, empty while it waits."""
        found = self.cluster.api("GET", f"{self._pods}/{pod}")
        return str(found["spec"].get("nodeName") or "")

    def end(self, pod: str) -> None:
        """The pod goes at once: there is no kubelet."""
        options = {"gracePeriodSeconds": 0}
        self.cluster.api("DELETE", f"{self._pods}/{pod}", options)

    def claim(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.api("GET", f"{self._claims}/{name}")
        return found

    def drop_claim(self, name: str) -> None:
        self.cluster.api("DELETE", f"{self._claims}/{name}")

    def devices(self, name: str) -> list[str]:
        """What is allocated to a claim."""
        allocation = self.claim(name).get("status", {}).get("allocation") or {}
        return [r["device"] for r in allocation.get("devices", {}).get("results", [])]

    def conditions(self, name: str, driver: str = DRIVER) -> dict[str, tuple[str, str]]:
        """Status and reason by type."""
        for entry in self.claim(name).get("status", {}).get("devices") or []:
            if entry["driver"] == driver:
                found = entry.get("conditions") or []
                return {c["type"]: (c["status"], c.get("reason", "")) for c in found}
        return {}

    def apply(self, name: str, entry: dict[str, Any], *, manager: str, force: bool = False) -> None:
        """Server-side apply, by another writer, to the entry of the claim's only device."""
        (device,) = self.devices(name)
        full = {"driver": DRIVER, "pool": "fabric", "device": device, **entry}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "status": {"devices": [full]},
        }
        query = f"fieldManager={manager}&force={str(force).lower()}"
        path = f"{self._claims}/{name}/status?{query}"
        self.cluster.api("PATCH", path, body, patch="apply")

    def events(self, claim: str) -> list[str]:
        """Reasons of the operator's events about a claim, in order."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.name}/events"
        items = [
            (item["eventTime"], item["reason"])
            for item in self.cluster.api("GET", path)["items"]
            if item["regarding"]["name"] == claim and item["regarding"]["kind"] == "ResourceClaim"
        ]
        return [reason for _, reason in sorted(items)]

    def rules(self) -> list[dict[str, Any]]:
        """The rules that hold devices back."""
        items = self.cluster.api("GET", f"{GROUP}/devicetaintrules")["items"]
        return [i for i in items if i["metadata"]["name"].startswith("dragoman-hold-")]

    def close(self) -> None:
        """Pods, claims, rules and slices away, so that all devices are free for the next test."""
        for pod in self.cluster.api("GET", self._pods)["items"]:
            with contextlib.suppress(ApiError):
                self.end(pod["metadata"]["name"])
        for claim in self.cluster.api("GET", self._claims)["items"]:
            with contextlib.suppress(ApiError):
                self.drop_claim(claim["metadata"]["name"])
        until("no claim is left", lambda: not self.cluster.api("GET", self._claims)["items"])
        for rule in self.rules():
            self.cluster.api("DELETE", f"{GROUP}/devicetaintrules/{rule['metadata']['name']}")
        for item in self.cluster.api("GET", f"{GROUP}/resourceslices")["items"]:
            self.cluster.api("DELETE", f"{GROUP}/resourceslices/{item['metadata']['name']}")
        self.cluster.kubectl("delete", "namespace", self.name, "--wait=false")


def _found(cluster: Cluster, path: str) -> Any:
    try:
        return cluster.api("GET", path)
    except ApiError as error:
        raise LookupError from error

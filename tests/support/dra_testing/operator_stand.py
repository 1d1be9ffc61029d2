"""The operator as a process with the rights of the shipped service account, and a cluster without
kubelets in which tests bind pods and allocate claims by hand."""

from __future__ import annotations

import contextlib
import itertools
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dra_testing.driver_process import DriverProcess
from dra_testing.polling import until
from testcluster.cluster import Cluster
from testcluster.errors import ApiError

MANIFESTS = Path(__file__).parents[3] / "manifests" / "components" / "operator"
DRIVER = "evict.example.com"
NODE = "evict-node"
GROUP = "/apis/resource.k8s.io/v1"
_numbers = itertools.count(1)


def install(cluster: Cluster) -> None:
    """Service account, rights and a node."""
    for file in ("namespace.yaml", "rbac.yaml", "admission.yaml"):
        cluster.kubectl("apply", "-f", str(MANIFESTS / file))
    cluster.api("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})


class Operator:
    """A running operator."""

    def __init__(self, cluster: Cluster, log: Path, *arguments: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        account = cluster.service_account_kubeconfig("dragoman-operator", "dragoman-operator")
        self.process = DriverProcess(
            [
                f"--kubeconfig={account}",
                "--lease-namespace=dragoman-operator",
                f"--http-address=127.0.0.1:{self.port}",
                "--log-format=json",
                *arguments,
            ],
            log,
            program=(sys.executable, "-m", "dra_operator"),
        )

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a probe or of the metrics."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def ready(self) -> None:
        """Wait until it has read everything and leads."""
        self.process.wait_for("everything has been read", timeout=30)
        self.process.wait_for("leading", timeout=30)
        until("the operator is ready", lambda: self.get("/readyz")[0] == 200)


@contextlib.contextmanager
def running(cluster: Cluster, log: Path, *arguments: str) -> Iterator[Operator]:
    """An operator for the length of a ``with`` block; it ends in order."""
    operator = Operator(cluster, log, *arguments)
    try:
        yield operator
    finally:
        operator.process.finish()


class Stand:
    """Pods, claims and rules of one test, in a namespace and a pool of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.name = f"evict-{next(_numbers)}"
        cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": self.name}})
        until("the service account is there", self._account)
        self._pods = f"/api/v1/namespaces/{self.name}/pods"
        self._claims = f"{GROUP}/namespaces/{self.name}/resourceclaims"

    def _account(self) -> Any:
        try:
            return self.cluster.api(
                "GET", f"/api/v1/namespaces/{self.name}/serviceaccounts/default"
            )
        except ApiError as error:
            raise LookupError from error

    def claim(self, name: str, device: str, **result: Any) -> dict[str, Any]:
        """A claim to which a device of the test's pool is allocated, as the scheduler would."""
        request = {"name": "r", "exactly": {"deviceClassName": "any"}}
        spec = {"devices": {"requests": [request]}}
        made = self.cluster.api("POST", self._claims, {"metadata": {"name": name}, "spec": spec})
        one = {"request": "r", "driver": DRIVER, "pool": self.name, "device": device, **result}
        made["status"] = {"allocation": {"devices": {"results": [one]}}}
        made["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        self.cluster.api("PUT", f"{self._claims}/{name}", made)
        current = self.cluster.api("GET", f"{self._claims}/{name}")
        current["status"] = made["status"]
        found: dict[str, Any] = self.cluster.api("PUT", f"{self._claims}/{name}/status", current)
        return found

    def pod(self, name: str, claim: str, *, grace: int = 0, **labels: str) -> str:
        """A pod on the node that uses the claim and runs; its UID.

        The claim controller reserves the claim for a pod that is bound without the scheduler.
        """
        container = {"name": "c", "image": "none", "resources": {"claims": [{"name": "x"}]}}
        body = {
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "nodeName": NODE,
                "terminationGracePeriodSeconds": grace,
                "automountServiceAccountToken": False,
                "containers": [container],
                "resourceClaims": [{"name": "x", "resourceClaimName": claim}],
            },
        }
        uid = str(self.cluster.api("POST", self._pods, body)["metadata"]["uid"])
        ready = {"type": "Ready", "status": "True"}
        status = {"status": {"phase": "Running", "conditions": [ready]}}
        path = f"{self._pods}/{name}/status"
        self.cluster.api("PATCH", path, status, patch="strategic")
        until(f"claim {claim} is reserved for {name}", lambda: self._reserved(claim, uid))
        return uid

    def _reserved(self, claim: str, uid: str) -> bool:
        status = self.cluster.api("GET", f"{self._claims}/{claim}").get("status") or {}
        return any(item["uid"] == uid for item in status.get("reservedFor") or [])

    def rule(self, name: str, effect: str = "NoExecute", **selector: str) -> None:
        """A rule on devices of the test's pool; ``deviceSelector`` fields may be added."""
        taint = {"key": "example.com/bad", "value": "yes", "effect": effect}
        where = {"driver": DRIVER, "pool": self.name, **selector}
        body = {
            "metadata": {"name": f"{self.name}-{name}"},
            "spec": {"deviceSelector": where, "taint": taint},
        }
        self.cluster.api("POST", f"{GROUP}/devicetaintrules", body)

    def drop_rule(self, name: str) -> None:
        """Delete it."""
        self.cluster.api("DELETE", f"{GROUP}/devicetaintrules/{self.name}-{name}")

    def slice(self, name: str, *devices: dict[str, Any]) -> None:
        """Create or replace a slice of the test's pool."""
        path = f"{GROUP}/resourceslices/{self.name}-{name}"
        pool = {"name": self.name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": NODE, "devices": list(devices)}
        metadata: dict[str, Any] = {"name": f"{self.name}-{name}"}
        try:
            found = self.cluster.api("GET", path)
        except ApiError:
            body = {"metadata": metadata, "spec": spec}
            self.cluster.api("POST", f"{GROUP}/resourceslices", body)
            return
        metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
        self.cluster.api("PUT", path, {"metadata": metadata, "spec": spec})

    def budget(self, available: int, **labels: str) -> None:
        """A PodDisruptionBudget for pods with these labels; changes one that is there."""
        path = f"/apis/policy/v1/namespaces/{self.name}/poddisruptionbudgets"
        spec = {"minAvailable": available, "selector": {"matchLabels": labels}}
        try:
            self.cluster.api("PATCH", f"{path}/b", {"spec": spec})
        except ApiError:
            self.cluster.api("POST", path, {"metadata": {"name": "b"}, "spec": spec})

    def budget_allows(self) -> int:
        """Disruptions that the controller has found to be allowed, once it has looked."""
        path = f"/apis/policy/v1/namespaces/{self.name}/poddisruptionbudgets/b"
        found = self.cluster.api("GET", path)
        seen = found.get("status", {}).get("observedGeneration")
        if seen != found["metadata"]["generation"]:
            raise LookupError("not yet looked at")
        return int(found["status"]["disruptionsAllowed"])

    def pods(self) -> dict[str, dict[str, Any]]:
        """The pods that are there, by name."""
        items = self.cluster.api("GET", self._pods)["items"]
        return {item["metadata"]["name"]: item for item in items}

    def here(self) -> set[str]:
        """Names of the pods that are neither gone nor going."""
        return {n for n, p in self.pods().items() if "deletionTimestamp" not in p["metadata"]}

    def events(self, pod: str) -> list[tuple[str, str]]:
        """Type and reason of the operator's events about a pod."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.name}/events"
        return [
            (item["type"], item["reason"])
            for item in self.cluster.api("GET", path)["items"]
            if item["regarding"]["name"] == pod
            and item.get("reportingController") == "dragoman-operator"
        ]

    def close(self) -> None:
        """Rules and slices away, so that the next test meets none of them."""
        for plural in ("devicetaintrules", "resourceslices"):
            for item in self.cluster.api("GET", f"{GROUP}/{plural}")["items"]:
                if item["metadata"]["name"].startswith(f"{self.name}-"):
                    self.cluster.api("DELETE", f"{GROUP}/{plural}/{item['metadata']['name']}")
        self.cluster.kubectl("delete", "namespace", self.name, "--wait=false")

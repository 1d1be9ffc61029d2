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
NAMESPACE = "dragoman-operator"
#: How the API server calls the shipped service account.
USER = "system:serviceaccount:dragoman-operator:dragoman-operator"
GROUP = "/apis/resource.k8s.io/v1"
_numbers = itertools.count(1)


def install(cluster: Cluster) -> None:
    """Service account, rights and a node."""
    for file in ("namespace.yaml", "rbac.yaml", "admission.yaml"):
        cluster.kubectl("apply", "-f", str(MANIFESTS / file))
    cluster.api("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})


class Operator:
    """A running operator."""

    def __init__(
        self, cluster: Cluster, log: Path, *arguments: str, account: Path | None = None
    ) -> None:
        # Nobody else is given the port until the operator listens: both may bind it.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port: int = self._reserved.getsockname()[1]
        account = account or cluster.service_account_kubeconfig(NAMESPACE, "dragoman-operator")
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

    def close(self) -> None:
        """It ends, if it has not."""
        self.process.finish()
        self._reserved.close()

    def ready(self) -> None:
        """Wait until it has read everything and leads."""
        self.process.wait_for("everything has been read", timeout=30)
        self.process.wait_for("leading", timeout=30)
        until("the operator is ready", lambda: self.get("/readyz")[0] == 200)


@contextlib.contextmanager
def running(
    cluster: Cluster, log: Path, *arguments: str, account: Path | None = None
) -> Iterator[Operator]:
    """An operator for the length of a ``with`` block; it ends in order."""
    operator = Operator(cluster, log, *arguments, account=account)
    try:
        yield operator
    finally:
        operator.close()


class Stand:
    """Pods, claims and rules of one test, in a namespace and a pool of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.name = f"evict-{next(_numbers)}"
        cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": self.name}})
        until("the service account is there", self._account)
        minor = int(cluster.version.split(".")[1])
        version = "v1" if minor >= 37 else "v1beta2"
        self.rules = f"/apis/resource.k8s.io/{version}/devicetaintrules"
        self._pods = f"/api/v1/namespaces/{self.name}/pods"
        self._claims = f"{GROUP}/namespaces/{self.name}/resourceclaims"

    def _account(self) -> Any:
        try:
            return self.cluster.api(
                "GET", f"/api/v1/namespaces/{self.name}/serviceaccounts/default"
            )
        except ApiError as error:
            raise LookupError from error

    def read_claim(self, name: str) -> dict[str, Any]:
        """It, as the server has it."""
        found: dict[str, Any] = self.cluster.api("GET", f"{self._claims}/{name}")
        return found

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

    def pod(
        self, name: str, claim: str, *, grace: int = 0, extended: bool = False, **labels: str
    ) -> str:
        """A pod on the node that uses the claim and runs; its UID.

        The claim controller reserves the claim for a pod that is bound without the scheduler; the
        claim of an ``extended`` resource stands in the status alone and is reserved by the test.
        """
        container: dict[str, Any] = {"name": "c", "image": "none"}
        spec: dict[str, Any] = {
            "nodeName": NODE,
            "terminationGracePeriodSeconds": grace,
            "automountServiceAccountToken": False,
            "containers": [container],
        }
        if extended:
            container["resources"] = {"limits": {"example.com/x": "1"}}
        else:
            container["resources"] = {"claims": [{"name": "x"}]}
            spec["resourceClaims"] = [{"name": "x", "resourceClaimName": claim}]
        body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        uid = str(self.cluster.api("POST", self._pods, body)["metadata"]["uid"])
        ready = {"type": "Ready", "status": "True"}
        status: dict[str, Any] = {"phase": "Running", "conditions": [ready]}
        if extended:
            self._own(claim, name, uid)
            mapping = {"containerName": "c", "resourceName": "example.com/x", "requestName": "r"}
            status["extendedResourceClaimStatus"] = {
                "resourceClaimName": claim,
                "requestMappings": [mapping],
            }
        path = f"{self._pods}/{name}/status"
        self.cluster.api("PATCH", path, {"status": status}, patch="strategic")
        until(f"claim {claim} is reserved for {name}", lambda: self._reserved(claim, uid))
        return uid

    def _own(self, claim: str, pod: str, uid: str) -> None:
        """Make the claim the pod's own, reserved for it, as the scheduler does."""
        path = f"{self._claims}/{claim}"
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}
        self.cluster.api("PATCH", path, {"metadata": {"ownerReferences": [owner]}})
        consumer = {"resource": "pods", "name": pod, "uid": uid}
        self.cluster.api("PATCH", f"{path}/status", {"status": {"reservedFor": [consumer]}})

    def _reserved(self, claim: str, uid: str) -> bool:
        status = self.cluster.api("GET", f"{self._claims}/{claim}").get("status") or {}
        return any(item["uid"] == uid for item in status.get("reservedFor") or [])

    def rule(self, name: str, effect: str = "NoExecute", **selector: Any) -> None:
        """A rule on devices of the test's pool.

        ``deviceSelector`` fields may be added, or left out with None.
        """
        taint = {"key": "example.com/bad", "value": "yes", "effect": effect}
        where = {"driver": DRIVER, "pool": self.name, **selector}
        where = {field: value for field, value in where.items() if value is not None}
        body = {
            "metadata": {"name": f"{self.name}-{name}"},
            "spec": {"deviceSelector": where, "taint": taint},
        }
        self.cluster.api("POST", self.rules, body)

    def read_rule(self, name: str) -> dict[str, Any]:
        """It, as the server has it."""
        found: dict[str, Any] = self.cluster.api("GET", f"{self.rules}/{self.name}-{name}")
        return found

    def condition(self, name: str) -> dict[str, Any]:
        """The condition EvictionInProgress of a rule; empty as long as it has none."""
        conditions = self.read_rule(name).get("status", {}).get("conditions", [])
        found = [item for item in conditions if item["type"] == "EvictionInProgress"]
        return found[0] if found else {}

    def drop_rule(self, name: str) -> None:
        """Delete it."""
        self.cluster.api("DELETE", f"{self.rules}/{self.name}-{name}")

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

    def events(self, pod: str, namespace: str = "") -> list[tuple[str, str]]:
        """Type and reason of the operator's events about a pod or another object."""
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace or self.name}/events"
        return [
            (item["type"], item["reason"])
            for item in self.cluster.api("GET", path)["items"]
            if item.get("reportingController") == "dragoman-operator"
            and item["regarding"]["name"] == pod
        ]

    def close(self) -> None:
        """Rules and slices away, so that the next test meets none of them."""
        for folder in (self.rules, f"{GROUP}/resourceslices"):
            try:
                items = self.cluster.api("GET", folder)["items"]
            except ApiError:
                continue  # not served
            for item in items:
                if item["metadata"]["name"].startswith(f"{self.name}-"):
                    self.cluster.api("DELETE", f"{folder}/{item['metadata']['name']}")
        self.cluster.kubectl("delete", "namespace", self.name, "--wait=false")

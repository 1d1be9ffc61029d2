"""Many pods, claims and slices at once, made by several connections of an administrator.

There are no kubelets, and there need not be any controllers: pods are bound and run by hand, claims
are allocated and reserved by hand, each pod has a claim and a device of its own.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from dra_testing.operator_stand import GROUP, NODE
from testcluster.cluster import Cluster
from testcluster.errors import ApiError

DRIVER = "crowd.example.com"
#: Devices to a slice.
DEVICES = 8
_CONNECTIONS = 8
#: Seconds after which a connection is not used again.
_IDLE = 20.0
_ACCEPT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_STRATEGIC, _JSON_PATCH = "application/strategic-merge-patch+json", "application/json-patch+json"


class Requests:
    """Requests as administrator over connections that are kept, one for each thread."""

    def __init__(self, cluster: Cluster) -> None:
        pki = cluster.layout.pki
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        parts = urllib.parse.urlsplit(cluster.url)
        self._address = parts.hostname or "", parts.port or 443
        self._own = threading.local()
        self._opened: list[http.client.HTTPSConnection] = []
        self._pool = ThreadPoolExecutor(_CONNECTIONS)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The metadata of the answer; raises the test cluster's ApiError from a status of 400 on.

        A PATCH is a JSON patch if the body is a list, else a strategic one.
        """
        connection = self._connection()
        kind = "application/json"
        if method == "PATCH":
            kind = _JSON_PATCH if isinstance(body, list) else _STRATEGIC
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Accept": _ACCEPT, "Content-Type": kind})
        answer = connection.getresponse()
        value = json.loads(answer.read())
        if answer.status >= 400:
            raise ApiError(method, path, answer.status, value)
        return value

    def _connection(self) -> http.client.HTTPSConnection:
        """This thread's; anew after a pause, since the server ends what is idle for long."""
        now = time.monotonic()
        kept: http.client.HTTPSConnection | None = getattr(self._own, "connection", None)
        if kept is not None and now - self._own.used > _IDLE:
            kept.close()
            kept = None
        if kept is None:
            kept = http.client.HTTPSConnection(*self._address, context=self._tls, timeout=60)
            self._opened.append(kept)
        self._own.connection, self._own.used = kept, now
        return kept

    def each(self, work: Callable[[Any], None], items: Iterable[Any]) -> None:
        """Do the work for all items side by side; the first error is raised."""
        for _ in self._pool.map(work, items):
            pass

    def close(self) -> None:
        """End threads and connections."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for connection in self._opened:
            connection.close()


@dataclass(frozen=True)
class Crowd:
    """Pods of some namespaces, in turn: ``pod-0`` in the first one, with device 0 of a pool.

    ``pools`` is how many pools there are; a pod's device is in the pool of its number. ``whole``:
    pods as big as kubelets leave them, else as small as the API server takes them. ``grace`` is
    their grace period in seconds, ``prefix`` what the names of pools and slices begin with.
    """

    requests: Requests
    namespaces: Sequence[str]
    pools: int = 1
    whole: bool = False
    grace: int = 0
    prefix: str = ""

    def make_namespaces(self) -> None:
        """With the service account that pods need, whether a controller makes them or not."""
        for name in self.namespaces:
            self.requests.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            path = f"/api/v1/namespaces/{name}/serviceaccounts"
            try:
                self.requests.send("POST", path, {"metadata": {"name": "default"}})
            except ApiError as error:
                if error.status != 409:
                    raise

    def make(self, count: int) -> None:
        """Pods with their claims, each running and with a device of its own."""
        self.requests.each(self._make, range(count))

    def make_slices(self, count: int) -> None:
        """One slice of 8 devices for each pool, or with one pool all in it."""
        self.requests.each(lambda n: self._make_slice(n, count), range(count))

    def change_pod(self, number: int, serial: int) -> None:
        """A condition of a pod changes, as kubelets do it."""
        path = f"/api/v1/namespaces/{self.where(number)}/pods/pod-{number}/status"
        condition = _true("Ready") | {"message": f"change {serial}"}
        self.requests.send("PATCH", path, {"status": {"conditions": [condition]}})

    def change_claim(self, number: int, serial: int) -> None:
        """A label of a claim changes."""
        path = f"{GROUP}/namespaces/{self.where(number)}/resourceclaims/pod-{number}"
        self.requests.send("PATCH", path, {"metadata": {"labels": {"change": str(serial)}}})

    def change_slice(self, number: int, serial: int) -> None:
        """An attribute of a device changes, as drivers do it."""
        path = "/spec/devices/0/attributes/serial/int"
        change = [{"op": "replace", "path": path, "value": serial}]
        self.requests.send("PATCH", f"{GROUP}/resourceslices/{self.prefix}slice-{number}", change)

    def where(self, number: int) -> str:
        """The namespace of a pod."""
        return self.namespaces[number % len(self.namespaces)]

    def pool(self, number: int) -> str:
        """The pool of a pod's device."""
        return f"{self.prefix}pool-{number % self.pools}"

    def _make(self, number: int) -> None:
        namespace, name = self.where(number), f"pod-{number}"
        claims = f"{GROUP}/namespaces/{namespace}/resourceclaims"
        pods = f"/api/v1/namespaces/{namespace}/pods"
        request = {"name": "r", "exactly": {"deviceClassName": "any"}}
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        self.requests.send("POST", claims, body)
        pod = self.requests.send("POST", pods, pod_body(name, whole=self.whole, grace=self.grace))
        device = f"dev-{number // self.pools}"
        status = claim_status(self.pool(number), device, name, pod["metadata"]["uid"])
        finalizers = ["resource.kubernetes.io/delete-protection"]
        self.requests.send("PATCH", f"{claims}/{name}", {"metadata": {"finalizers": finalizers}})
        self.requests.send("PATCH", f"{claims}/{name}/status", {"status": status})
        running = {"status": pod_status(whole=self.whole)}
        self.requests.send("PATCH", f"{pods}/{name}/status", running)

    def _make_slice(self, number: int, count: int) -> None:
        single = self.pools == 1
        first = number * DEVICES if single else 0
        body = slice_body(
            f"{self.prefix}slice-{number}", self.pool(number), range(first, first + DEVICES)
        )
        body["spec"]["pool"]["resourceSliceCount"] = count if single else 1
        self.requests.send("POST", f"{GROUP}/resourceslices", body)


def pod_body(name: str, *, whole: bool = False, grace: int = 0) -> dict[str, Any]:
    """A pod on the node that uses the claim of its name."""
    claims = {"claims": [{"name": "x"}]}
    container: dict[str, Any] = {"name": "c", "image": "none", "resources": claims}
    if whole:
        container["env"] = [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(12)]
        container["resources"] = claims | {"requests": {"cpu": "1", "memory": "4Gi"}}
    return {
        "metadata": {"name": name, "labels": {"app": "crowd"}},
        "spec": {
            "nodeName": NODE,
            "terminationGracePeriodSeconds": grace,
            "automountServiceAccountToken": whole,
            "containers": [container],
            "resourceClaims": [{"name": "x", "resourceClaimName": name}],
        },
    }


def pod_status(*, whole: bool = False) -> dict[str, Any]:
    """Of a pod that runs."""
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    if not whole:
        return {"phase": "Running", "conditions": [_true("Ready")]}
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {"name": "c", "image": "none", "imageID": "none@sha256:" + "0" * 64}
    ready = {"ready": True, "started": True, "restartCount": 0, "state": state}
    return {
        "phase": "Running",
        "conditions": [_true(kind) for kind in kinds],
        "containerStatuses": [container | ready | {"containerID": "containerd://" + "0" * 64}],
        "podIPs": [{"ip": "10.0.0.1"}],
    }


def claim_status(pool: str, device: str, pod: str, uid: str) -> dict[str, Any]:
    """Of a claim that has a device and is reserved for a pod."""
    result = {"request": "r", "driver": DRIVER, "pool": pool, "device": device}
    return {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": pod, "uid": uid}],
    }


def slice_body(name: str, pool: str, devices: Iterable[int], serial: int = 0) -> dict[str, Any]:
    """A slice of devices with six attributes and a capacity each."""
    listed = [
        {
            "name": f"dev-{n}",
            "attributes": {
                "model": {"string": "A100-SXM4"},
                "uuid": {"string": f"GPU-{n:08x}"},
                "driverVersion": {"version": "550.54.1"},
                "index": {"int": n},
                "numa": {"int": n % 2},
                "serial": {"int": serial},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for n in devices
    ]
    where = {"name": pool, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": where, "nodeName": NODE, "devices": listed}
    return {"metadata": {"name": name}, "spec": spec}


def _true(kind: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}

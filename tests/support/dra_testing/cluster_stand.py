"""Publishers without a node, with the shipped rights and admission policy, on a control plane."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dra_testing.driver_process import DriverProcess
from dra_testing.fault_proxy import FaultProxy
from dra_testing.polling import until
from dra_testing.publishing_stand import PROGRAM
from dra_testing.slices import Watcher, driver_kubeconfig, make_node
from testcluster.cluster import Cluster
from testcluster.errors import ApiError

MANIFESTS = Path(__file__).parents[3] / "manifests" / "components" / "cluster-publisher"
#: The shipped policy and role are for this driver.
DRIVER = "ports.example.com"
ACCOUNT = "dragoman-cluster-publisher"
NAMESPACE = "dragoman-publisher"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{DRIVER}-publisher"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
POD_UID = "5d2c1b5e-0f55-4c39-9d0c-7a1e5c2b9f01"

JSON = dict[str, Any]
_numbers = itertools.count(1)


def install(cluster: Cluster) -> None:
    """Namespace, service account, rights and policy."""
    for file in ("namespace.yaml", "rbac.yaml", "admission.yaml"):
        cluster.kubectl("apply", "-f", str(MANIFESTS / file))


def slice_of(driver: str = DRIVER, *, pool: str = "p", **spec: Any) -> JSON:
    """The spec of a slice with one device."""
    named = {"name": pool, "generation": 1, "resourceSliceCount": 1}
    return {"driver": driver, "pool": named, "devices": [{"name": "d"}], **spec}


@dataclass
class Publisher:
    """A running publisher; ``file`` has the pools that it finds."""

    name: str
    file: Path
    process: DriverProcess
    port: int = 0

    def offer(self, *pools: JSON) -> None:
        """What it finds from now on; it is told to look."""
        write(self.file, {"pools": list(pools)})
        self.process.signal(signal.SIGHUP)

    def fail(self, why: str) -> None:
        """Its discovery fails from now on."""
        write(self.file, {"fail": why})
        self.process.signal(signal.SIGHUP)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a probe or of the metrics."""
        if not self.port:
            self.port = self.process.wait_for("answering probes")["port"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as found:
                return found.status, found.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def ready(self) -> dict[str, tuple[bool, str]]:
        """What /readyz says."""
        answer = json.loads(self.get("/readyz")[1])
        return {c["name"]: (c["ok"], c["message"]) for c in answer["conditions"]}

    def leads(self) -> bool:
        """Whether it holds the Lease."""
        return "dra_driver_publisher_leading 1\n" in self.get("/metrics")[1]

    def settled(self) -> None:
        """Until it says that all is published by itself."""
        wanted = (True, "all pools are published")
        until("all pools are published", lambda: self.ready()["Published"] == wanted, timeout=30.0)


def write(file: Path, content: JSON) -> None:
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(content))
    temporary.replace(file)


class Stand:
    """Publishers of one test; what it leaves behind is taken away."""

    def __init__(self, cluster: Cluster, folder: Path, start: Callable[..., DriverProcess]) -> None:
        self.cluster = cluster
        self.folder = folder
        self._start = start
        self._account = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
        self._proxies: list[FaultProxy] = []
        self._nodes: list[str] = []
        self.watcher = Watcher(cluster, "", DRIVER)

    def run(
        self,
        *pools: JSON,
        name: str = "",
        proxy: FaultProxy | None = None,
        more: tuple[str, ...] = (),
    ) -> Publisher:
        """A publisher that finds these pools; several can run."""
        number = next(_numbers)
        name = name or f"publisher-{number}"
        file = self.folder / f"{name}.json"
        write(file, {"pools": list(pools)})
        process = self._start(
            "--no-node",
            f"--driver-name={DRIVER}",
            f"--option=pools={file}",
            f"--kubeconfig={proxy.kubeconfig if proxy else self._account}",
            f"--lease-namespace={NAMESPACE}",
            f"--identity={name}",
            f"--pod-uid={POD_UID}",
            "--http-address=127.0.0.1:0",
            "--log-level=debug",
            *more,
            log=self.folder / f"{number}.log",
            **PROGRAM,
        )
        return Publisher(name, file, process)

    def run_profile(self) -> DriverProcess:
        """Profile ports, as the shipped Deployment starts it."""
        return self._start(
            "--no-node",
            "--profile=ports",
            f"--kubeconfig={self._account}",
            f"--lease-namespace={NAMESPACE}",
            log=self.folder / f"{next(_numbers)}.log",
        )

    def proxy(self) -> FaultProxy:
        """A way to the API server that can have faults."""
        folder = self.folder / f"proxy-{next(_numbers)}"
        folder.mkdir()
        made = FaultProxy(self._account, folder)
        self._proxies.append(made)
        return made

    def node(self) -> str:
        """A Node object without a kubelet."""
        name = f"fabric-node-{next(_numbers)}"
        make_node(self.cluster, name)
        self._nodes.append(name)
        return name

    def node_instance(self, node: str, *pools: JSON) -> DriverProcess:
        """The driver on a node, of the same name, with pools of its own."""
        folder = self.folder / node
        folder.mkdir(exist_ok=True)
        file = folder / "pools.json"
        write(file, {"pools": list(pools)})
        return self._start(
            f"--driver-name={DRIVER}",
            f"--node-name={node}",
            f"--option=pools={file}",
            f"--kubeconfig={driver_kubeconfig(self.cluster, node)}",
            f"--kubelet-root={folder / 'k'}",
            f"--cdi-dir={folder / 'c'}",
            log=folder / f"log-{next(_numbers)}",
            **PROGRAM,
        )

    # -- the cluster

    def slices(self) -> list[JSON]:
        """All slices of the driver, by name."""
        items = self.cluster.api("GET", SLICES)["items"]
        ours = [item for item in items if item["spec"]["driver"] == DRIVER]
        return sorted(ours, key=lambda item: str(item["metadata"]["name"]))

    def of_no_node(self) -> list[JSON]:
        """Those that no node has anything to do with."""
        return [
            item
            for item in self.slices()
            if "nodeName" not in item["spec"] and "ownerReferences" not in item["metadata"]
        ]

    def of_nodes(self) -> dict[str, str]:
        """Those of nodes: name and resourceVersion."""
        free = [item["metadata"]["name"] for item in self.of_no_node()]
        return {
            item["metadata"]["name"]: item["metadata"]["resourceVersion"]
            for item in self.slices()
            if item["metadata"]["name"] not in free
        }

    def plant(self, name: str, owner: JSON | None = None, **spec: Any) -> JSON:
        """A slice that somebody else makes."""
        metadata: JSON = {"name": name}
        if owner:
            metadata["ownerReferences"] = [owner]
        made: JSON = self.cluster.api(
            "POST", SLICES, {"metadata": metadata, "spec": slice_of(**spec)}
        )
        return made

    def delete(self, *items: JSON) -> None:
        for item in items:
            self.cluster.api("DELETE", f"{SLICES}/{item['metadata']['name']}")

    def holder(self) -> str:
        """Who holds the Lease."""
        return str(self.cluster.api("GET", LEASE)["spec"].get("holderIdentity") or "")

    def close(self) -> None:
        """Called when all processes have ended."""
        self.watcher.stop()
        for proxy in self._proxies:
            proxy.close()
        self.delete(*self.slices())
        for node in self._nodes:
            self.cluster.api("DELETE", f"/api/v1/nodes/{node}")
        with contextlib.suppress(ApiError):
            self.cluster.api("DELETE", LEASE)

"""A node without a kubelet, a driver whose pools stand in a file, a proxy with faults between."""

from __future__ import annotations

import itertools
import json
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dra_testing.driver_process import DriverProcess
from dra_testing.fault_proxy import FaultProxy
from dra_testing.places import HAND_PROGRAM
from dra_testing.polling import until
from dra_testing.slices import Cluster, Watcher, driver_kubeconfig, make_node

DRIVER = "pools.example.com"
PROGRAM: dict[str, Any] = HAND_PROGRAM | {
    "program": (sys.executable, "-m", "dra_testing.pools_driver")
}
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
FEATURE = "DRANodeAllocatableResources"

#: Of calls, moments and lines of the log, in the story of a failure.
_TOLD = 30

_numbers = itertools.count(1)

JSON = dict[str, Any]


def devices(*names: str, **fields: Any) -> list[JSON]:
    """Devices with these names and, all of them, these fields."""
    return [{"name": name, **fields} for name in names]


def numbered(count: int, **fields: Any) -> list[JSON]:
    """``d-0`` and so on."""
    return devices(*(f"d-{n}" for n in range(count)), **fields)


class Stand:
    """Everything that a test of publishing needs."""

    def __init__(self, cluster: Cluster, folder: Path, start: Callable[..., DriverProcess]) -> None:
        self.cluster = cluster
        self.node = f"stand-{next(_numbers)}"
        make_node(cluster, self.node)
        self.watcher = Watcher(cluster, self.node)
        self.proxy = FaultProxy(driver_kubeconfig(cluster, self.node), folder)
        self.folder = folder
        self.file = folder / "pools.json"
        self._start = start
        self.driver: DriverProcess
        self.port = 0

    # -- the driver

    def offer(self, *pools: JSON | list[JSON]) -> None:
        """What the driver finds from now on; a list is a pool of the node with these devices."""
        full = [{"devices": p} if isinstance(p, list) else p for p in pools]
        self._write({"pools": full})

    def fail(self, why: str) -> None:
        """Discovery fails from now on."""
        self._write({"fail": why})

    def _write(self, content: JSON) -> None:
        temporary = self.file.with_suffix(".tmp")
        temporary.write_text(json.dumps(content))
        temporary.replace(self.file)

    def run(self, *more: str, rescan: float = 60.0) -> DriverProcess:
        """A driver process; several can run."""
        number = next(_numbers)
        self.driver = self._start(
            f"--option=pools={self.file}",
            f"--node-name={self.node}",
            f"--kubeconfig={self.proxy.kubeconfig}",
            f"--kubelet-root={self.folder / 'k'}",
            f"--cdi-dir={self.folder / 'cdi'}",
            f"--rescan-interval={rescan}",
            "--http-address=127.0.0.1:0",
            "--log-level=debug",
            *more,
            log=self.folder / f"driver-{number}.log",
            **PROGRAM,
        )
        return self.driver

    def start(self, *pools: JSON | list[JSON], rescan: float = 60.0) -> DriverProcess:
        """Offer and run."""
        self.offer(*pools)
        self.run(rescan=rescan)
        self.port = self.driver.wait_for("answering probes")["port"]
        return self.driver

    def becomes(self, *pools: JSON | list[JSON]) -> None:
        """The driver finds something else, and is told to look."""
        self.offer(*pools)
        self.driver.signal(signal.SIGHUP)

    def ready(self) -> dict[str, tuple[bool, str]]:
        """What /readyz says."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as found:
                answer = json.load(found)
        except urllib.error.HTTPError as refused:
            answer = json.load(refused)
        return {c["name"]: (c["ok"], c["message"]) for c in answer["conditions"]}

    def metrics(self) -> str:
        """What /metrics says."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as found:
            text: str = found.read().decode()
        return text

    # -- the cluster

    def declare(self, feature: str = FEATURE) -> None:
        """The Node declares a feature, as its kubelet would."""
        path = f"/api/v1/nodes/{self.node}/status"
        patch = {"status": {"declaredFeatures": [feature]}}
        self.cluster.api("PATCH", path, patch, patch="merge")

    def slices(self) -> list[JSON]:
        """The driver's slices that belong to this node, by name."""
        listed = self.cluster.api("GET", SLICES)["items"]
        return sorted(
            (
                item
                for item in listed
                if item["spec"]["driver"] == DRIVER
                and item["metadata"]["ownerReferences"][0]["name"] == self.node
            ),
            key=lambda item: str(item["metadata"]["name"]),
        )

    def published(self) -> dict[str, JSON]:
        """Its devices by name."""
        return {d["name"]: d for s in self.slices() for d in s["spec"].get("devices", ())}

    def wait_for(self, *names: str, timeout: float = 20.0) -> None:
        """Until exactly these devices are in the cluster, complete and in this order."""
        self.watcher.wait_for(names, timeout)

    def story(self) -> str:
        """The last calls, moments and lines of the log, for a failure that comes once in a while.

        Times are those of the monotonic clock; the log has those of the day.
        """
        calls = [str(call) for call in self.proxy.calls[-_TOLD:]]
        moments = [
            f"{m.at:.2f} {m.event} {m.name}, generation {m.generation}, "
            f"{'incomplete' if m.devices is None else f'{len(m.devices)} devices'}"
            for m in self.watcher.moments[-_TOLD:]
        ]
        log = [json.dumps(record) for record in self.driver.records()[-_TOLD:]]
        now = f"{time.monotonic():.2f} now"
        return "\n".join(["calls:", *calls, "moments:", *moments, "log:", *log, now])

    def events(self) -> list[JSON]:
        """The driver's Events about the Node."""
        path = "/apis/events.k8s.io/v1/namespaces/default/events"
        listed: list[JSON] = self.cluster.api("GET", path)["items"]
        ours = [item for item in listed if item["reportingController"] == DRIVER]
        return [item for item in ours if item["regarding"]["name"] == self.node]

    def settled(self) -> None:
        """Until the driver says that all is published."""
        until("all pools are published", lambda: self.ready()["Published"][0], timeout=30.0)

    def settled_again(self) -> None:
        """The same for a driver that was started anew."""
        self.port = self.driver.wait_for("answering probes")["port"]
        self.settled()

    def close(self) -> None:
        self.watcher.stop()
        if hasattr(self, "driver"):
            self.driver.finish()
        self.proxy.close()
        for item in self.slices():
            self.cluster.api("DELETE", f"{SLICES}/{item['metadata']['name']}")
        self.cluster.api("DELETE", f"/api/v1/nodes/{self.node}")

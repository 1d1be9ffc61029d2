"""What consumers see of a driver's ResourceSlices, moment by moment."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dra_core import wire
from dra_core.errors import ApiError
from dra_driver.adapters.kube import KubeApi
from dra_testing.polling import until

_PATH = f"/apis/{wire.API_VERSION}/resourceslices"
_ROLE = Path(__file__).parents[3] / "manifests" / "base" / "driver-rbac.yaml"
_NAMESPACE = _ROLE.with_name("namespace.yaml")


class Cluster(Protocol):
    """The part of a test cluster that is used here."""

    kubeconfig: Path

    def api(self, method: str, path: str, body: Any = None, *, patch: str = ...) -> Any: ...

    def kubectl(self, *arguments: str, input: str | None = None) -> str: ...  # noqa: A002

    def service_account_kubeconfig(
        self, namespace: str, name: str, *, node: str | None = None
    ) -> Path: ...


def driver_kubeconfig(cluster: Cluster, node: str) -> Path:
    """Credentials of the driver's service account with its shipped rights, bound to a node."""
    cluster.kubectl("apply", "-f", str(_NAMESPACE), "-f", str(_ROLE))
    return cluster.service_account_kubeconfig("dragoman-system", "dragoman-driver", node=node)


def make_node(cluster: Cluster, name: str) -> None:
    """A Node object without a kubelet."""
    cluster.api("POST", "/api/v1/nodes", {"metadata": {"name": name}})


@dataclass(frozen=True)
class Moment:
    """What was there after one event. ``devices`` is None while the pool looks incomplete."""

    at: float
    event: str
    name: str
    generation: int
    slices: tuple[tuple[str, str], ...]  # name, resourceVersion
    devices: tuple[str, ...] | None


class Watcher:
    """Follows the slices of one node, as the scheduler does, and keeps every moment.

    With ``driver`` only those of that driver; the ``node`` "" is that of slices of no node.
    """

    def __init__(self, cluster: Cluster, node: str, driver: str = "") -> None:
        self._api = KubeApi.connect(cluster.kubeconfig)
        selector = f"spec.nodeName={node}" + (f",spec.driver={driver}" if driver else "")
        self._query = {"fieldSelector": selector}
        self._slices: dict[str, dict[str, Any]] = {}
        self._stop = threading.Event()
        self.moments: list[Moment] = []
        listed = self._api.list_all(_PATH, self._query)
        for item in listed.items:
            self._take("ADDED", item)
        self._thread = threading.Thread(
            target=self._follow, args=(listed.resource_version,), daemon=True
        )
        self._thread.start()

    def _follow(self, version: str) -> None:
        while not self._stop.is_set():
            try:
                for event in self._api.watch(_PATH, self._query, version):
                    version = event.object["metadata"]["resourceVersion"]
                    if event.kind != "BOOKMARK":
                        self._take(event.kind, event.object)
            except ApiError:
                self._stop.wait(0.2)

    def _take(self, kind: str, item: dict[str, Any]) -> None:
        name = item["metadata"]["name"]
        if kind == "DELETED":
            self._slices.pop(name, None)
        else:
            self._slices[name] = item
        newest = max((_pool(s)["generation"] for s in self._slices.values()), default=0)
        current = [s for _, s in sorted(self._slices.items()) if _pool(s)["generation"] == newest]
        complete = bool(current) and all(
            _pool(s)["resourceSliceCount"] == len(current) for s in current
        )
        devices = tuple(d["name"] for s in current for d in s["spec"].get("devices", ()))
        self.moments.append(
            Moment(
                at=time.monotonic(),
                event=kind,
                name=name,
                generation=newest,
                slices=tuple(
                    (n, s["metadata"]["resourceVersion"]) for n, s in sorted(self._slices.items())
                ),
                devices=devices if complete else None,
            )
        )

    @property
    def now(self) -> Moment:
        """The last moment."""
        return self.moments[-1]

    def age(self) -> float:
        """Seconds since the last event."""
        return time.monotonic() - self.now.at

    def wait_for(self, devices: tuple[str, ...], timeout: float = 20.0) -> Moment:
        """The moment at which exactly these devices are offered, complete and in this order."""
        until(
            f"{len(devices)} devices published",
            lambda: bool(self.moments) and self.now.devices == devices,
            timeout,
        )
        return self.now

    def saw(self, devices: tuple[str, ...] | None, since: int) -> None:
        """Wait until a moment from ``since`` on has been so, however short it was."""
        wanted = "an incomplete pool" if devices is None else f"{len(devices)} devices"
        until(f"{wanted} seen", lambda: devices in [m.devices for m in self.moments[since:]])

    def longest_incomplete(self, since: int = 0) -> float:
        """Seconds that a pool which had been complete stayed incomplete, at most."""
        longest, began = 0.0, None
        for moment in self.moments[since:]:
            if moment.devices is None:
                began = began if began is not None else moment.at
            elif began is not None:
                longest, began = max(longest, moment.at - began), None
        return longest

    def stop(self) -> None:
        self._stop.set()


def _pool(item: dict[str, Any]) -> dict[str, Any]:
    pool: dict[str, Any] = item["spec"]["pool"]
    return pool

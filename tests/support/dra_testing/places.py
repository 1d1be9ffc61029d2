"""Where a driver under test lives, and the claims that it is asked for."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dra_testing.kubelet import Kubelet

GPU = "gpu.example.com"
HAND = "hand.example.com"
SUPPORT = Path(__file__).resolve().parents[1]
#: The vendor's program of :mod:`dra_testing.hand_driver`.
HAND_PROGRAM: dict[str, Any] = {
    "program": (sys.executable, "-m", "dra_testing.hand_driver"),
    "environment": {
        "PYTHONPATH": os.pathsep.join([str(SUPPORT), *filter(None, [os.getenv("PYTHONPATH")])])
    },
}

PROGRAM = (sys.executable, "-m", "dra_driver")
#: Variables of the test run that must not reach the driver.
_STRIPPED = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "DRA_DRIVER_")


def plain_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of the test run without settings of drivers."""
    base = {k: v for k, v in os.environ.items() if not k.startswith(_STRIPPED)}
    return base | {"PYTHONWARNINGS": "error"} | dict(more or {})


def run_to_end(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = PROGRAM,
) -> subprocess.CompletedProcess[str]:
    """A driver that is expected to end by itself, its output captured."""
    return subprocess.run(
        [*program, *arguments],
        env=plain_environment(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def kubeconfig(path: Path, server: str = "http://127.0.0.1:1") -> Path:
    """A kubeconfig without credentials; at port 1 nobody listens."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "default", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "default",
    }
    path.write_text(json.dumps(content))
    return path


class MuteServer:
    """Takes connections and never answers, as an API server behind a dead load balancer."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def connections(self) -> int:
        """How many were taken."""
        return len(self._taken)

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._taken.append(self._listener.accept()[0])

    def close(self) -> None:
        """Hang up."""
        if self._thread.is_alive():
            self._listener.shutdown(socket.SHUT_RDWR)
            self._thread.join()
        for connection in (self._listener, *self._taken):
            connection.close()


class Place:
    """A kubelet's root and a CDI folder below ``folder``, for one node."""

    def __init__(self, folder: Path, credentials: Path | None = None, driver: str = GPU) -> None:
        self.folder = folder
        self.driver = driver
        self.node = f"node-{uuid.uuid4().hex[:12]}"
        self.kubelet_root = folder / "k"
        self.cdi = folder / "cdi"
        self.credentials = credentials or kubeconfig(folder / "kubeconfig")

    def arguments(self, *more: str) -> list[str]:
        return [
            f"--node-name={self.node}",
            f"--kubeconfig={self.credentials}",
            f"--kubelet-root={self.kubelet_root}",
            f"--cdi-dir={self.cdi}",
            *more,
        ]

    def hand(self, *more: str) -> list[str]:
        """Arguments of the vendor's program."""
        return self.arguments("--profile=hand", f"--option=folder={self.folder}", *more)

    @property
    def plugin_dir(self) -> Path:
        return self.kubelet_root / "plugins" / self.driver

    @property
    def registry(self) -> Path:
        return self.kubelet_root / "plugins_registry"

    def service(self, pod_uid: str = "") -> Path:
        return self.plugin_dir / (f"dra-{pod_uid}.sock" if pod_uid else "dra.sock")

    def registration(self, pod_uid: str = "") -> Path:
        middle = f"-{pod_uid}" if pod_uid else ""
        return self.registry / f"{self.driver}{middle}-reg.sock"

    def kubelet(self, pod_uid: str = "") -> Kubelet:
        return Kubelet(self.service(pod_uid), self.registration(pod_uid))

    def cdi_file(self, uid: str) -> Path:
        return self.cdi / f"k8s.{self.driver}-claim_{uid}.json"

    def gate(self, name: str) -> Path:
        """What a device ``slow-<name>`` waits for; see :func:`open_gate`."""
        path = self.folder / f"gate-{name}"
        os.mkfifo(path)
        return path

    def diary(self) -> list[str]:
        """What the vendor's driver was asked to do: ``prepare <uid>``, ``unprepare <uid>``."""
        path = self.folder / "diary"
        return path.read_text().splitlines() if path.exists() else []


def open_gate(path: Path) -> None:
    """Let the one who waits at a gate go on; waits until there is one."""
    path.write_bytes(b"")


class Server(Protocol):
    """The part of a control plane that claims need."""

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """One JSON call as administrator."""


@dataclass(frozen=True)
class Result:
    """One entry of an allocation; ``request`` may be ``main/sub``."""

    device: str
    driver: str = GPU
    request: str = "gpu"
    share: str | None = None
    admin: bool = False


@dataclass
class Claims:
    """Claims in the cluster, in the namespace ``default``."""

    server: Server
    node: str
    _made: list[str] = field(default_factory=list)

    def make(self, results: Sequence[Result] | None) -> tuple[str, str, str]:
        """A claim with this allocation (None: without one), as the kubelet names it."""
        name = f"claim-{uuid.uuid4().hex[:12]}"
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": _requests(results or ())}},
        }
        made = self.server.api("POST", _PATH, body)
        self._made.append(name)
        if results is not None:
            made["status"] = {"allocation": {"devices": {"results": self._results(results)}}}
            self.server.api("PUT", f"{_PATH}/{name}/status", made)
        return "default", name, made["metadata"]["uid"]

    def delete(self, name: str) -> None:
        self.server.api("DELETE", f"{_PATH}/{name}")
        self._made.remove(name)

    def delete_all(self) -> None:
        for name in list(self._made):
            self.delete(name)

    def _results(self, results: Sequence[Result]) -> list[dict[str, Any]]:
        found = []
        for one in results:
            entry: dict[str, Any] = {
                "request": one.request,
                "driver": one.driver,
                "pool": self.node,
                "device": one.device,
            }
            if one.admin:
                entry["adminAccess"] = True
            if one.share:
                entry["shareID"] = one.share
                entry["consumedCapacity"] = {"memory": "1Gi"}
            found.append(entry)
        return found


_PATH = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def _requests(results: Sequence[Result]) -> list[dict[str, Any]]:
    """What the results can be an answer to."""
    by_name: dict[str, dict[str, Any]] = {}
    for request in [r.request for r in results] or ["gpu"]:
        main, _, sub = request.partition("/")
        device = {"deviceClassName": GPU, "allocationMode": "All"}
        if sub:
            entry = by_name.setdefault(main, {"name": main, "firstAvailable": []})
            entry["firstAvailable"].append({"name": sub, **device})
        else:
            by_name[main] = {"name": main, "exactly": device}
    return list(by_name.values())

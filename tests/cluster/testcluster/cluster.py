"""A running cluster: starting it, speaking to it, taking it down."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import control_plane, kubeconfig, network, node_setup, packages, processes, record, teardown
from .api import Client, plain_status
from .deadline import wait_until
from .errors import ApiError, ClusterError, StartFailed
from .node import Node
from .pki import Authority
from .record import Layout, Record

KUBECTL_SECONDS = 120.0


class Cluster:
    """One cluster, started here or by another process.

    ``name`` and ``run`` (its folder) tell it from others, ``kubeconfig`` is the administrator's,
    ``node`` is its real node if it has one.
    """

    def __init__(self, content: Record) -> None:
        self.record = content
        self.name = content.options.name
        self.run = content.layout.run
        self.url = content.url
        self.version = content.options.version
        self.kubeconfig = content.layout.kubeconfigs / "admin"
        self.node = Node(self) if content.options.node else None

    @property
    def layout(self) -> Layout:
        """Where its files are."""
        return self.record.layout

    @property
    def authority(self) -> Authority:
        """The certificate authority of the cluster."""
        return Authority(self.layout.pki)

    # -- speaking to it

    def api(self, method: str, path: str, body: Any = None, *, patch: str = "merge") -> Any:
        """One JSON call as administrator; see :meth:`.api.Client.call`."""
        pki = self.layout.pki
        client = Client(self.url, pki / "ca.crt", pki / "admin.crt", pki / "admin.key")
        return client.call(method, path, body, patch=patch)

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
        kubeconfig: Path | None = None,
    ) -> str:
        """What kubectl prints to standard output.

        ``kubeconfig`` is another user's. With ``check`` a failure raises :class:`ClusterError` with
        the error output; without, what it printed to either stream is returned.
        """
        done = subprocess.run(
            self.kubectl_command(*arguments, kubeconfig=kubeconfig),
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=KUBECTL_SECONDS,
            check=False,
        )
        if check and done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout if check else done.stdout + done.stderr

    def kubectl_command(self, *arguments: str, kubeconfig: Path | None = None) -> list[str]:
        """The command line for ``kubectl ARGUMENTS``."""
        return [
            self.record.program("kubectl"),
            f"--kubeconfig={kubeconfig or self.kubeconfig}",
            f"--cache-dir={self.run / 'kubectl-cache'}",
            *arguments,
        ]

    def kubectl_json(self, *arguments: str, input: str | None = None) -> Any:  # noqa: A002
        """What ``kubectl ARGUMENTS -o json`` prints, decoded."""
        return json.loads(self.kubectl(*arguments, "-o", "json", input=input))

    def kubeconfig_for(
        self, user: str, groups: Iterable[str] = (), path: Path | None = None
    ) -> Path:
        """A kubeconfig with a client certificate for any user, in any groups.

        Such a user has only the rights that RBAC gives it. ``path`` defaults to a file in the run
        folder, named after the user.
        """
        slug = re.sub(r"[^a-z0-9.-]+", "_", user.lower())
        file = f"user-{slug}-{os.urandom(3).hex()}"
        certificate, key = self.authority.issue(file, user=user, groups=tuple(groups))
        content = kubeconfig.document(
            self.url, self.authority.certificate, user, certificate=certificate, key=key
        )
        return kubeconfig.write(path or self.layout.kubeconfigs / file, content)

    def service_account_token(
        self,
        namespace: str,
        name: str,
        *,
        node: str | None = None,
        pod: str | None = None,
        seconds: int = 3600,
    ) -> str:
        """A token of a service account, bound to a node or a pod if one is named.

        A token bound to a pod also carries the node on which that pod runs, as a mounted one does.
        ``seconds`` is how long it is valid, at least 600.
        """
        if node and pod:
            raise ClusterError("a token is bound to a node or to a pod, not to both")
        spec: dict[str, Any] = {"expirationSeconds": seconds}
        if node or pod:
            path = f"nodes/{node}" if node else f"namespaces/{namespace}/pods/{pod}"
            bound = self.api("GET", f"/api/v1/{path}")["metadata"]
            spec["boundObjectRef"] = {
                "apiVersion": "v1",
                "kind": "Node" if node else "Pod",
                "name": bound["name"],
                "uid": bound["uid"],
            }
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return str(self.api("POST", path, request)["status"]["token"])

    def service_account_kubeconfig(
        self,
        namespace: str,
        name: str,
        *,
        node: str | None = None,
        pod: str | None = None,
        path: Path | None = None,
    ) -> Path:
        """A kubeconfig with such a token (valid for an hour)."""
        token = self.service_account_token(namespace, name, node=node, pod=pod)
        user = f"{namespace}.{name}"
        content = kubeconfig.document(self.url, self.authority.certificate, user, token=token)
        file = f"account-{user}-{os.urandom(3).hex()}"
        return kubeconfig.write(path or self.layout.kubeconfigs / file, content)

    # -- its components

    def components(self) -> dict[str, processes.Identity | None]:
        """Each component that belongs to the cluster, and its process if it is alive."""
        found: dict[str, processes.Identity | None] = {}
        for component in self.record.commands:
            identity = processes.read_pid_file(self.layout.pid_file(component))
            found[component] = identity if processes.alive(identity) else None
        return found

    def healthy(self) -> bool:
        """Whether the start was finished and every component is alive."""
        return self.record.ready and all(self.components().values())

    def start_component(self, component: str, *, seconds: float = 120) -> None:
        """Start a component and wait until it is ready; nothing if it is alive."""
        self.spawn(component)
        self.wait_ready(component, seconds=seconds)

    def stop_component(self, component: str, *, kill: bool = False) -> None:
        """Stop a component: SIGTERM and, 10 s later or at once with ``kill``, SIGKILL."""
        identity = self.components()[component]
        if identity and processes.stop([identity], grace=0 if kill else 10):
            raise ClusterError(f"{component} (pid {identity.pid}) does not end")

    def spawn(self, component: str) -> None:
        """Start a component without waiting for it; nothing if it is alive."""
        if self.components()[component]:
            return
        processes.spawn(
            self.record.commands[component],
            run=self.run,
            pid_file=self.layout.pid_file(component),
            log=self.layout.log(component),
            path=control_plane.search_path(self.record),
        )

    def wait_ready(self, component: str, *, seconds: float = 120) -> None:
        """Return once the component is ready; :class:`StartFailed` with its log if it is not."""

        def probe() -> bool:
            if not self.components()[component]:
                raise StartFailed(
                    f"{component} ended early; the end of its log:\n{self.tail(component)}"
                )
            return self._ready(component)

        wait_until(
            probe,
            seconds=seconds,
            what=lambda: f"{component} ready; the end of its log:\n{self.tail(component)}",
            ignore=(OSError, ApiError),
        )

    def _ready(self, component: str) -> bool:
        ports = self.record.ports
        if component == "etcd":
            return True  # the API server's readiness includes it
        if component == "kube-apiserver":
            return bool(self.api("GET", "/readyz") == "ok")
        if component in record.OPTIONAL:
            client = self._loopback(ports[component])
            path = "/readyz" if component == "kube-scheduler" else "/healthz"
            return bool(client.call("GET", path) == "ok")
        if component == "containerd":
            return self.require_node().runtime_answers()
        port = node_setup.HEALTH_PORTS[component]
        return plain_status(self.record.node_address, port, "/healthz") == 200

    def _loopback(self, port: int) -> Client:
        pki = self.layout.pki
        url = f"https://{network.LOOPBACK}:{port}"
        return Client(url, pki / "ca.crt", pki / "admin.crt", pki / "admin.key")

    def tail(self, component: str, lines: int = 20) -> str:
        """The last lines of a component's log."""
        try:
            text = self.layout.log(component).read_text(errors="replace")
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:])

    def require_node(self) -> Node:
        """The node; :class:`ClusterError` if the cluster has none."""
        if self.node is None:
            raise ClusterError(f"cluster {self.name} was started without a node")
        return self.node

    def watch(self, pid: int) -> None:
        """Take the cluster down when the process ``pid`` ends, however it ends."""
        owner = processes.of_pid(pid)
        if owner is None:
            raise ClusterError(f"no process {pid} to watch")
        source = Path(__file__).resolve().parent.parent
        processes.spawn(
            [
                *(sys.executable, "-P", "-m", "testcluster", "watch"),
                *(f"--name={self.name}", f"--pid={owner.pid}", f"--started={owner.started}"),
            ],
            run=self.run,
            pid_file=self.layout.pid_file(teardown.WATCHER),
            log=self.layout.log(teardown.WATCHER),
            path=packages.search_path(),
            extra={"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
            marked=False,
        )

"""The real node of a running cluster: what tests of node plugins need to know and do."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from . import network
from .deadline import wait_until
from .errors import ApiError, ClusterError

if TYPE_CHECKING:
    from .cluster import Cluster

SECONDS = 120.0
"""How long a program may take."""


class Node:
    """The node of the cluster ``owner``.

    ``name`` is the Node object's, ``address`` its InternalIP. Plugins put their sockets into
    ``plugins`` and ``registry`` and their CDI specs into ``cdi_dir``.
    """

    def __init__(self, owner: Cluster) -> None:
        self._cluster = owner
        self.name = owner.record.options.node_name
        self.address = owner.record.node_address
        self.kubelet_root = owner.layout.kubelet
        self.plugins = self.kubelet_root / "plugins"
        self.registry = self.kubelet_root / "plugins_registry"
        self.cdi_dir = owner.layout.cdi
        self.pod_logs = owner.run / "pod-logs"
        self.containerd_socket = owner.layout.containerd_socket

    def stop_kubelet(self, *, kill: bool = False) -> None:
        """Stop the kubelet; pods run on."""
        self._cluster.stop_component("kubelet", kill=kill)

    def start_kubelet(self) -> None:
        """Start the kubelet again and wait until it is healthy and knows its pods.

        Until then it answers questions about a pod (logs, exec) with "not found".
        """
        self._cluster.start_component("kubelet")
        wait_until(
            self._knows_its_pods,
            seconds=60,
            what="the kubelet knows its pods",
            ignore=(OSError, ApiError),
        )

    def _knows_its_pods(self) -> bool:
        call = self._cluster.api
        wanted = call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={self.name}")["items"]
        # null, not an empty list, as long as it knows none
        known = call("GET", f"/api/v1/nodes/{self.name}/proxy/pods")["items"] or []
        uids = [{pod["metadata"]["uid"] for pod in pods} for pods in (wanted, known)]
        return uids[0] <= uids[1]

    def restart_kubelet(self, *, kill: bool = False) -> None:
        """Stop and start the kubelet; its memory of prepared claims is gone then."""
        self.stop_kubelet(kill=kill)
        self.start_kubelet()

    def crictl(self, *arguments: str, check: bool = True) -> str:
        """What crictl prints."""
        endpoint = f"unix://{self.containerd_socket}"
        # An empty configuration file: the machine's own, if any, names another runtime.
        options = ["--config=/dev/null", f"-r={endpoint}", f"-i={endpoint}"]
        return self._run("crictl", *options, *arguments, check=check)

    def ctr(self, *arguments: str, check: bool = True) -> str:
        """What ctr prints, in the namespace of the kubelet's containers."""
        options = [f"--address={self.containerd_socket}", "--namespace=k8s.io"]
        return self._run("ctr", *options, *arguments, check=check)

    def import_image(self, archive: Path) -> None:
        """Make the images of an OCI (or docker) archive known to the kubelet."""
        self.ctr("images", "import", str(archive))

    def runtime_answers(self) -> bool:
        """Whether containerd answers."""
        return "RuntimeVersion" in self.crictl("version", check=False)

    def ready(self) -> bool:
        """Whether the Node object says that the node is ready."""
        found = self._cluster.api("GET", f"/api/v1/nodes/{self.name}")
        conditions = found.get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def _run(self, program: str, *arguments: str, check: bool) -> str:
        done = subprocess.run(
            # exec and port-forward go to a port that containerd opens in there.
            [
                *network.inside(self._cluster.name),
                self._cluster.record.program(program),
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if check and done.returncode != 0:
            raise ClusterError(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout if check else done.stdout + done.stderr

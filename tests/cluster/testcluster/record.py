"""What a cluster is: what was asked for, and what was made of it.

Both are kept in ``cluster.json`` in the run folder, written before the first effect, so that any
later process can tell the state, restart a component, or clear the ruins of a start that was
killed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import paths, versions
from .errors import ClusterError

DOCUMENT = 1
"""The version of ``cluster.json``."""

REQUIRED = ("etcd", "kube-apiserver")
OPTIONAL = ("kube-controller-manager", "kube-scheduler")
NODE = ("containerd", "kubelet", "kube-proxy")
CAN_BE_LEFT_OUT = (*OPTIONAL, "kube-proxy")


@dataclass(frozen=True)
class Options:
    """What a cluster should be.

    ``gates`` is read by :func:`versions.gates`, ``controllers`` is the value of the controller
    manager's flag of that name (``*,-x``), ``without`` names components to leave out, ``flags``
    adds flags per component (a later flag wins), ``node`` asks for one real node, ``node_name``.
    """

    name: str
    version: str = versions.DEFAULT
    gates: str = "all"
    controllers: str = "*"
    without: tuple[str, ...] = ()
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    node: bool = False
    node_name: str = "node-1"

    def checked(self) -> Options:
        """The same with what can be known to be wrong refused (:class:`ClusterError`)."""
        paths.check_name(self.name)
        version = versions.find(self.version)
        versions.gates(version, self.gates)
        for component in self.without:
            if component not in CAN_BE_LEFT_OUT:
                raise ClusterError(
                    f"cannot do without {component}: only without {', '.join(CAN_BE_LEFT_OUT)}"
                )
        for component in self.flags:
            if component not in REQUIRED + OPTIONAL + NODE:
                raise ClusterError(f"flags for {component}: no such component")
        if self.node and "kubelet" not in version.components:
            raise ClusterError(f"no node with {version.number}: only its control plane is built")
        return dataclasses.replace(self, version=version.number)


@dataclass
class Record:
    """What became of the options.

    ``address`` is where the API server listens, ``node_address`` the node's, ``pods`` the network
    of its pods. ``commands`` holds the command line of each component in starting order.
    ``kernel_settings`` and ``host_folders`` (folders outside the run folder that were not there
    before) are what taking down has to restore.
    """

    options: Options
    binaries: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    node_address: str = ""
    url: str = ""
    pods: str = ""
    ports: dict[str, int] = field(default_factory=dict)
    commands: dict[str, list[str]] = field(default_factory=dict)
    kernel_settings: dict[str, str] = field(default_factory=dict)
    host_folders: list[str] = field(default_factory=list)
    ready: bool = False

    @property
    def layout(self) -> Layout:
        """The folders of this cluster."""
        return Layout(paths.run_folder(self.options.name))

    def program(self, name: str) -> str:
        """The full path of a program that was built."""
        module = "tools" if name in {"etcd", "containerd", "ctr", "crictl"} else ""
        if not module:
            version = versions.find(self.options.version)
            module = version.module if name in version.components else "kube-1.37"
        return str(Path(self.binaries[module]) / name)

    def save(self) -> None:
        """Write the record in one step."""
        document = {"document": DOCUMENT, **dataclasses.asdict(self)}
        path = self.layout.record
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(document, indent=2) + "\n")
        temporary.replace(path)


def load(name: str) -> Record | None:
    """The record of the cluster ``name``; None if there is none that can be read."""
    path = Layout(paths.run_folder(name)).record
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        if document.pop("document") != DOCUMENT:
            return None
        options = document.pop("options")
        options["without"] = tuple(options["without"])
        options["flags"] = {n: tuple(flags) for n, flags in options["flags"].items()}
        return Record(Options(**options), **document)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def with_node(besides: str) -> list[Record]:
    """The records of the other clusters of this user that have a node, alive or in ruins."""
    found = [load(name) for name in paths.names() if name != besides]
    return [one for one in found if one is not None and one.options.node]


@dataclass(frozen=True)
class Layout:
    """Where things lie in a run folder."""

    run: Path

    @property
    def record(self) -> Path:
        """Options and state."""
        return self.run / "cluster.json"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.run / "pki"

    @property
    def pids(self) -> Path:
        """One pid file per component."""
        return self.run / "pid"

    @property
    def logs(self) -> Path:
        """One log per component."""
        return self.run / "log"

    @property
    def kubeconfigs(self) -> Path:
        """One kubeconfig per user."""
        return self.run / "kubeconfig"

    @property
    def config(self) -> Path:
        """Configuration files of the components."""
        return self.run / "etc"

    @property
    def kubelet(self) -> Path:
        """The kubelet's root folder."""
        return self.run / "kubelet"

    @property
    def cdi(self) -> Path:
        """The only folder in which containerd looks for CDI specs."""
        return self.run / "cdi"

    @property
    def containerd(self) -> Path:
        """Images, snapshots and state of containerd."""
        return self.run / "containerd"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens."""
        return self.containerd / "c.sock"

    def pid_file(self, component: str) -> Path:
        """The pid file of a component."""
        return self.pids / component

    def log(self, component: str) -> Path:
        """The log of a component."""
        return self.logs / f"{component}.log"

    def create(self) -> None:
        """Make the folders that every cluster has."""
        for folder in (self.pki, self.pids, self.logs, self.kubeconfigs, self.config):
            folder.mkdir(mode=0o700, exist_ok=True)

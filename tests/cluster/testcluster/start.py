"""Starting a cluster.

The order follows what each part needs: record, certificates, etcd and API server, the rest of the
control plane, then the node. Whatever goes wrong or interrupts, what was started so far is taken
down again; only a kill leaves ruins, and the next start of that name (or ``down``) clears them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from . import (
    build,
    control_plane,
    locks,
    network,
    node_setup,
    packages,
    paths,
    record,
    teardown,
    versions,
)
from .cluster import Cluster
from .deadline import DeadlineExceeded, wait_until
from .errors import ApiError, ClusterError, StartFailed, Unavailable
from .progress import Progress
from .record import Options, Record

ATTEMPTS = 3
"""How often a start is tried when somebody else took a port."""


def up(options: Options, progress: Progress, *, owner: int | None = None) -> Cluster:
    """Start a cluster and return it ready.

    One that is up with the same options is returned as it is. With ``owner`` (a pid) a small
    process watches over that one and takes the cluster down when it ends.

    Raises :class:`StartFailed` with the log of the component that failed, and any other
    :class:`ClusterError`.
    """
    options = options.checked()
    binaries = provide(options, progress)
    with _locked(options.name, progress):
        if found := record.load(options.name):
            running = Cluster(found)
            if running.healthy():
                if found.options == options:
                    return running
                raise ClusterError(
                    f"cluster {options.name} is up with other options: take it down first"
                )
        if paths.run_folder(options.name).exists():
            progress.say(f"cluster {options.name}: clearing what an earlier run left")
            teardown.remove(options.name, progress)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return _start(options, binaries, progress, owner)
            except StartFailed as error:
                _clear(options.name, progress)
                if attempt == ATTEMPTS or "address already in use" not in str(error):
                    raise
                progress.say("somebody else took a port: once more with other ones")
            except BaseException:
                _clear(options.name, progress)
                raise
        raise AssertionError("not reached")


def down(name: str, progress: Progress) -> None:
    """Take the cluster ``name`` down, whatever state it is in; nothing if there is none."""
    with _locked(name, progress):
        teardown.remove(name, progress)


def provide(options: Options, progress: Progress) -> dict[str, str]:
    """Install and build what the cluster needs; returns the folders with programs by module."""
    if options.node and (reason := node_setup.unavailable()):
        raise Unavailable(reason)
    packages.ensure(packages.FOR_NODE if options.node else packages.FOR_CONTROL_PLANE, progress)
    modules = control_plane.modules(versions.find(options.version))
    return {module: str(build.ensure(module, progress)) for module in modules}


def _locked(name: str, progress: Progress) -> AbstractContextManager[None]:
    paths.check_name(name)
    said: list[bool] = []

    def waiting() -> None:
        if not said:
            said.append(True)
            progress.say(f"cluster {name}: waiting for another run that starts or stops it")

    return locks.held(f"cluster-{name}", seconds=300, waiting=waiting)


def _clear(name: str, progress: Progress) -> None:
    """Take down after a failed start, without hiding why it failed."""
    try:
        teardown.remove(name, progress)
    except ClusterError as error:
        progress.say(str(error))


def _start(
    options: Options, binaries: dict[str, str], progress: Progress, owner: int | None
) -> Cluster:
    paths.make_run_folder(options.name)
    content = Record(options, binaries)
    content.layout.create()
    content.save()
    _reserve(content)
    cluster = Cluster(content)
    if owner is not None:
        cluster.watch(owner)
    authority = control_plane.write_credentials(content)
    control_plane.write_configuration(content)
    content.commands = control_plane.commands(content)
    if options.node:
        content.commands |= node_setup.prepare(content, authority)
    content.save()
    _start_control_plane(cluster, progress)
    if options.node:
        _start_node(cluster, progress)
    content.ready = True
    content.save()
    return cluster


def _reserve(content: Record) -> None:
    """Ports and, for a node, its network; what has to be undone is recorded first."""
    content.address = network.LOOPBACK
    if content.options.node:
        # The last node to go restores what was there before the first one came.
        others = record.with_node(besides=content.options.name)
        first = others[0] if others else None
        content.kernel_settings = first.kernel_settings if first else network.kernel_settings()
        content.host_folders = first.host_folders if first else node_setup.absent_host_folders()
        content.save()
        # Between looking for a free network and taking it nobody else may look.
        with locks.held("network", seconds=60):
            made = network.add_node(content.options.name)
        content.address, content.node_address, content.pods = made.machine, made.node, made.pods
    ports = network.free_ports(len(control_plane.PORTS))
    content.ports = dict(zip(control_plane.PORTS, ports, strict=True))
    content.url = f"https://{content.address}:{content.ports['kube-apiserver']}"
    content.save()


def _start_control_plane(cluster: Cluster, progress: Progress) -> None:
    options = cluster.record.options
    with progress.step(f"cluster {cluster.name}: API server {options.version} at {cluster.url}"):
        cluster.spawn("etcd")
        cluster.spawn("kube-apiserver")
        if options.node:
            cluster.spawn("containerd")
        _ready(cluster, "kube-apiserver")
    rest = [name for name in record.OPTIONAL if name in cluster.record.commands]
    if rest:
        with progress.step(f"cluster {cluster.name}: {' and '.join(rest)}"):
            for component in rest:
                cluster.spawn(component)
            for component in rest:
                _ready(cluster, component)
    if "kube-controller-manager" in rest and options.controllers == "*":
        # Until it is there, every pod without a service account of its own is refused.
        _await(
            lambda: bool(cluster.api("GET", "/api/v1/namespaces/default/serviceaccounts/default")),
            "the service account of the default namespace",
        )


def _start_node(cluster: Cluster, progress: Progress) -> None:
    machine = cluster.require_node()
    with progress.step(f"cluster {cluster.name}: containerd and its images"):
        _ready(cluster, "containerd")
        for archive in node_setup.image_archives():
            machine.import_image(archive)
    with progress.step(f"cluster {cluster.name}: kubelet, node {machine.name}"):
        rest = [name for name in ("kubelet", "kube-proxy") if name in cluster.record.commands]
        for component in rest:
            cluster.spawn(component)
        for component in rest:
            _ready(cluster, component)
        try:
            _await(machine.ready, f"node {machine.name} ready")
        except DeadlineExceeded as error:
            raise StartFailed(f"{error}; the kubelet's log:\n{cluster.tail('kubelet')}") from error


def _ready(cluster: Cluster, component: str) -> None:
    try:
        cluster.wait_ready(component)
    except DeadlineExceeded as error:
        raise StartFailed(str(error)) from error


def _await(probe: Callable[[], bool], what: str) -> None:
    wait_until(probe, seconds=90, what=what, ignore=(OSError, ApiError))

"""Taking a cluster down, whole or in ruins.

There is one way down, and it does not rely on the cluster being well: it asks nobody, looks for
what is there, and may be run again. Order: processes first (else they make new mounts and links),
then what they held in the kernel, then the settings outside, the folder last, for it holds the
record of what is left to do.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import cgroups, network, paths, processes, record
from .errors import ClusterError
from .progress import Progress

GRACE = 0.2
"""Seconds for a component to end by itself; all data goes anyway."""

WATCHER = "watcher"


def remove(name: str, progress: Progress) -> None:
    """Leave nothing of the cluster ``name``; raises :class:`ClusterError` naming what stays."""
    run = paths.run_folder(name)
    was_there = run.exists()
    if was_there:
        paths.check_ours(run)
    found = record.load(name)
    has_node = found is not None and found.options.node
    left: list[str] = []
    with processes.signals_held():
        left += [f"process {identity.pid}" for identity in _stop_processes(name, run)]
        left += [f"mount {path}" for path in _unmount(run)]
        left += network.remove_node(name)
        left += [f"cgroup {path}" for path in cgroups.remove(name)]
        if found is not None and has_node:
            _remove_shim_sockets(run)
            _remove_log_links(run)
            _remove_pod_results(name)
            if not record.with_node(besides=name):
                _remove_host_folders(found.host_folders)
                network.restore_kernel_settings(found.kernel_settings)
        if not left and run.exists():
            shutil.rmtree(run)
    if left:
        raise ClusterError(f"cluster {name}: could not remove {', '.join(left)}; {run} is kept")
    progress.say(f"cluster {name}: {'removed' if was_there else 'none was there'}")


def _stop_processes(name: str, run: Path) -> list[processes.Identity]:
    layout = record.Layout(run)
    if run.exists():
        watcher = processes.read_pid_file(layout.pid_file(WATCHER))
        if watcher and watcher.pid != os.getpid():
            processes.stop([watcher], grace=0)
        files = [f for f in layout.pids.glob("*") if f.name != WATCHER and f.suffix != ".new"]
        known = [identity for file in files if (identity := processes.read_pid_file(file))]
        processes.stop(known, grace=GRACE)
    # Whoever started while we looked is caught by the next round.
    left: list[processes.Identity] = []
    for _ in range(5):
        left = [*processes.marked(run), *cgroups.processes(name)]
        if not left:
            break
        processes.stop(left, grace=0)
    return left


def mounts_below(run: Path) -> list[str]:
    """The mount points below ``run``, the innermost first."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), line.split(" ")[4])
        if Path(point).is_relative_to(run):
            found.append(point)
    return found[::-1]


def _unmount(run: Path) -> list[str]:
    for option in ((), ("-l",)):
        points = mounts_below(run)
        if points:
            subprocess.run(["umount", *option, *points], capture_output=True, check=False)
    return mounts_below(run)


def _remove_shim_sockets(run: Path) -> None:
    """Remove the sockets of shims that were killed: containerd puts them into /run, always."""
    states = run / "containerd" / "state" / "io.containerd.runtime.v2.task"
    for file in states.glob("*/*/bootstrap.json"):
        with contextlib.suppress(OSError, ValueError, TypeError):
            address = str(json.loads(file.read_text()).get("address", ""))
            socket = Path(address.removeprefix("unix://"))
            if socket.parent == Path("/run/containerd/s"):
                socket.unlink(missing_ok=True)


def _remove_log_links(run: Path) -> None:
    folder = Path("/var/log/containers")
    for link in folder.glob("*.log"):
        with contextlib.suppress(OSError):  # gone meanwhile, or no link
            if link.readlink().is_relative_to(run):
                link.unlink()


def _remove_pod_results(name: str) -> None:
    for file in Path("/var/lib/cni/results").glob(f"drg-{name}-*"):
        file.unlink()


def _remove_host_folders(folders: list[str]) -> None:
    """Remove folders that came with our node, unless something of others lies in them."""
    for folder in folders:
        top = Path(folder)
        if not top.is_dir() or top.is_symlink():
            continue
        for path in sorted(top.rglob("*"), reverse=True):
            if path.is_socket() or path.name in {
                "cpu_manager_state",
                "kubelet_internal_checkpoint",
            }:
                path.unlink()
            elif path.is_dir() and not path.is_symlink():
                _remove_if_empty(path)
        _remove_if_empty(top)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return

"""A cgroup tree of our own, so that a node's pods are found, and only they.

The kubelet insists that its ``cgroupRoot`` is there before it starts, in every hierarchy. Works on
cgroup v1 (a hierarchy per controller) and v2 (one for all).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .deadline import DeadlineExceeded, wait_until
from .processes import Identity, of_pid

_MOUNTS = Path("/sys/fs/cgroup")


def root_name(name: str) -> str:
    """The path of the cluster ``name`` within each hierarchy."""
    return f"/dragoman-{name}"


def _hierarchies() -> list[Path]:
    if (_MOUNTS / "cgroup.controllers").exists():
        return [_MOUNTS]
    # On v1 a controller that is mounted with another one has a symbolic link as well.
    return sorted(p for p in _MOUNTS.iterdir() if p.is_dir() and not p.is_symlink())


def create(name: str) -> None:
    """Make the tree of the cluster ``name``."""
    if (_MOUNTS / "cgroup.controllers").exists():
        # On v2 a folder has those controllers only that the one above it hands down.
        for controller in (_MOUNTS / "cgroup.controllers").read_text().split():
            with contextlib.suppress(OSError):
                (_MOUNTS / "cgroup.subtree_control").write_text(f"+{controller}")
    for hierarchy in _hierarchies():
        folder = hierarchy / root_name(name).lstrip("/")
        folder.mkdir(exist_ok=True)
        # A new v1 cpuset has no processors, and no process may enter it.
        for setting in ("cpuset.mems", "cpuset.cpus"):
            own, above = folder / setting, hierarchy / setting
            if own.exists() and above.exists() and not own.read_text().strip():
                own.write_text(above.read_text())


def processes(name: str) -> list[Identity]:
    """Every process in the tree."""
    pids: set[int] = set()
    for folder in _folders(name):
        try:
            pids.update(int(line) for line in (folder / "cgroup.procs").read_text().split())
        except OSError:
            continue
    return [identity for pid in pids if pid and (identity := of_pid(pid))]


def remove(name: str) -> list[Path]:
    """Remove the tree, whose processes must be gone; returns what could not be removed."""

    def gone() -> bool:
        for folder in _folders(name):
            try:
                folder.rmdir()
            except OSError:
                continue
        return not any(True for _ in _folders(name))

    try:
        # The kernel needs a moment to notice that the last process has gone.
        wait_until(gone, seconds=3, what="removed cgroups", pause=0.05)
    except DeadlineExceeded:
        return list(_folders(name))
    return []


def _folders(name: str) -> Iterator[Path]:
    """All folders of the tree, the deepest first."""
    for hierarchy in _hierarchies():
        top = hierarchy / root_name(name).lstrip("/")
        if top.is_dir():
            # What vanishes meanwhile does not matter to this walk.
            yield from sorted((Path(place) for place, _, _ in os.walk(top)), reverse=True)

"""Where things lie: builds in a cache that stays, a running cluster in a folder that goes.

The run folder's path is short, because unix sockets live below it: a driver's socket at
``<run>/kubelet/plugins/<driver>/<uid>.sock`` must fit into the 107 bytes that the kernel allows.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

from .errors import ClusterError

SOURCES = Path(__file__).resolve().parent.parent / "go"
SOCKET_PATH_LIMIT = 107
"""Bytes of a unix socket's path, without the closing zero (``sun_path`` has 108)."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,14}[a-z0-9])?")
_PREFIX = "drg-"
# "/kubelet/plugins_registry/" takes 26; the rest is for the name that a driver gives its socket.
_ROOM_FOR_SOCKETS = 70


def cache() -> Path:
    """The folder for builds and images; ``DRAGOMAN_CACHE`` moves it."""
    if chosen := os.environ.get("DRAGOMAN_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dragoman"


def check_name(name: str) -> str:
    """``name`` itself if it may name a cluster: 1 to 16 of a-z, 0-9 and inner hyphens."""
    if not _NAME.fullmatch(name):
        raise ClusterError(
            f"cluster name {name!r}: use 1 to 16 characters of a-z, 0-9 and inner hyphens"
        )
    return name


def run_folder(name: str) -> Path:
    """Where the cluster ``name`` runs; it need not exist."""
    folder = Path(tempfile.gettempdir()) / f"{_PREFIX}{check_name(name)}"
    room = SOCKET_PATH_LIMIT - len(os.fsencode(folder))
    if room < _ROOM_FOR_SOCKETS:
        raise ClusterError(
            f"{folder} leaves {room} bytes for the paths of unix sockets and "
            f"{_ROOM_FOR_SOCKETS} are needed: set TMPDIR to a shorter folder, such as /tmp"
        )
    return folder


def make_run_folder(name: str) -> Path:
    """Make the run folder, for this user only.

    The parent is world-writable, so a folder that is there already must be ours, a real folder,
    and closed to others; raises :class:`ClusterError` otherwise.
    """
    folder = run_folder(name)
    folder.mkdir(mode=0o700, parents=False, exist_ok=True)
    check_ours(folder)
    return folder


def check_ours(folder: Path) -> None:
    """Raise :class:`ClusterError` unless ``folder`` is a real folder that only we can enter."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ClusterError(f"{folder} is not a folder of this user: remove it or set TMPDIR")
    if found.st_mode & 0o077:
        raise ClusterError(f"{folder} is open to other users: chmod 700 it or remove it")


def names() -> list[str]:
    """The names of all clusters of this user that have a run folder, alive or in ruins."""
    found = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        name = folder.name.removeprefix(_PREFIX)
        try:
            ours = folder.lstat()
        except FileNotFoundError:
            continue
        if _NAME.fullmatch(name) and stat.S_ISDIR(ours.st_mode) and ours.st_uid == os.geteuid():
            found.append(name)
    return sorted(found)

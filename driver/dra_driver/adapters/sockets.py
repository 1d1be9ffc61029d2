"""Unix sockets that a crash must not block and a second instance must not steal.

gRPC removes whatever stands at a path before it binds there, so ownership is settled first: a lock
file beside the service socket belongs to whoever holds the lock on it (the kernel releases it with
the process), and a socket is removed only after a connection to it was refused.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dra_core import names
from dra_core.errors import DraError, StorageError
from dra_core.names import DriverName, PodUID
from dra_driver.adapters import files


class SocketInUse(DraError):
    """Another instance serves this path."""


@dataclass(frozen=True, slots=True)
class SocketPaths:
    """Where this instance serves."""

    service: Path
    registration: Path

    @property
    def lock(self) -> Path:
        """The file whose lock guards both."""
        return self.service.with_suffix(".lock")


def paths(
    plugin_dir: Path, registry_dir: Path, driver: DriverName, pod_uid: PodUID | None
) -> SocketPaths:
    """The socket paths of an instance; raises InvalidName where one is too long."""
    service = plugin_dir / names.service_socket_name(pod_uid, _room(plugin_dir))
    names.check_socket_path("service socket", str(service))
    registration = registry_dir / names.registration_socket_name(
        driver, pod_uid, _room(registry_dir)
    )
    names.check_socket_path("registration socket", str(registration))
    return SocketPaths(service, registration)


def _room(folder: Path) -> int:
    """Bytes that the limit of socket paths leaves for a name in ``folder``."""
    return names.SOCKET_PATH_MAX - len(os.fsencode(folder)) - 1


def make_folders(where: SocketPaths) -> None:
    """Make the plugin's folder and the registry, and see that sockets can be made there."""
    for path, mode in ((where.service, 0o750), (where.registration, 0o750)):
        folder = path.parent
        try:
            folder.mkdir(mode=mode, parents=True, exist_ok=True)
            probe = folder / f".probe-{uuid.uuid4().hex}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise StorageError(
                f"socket folder {folder} is not writable ({error.strerror}); "
                "run as root, or choose another folder"
            ) from error


@contextlib.contextmanager
def owned(where: SocketPaths) -> Iterator[None]:
    """Hold the right to serve at ``where``; raises SocketInUse if another instance has it."""
    descriptor = _lock(where.lock)
    try:
        yield
    finally:
        files.unlock(where.lock, descriptor)


def _lock(path: Path) -> int:
    descriptor = files.lock(path, wait=False)
    if descriptor is None:
        raise SocketInUse(
            f"another instance of this driver holds {path}; stop it, or give each a "
            "--pod-uid so that they can serve side by side"
        )
    return descriptor


def remove_dead(path: Path) -> bool:
    """Remove the socket at ``path`` if nobody serves it; True if something was removed."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise StorageError(f"{path} exists and is no socket; move it away")
    except FileNotFoundError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return True
        except OSError as error:
            raise StorageError(f"cannot tell whether {path} is in use: {error.strerror}") from error
    raise SocketInUse(f"{path} is served by another process; stop it first")


def remove_dead_of_others(where: SocketPaths, driver: DriverName) -> list[Path]:
    """Remove what instances with other pod UIDs left behind; live ones stay."""
    for lock in where.service.parent.glob("dra*.lock"):
        if lock != where.lock:
            with contextlib.suppress(OSError):
                files.remove_abandoned(lock)
    removed = []
    candidates = [
        p
        for p in where.registration.parent.iterdir()
        if names.is_registration_socket(driver, p.name)
    ] + [p for p in where.service.parent.glob("dra*.sock") if p.is_socket()]
    for path in candidates:
        if path in (where.service, where.registration):
            continue
        with contextlib.suppress(SocketInUse, StorageError):
            if remove_dead(path):
                removed.append(path)
    return removed

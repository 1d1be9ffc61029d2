"""CDI files on disk: atomic, durable, one for each claim."""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from pathlib import Path

from dra_core import cdi
from dra_core.errors import StorageError
from dra_core.names import ClaimUID, DriverName

#: Runtimes read files that end in .json or .yaml only.
_TEMPORARY = ".tmp"


def write_atomically(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write to a temporary name in the same folder, fsync, rename, fsync the folder.

    The temporary file is locked while it is being written, so that another instance which cleans
    up (:meth:`CdiFolder.open`) can tell it from one that a crash left behind.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{_TEMPORARY}")
    try:
        with os.fdopen(_create_locked(temporary, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def _create_locked(path: Path, mode: int) -> int:
    """A new file that nobody has taken for an abandoned one before we locked it."""
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def remove_abandoned(path: Path) -> bool:
    """Remove ``path`` unless a process holds a lock on it; True if it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def sync_folder(folder: Path) -> None:
    """Make renames and removals in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(path: Path, *, wait: bool) -> int | None:
    """Hold the lock of ``path`` until :func:`unlock` or the end of the process.

    None if another process holds it and ``wait`` is false. Whoever unlocks removes the file, so a
    lock counts only if the file is still the one at ``path``.
    """
    mode = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"cannot open the lock file {path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, mode)
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except FileNotFoundError:
            pass  # its last owner removed it between our open and our lock: once more
        except OSError as error:
            os.close(descriptor)
            raise StorageError(f"cannot lock {path}: {error.strerror}") from error
        os.close(descriptor)


def unlock(path: Path, descriptor: int) -> None:
    """Give up what :func:`lock` returned."""
    with contextlib.suppress(OSError):
        path.unlink()
    os.close(descriptor)


class CdiFolder:
    """The CDI files of one driver in a folder that the container runtime reads.

    Two instances of a driver may use it at once (a rolling update): files are replaced as a whole,
    and only temporary files that nobody writes are cleaned up.
    """

    def __init__(self, folder: Path, driver: DriverName) -> None:
        self._folder = folder
        self._driver = driver

    def open(self) -> None:
        """Make the folder if need be, and remove what a killed write left behind."""
        try:
            self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            for path in self._folder.glob(f".*{_TEMPORARY}"):
                name = path.name.removeprefix(".").removesuffix(_TEMPORARY).rpartition(".")[0]
                if self._is_ours(name):
                    remove_abandoned(path)
            if not os.access(self._folder, os.W_OK):
                raise PermissionError(13, "not writable")
        except OSError as error:
            raise StorageError(
                f"CDI folder {self._folder} cannot be used: {error.strerror}"
            ) from error

    def _is_ours(self, name: str) -> bool:
        return cdi.claim_of_file(self._driver, name) is not None

    def write(self, claim: ClaimUID, document: bytes) -> bool:
        """See :class:`dra_driver.ports.CdiFiles`."""
        path = self._folder / cdi.file_name(self._driver, claim)
        with contextlib.suppress(OSError):
            if path.read_bytes() == document:
                return False
        if not self._folder.exists():
            with contextlib.suppress(OSError):
                self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_atomically(path, document)
        return True

    def devices(self) -> frozenset[str]:
        """Names of the devices that claims on this node have been prepared with."""
        found: set[str] = set()
        try:
            paths = [p for p in self._folder.iterdir() if self._is_ours(p.name)]
        except OSError:
            return frozenset()
        for path in paths:
            with contextlib.suppress(OSError):
                found |= cdi.devices_of(path.read_bytes())
        return frozenset(found)

    def trouble(self) -> str:
        """Why files written here would not be seen; empty if all is well."""
        try:
            if self._folder.stat().st_nlink == 0:
                return f"CDI folder {self._folder} was removed on the host"
        except FileNotFoundError:
            return ""  # made again with the next file
        except OSError as error:
            return f"CDI folder {self._folder} cannot be used: {error.strerror}"
        return ""

    def remove(self, claim: ClaimUID) -> bool:
        """See :class:`dra_driver.ports.CdiFiles`."""
        path = self._folder / cdi.file_name(self._driver, claim)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageError(f"cannot remove {path}: {error.strerror}") from error
        try:
            sync_folder(self._folder)
        except OSError as error:
            raise StorageError(f"cannot remove {path} durably: {error.strerror}") from error
        return True

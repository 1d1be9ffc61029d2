"""Locks between processes.

``flock`` on a file in the cache: the kernel lets go of it when its holder dies, however that
happens, so that no lock is ever stale.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from . import paths
from .deadline import wait_until


@contextmanager
def held(
    name: str, *, seconds: float = 3600, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the lock ``name``; ``waiting`` is called again and again while another one has it.

    Raises :class:`~.deadline.DeadlineExceeded` after ``seconds``.
    """
    folder = paths.cache() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take() -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            return False
        return True

    try:
        wait_until(take, seconds=seconds, what=f"another process holds {path}", pause=0.25)
        yield
    finally:
        os.close(descriptor)

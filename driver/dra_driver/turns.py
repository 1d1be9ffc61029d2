"""Which of several instances publishes: two that want different things would fight.

On a node a lock file says so, without a node a Lease. An instance asks before each write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from dra_driver.adapters import files
from dra_service.leadership import Leadership

#: Seconds for a running look at the Lease to end.
_GRACE: Final = 3.0


class Turn(Protocol):
    """Whether it is our turn."""

    def settle(self) -> None:
        """Wait until that is known, or :meth:`stop`."""

    def mine(self) -> bool:
        """Asked by the publishing thread only; does not wait."""

    def stop(self) -> None:
        """Make no more efforts to have or to keep it."""

    def end(self) -> None:
        """Let the next one publish. Called once nothing is written any more."""


class OnlyOne:
    """There is no other instance."""

    def settle(self) -> None:
        """At once."""

    def mine(self) -> bool:
        """Always."""
        return True

    def stop(self) -> None:
        """It was none."""

    def end(self) -> None:
        """Nothing to let go of."""


class LockTurn:
    """By a lock on a file of the node, which ends with the process at the latest."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._over = False

    def settle(self) -> None:
        """At once."""

    def mine(self) -> bool:
        """Takes the lock if it is free."""
        if self._descriptor is None and not self._over:
            self._descriptor = files.lock(self._path, wait=False)
        return self._descriptor is not None

    def stop(self) -> None:
        """Do not take it any more."""
        self._over = True

    def end(self) -> None:
        """Unlock."""
        self._over = True
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            files.unlock(self._path, descriptor)


class LeaseTurn:
    """By a Lease that a thread of its own takes and renews."""

    def __init__(self, leadership: Leadership) -> None:
        self.leadership = leadership
        self._stopping = threading.Event()
        self._looked = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, thread: Callable[[str, Callable[[], None]], threading.Thread]) -> None:
        """Begin; ``thread`` starts one."""
        self._thread = thread("leadership", self._run)

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause = self.leadership.tick()
            self._looked.set()
            self._stopping.wait(pause)

    def settle(self) -> None:
        """Until the Lease has been looked at."""
        self._looked.wait()

    def mine(self) -> bool:
        """Whether the Lease is ours and was renewed lately."""
        return self.leadership.leading

    def stop(self) -> None:
        """Renew it no longer; it is good for a while."""
        self._stopping.set()
        self._looked.set()

    def end(self) -> None:
        """Release the Lease."""
        if self._thread is not None:
            self._thread.join(_GRACE)
        self.leadership.release()

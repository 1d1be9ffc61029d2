"""What people should know about the pools, as Events of the Node (without one: of the pod)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from dra_core.errors import DraError
from dra_driver.ports import Notices

#: Events: so many at once, and seconds until there may be one more.
BURST, APART = 20.0, 60.0


class News:
    """Each is told once, until it is another; one that cannot be sent now waits.

    A note can be another one each time (a reading is in it, say): of those that wait the newest is
    sent.

    ``owner`` is asked for what an Event is about; it raises ApiError. Used by the publishing
    thread.
    """

    def __init__(
        self,
        notices: Notices,
        owner: Callable[[], Mapping[str, Any] | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._notices = notices
        self._owner = owner
        self._clock = clock
        self._left, self._at = BURST, clock()
        self._told: dict[tuple[str, str], str] = {}
        self._waiting: dict[tuple[str, str], str] = {}

    def tell(self, reason: str, subject: str, note: str) -> None:
        """A Warning with ``reason`` about ``subject``; an empty ``note`` says that it is over."""
        about = reason, subject
        if note == self._told.get(about, ""):
            return
        if note:
            self._told[about] = self._waiting[about] = note
        else:
            del self._told[about]
            self._waiting.pop(about, None)

    def send(self) -> None:
        """Hand over what waits, if it can be said what it is about."""
        now = self._clock()
        self._left, self._at = min(BURST, self._left + (now - self._at) / APART), now
        due = list(self._waiting.items())[: int(self._left)]
        if not due:
            return
        try:
            owner = self._owner()
        except DraError:
            return  # the log says it, too
        for about, note in due:
            self._notices.warn(owner, about[0], note)
            del self._waiting[about]
        self._left -= len(due)

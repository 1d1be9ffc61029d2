"""What people should know about the pools, as Events of the Node (without one: of the pod)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dra_core.errors import DraError
from dra_driver.ports import Notices


class News:
    """Each is told once, until it is another; one that cannot be sent now waits.

    ``owner`` is asked for what an Event is about; it raises ApiError. Used by the publishing
    thread.
    """

    def __init__(self, notices: Notices, owner: Callable[[], Mapping[str, Any] | None]) -> None:
        self._notices = notices
        self._owner = owner
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
        if not self._waiting:
            return
        try:
            owner = self._owner()
        except DraError:
            return  # the log says it, too
        for (reason, _), note in self._waiting.items():
            self._notices.warn(owner, reason, note)
        self._waiting.clear()

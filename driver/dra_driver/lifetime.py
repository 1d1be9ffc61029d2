"""What every instance does between its start and its end: signals, threads, reloads."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Final

import structlog

from dra_core.errors import InvalidValue
from dra_driver import config
from dra_driver.config import Profiles, Settings

_log = structlog.get_logger(__name__)

#: Seconds between looks at what may need repair.
_LOOK: Final = 2.0


class Lifetime:
    """Of one instance. Made by the main thread, which gets the signals."""

    def __init__(self, settings: Settings, profiles: Profiles, arguments: Sequence[str]) -> None:
        self._settings = settings
        self._profiles = profiles
        self._arguments = arguments
        self._options = settings.options
        # Plain attributes: a signal handler runs between any two steps of the main thread, also
        # while that holds the lock of an Event.
        self._stop = False
        self._reload = False
        #: Whether a thread ended unexpectedly.
        self.failed = False
        self._inbox, self._outbox = os.pipe()
        os.set_blocking(self._outbox, False)
        self._handle_signals()

    def options(self) -> Mapping[str, str]:
        """Of the profile, as they are now."""
        return self._options

    def wait(self, look: Callable[[], None], reloaded: Callable[[], None]) -> None:
        """Until a signal, or a fault, says stop; ``look`` is called every two seconds."""
        while not self._stop:
            if select.select([self._inbox], [], [], _LOOK)[0]:
                os.read(self._inbox, 4096)
            if not self._stop:
                look()
            if self._reload:
                self._reload = False
                self._read_options()
                reloaded()

    def thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        """A running thread whose unexpected end is that of the instance."""

        def run() -> None:
            try:
                work()
            except Exception:  # noqa: BLE001 - a bug: stop in order, the pod is restarted
                _log.exception("a thread ended unexpectedly", thread=name)
                self.failed = self._stop = True
                os.write(self._outbox, b"\0")

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def _read_options(self) -> None:
        try:
            fresh = config.parse(self._arguments, self._profiles)
        except InvalidValue as error:
            _log.error("settings were not read again, the old ones stay", error=str(error))
            return
        if not isinstance(fresh, Settings):
            return
        if fresh.fixed_part() != self._settings.fixed_part():
            _log.warning("a reload takes the profile's options only; restart for the others")
        if fresh.profile != self._settings.profile:
            return
        self._options = fresh.options
        _log.info("settings read again")

    def _handle_signals(self) -> None:
        def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's shape
            self._stop = True

        def reload(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's shape
            self._reload = True

        # Every signal also writes a byte into the pipe that the main thread waits for.
        signal.set_wakeup_fd(self._outbox, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGHUP, reload)

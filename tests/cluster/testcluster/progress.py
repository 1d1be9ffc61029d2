"""Lines for whoever waits.

A step that takes long must be seen to move: silence for a minute looks like a hang. Lines go to
standard error (standard output is for results) and are flushed one by one, for they are read
through pipes as well.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO


class Progress:
    """Prints ``[  3.2 s] text``, counted from when the object was made."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._start = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def say(self, text: str) -> None:
        """Print one line now. A closed stream is no reason to fail."""
        stream = self._stream or sys.stderr
        try:
            stream.write(f"[{self.elapsed:6.1f} s] {text}\n")
            stream.flush()
        except (OSError, ValueError):
            self._stream = None

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Say ``text`` before and, if it took more than 2 s, how long it took after."""
        self.say(f"{text} …")
        begun = time.monotonic()
        yield
        took = time.monotonic() - begun
        if took > 2:
            self.say(f"{text}: {took:.1f} s")


class Ticker:
    """Calls ``tell`` at most once every ``every`` seconds, however often it is touched."""

    def __init__(self, every: float, tell: Callable[[], None]) -> None:
        self._every = every
        self._tell = tell
        self._next = time.monotonic() + every

    def touch(self) -> None:
        """Tell if it is time."""
        if time.monotonic() >= self._next:
            self._tell()
            self._next = time.monotonic() + self._every

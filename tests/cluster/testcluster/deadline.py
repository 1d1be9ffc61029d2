"""Waiting with a deadline.

Everything here waits for something outside this process (a port, a file, an API object), so it
polls: quickly at first, since most things are there at once, then at a steady pace.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from .errors import ClusterError

T = TypeVar("T")


class DeadlineExceeded(ClusterError):
    """What was waited for did not happen in time."""


def wait_until(
    probe: Callable[[], T | None],
    *,
    seconds: float,
    what: str | Callable[[], str],
    pause: float = 0.1,
    ignore: tuple[type[Exception], ...] = (),
) -> T:
    """The first truthy value of ``probe``.

    ``seconds`` bounds the wait, ``pause`` (seconds) is the longest gap between two probes.
    Exceptions of the types in ``ignore`` count as "not yet"; the last one is the cause of
    :class:`DeadlineExceeded`. ``what`` completes "not within N s: …"; as a function it is called
    only when the time is over, to tell what the matter is then.
    """
    end = time.monotonic() + seconds
    gap = min(0.01, pause)
    last: Exception | None = None
    while True:
        try:
            if value := probe():
                return value
        except ignore as error:
            last = error
        if time.monotonic() >= end:
            told = what if isinstance(what, str) else what()
            detail = f" (last: {last})" if last else ""
            raise DeadlineExceeded(f"not within {seconds:g} s: {told}{detail}") from last
        time.sleep(gap)
        gap = min(gap * 1.5, pause)

"""How often: retries that back off, and a limit on writes."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Final

#: Seconds between tries after a failure: the first, and the longest.
RETRY_FIRST, RETRY_LONGEST = 0.5, 30.0
#: Writes: so many at once, and so many a second after that. A pool of 10,000 devices has 79 slices.
BURST, RATE = 100.0, 20.0
_DOUBLINGS: Final = 10


def backoff(failures: int) -> float:
    """Seconds to wait; with jitter, so that many nodes do not come back in step."""
    doubled = RETRY_FIRST * 2 ** min(max(failures - 1, 0), _DOUBLINGS)
    return float(min(RETRY_LONGEST, doubled) * random.uniform(0.5, 1.0))  # noqa: S311 - no secret


class WriteLimit:
    """A bucket of tokens, one for each write."""

    def __init__(self, clock: Callable[[], float], stopping: threading.Event) -> None:
        self._clock = clock
        self._stopping = stopping
        self._tokens = BURST
        self._at = clock()

    def wait(self) -> None:
        """Until another write may be made, or the driver stops."""
        now = self._clock()
        self._tokens = min(BURST, self._tokens + (now - self._at) * RATE)
        self._at = now
        self._tokens -= 1.0
        if self._tokens < 0.0:
            self._stopping.wait(-self._tokens / RATE)

"""How often: retries that back off, and a limit on writes."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final

from dra_core.errors import ApiUnavailable

#: Seconds between tries after a failure: the first, and the longest.
RETRY_FIRST, RETRY_LONGEST = 0.5, 30.0
#: The longest time that a server can ask for; a proxy may ask for anything.
ASKED_LONGEST: Final = 120.0
#: Writes: so many at once, and so many a second after that. A pool of 10,000 devices has 79 slices:
#: it is rewritten in one go, and again after three seconds or more.
BURST, RATE = 100.0, 30.0
#: The longest rest after a change of a pool; it is as long as the change took.
REST_LONGEST: Final = 5.0
_DOUBLINGS: Final = 10
#: Seconds to wait after someone else's change, so that a burst is answered once; the longest such
#: wait, for someone who changes our slices again and again.
SETTLE, SETTLE_LONGEST = 0.25, 4.0


def backoff(failures: int) -> float:
    """Seconds to wait; with jitter, so that many nodes do not come back in step."""
    doubled = RETRY_FIRST * 2 ** min(max(failures - 1, 0), _DOUBLINGS)
    return float(min(RETRY_LONGEST, doubled) * random.uniform(0.5, 1.0))  # noqa: S311 - no secret


class Failures:
    """In a row, of each part of the work; and how long the server wants to be left alone."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rows: dict[str, int] = {}
        self._until = -math.inf

    @property
    def asked(self) -> float:
        """Seconds that the server still wants no requests."""
        return max(0.0, self._until - self._clock())

    def over(self, part: str) -> None:
        """It works."""
        self._rows.pop(part, None)

    def keep(self, parts: Collection[str]) -> None:
        """There are no others."""
        self._rows = {part: row for part, row in self._rows.items() if part in parts}

    def wait(self, errors: Mapping[str, Exception], later: float) -> float:
        """Parts have failed: seconds to wait for the first of them, or what is due ``later``."""
        for part in errors:
            self._rows[part] = self._rows.get(part, 0) + 1
        asked = min(
            max(
                (e.retry_after for e in errors.values() if isinstance(e, ApiUnavailable)),
                default=0.0,
            ),
            ASKED_LONGEST,
        )
        if asked:
            self._until = self._clock() + asked
        return max(asked, min(later, *(backoff(self._rows[part]) for part in errors)))


class TooSoon(Exception):
    """A change may begin in ``seconds``; ``others`` says whether other pools have to wait, too."""

    def __init__(self, seconds: float, *, others: bool) -> None:
        super().__init__(f"again in {seconds:g} s")
        self.seconds = seconds
        self.others = others


class NotOurTurn(Exception):
    """Another instance publishes now: nothing more is written."""


class Patience:
    """Someone who undoes what we write, again and again, gets an answer less and less often."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._written_at = -math.inf
        self._seconds = SETTLE

    @property
    def seconds(self) -> float:
        """To wait after someone else's change."""
        return self._seconds if self._again() else SETTLE

    def written(self) -> None:
        """We have written what we want."""
        self._seconds = min(self._seconds * 2, SETTLE_LONGEST) if self._again() else SETTLE
        self._written_at = self._clock()

    def _again(self) -> bool:
        return self._clock() - self._written_at < 2 * SETTLE_LONGEST


class WriteLimit:
    """A bucket of tokens, one for each write."""

    def __init__(self, clock: Callable[[], float], stopping: threading.Event) -> None:
        self._clock = clock
        self._stopping = stopping
        self._tokens = BURST
        self._at = clock()

    def until(self, count: int) -> float:
        """Seconds until so many writes, or a burst, can be made without a pause."""
        self._fill()
        return max(0.0, (min(float(count), BURST) - self._tokens) / RATE)

    def wait(self) -> None:
        """Until another write may be made, or the driver stops."""
        self._fill()
        self._tokens -= 1.0
        if self._tokens < 0.0:
            self._stopping.wait(-self._tokens / RATE)

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(BURST, self._tokens + (now - self._at) * RATE)
        self._at = now


class Pace:
    """When the next change of a pool may begin.

    Who waits before a change begins has the newest state when it does, and the change is over soon:
    a pool is incomplete while it is rewritten. Where changes come all the time, the server is left
    alone for as long as the last one took.
    """

    def __init__(self, limit: WriteLimit, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._rests: dict[str, float] = {}
        self._began = 0.0
        #: The pool whose turn it is: others must not take the writes that it waits for.
        self.first = ""

    def begin(self, pool: str, writes: int) -> None:
        """A change with so many writes begins, unless it is too soon: raises TooSoon."""
        if self.first == pool:
            self.first = ""
        if not writes:
            return
        self._began = self._clock()
        if (rest := self._rests.get(pool, 0.0) - self._began) > 0.0:
            raise TooSoon(rest, others=False)
        if wait := self._limit.until(writes):
            self.first = pool
            raise TooSoon(wait, others=True)

    def end(self, pool: str) -> None:
        """The change is made."""
        now = self._clock()
        self._rests[pool] = now + min(now - self._began, REST_LONGEST)

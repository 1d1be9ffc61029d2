"""Asks the driver for its pools, in a thread of its own.

A driver that takes long, or hangs, delays nothing but its own news.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from dra_core import snapshots
from dra_core.errors import DraError, InvalidValue
from dra_core.model.slices import Pool
from dra_driver.pacing import backoff

_log = structlog.get_logger(__name__)

#: Seconds after which a discovery that has not ended is said to hang.
LONG: Final = 30.0
#: Seconds between a driver's "changed" and the question, so that one burst is one answer, and the
#: least seconds between two questions.
SETTLE, APART = 0.02, 0.2


@dataclass(frozen=True, slots=True)
class Found:
    """What a discovery gave: pools, or why there are none; ``odd`` says so of single pools."""

    pools: tuple[Pool, ...] = ()
    trouble: str = ""
    odd: Mapping[str, str] = field(default_factory=dict)


class Discovery:
    """Calls ``ask`` every ``rescan`` seconds, and when the driver says that something changed."""

    def __init__(
        self,
        ask: Callable[[], Sequence[Pool]],
        take: Callable[[Found], None],
        *,
        rescan: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._take = take
        self._rescan = rescan
        self._clock = clock
        self._look = threading.Event()
        self._stopping = threading.Event()
        self._began: float | None = None
        self._before: dict[str, Pool] = {}

    def refresh(self) -> None:
        """Ask soon; may be called from any thread."""
        self._look.set()

    def stop(self) -> None:
        """End :meth:`run` soon."""
        self._stopping.set()
        self._look.set()

    @property
    def trouble(self) -> str:
        """Says so if a discovery has been running for long."""
        began = self._began
        if began is not None and self._clock() - began > LONG:
            return f"discovery has been running for {self._clock() - began:.0f} s"
        return ""

    def run(self) -> None:
        """Ask until stopped."""
        failures = 0
        while not self._stopping.is_set():
            self._look.clear()
            self._began = self._clock()
            found = self._found()
            self._began = None
            ended = self._clock()
            failures = failures + 1 if found.trouble else 0
            self._take(found)
            wait = backoff(failures) if failures else self._rescan
            if self._look.wait(min(wait, self._rescan)):
                self._stopping.wait(max(SETTLE, ended + APART - self._clock()))

    def _found(self) -> Found:
        pools: list[Pool] = []
        odd: dict[str, str] = {}
        try:
            for pool in self._ask():
                if not isinstance(pool, Pool):
                    raise InvalidValue(  # noqa: TRY301
                        f"{str(pool)[:40]!r} is no Pool; pools() returns a list of them"
                    )
                name = str(pool.name)
                try:
                    pools.append(snapshots.of_pool(pool, self._before.get(name)))
                except Exception as error:  # noqa: BLE001 - one pool must not hold up the others
                    odd[name] = f"pool {name!r} cannot be read: {type(error).__name__}: {error}"
        except DraError as error:
            _log.error("discovery failed, published pools stay", error=str(error))
            return Found(trouble=f"discovery failed: {error}")
        # A vendor's code must not end publishing: not by SystemExit, CancelledError or a panic.
        except BaseException as error:  # noqa: BLE001
            _log.exception("discovery failed, published pools stay")
            return Found(trouble=f"discovery failed: {type(error).__name__}, see the log")
        self._before = {str(pool.name): pool for pool in pools}
        return Found(tuple(pools), odd=odd)

"""Lists and watches the slices of one scope, in a thread of its own."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from dra_core.errors import ApiError, ApiExpired, ApiUnavailable
from dra_driver.pacing import backoff
from dra_driver.ports import Changed, Scope, SliceApi

_log = structlog.get_logger(__name__)

#: Seconds: a stream that brings nothing and ends sooner is none; one that lasts longer works.
_SHORT, _WORKS = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class Relisted:
    """The watch has begun (again) with this list."""

    scope: Scope
    items: tuple[dict[str, object], ...]


class SliceWatch:
    """Tells ``take`` of every list and every change.

    On a node, slices without a node's name are watched only once there are such pools
    (:meth:`want`): most drivers have none, and all nodes would watch all slices of the driver.
    """

    def __init__(
        self,
        api: SliceApi,
        scope: Scope,
        take: Callable[[Relisted | Changed], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._scope = scope
        self._take = take
        self._clock = clock
        self._stopping = threading.Event()
        self._wanted = threading.Event()
        self._began, self._events = math.inf, 0  # of the running stream
        if scope is Scope.NODE:
            self._wanted.set()

    def want(self) -> None:
        """There is something to watch."""
        self._wanted.set()

    def stop(self) -> None:
        """End :meth:`run` soon."""
        self._stopping.set()
        self._wanted.set()

    def run(self) -> None:
        """List and watch until stopped."""
        failures = 0
        while not self._stopping.is_set():
            self._began, self._events = math.inf, 0
            try:
                listed = self._api.list(self._scope)
                self._take(Relisted(self._scope, listed.items))
                if listed.items:
                    self._wanted.set()
                self._wanted.wait()
                self._watch(listed.resource_version)
                failures = 0
            except ApiExpired:
                failures = self._in_a_row(failures)
            except ApiError as error:
                failures = self._in_a_row(failures)
                scope = self._scope.value
                _log.warning(
                    "cannot watch slices", scope=scope, error=str(error), failures=failures
                )
            except Exception:  # noqa: BLE001 - claims must be served all the same
                failures = self._in_a_row(failures)
                _log.exception("watching slices failed unexpectedly")
            if failures:
                self._stopping.wait(backoff(failures))

    def _in_a_row(self, failures: int) -> int:
        """With one more; it is the first if it ends a watch that worked."""
        worked = self._events > 0 or self._clock() - self._began >= _WORKS
        return 1 if worked else failures + 1

    def _watch(self, version: str) -> None:
        """Until an error, or a stream that brings nothing and ends at once; list again then."""
        while not self._stopping.is_set():
            self._began, self._events = self._clock(), 0
            for event in self._api.watch(self._scope, version):
                self._events += 1
                version = event.object.get("metadata", {}).get("resourceVersion", version)
                if event.kind != "BOOKMARK":
                    self._take(event)
                if self._stopping.is_set():
                    return
            if not self._events and self._clock() - self._began < _SHORT:
                raise ApiUnavailable("the watch ends as soon as it begins")

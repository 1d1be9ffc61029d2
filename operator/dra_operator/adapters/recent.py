"""Answers that are good for a moment: asked for once, however many threads want them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """Keeps answers for ``seconds``, counted from before they were asked for."""

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._held: dict[Hashable, tuple[float, Future[V]]] = {}

    def get(self, key: Hashable, ask: Callable[[], V]) -> V:
        """The answer that is there, or what ``ask`` says; raises what it raises.

        Threads that want it meanwhile wait, and share an error, too. An error is not kept.
        """
        with self._lock:
            now = self._monotonic()
            self._held = {k: v for k, v in self._held.items() if now < v[0] + self._seconds}
            held = self._held.get(key)
            first = held is None
            if held is None:
                held = self._held[key] = now, Future()
        answer = held[1]
        if first:
            self._ask(key, answer, ask)
        return answer.result()

    def _ask(self, key: Hashable, answer: Future[V], ask: Callable[[], V]) -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - handed on to all who wait
            with self._lock:
                if key in self._held and self._held[key][1] is answer:
                    del self._held[key]
            answer.set_exception(error)

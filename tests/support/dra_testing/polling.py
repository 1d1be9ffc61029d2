"""Waiting for something that another process does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(what: str, probe: Callable[[], T], timeout: float = 20.0, interval: float = 0.05) -> T:
    """The first true answer of ``probe``; fails naming ``what`` and the last answer.

    Exceptions of kind AssertionError, LookupError, OSError and ValueError count as "not yet": what
    is read may not be there, or not be there alone, so that it cannot be taken apart.
    """
    pause = threading.Event()
    deadline = time.monotonic() + timeout
    last: object = None
    while True:
        try:
            answer = probe()
            if answer:
                return answer
            last = answer
        except (AssertionError, LookupError, OSError, ValueError) as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what}; last: {last!r}")
        pause.wait(interval)

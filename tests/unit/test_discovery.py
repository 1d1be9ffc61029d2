"""discovery: asked again when the driver says so, when it failed, and from time to time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from dra_core.errors import PreparationFailed
from dra_core.model.slices import Pool
from dra_core.names import PoolName
from dra_driver.discovery import APART, LONG, SETTLE, Discovery, Found
from dra_testing.polling import until

POOL = Pool(PoolName("n1"), ())


class Asked:
    """A driver that is asked; its answers are what ``answer`` does."""

    def __init__(self, answer: Callable[[], Sequence[Pool]], rescan: float = 3600.0) -> None:
        self.now = 0.0
        self.found: list[Found] = []
        self.discovery = Discovery(answer, self.found.append, rescan=rescan, clock=lambda: self.now)
        self._thread = threading.Thread(target=self.discovery.run)
        self._thread.start()

    def count(self, number: int) -> None:
        until(f"asked {number} times", lambda: len(self.found) >= number, timeout=10.0)

    def end(self) -> None:
        self.discovery.stop()
        self._thread.join(10.0)
        assert not self._thread.is_alive()


def test_a_burst_of_changes_is_one_question() -> None:
    asked = Asked(lambda: [POOL])
    asked.count(1)
    for _ in range(50):
        asked.discovery.refresh()
    asked.count(2)
    asked.end()
    assert asked.found == [Found((POOL,))] * 2


def test_a_failure_is_told_and_asked_again_soon() -> None:
    answers: list[Exception] = [RuntimeError("secret"), PreparationFailed("no driver module")]

    def answer() -> Sequence[Pool]:
        if answers:
            raise answers.pop(0)
        return [POOL]

    asked = Asked(answer)
    asked.count(3)
    asked.end()
    assert [f.trouble for f in asked.found] == [
        "discovery failed: RuntimeError, see the log",
        "discovery failed: no driver module",
        "",
    ]


def test_one_that_hangs_is_named_after_a_while() -> None:
    go_on, begun = threading.Event(), threading.Event()

    def answer() -> Sequence[Pool]:
        begun.set()
        go_on.wait(10.0)
        return []

    asked = Asked(answer)
    assert begun.wait(10.0)
    assert asked.discovery.trouble == ""
    asked.now = LONG + 1
    assert asked.discovery.trouble == "discovery has been running for 31 s"
    go_on.set()
    asked.count(1)
    assert asked.discovery.trouble == ""
    asked.end()


def test_a_first_change_is_asked_for_at_once_and_others_apart() -> None:
    moments: list[float] = []

    def answer() -> Sequence[Pool]:
        moments.append(time.monotonic())
        return [POOL]

    found: list[Found] = []
    discovery = Discovery(answer, found.append, rescan=3600.0)
    thread = threading.Thread(target=discovery.run)
    thread.start()
    until("asked", lambda: len(found) == 1, timeout=10.0)
    time.sleep(APART)
    told = time.monotonic()
    discovery.refresh()
    until("asked again", lambda: len(found) == 2, timeout=10.0)
    discovery.refresh()
    until("and again", lambda: len(found) == 3, timeout=10.0)
    discovery.stop()
    thread.join(10.0)
    assert SETTLE <= moments[1] - told < APART * 0.9
    assert moments[2] - moments[1] >= APART * 0.99

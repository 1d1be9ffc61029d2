"""discovery: asked again when the driver says so, when it failed, and from time to time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from dra_core.errors import PreparationFailed
from dra_core.model.slices import Pool
from dra_core.names import PoolName
from dra_driver.discovery import LONG, Discovery, Found
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

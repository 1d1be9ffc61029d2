"""recent: answers that are good for a moment, asked for once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dra_core.errors import ApiUnavailable
from dra_operator.adapters.recent import Recent
from dra_testing.polling import until


class Server:
    """Counts what it is asked; the clock is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked = 0
        self.takes = 0.0
        self.error: Exception | None = None

    def ask(self) -> int:
        self.asked += 1
        self.now += self.takes
        if self.error is not None:
            raise self.error
        return self.asked


@pytest.fixture
def server() -> Server:
    return Server()


def test_an_answer_is_good_for_a_moment_and_no_longer(server: Server) -> None:
    recent: Recent[int] = Recent(1.0, lambda: server.now)
    assert recent.get("a", server.ask) == 1
    server.now += 0.99
    assert recent.get("a", server.ask) == 1
    assert recent.get("b", server.ask) == 2, "another question"
    server.now += 0.01
    assert recent.get("a", server.ask) == 3


def test_its_age_counts_from_before_it_was_asked_for(server: Server) -> None:
    recent: Recent[int] = Recent(1.0, lambda: server.now)
    server.takes = 1.5
    assert recent.get("a", server.ask) == 1
    assert recent.get("a", server.ask) == 2


def test_an_error_is_not_kept(server: Server) -> None:
    recent: Recent[int] = Recent(1.0, lambda: server.now)
    server.error = ApiUnavailable("no answer")
    with pytest.raises(ApiUnavailable):
        recent.get("a", server.ask)
    server.error = None
    assert recent.get("a", server.ask) == 2


@pytest.mark.parametrize("fails", [False, True])
def test_threads_that_want_the_same_wait_for_one_answer(server: Server, fails: bool) -> None:
    looks: list[float] = []

    def clock() -> float:
        looks.append(server.now)
        return server.now

    recent: Recent[int] = Recent(1.0, clock)
    asking, answer = threading.Event(), threading.Event()
    server.error = ApiUnavailable("no answer") if fails else None

    def slow() -> int:
        asking.set()
        assert answer.wait(10)
        return server.ask()

    def outcome(position: int) -> object:
        try:
            return recent.get("a", slow if position == 0 else server.ask)
        except ApiUnavailable as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(outcome, 0)
        assert asking.wait(10)
        others = [pool.submit(outcome, n) for n in range(1, 8)]
        assert recent.get("b", lambda: 0) == 0, "other questions are not held up"
        until("all of them have come", lambda: len(looks) == 9, 10)
        assert not any(other.done() for other in others)
        answer.set()
        found = [future.result(10) for future in (first, *others)]
    assert found == [found[0]] * 8
    assert server.asked == 1

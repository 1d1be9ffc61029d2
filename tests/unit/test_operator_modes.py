"""modes: auto evicts only after the in-tree evictor was asked and kept silent, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import structlog.testing

from dra_core.errors import ApiError, ApiForbidden, ApiNotFound, ApiUnavailable
from dra_operator.modes import Choice, Detection, unasked
from dra_operator.ports import Mode


class Server:
    """Rules with effect None; the in-tree evictor answers after so many seconds, or never."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.answers_after: float | None = None
        self.rules: dict[str, float] = {}
        self.made: list[str] = []
        self.wrong: dict[str, ApiError] = {}
        self.counted: dict[str, float] = {}
        self.term: int | None = 1
        self.changes = 0
        self.during: Callable[[], None] = lambda: None
        self.detection = Detection(self, self.monotonic, self)

    def choice(self, mode: Mode = Mode.AUTO) -> Choice:
        return Choice(mode, self.detection, lambda: self.term, self.changed)

    def changed(self) -> None:
        self.changes += 1

    # ports
    def monotonic(self) -> float:
        return self.seconds

    def pause(self, seconds: float) -> bool:
        self.seconds += seconds
        self.during()
        return True

    def _check(self, what: str) -> None:
        if what in self.wrong:
            raise self.wrong[what]

    def create(self) -> str:
        self._check("create")
        name = f"probe-{len(self.made) + 1}"
        self.made.append(name)
        self.rules[name] = self.seconds
        return name

    def answered(self, name: str) -> bool:
        self._check("answered")
        after = self.answers_after
        return after is not None and self.seconds >= self.rules[name] + after

    def delete(self, name: str) -> None:
        self._check("delete")
        if self.rules.pop(name, None) is None:
            raise ApiNotFound(name)

    def left_over(self) -> list[str]:
        self._check("left_over")
        return list(self.rules)

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        key = "/".join([name, *labels.values()])
        self.counted[key] = self.counted.get(key, 0.0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        self.counted["/".join([name, *labels.values()])] = value


def now(choice: Choice) -> Mode | None:
    """Asked anew each time, as mypy would take the first answer for the last."""
    return choice.mode


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    assert made.rules == {} or "delete" in made.wrong, "each rule is taken away"


@pytest.mark.parametrize("after", [0.0, 2.0, 29.0])
def test_an_answer_means_observe_and_one_rule_is_enough(server: Server, after: float) -> None:
    server.answers_after = after
    choice = server.choice()
    assert now(choice) is None, "nothing is decided yet"
    choice.tick("", server.pause)
    assert now(choice) is Mode.OBSERVE
    assert not choice.sure
    assert server.made == ["probe-1"]
    assert server.seconds == after
    assert str(choice) == "auto: observe, since the in-tree evictor works: it answered a rule"
    assert server.counted == {"probes_total/answered": 1, "mode/evict": 0, "mode/observe": 1}


def test_silence_is_heard_twice_before_anybody_is_evicted(server: Server) -> None:
    choice = server.choice()
    seen = []
    server.during = lambda: seen.append(choice.mode)
    choice.tick("", server.pause)
    assert set(seen) == {None}
    assert now(choice) is Mode.EVICT
    assert choice.sure
    assert server.made == ["probe-1", "probe-2"], "each try has a rule of its own"
    assert server.seconds == 60.0
    assert "answered none of 2 rules within 60 s" in str(choice)


def test_a_late_answer_to_the_second_rule_counts(server: Server) -> None:
    def start_late() -> None:
        if len(server.made) == 2:
            server.answers_after = 3.0

    server.during = start_late
    choice = server.choice()
    choice.tick("", server.pause)
    assert now(choice) is Mode.OBSERVE


@pytest.mark.parametrize(
    ("rules", "wrong", "reason"),
    [
        ("the API server does not serve devicetaintrules", None, "so the in-tree evictor cannot"),
        ("", ApiForbidden("403: not you"), "may not be made: 403: not you"),
    ],
)
def test_what_cannot_be_asked_is_observed_and_said_once_with_the_way_to_choose(
    server: Server, rules: str, wrong: ApiError | None, reason: str
) -> None:
    if wrong is not None:
        server.wrong["create"] = wrong
    choice = server.choice()
    with structlog.testing.capture_logs() as logs:
        for _ in range(200):
            choice.tick(rules, server.pause)
            server.seconds += 1.0
    assert now(choice) is Mode.OBSERVE
    assert reason in str(choice)
    (said,) = logs
    assert said["log_level"] == "warning"
    assert "--mode=evict" in said["hint"]
    assert "-device-taint-eviction-controller" in said["hint"]


def test_rules_that_are_served_later_are_asked_then(server: Server) -> None:
    choice = server.choice()
    choice.tick("not served", server.pause)
    assert now(choice) is Mode.OBSERVE
    choice.tick("", server.pause)
    assert now(choice) is Mode.EVICT
    choice.tick("not served", server.pause)
    assert now(choice) is Mode.OBSERVE, "and the other way round"


@pytest.mark.parametrize("call", ["left_over", "create", "answered"])
def test_while_the_server_does_not_answer_nothing_is_decided(server: Server, call: str) -> None:
    server.wrong[call] = ApiUnavailable("down")
    choice = server.choice()
    choice.tick("", server.pause)
    assert now(choice) is None
    del server.wrong[call]
    choice.tick("", server.pause)
    assert now(choice) is Mode.EVICT


def test_a_new_leader_asks_anew_and_an_old_decision_is_none(server: Server) -> None:
    choice = server.choice()
    choice.tick("", server.pause)
    assert now(choice) is Mode.EVICT
    server.term = None
    assert now(choice) is None
    assert str(choice) == "auto: not decided, not leading"
    choice.tick("", server.pause)
    assert len(server.made) == 2, "who does not lead does not ask"
    server.term = 2
    assert now(choice) is None
    server.answers_after = 1.0
    choice.tick("", server.pause)
    assert now(choice) is Mode.OBSERVE


def test_losing_the_lease_while_asking_ends_it(server: Server) -> None:
    choice = server.choice()

    def lose() -> None:
        server.term = None if server.seconds > 5 else 1

    server.during = lose
    choice.tick("", server.pause)
    assert now(choice) is None
    assert len(server.made) == 1
    assert server.counted["probes_total/interrupted"] == 1


def test_a_decision_is_not_made_again_before_an_hour_or_a_doubt(server: Server) -> None:
    choice = server.choice()
    choice.tick("", server.pause)
    for _ in range(10):
        choice.tick("", server.pause)
    assert len(server.made) == 2
    server.seconds += 3600.0
    server.answers_after = 1.0
    choice.tick("", server.pause)
    assert now(choice) is Mode.OBSERVE, "somebody has switched it on"
    server.answers_after = None
    choice.doubt()
    assert now(choice) is None, "nobody is evicted before that is settled"
    choice.tick("", server.pause)
    assert now(choice) is Mode.EVICT


def test_rules_left_by_an_instance_that_was_killed_are_taken_away(server: Server) -> None:
    server.rules["left"] = 0.0
    server.choice().tick("", server.pause)
    assert server.rules == {}


def test_a_rule_that_cannot_be_deleted_does_not_matter(server: Server) -> None:
    server.answers_after = 0.0
    server.wrong["delete"] = ApiUnavailable("down")
    choice = server.choice()
    choice.tick("", server.pause)
    assert now(choice) is Mode.OBSERVE


@pytest.mark.parametrize("mode", [Mode.EVICT, Mode.OBSERVE])
def test_who_is_told_asks_nobody(server: Server, mode: Mode) -> None:
    choice = server.choice(mode)
    choice.tick("", server.pause)
    choice.tick("", server.pause)
    assert now(choice) is mode
    assert not choice.sure
    assert str(choice) == mode.value
    assert server.made == []
    assert server.changes == 1, "noted once"
    assert server.counted[f"mode/{mode.value}"] == 1


def test_before_1_37_silence_says_nothing_so_nothing_is_asked() -> None:
    assert unasked(36, "") == "before Kubernetes 1.37 it may evict without answering rules"
    assert unasked(37, "") == ""
    assert unasked(37, "not served") == "not served"

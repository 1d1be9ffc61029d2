"""rule_reports and progress: what rules say about their evictions, in virtual time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest

from dra_core.errors import ApiConflict, ApiError, ApiNotFound, ApiUnavailable
from dra_core.model.objects import Condition, Metadata
from dra_core.model.taints import DeviceTaint, DeviceTaintRule, RuleSpec
from dra_operator import progress
from dra_operator.cluster import Preview
from dra_operator.ports import RuleCondition
from dra_operator.progress import Progress
from dra_operator.rule_reports import IN_TREE, RuleReports
from dra_testing.cases import case

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def a_rule(name: str = "r", effect: str = "NoExecute") -> DeviceTaintRule:
    taint = DeviceTaint("example.com/bad", effect)
    return DeviceTaintRule(Metadata(name=name, uid=f"uid-{name}"), RuleSpec(taint))


class Stand:
    """Rules in memory and on a server, a clock, and what is known of the in-tree evictor."""

    MANAGER: ClassVar[str] = "ours"

    def __init__(self, *rules: DeviceTaintRule) -> None:
        self.seconds = 0.0
        self.all = list(rules or (a_rule(),))
        self.state = Progress()
        self.on_server: dict[str, RuleCondition] = {
            rule.metadata.name: RuleCondition(rule.metadata.uid, 1) for rule in self.all
        }
        self.writes: list[tuple[float, str, Condition, bool]] = []
        self.previews = 0
        self.wrong: dict[str, ApiError] = {}
        self.sure = False
        self.doubts = 0
        self.reports = RuleReports(self, self, self, self, self)

    # ports
    def now(self) -> datetime:
        return T0 + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def rules(self) -> list[DeviceTaintRule]:
        return self.all

    def progress(self, rule: str) -> Progress:  # noqa: ARG002 - the port's shape
        return self.state

    def preview(self, rule: DeviceTaintRule) -> Preview:  # noqa: ARG002 - the port's shape
        self.previews += 1
        return Preview(published=8, allocated=3, pods=3, namespaces=1)

    def read(self, name: str) -> RuleCondition:
        if "read" in self.wrong:
            raise self.wrong["read"]
        return self.on_server[name]

    def apply(self, name: str, uid: str, condition: Condition, *, force: bool) -> None:
        if "apply" in self.wrong:
            raise self.wrong["apply"]
        found = self.on_server[name]
        assert found.uid == uid
        self.on_server[name] = replace(found, condition=condition, writer=self.MANAGER)
        self.writes.append((self.seconds, name, condition, force))

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        assert (name, amount, labels) == ("rule_conditions_total", 1.0, {})

    def set(self, name: str, value: float, **labels: str) -> None:
        raise AssertionError(name, value, labels)

    def doubt(self) -> None:
        self.doubts += 1

    # steps
    def run(self, seconds: int, writing: bool = True) -> None:
        for _ in range(seconds):
            self.reports.tick(writing)
            self.seconds += 1.0

    @property
    def said(self) -> list[tuple[float, str, str]]:
        return [(at, c.status, c.reason) for at, _, c, _ in self.writes]


@case("EVCT-08")
def test_one_pod_is_pending_or_gone_and_never_both() -> None:
    stand = Stand()
    stand.state = Progress(pending=1, namespaces=1)
    stand.run(2)
    stand.state = Progress(going=1, namespaces=1)
    stand.run(15)
    stand.state = Progress(gone=1)
    stand.run(30)
    assert stand.said == [
        (0.0, "True", "PodsPendingEviction"),
        (10.0, "True", "PodsPendingEviction"),
        (20.0, "False", "Completed"),
    ]
    assert [c.message for _, _, c, _ in stand.writes] == [
        "1 pod in 1 namespace has to go.",
        "1 pod in 1 namespace has to go; shutting down: 1.",
        "1 pod gone, none left.",
    ]
    assert all(c.observed_generation == 1 for _, _, c, _ in stand.writes)


@case("EVCT-08")
def test_a_thousand_pods_are_one_write_every_ten_seconds() -> None:
    stand = Stand()
    for left in range(100, -1, -1):
        stand.state = Progress(left * 10, 5, 7, (100 - left) * 10)
        stand.run(1)
    assert [at for at, _, _, _ in stand.writes] == [10.0 * n for n in range(11)]
    assert stand.writes[3][2].message == (
        "705 pods in 7 namespaces have to go; shutting down: 5; gone: 300."
    )


def test_a_new_or_changed_rule_is_written_at_once() -> None:
    stand = Stand()
    stand.run(3)
    assert stand.said == [(0.0, "False", "NotStarted")]
    rule = stand.all[0]
    stand.all = [replace(rule, spec=RuleSpec(DeviceTaint("example.com/other", "NoExecute")))]
    stand.on_server["r"] = replace(stand.on_server["r"], generation=2)
    stand.run(1)
    assert stand.said[1:] == [(3.0, "False", "NotStarted")]
    assert stand.writes[1][2].observed_generation == 2
    stand.all.append(a_rule("new"))
    stand.on_server["new"] = RuleCondition("uid-new", 1)
    stand.run(1)
    assert stand.writes[2][:2] == (4.0, "new")


def test_the_time_of_transition_moves_with_the_status_alone() -> None:
    stand = Stand()
    for number in (3, 2, 1):
        stand.state = Progress(pending=number, namespaces=1)
        stand.run(10)
    stand.state = Progress(gone=3)
    stand.run(10)
    times = [c.last_transition_time for _, _, c, _ in stand.writes]
    assert times == [T0, T0, T0, T0 + timedelta(seconds=30)]


@case("EVCT-03")
@case("EVCT-08")
def test_effect_none_says_what_would_happen_and_counts_once_a_minute() -> None:
    stand = Stand(a_rule(effect="None"))
    stand.run(130)
    assert stand.said == [(0.0, "False", "NoEffect")]
    assert stand.writes[0][2].message == (
        "8 published devices and 3 allocated devices selected; with effect NoExecute 3 pods in "
        "1 namespace would have to go."
    )
    assert stand.previews == 3


def test_other_effects_say_that_nobody_goes() -> None:
    stand = Stand(a_rule(effect="NoSchedule"))
    stand.run(1)
    assert stand.said == [(0.0, "False", "OtherEffect")]


def test_a_rule_that_is_held_back_says_so() -> None:
    stand = Stand()
    stand.state = Progress(pending=40, namespaces=2, held=True)
    stand.run(1)
    assert stand.said == [(0.0, "True", "Held")]
    assert "held back: see the events of this rule" in stand.writes[0][2].message


def test_a_restart_writes_nothing_anew_and_ends_what_was_begun() -> None:
    stand = Stand()
    done = Condition(progress.TYPE, "False", "Completed", "5 pods gone, none left.", T0, 1)
    stand.on_server["r"] = RuleCondition("uid-r", 1, done, "ours")
    stand.run(20)
    assert stand.writes == []
    begun = Condition(progress.TYPE, "True", "PodsPendingEviction", "1 pod …", T0, 1)
    stand.on_server["r"] = RuleCondition("uid-r", 1, begun, "ours")
    stand.run(1, writing=False)
    stand.run(1)
    assert [reason for _, _, reason in stand.said] == ["Completed"]


def test_who_does_not_lead_or_observes_writes_nothing() -> None:
    stand = Stand()
    stand.state = Progress(pending=1, namespaces=1)
    stand.run(30, writing=False)
    assert stand.writes == []


def test_rules_that_ask_are_not_reported() -> None:
    stand = Stand(a_rule("dragoman-probe-0123", effect="None"))
    stand.run(1)
    assert stand.writes == []


def foreign(writer: str, at: datetime = T0 - timedelta(minutes=1)) -> RuleCondition:
    old = Condition(progress.TYPE, "True", "PodsPendingEviction", "3 pods", at, 1)
    return RuleCondition("uid-r", 1, old, writer)


@case("EVCT-08")
@pytest.mark.parametrize(
    ("found", "sure"),
    [(foreign("somebody"), True), (foreign(""), True), (foreign(IN_TREE), False)],
)
def test_a_condition_of_another_writer_stays_untouched(found: RuleCondition, sure: bool) -> None:
    stand = Stand()
    stand.sure = sure
    stand.on_server["r"] = found
    stand.run(30)
    assert stand.writes == []
    assert stand.on_server["r"] == found


def test_what_the_in_tree_evictor_has_left_is_taken_over_once_it_is_known_to_be_off() -> None:
    stand = Stand()
    stand.sure = True
    stand.on_server["r"] = foreign(IN_TREE)
    stand.run(1)
    ((_, _, condition, force),) = stand.writes
    assert force
    assert condition.reason == "Completed"


def test_the_in_tree_evictor_at_work_raises_a_doubt() -> None:
    stand = Stand()
    stand.sure = True
    stand.on_server["r"] = foreign(IN_TREE, at=T0 + timedelta(seconds=1))
    stand.run(1)
    assert stand.writes == []
    assert stand.doubts == 1


def test_a_conflict_leaves_it_and_a_failure_is_tried_again() -> None:
    stand = Stand()
    stand.wrong["apply"] = ApiConflict("409: another manager")
    stand.run(1)
    stand.wrong = {"read": ApiUnavailable("down")}
    stand.state = Progress(pending=1, namespaces=1)
    stand.run(20)
    assert stand.writes == []
    stand.wrong = {}
    stand.run(10)
    assert [reason for _, _, reason in stand.said] == ["PodsPendingEviction"]


def test_a_rule_that_is_gone_or_replaced_is_left_alone() -> None:
    stand = Stand()
    stand.wrong["read"] = ApiNotFound("gone")
    stand.run(1)
    stand.wrong = {}
    stand.on_server["r"] = RuleCondition("another", 1)
    stand.state = Progress(pending=1, namespaces=1)
    stand.run(20)
    assert stand.writes == []

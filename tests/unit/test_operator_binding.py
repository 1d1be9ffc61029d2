"""binding: attaching, failing, rolling back and detaching, in virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra_core.model.claims import DeviceStatus
from dra_core.names import ClaimUID, DriverName
from dra_operator.api import Tag
from dra_operator.binding import Limits
from dra_operator.holds import Pause
from dra_testing.binding_world import (
    CLUSTER,
    CONFIRMED,
    FAILED,
    READY,
    Item,
    Stand,
    device,
    result,
)
from dra_testing.cases import case

GPU = device("gpu-0")


def reasons(stand: Stand) -> list[str]:
    return [reason for _, reason in stand.told]


def test_a_device_is_attached_verified_and_only_then_said_to_be_ready() -> None:
    stand = Stand()
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.run(1)
    assert stand.server.status(uid, GPU, READY) == "False"
    assert stand.server.reason(uid, GPU, READY) == "Attaching"
    stand.run(4)
    assert stand.server.status(uid, GPU, READY) == "True"
    assert stand.server.status(uid, GPU, FAILED) == ""
    assert stand.fabric.attached(GPU) == [(uid, "node-1")]
    verbs = [verb for _, verb, _ in stand.fabric.calls]
    assert verbs[-1] == "verify"
    assert reasons(stand) == ["DeviceAttaching", "DeviceAttached"]
    calls = len(stand.fabric.calls)
    stand.run(600)
    assert len(stand.fabric.calls) == calls
    assert stand.numbers["attached_total"] == 1
    assert 3.0 <= stand.numbers["attach_seconds_total"] < 5.0


def test_the_device_is_detached_when_the_claim_is_deallocated_or_gone() -> None:
    stand = Stand()
    first = stand.server.allocate("a", result("gpu-0"))
    second = stand.server.allocate("b", result("gpu-1"))
    stand.run(10)
    stand.server.deallocate(first)
    stand.server.delete(second)
    stand.run(1)
    assert stand.fabric.items == []
    assert reasons(stand).count("DeviceDetached") == 2
    assert stand.bindings.known("resourceclaims") == frozenset()


def test_what_lost_its_claim_while_the_operator_was_down_is_detached() -> None:
    stand = Stand()
    uid = stand.server.allocate("a", result("gpu-0"))
    stand.run(10)
    stand.server.delete(uid)
    stand.restart()
    stand.run(1)
    assert stand.fabric.items == []


def test_what_is_attached_for_others_stays() -> None:
    stand = Stand()
    elsewhere = Tag("another-cluster", "ns", "x", "uid-x")
    stand.fabric.items.append(Item(GPU, "n", elsewhere, 0.0))
    out_of_scope = Tag(CLUSTER, "other-namespace", "y", "uid-y")
    stand.fabric.items.append(Item(device("gpu-1"), "n", out_of_scope, 0.0))
    stand.restart(namespaces=["ns"])
    stand.run(60)
    assert len(stand.fabric.items) == 2


@case("BIND-04")
def test_a_failure_holds_the_device_back_says_so_and_leaves_nothing_behind() -> None:
    stand = Stand()
    stand.fabric.latency = 100.0
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.run(5)
    stand.fabric.broken.add(GPU)
    stand.run(5)
    assert stand.server.status(uid, GPU, FAILED) == "True"
    assert stand.server.status(uid, GPU, READY) == ""
    assert stand.server.reason(uid, GPU, FAILED) == "PortDown"
    assert stand.fabric.items == []
    (hold,) = stand.server.rules.values()
    assert hold.device == GPU
    assert "DeviceAttachFailed" in reasons(stand)
    calls = len(stand.fabric.calls)
    stand.run(50)
    assert len(stand.fabric.calls) == calls, "a failed allocation is not tried again"
    stand.run(60)
    assert stand.server.rules == {}, "the time of the rule is over"


@case("BIND-04")
def test_the_rule_is_there_before_the_failure_is_said() -> None:
    stand = Stand()
    stand.fabric.broken.add(GPU)
    seen: list[int] = []
    stand.server.before_report = lambda: seen.append(len(stand.server.rules))
    stand.server.allocate("c", result("gpu-0"))
    stand.run(1)
    assert seen == [1]


def test_a_device_is_held_back_longer_each_time_up_to_a_limit() -> None:
    stand = Stand(Limits(hold=Pause(first=10.0, most=35.0)))
    stand.fabric.broken.add(GPU)
    lengths = []
    for _ in range(4):
        uid = stand.server.allocate("c", result("gpu-0"))
        stand.run(1)
        (hold,) = stand.server.rules.values()
        began = stand.clock.seconds
        stand.server.deallocate(uid)
        stand.run(100)
        lengths.append((hold.until - stand.clock.now()).total_seconds() + 100 + 1)
        assert stand.clock.seconds > began
    assert [round(length) for length in lengths] == [10, 20, 35, 35]


@pytest.mark.parametrize("served", [True, False])
def test_where_a_rule_keeps_nobody_off_the_next_attempt_waits(served: bool) -> None:
    stand = Stand(Limits(hold=Pause(first=30.0)))
    stand.server.rules_served = served
    stand.fabric.broken.add(GPU)
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.run(2)
    assert stand.server.status(uid, GPU, FAILED) == "True"
    stand.server.deallocate(uid)
    stand.run(1)
    stand.fabric.broken.clear()
    again = stand.server.allocate("c", result("gpu-0"))
    stand.run(20)
    assert stand.server.reason(again, GPU, READY) == "AttachDelayed"
    assert stand.fabric.items == []
    stand.run(15)
    assert stand.server.status(again, GPU, READY) == "True"


@case("BIND-04")
def test_too_late_is_a_failure_and_a_late_success_is_taken_back() -> None:
    stand = Stand(Limits(deadline=580.0))
    stand.fabric.latency = 700.0
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.run(579)
    assert stand.server.status(uid, GPU, FAILED) == ""
    stand.run(2)
    assert stand.server.status(uid, GPU, FAILED) == "True"
    assert stand.server.reason(uid, GPU, FAILED) == "AttachTimedOut"
    assert stand.fabric.items == []
    writes = len(stand.server.writes)
    stand.run(400)
    assert len(stand.server.writes) == writes
    assert stand.fabric.items == []


@case("BIND-04")
def test_what_the_fabric_does_after_its_time_out_is_found_and_taken_back() -> None:
    stand = Stand(Limits(deadline=30.0))
    stand.fabric.faults.extend(["late"])
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.run(1)
    stand.server.delete(uid)
    stand.run(5)
    assert stand.fabric.items == []
    stand.run(90)
    assert stand.fabric.later == []
    assert stand.fabric.items == []


@case("BIND-04")
def test_a_verification_that_fails_keeps_it_unready_until_it_succeeds() -> None:
    stand = Stand()
    stand.fabric.unverified = True
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.run(60)
    assert stand.server.status(uid, GPU, READY) == "False"
    assert stand.server.reason(uid, GPU, READY) == "NotVerified"
    stand.fabric.unverified = False
    stand.run(20)
    assert stand.server.status(uid, GPU, READY) == "True"


def test_a_lost_request_a_bug_and_a_double_attachment_are_got_over() -> None:
    stand = Stand()
    stand.fabric.faults.extend(["lose", "crash", "twice"])
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.run(30)
    assert stand.server.status(uid, GPU, READY) == "True"
    assert stand.fabric.attached(GPU) == [(uid, "node-1")]
    said = str(stand.server.claims[uid].conditions)
    assert "KeyError" not in said, "the text of a bug is for the log"


@case("BIND-01")
def test_conditions_of_others_stay_as_they_are() -> None:
    stand = Stand()
    uid = stand.server.allocate("c", result("gpu-0", CONFIRMED))
    stand.server.set(uid, GPU, CONFIRMED, "False")
    theirs = stand.server.claims[uid].conditions[GPU, None, CONFIRMED]
    stand.server.before_report = lambda: stand.server.set(uid, GPU, "example.com/other", "True")
    stand.run(1)
    stand.server.before_report = lambda: None
    stand.run(30)
    assert stand.server.status(uid, GPU, READY) == "True"
    assert stand.server.claims[uid].conditions[GPU, None, CONFIRMED] == theirs
    assert stand.server.status(uid, GPU, "example.com/other") == "True"
    assert all(CONFIRMED not in said for _, _, said in stand.server.writes)


@case("BIND-01")
def test_a_condition_that_another_writer_has_set_is_left_alone() -> None:
    stand = Stand(Limits(deadline=60.0))
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.server.set(uid, GPU, READY, "Unknown")
    stand.run(50)
    assert stand.server.status(uid, GPU, READY) == "Unknown"
    assert reasons(stand).count("DeviceConditionContested") == 1
    stand.run(20)
    assert stand.server.status(uid, GPU, READY) == "Unknown"
    assert stand.server.status(uid, GPU, FAILED) == "True", "the claim does not wait for ever"
    assert stand.fabric.items == []


def test_a_device_without_a_failure_condition_is_left_unready() -> None:
    stand = Stand()
    stand.fabric.broken.add(GPU)
    uid = stand.server.allocate("c", result("gpu-0", failures=()))
    stand.run(30)
    assert stand.server.status(uid, GPU, READY) == "False"
    assert stand.server.reason(uid, GPU, READY) == "PortDown"
    assert len(stand.server.rules) == 1


@case("BIND-01")
def test_shares_of_one_device_carry_the_same_conditions() -> None:
    stand = Stand()
    uid = stand.server.allocate("c", result("gpu-0", share="s1"), result("gpu-0", share="s2"))
    stand.run(10)
    found = {
        share: condition.status
        for (_, share, kind), (condition, _) in stand.server.claims[uid].conditions.items()
        if kind == READY
    }
    assert found == {"s1": "True", "s2": "True"}
    assert len(stand.fabric.items) == 1


@case("BIND-01")
def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    stand = Stand()
    stand.fabric.latency = 40.0
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.run(1)
    began = stand.server.claims[uid].conditions[GPU, None, READY][0]
    stand.run(20)
    later = stand.server.claims[uid].conditions[GPU, None, READY][0]
    assert later.message != began.message
    assert later.last_transition_time == began.last_transition_time
    stand.run(30)
    ready = stand.server.claims[uid].conditions[GPU, None, READY][0]
    assert (ready.status, ready.last_transition_time) != ("False", began.last_transition_time)
    assert ready.last_transition_time != began.last_transition_time


def test_a_stale_view_never_leads_to_a_word_about_another_allocation() -> None:
    stand = Stand()
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.turn()
    # Allocated anew, to another device and node, and the operator has not heard of it yet.
    moved = stand.server.claims[uid].claim
    stand.clock.seconds += 10
    stand.server.claims[uid].claim = replace(
        moved, results=(result("gpu-1"),), node="node-2", allocated_at=stand.clock.now()
    )
    stand.server.claims[uid].conditions.clear()
    stand.server.claims[uid].version += 1000
    stand.run(30)
    assert stand.server.status(uid, device("gpu-1"), READY) == "True"
    assert stand.server.status(uid, GPU, READY) == ""
    assert [(i.device, i.node) for i in stand.fabric.items] == [(device("gpu-1"), "node-2")]


def test_a_claim_that_moves_to_another_node_takes_its_device_along() -> None:
    stand = Stand()
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.run(10)
    stand.server.deallocate(uid)
    stand.server.allocate("c", result("gpu-0"), node="node-2")
    stand.run(30)
    assert stand.fabric.attached(GPU) == [(uid, "node-2")]
    assert stand.server.status(uid, GPU, READY) == "True"


def test_a_device_waits_until_the_claim_before_has_let_it_go() -> None:
    stand = Stand()
    first = stand.server.allocate("a", result("gpu-0"))
    stand.run(10)
    stand.fabric.faults.extend(["lose"] * 3)
    stand.server.deallocate(first)
    second = stand.server.allocate("b", result("gpu-0"))
    stand.run(60)
    assert stand.fabric.attached(GPU) == [(second, "node-1")]
    assert stand.server.status(second, GPU, READY) == "True"


def test_nothing_is_detached_while_the_api_server_cannot_be_asked() -> None:
    stand = Stand()
    uid = stand.server.allocate("a", result("gpu-0"))
    stand.run(10)
    stand.server.down = True
    # A view without the claim: the operator starts anew and has not seen it.
    stand.restart()
    stand.bindings.forget("resourceclaims", [uid])
    stand.run(100)
    assert stand.fabric.attached(GPU) == [(uid, "node-1")]
    stand.server.down = False
    stand.run(30)
    assert stand.fabric.attached(GPU) == [(uid, "node-1")]
    assert stand.server.status(uid, GPU, READY) == "True"


def test_an_attachment_that_is_lost_under_a_pod_is_made_again_and_said() -> None:
    stand = Stand()
    uid = stand.server.allocate("a", result("gpu-0"))
    stand.run(10)
    stand.fabric.items.clear()
    stand.run(60)
    assert stand.fabric.attached(GPU) == [(uid, "node-1")]
    assert reasons(stand).count("DeviceAttachmentLost") == 1


def test_a_failure_that_a_node_agent_reports_holds_the_device_back() -> None:
    stand = Stand()
    stand.fabric.OTHERS = (CONFIRMED, "example.com/agent-failed")
    stand.restart()
    both = (FAILED, "example.com/agent-failed")
    uid = stand.server.allocate("a", result("gpu-0", CONFIRMED, failures=both))
    stand.run(1)
    stand.server.set(uid, GPU, "example.com/agent-failed", "True")
    stand.run(10)
    assert len(stand.server.rules) == 1
    assert stand.server.status(uid, GPU, READY) == "False"
    assert stand.server.status(uid, GPU, FAILED) == ""
    stand.server.deallocate(uid)
    stand.run(5)
    assert stand.fabric.items == []


@case("BIND-03")
def test_a_missing_right_is_said_once_and_does_not_storm() -> None:
    stand = Stand()
    stand.server.forbidden = True
    tries: list[float] = []
    stand.server.before_report = lambda: tries.append(stand.clock.seconds)
    stand.server.allocate("a", result("gpu-0"))
    stand.run(300)
    assert len(tries) < 40
    stand.server.forbidden = False
    stand.run(40)
    assert "DeviceAttached" in reasons(stand)


def test_only_the_leader_acts_and_another_one_goes_on_where_it_stopped() -> None:
    stand = Stand()
    stand.leads = False
    uid = stand.server.allocate("a", result("gpu-0"))
    stand.run(10)
    assert stand.fabric.calls == []
    stand.leads = True
    stand.run(2)
    stand.restart()
    stand.run(10)
    assert stand.server.status(uid, GPU, READY) == "True"
    assert len(stand.fabric.items) == 1


def test_devices_of_other_drivers_and_without_our_conditions_are_not_touched() -> None:
    stand = Stand()
    other = result("gpu-9", driver=DriverName("other.example.com"))
    theirs = replace(result("gpu-8"), binding_conditions=(CONFIRMED,))
    plain = replace(result("gpu-7"), binding_conditions=())
    uid = stand.server.allocate("a", other, theirs, plain, result("gpu-0"))
    stand.run(10)
    assert {call[2].device for call in stand.fabric.calls} == {"gpu-0"}
    assert {key[0] for key in stand.server.claims[uid].conditions} == {GPU}


def test_a_hundred_claims_at_once() -> None:
    stand = Stand()
    uids = [stand.server.allocate(f"c-{i}", result(f"gpu-{i}")) for i in range(100)]
    stand.run(10)
    for i, uid in enumerate(uids):
        assert stand.server.status(uid, device(f"gpu-{i}"), READY) == "True"
    assert stand.numbers["attachments fabric.example.com ready"] == 100
    assert len(stand.server.writes) == 200


def test_a_successor_of_the_same_name_is_another_claim() -> None:
    stand = Stand()
    uid = stand.server.allocate("a", result("gpu-0"))
    stand.run(10)
    stand.server.delete(uid)
    successor = stand.server.allocate("a", result("gpu-1"), uid="uid-new")
    stand.run(20)
    assert [(i.tag.uid, i.device.device) for i in stand.fabric.items] == [(successor, "gpu-1")]
    assert ClaimUID(uid) != successor


def test_a_shares_entry_of_another_share_does_not_count() -> None:
    stand = Stand()
    claim = stand.server.allocate("c", result("gpu-0", share="s1"))
    assert DeviceStatus(*GPU, share_id="s2") not in stand.server.claims[claim].seen().devices
    stand.server.set(claim, GPU, READY, "True")
    stand.run(10)
    assert ("s1", READY) in {(s, k) for _, s, k in stand.server.claims[claim].conditions}


@case("BIND-04")
def test_what_is_verified_too_late_is_not_said_to_be_ready() -> None:
    stand = Stand(Limits(deadline=60.0))
    uid = stand.server.allocate("c", result("gpu-0"))

    def slow() -> None:
        stand.clock.seconds += 100.0

    stand.fabric.while_verifying = slow
    stand.run(200)
    assert stand.server.status(uid, GPU, READY) != "True"
    assert stand.server.status(uid, GPU, FAILED) == "True"
    assert stand.fabric.items == []


@case("BIND-04")
def test_what_has_failed_meanwhile_is_not_said_to_be_ready() -> None:
    stand = Stand()
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.fabric.while_verifying = lambda: stand.server.set(uid, GPU, FAILED, "True")
    stand.run(60)
    assert stand.server.status(uid, GPU, READY) != "True"
    assert stand.fabric.items == []


def test_an_allocation_to_another_node_meanwhile_is_not_said_to_be_ready() -> None:
    stand = Stand()
    uid = stand.server.allocate("c", result("gpu-0"))

    def move() -> None:
        stand.fabric.while_verifying = lambda: None
        stand.server.deallocate(uid)
        stand.server.allocate("c", result("gpu-0"), node="node-2")

    stand.fabric.while_verifying = move
    wrong: list[str] = []

    def check(found: str, where: object, said: dict[str, str]) -> None:
        node = stand.server.claims[found].claim.node
        if said.get(READY) == "True" and stand.fabric.attached(GPU) != [(found, node)]:
            wrong.append(node)

    stand.server.after_report = check
    stand.run(60)
    assert wrong == []
    assert stand.fabric.attached(GPU) == [(uid, "node-2")]
    assert stand.server.status(uid, GPU, READY) == "True"


def test_a_rule_that_cannot_be_written_does_not_keep_the_claim_waiting() -> None:
    stand = Stand()
    stand.fabric.broken.add(GPU)
    stand.server.rules_down = True
    uid = stand.server.allocate("c", result("gpu-0"))
    stand.run(30)
    assert stand.server.status(uid, GPU, FAILED) == "True"

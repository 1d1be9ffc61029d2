"""binding: targets, standing, decisions and conditions, as values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dra_core import binding, wire
from dra_core.binding import Act, Hold, Outcome, Report, Standing, Target
from dra_core.errors import InvalidValue
from dra_core.model.claims import (
    Allocation,
    AllocationResult,
    Claim,
    ClaimReference,
    ClaimStatus,
    DeviceAllocation,
    DeviceStatus,
)
from dra_core.model.objects import Condition, Metadata
from dra_core.model.requests import ClaimSpec
from dra_core.model.usage import ClaimInUse
from dra_core.names import ClaimUID, DeviceName, DriverName, PoolName
from dra_core.taints import DeviceId
from dra_testing.cases import case

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DRIVER, POOL = DriverName("d.example.com"), PoolName("p")
DEVICE = DeviceId(DRIVER, POOL, DeviceName("x"))
RESULT = AllocationResult(
    "r", *DEVICE, binding_conditions=("Ready", "Theirs"), binding_failure_conditions=("Bad", "Ugly")
)
OTHERS = {DRIVER: frozenset({"Theirs", "Ugly"})}


def claim(*results: AllocationResult) -> ClaimInUse:
    return ClaimInUse("ns", "c", ClaimUID("u"), results, node="n", allocated_at=NOW)


def target(*results: AllocationResult) -> Target:
    (found,) = binding.targets(claim(*(results or (RESULT,))), OTHERS).values()
    return found


def entry(share: str | None = None, **conditions: str) -> DeviceStatus:
    made = tuple(Condition(kind, status) for kind, status in conditions.items())
    return DeviceStatus(*DEVICE, share_id=share, conditions=made)


@case("BIND-04")
def test_names_of_conditions_come_from_the_allocation_without_those_of_others() -> None:
    found = target()
    assert (found.ready, found.failed, found.foreign) == (("Ready",), ("Bad",), ("Ugly",))
    assert (found.node, found.allocated_at) == ("n", NOW)


def test_a_device_without_conditions_of_ours_is_no_target() -> None:
    assert binding.targets(claim(replace(RESULT, binding_conditions=())), OTHERS) == {}
    assert binding.targets(claim(replace(RESULT, binding_conditions=("Theirs",))), OTHERS) == {}
    assert binding.targets(claim(RESULT), {}) == {}


@case("BIND-01")
def test_shares_are_one_target_and_all_of_them_count() -> None:
    both = target(replace(RESULT, share_id="a"), replace(RESULT, share_id="b"))
    assert both.shares == ("a", "b")
    half = [entry("a", Ready="True"), entry("b", Ready="False")]
    assert binding.standing(both, half) is Standing.OPEN
    whole = [entry("a", Ready="True"), entry("b", Ready="True")]
    assert binding.standing(both, whole) is Standing.READY
    made = binding.report_entries(both, Report(Outcome.READY, "Done"), half, NOW)
    assert [(e.share_id, e.conditions[0].status) for e in made] == [("a", "True"), ("b", "True")]


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        ({}, Standing.OPEN),
        ({"Ready": "Unknown"}, Standing.OPEN),
        ({"Theirs": "True"}, Standing.OPEN),
        ({"Ready": "True", "Theirs": "False"}, Standing.READY),
        ({"Ready": "True", "Bad": "True"}, Standing.FAILED),
        ({"Ready": "True", "Ugly": "True"}, Standing.FOREIGN),
    ],
)
def test_what_the_conditions_say(conditions: dict[str, str], says: Standing) -> None:
    other = DeviceStatus(DRIVER, POOL, "y", conditions=(Condition("Bad", "True"),))
    assert binding.standing(target(), [other, entry(**conditions)]) is says


@pytest.mark.parametrize(
    ("says", "gave_up", "late", "act"),
    [
        (Standing.OPEN, False, False, Act.ATTACH),
        (Standing.OPEN, False, True, Act.FAIL),
        (Standing.OPEN, True, False, Act.FAIL),
        (Standing.READY, False, True, Act.KEEP),
        (Standing.READY, True, True, Act.KEEP),
        (Standing.FAILED, False, False, Act.ROLL_BACK),
        (Standing.FOREIGN, False, True, Act.WAIT),
    ],
)
def test_decisions(says: Standing, gave_up: bool, late: bool, act: Act) -> None:
    assert binding.decide(target(), says, gave_up, late) is act
    assert binding.decide(None, says, gave_up, late) is Act.DETACH


@case("BIND-04")
def test_the_deadline_counts_from_the_allocation() -> None:
    seen = NOW + timedelta(seconds=100)
    assert binding.deadline(target(), seen, 580) == NOW + timedelta(seconds=580)
    unknown = replace(target(), allocated_at=None)
    assert binding.deadline(unknown, seen, 580) == seen + timedelta(seconds=580)


def test_a_report_names_our_conditions_only_and_never_both() -> None:
    (waiting,) = binding.report_entries(target(), Report(Outcome.WAITING, "Soon", "m"), [], NOW)
    assert waiting.conditions == (Condition("Ready", "False", "Soon", "m", NOW),)
    (failed,) = binding.report_entries(target(), Report(Outcome.FAILED, "no good"), [], NOW)
    assert failed.conditions == (Condition("Bad", "True", "Unspecified", "", NOW),)


@case("BIND-01")
def test_the_time_of_a_condition_stays_while_its_status_does() -> None:
    before = replace(entry(), conditions=(Condition("Ready", "False", last_transition_time=NOW),))
    later = NOW + timedelta(seconds=9.5)
    (same,) = binding.report_entries(target(), Report(Outcome.WAITING, "Soon"), [before], later)
    assert same.conditions[0].last_transition_time == NOW
    (changed,) = binding.report_entries(target(), Report(Outcome.READY, "Ok"), [before], later)
    assert changed.conditions[0].last_transition_time == NOW + timedelta(seconds=9)


def test_the_body_of_an_apply_says_no_more_than_that() -> None:
    entries = binding.report_entries(target(), Report(Outcome.READY, "Ok"), [], NOW)
    reference = ClaimReference("ns", "c", ClaimUID("u"))
    body = wire.device_conditions_patch(reference, "7", entries, "v1beta1")
    assert body["apiVersion"] == "resource.k8s.io/v1beta1"
    assert body["metadata"] == {
        "name": "c",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
    }
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Ok",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    (device,) = body["status"]["devices"]
    assert device == {
        "driver": DRIVER,
        "pool": POOL,
        "device": "x",
        "conditions": [condition],
    }


def test_a_hold_is_a_rule_on_one_device_that_says_until_when() -> None:
    hold = Hold(DEVICE, NOW + timedelta(seconds=61))
    rule = binding.hold_rule(hold)
    data = wire.write(rule)
    assert data["spec"] == {
        "deviceSelector": {"driver": DRIVER, "pool": POOL, "device": "x"},
        "taint": {
            "key": "dragoman-attach-failed",
            "value": "2026-01-01T00.01.01Z",
            "effect": "NoSchedule",
        },
    }
    assert binding.hold_of(rule) == hold
    assert binding.hold_of(replace(rule, metadata=Metadata(name="dragoman-hold-x"))) is None
    spec = replace(rule.spec, taint=replace(rule.spec.taint, value="soon"))
    assert binding.hold_of(replace(rule, spec=spec)) is None
    spec = replace(rule.spec, taint=replace(rule.spec.taint, key="k"))
    assert binding.hold_of(replace(rule, spec=spec)) is None


def test_names_of_holds_tell_devices_apart() -> None:
    split = DeviceId(DRIVER, PoolName("p/x"), DeviceName("y"))
    other = DeviceId(DRIVER, PoolName("p"), DeviceName("x/y"))
    assert Hold(split, NOW).name != Hold(other, NOW).name


def test_a_device_is_held_back_for_longer_each_time() -> None:
    lengths = [binding.hold_seconds(n, 60.0, 900.0) for n in (0, 1, 2, 3, 4, 5, 6, 10**9)]
    assert lengths == [60, 60, 120, 240, 480, 900, 900, 900]


def whole(*devices: DeviceStatus, results: tuple[AllocationResult, ...] = (RESULT,)) -> Claim:
    allocation = Allocation(DeviceAllocation(results))
    metadata = Metadata(name="c", namespace="ns", uid="u")
    return Claim(metadata, ClaimSpec(), ClaimStatus(allocation, devices=devices))


def test_a_confirmation_sets_one_condition_of_each_share() -> None:
    condition = Condition("Theirs", "True", "Found")
    (made,) = binding.confirmation(whole(), DEVICE, condition, NOW)
    assert made.conditions == (replace(condition, last_transition_time=NOW),)
    shares = (replace(RESULT, share_id="a"), replace(RESULT, share_id="b"))
    found = binding.confirmation(whole(results=shares), DEVICE, condition, NOW)
    assert [e.share_id for e in found] == ["a", "b"]


def test_a_confirmation_that_stands_is_not_written_again() -> None:
    condition = Condition("Theirs", "True", "Found")
    assert binding.confirmation(whole(entry(Theirs="True")), DEVICE, condition, NOW) == ()
    assert binding.confirmation(whole(entry(Theirs="False")), DEVICE, condition, NOW) != ()


def test_a_confirmation_that_nobody_waits_for_is_refused() -> None:
    with pytest.raises(InvalidValue, match="conditions of its allocation are: Bad, Ready, Theirs"):
        binding.confirmation(whole(), DEVICE, Condition("Odd", "True"), NOW)
    elsewhere = DEVICE._replace(device=DeviceName("z"))
    with pytest.raises(InvalidValue, match="are: none"):
        binding.confirmation(whole(), elsewhere, Condition("Theirs", "True"), NOW)

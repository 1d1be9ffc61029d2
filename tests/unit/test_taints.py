"""taints: what is on a device, and for how long it is tolerated. Times are arguments."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dra_core.model.objects import Metadata
from dra_core.model.taints import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    DeviceToleration,
    RuleSpec,
)
from dra_core.model.usage import SliceTaints
from dra_core.names import DeviceName, DriverName, PoolName
from dra_core.taints import (
    AS_WRITTEN,
    DeviceId,
    Reading,
    evicts,
    patience,
    pool_taints,
    rule_taint,
    selects,
    tolerates,
)
from dra_testing.cases import case

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SEEN = T0 + timedelta(hours=1)
TAINT = DeviceTaint("example.com/bad", "NoExecute", "yes", T0)
IN_TREE = Reading(empty_effect=False)


def a_slice(
    generation: int = 1, count: int = 1, name: str = "s", **devices: DeviceTaint | None
) -> SliceTaints:
    names = {DeviceName(key): value for key, value in devices.items()}
    return SliceTaints(
        name=f"{generation}-{name}",
        uid=f"uid-{generation}-{name}",
        driver=DriverName("a.example.com"),
        pool=PoolName("p"),
        generation=generation,
        slice_count=count,
        devices=frozenset(names),
        taints={key: (value,) for key, value in names.items() if value},
    )


def keys(found: object) -> dict[str, list[str]]:
    assert isinstance(found, dict)
    return {device: [p.taint.key for p in placed] for device, placed in found.items()}


# -- slices ----------------------------------------------------------------------------------------
def test_the_taints_of_the_newest_generation_count() -> None:
    old, new = a_slice(1, d=TAINT), a_slice(2, d=replace(TAINT, key="new"))
    assert keys(pool_taints([new, old], None, SEEN)) == {"d": ["new"]}
    assert keys(pool_taints([old], None, SEEN)) == {"d": [TAINT.key]}
    assert pool_taints([], None, SEEN) == {}


def test_a_complete_generation_that_lists_a_device_without_taints_has_none() -> None:
    before = pool_taints([a_slice(1, d=TAINT)], None, SEEN)
    assert pool_taints([a_slice(1, d=TAINT), a_slice(2, d=None)], before, SEEN) == {}


def test_a_complete_generation_without_the_device_has_none() -> None:
    before = pool_taints([a_slice(1, d=TAINT)], None, SEEN)
    assert pool_taints([a_slice(1, d=TAINT), a_slice(2, e=None)], before, SEEN) == {}


@pytest.mark.parametrize("old_slice_is_there", [True, False])
def test_a_device_missing_from_an_unfinished_generation_keeps_its_taints(
    old_slice_is_there: bool,
) -> None:
    old = a_slice(1, d=TAINT, e=TAINT)
    before = pool_taints([old], None, SEEN)
    new = a_slice(2, 2, e=None)
    found = pool_taints([old, new] if old_slice_is_there else [new], before, SEEN)
    assert keys(found) == {"d": [TAINT.key]}
    assert found[DeviceName("d")][0].source.name == "1-s"


def test_at_first_sight_the_older_generation_says_what_a_missing_device_had() -> None:
    oldest = a_slice(1, d=replace(TAINT, key="oldest"), e=TAINT)
    older, new = a_slice(2, d=TAINT, e=None), a_slice(3, 2, f=TAINT)
    assert keys(pool_taints([new, older, oldest], None, SEEN)) == {
        "d": [TAINT.key],
        "f": [TAINT.key],
    }


def test_an_older_slice_is_not_asked_again_once_the_pool_is_known() -> None:
    before = pool_taints([a_slice(1, d=None)], None, SEEN)
    late = a_slice(1, d=TAINT)  # changed after the first slice of the new generation came
    assert pool_taints([late, a_slice(2, 2, e=None)], before, SEEN) == {}


def test_more_slices_than_said_are_not_unfinished() -> None:
    before = {DeviceName("gone"): pool_taints([a_slice(1, d=TAINT)], None, SEEN)[DeviceName("d")]}
    current = [a_slice(1, 1, "s", d=None), a_slice(1, 1, "t", e=None)]
    assert pool_taints(current, before, SEEN) == {}


def test_of_slices_that_list_the_same_device_the_last_name_counts_in_whichever_order() -> None:
    slices = [
        a_slice(1, 9, name, d=replace(TAINT, key=key), **{f"own-{name}": None})
        for name, key in (("b", "second"), ("a", "first"))
    ]
    slices.append(a_slice(1, 9, "z", e=TAINT))
    for order in (slices, slices[::-1]):
        assert keys(pool_taints(iter(order), None, SEEN)) == {"d": ["second"], "e": [TAINT.key]}


@case("EVCT-04")
def test_a_taint_without_a_time_counts_from_when_it_was_first_seen() -> None:
    bare = replace(TAINT, time_added=None)
    first = pool_taints([a_slice(1, d=bare)], None, SEEN)
    assert first[DeviceName("d")][0].since == SEEN
    later = SEEN + timedelta(minutes=5)
    again = pool_taints([a_slice(2, d=bare)], first, later)
    assert again[DeviceName("d")][0].since == SEEN
    other = pool_taints([a_slice(2, d=replace(bare, value="other"))], first, later)
    assert other[DeviceName("d")][0].since == later
    timed = pool_taints([a_slice(2, d=TAINT)], first, later)
    assert timed[DeviceName("d")][0].since == T0


# -- rules -----------------------------------------------------------------------------------------
DEVICE = DeviceId(DriverName("a.example.com"), PoolName("p"), DeviceName("d"))


@case("EVCT-03")
@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        (DeviceTaintSelector(), True),
        (DeviceTaintSelector(driver="a.example.com"), True),
        (DeviceTaintSelector(driver="b.example.com"), False),
        (DeviceTaintSelector(driver=""), False),
        (DeviceTaintSelector(pool="p", device="d"), True),
        (DeviceTaintSelector(pool="p", device="e"), False),
        (DeviceTaintSelector(pool="q", device="d"), False),
        (DeviceTaintSelector("a.example.com", "p", "d"), True),
        (DeviceTaintSelector("b.example.com", "p", "d"), False),
    ],
)
def test_the_selector_of_a_rule(selector: DeviceTaintSelector | None, selected: bool) -> None:
    assert selects(selector, DEVICE) is selected


def a_rule(taint: DeviceTaint, created: datetime | None = None) -> DeviceTaintRule:
    return DeviceTaintRule(Metadata(name="r", uid="u", creation_timestamp=created), RuleSpec(taint))


def test_the_time_of_a_rule_is_that_of_its_taint_then_that_of_its_creation() -> None:
    bare = replace(TAINT, time_added=None)
    created = T0 - timedelta(minutes=1)
    assert rule_taint(a_rule(TAINT, created), SEEN).since == T0
    assert rule_taint(a_rule(bare, created), SEEN).since == created
    assert rule_taint(a_rule(bare), SEEN).since == SEEN


@pytest.mark.parametrize(
    ("effect", "evicting"),
    [("NoExecute", True), ("NoSchedule", False), ("None", False), ("Later", False), ("", False)],
)
def test_only_no_execute_evicts(effect: str, evicting: bool) -> None:
    assert evicts(rule_taint(a_rule(replace(TAINT, effect=effect)), SEEN)) is evicting


# -- tolerations -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("toleration", "matches"),
    [
        (DeviceToleration(TAINT.key, "Exists"), True),
        (DeviceToleration(TAINT.key, "Equal", "yes"), True),
        (DeviceToleration(TAINT.key, "", "yes"), True),
        (DeviceToleration(TAINT.key, "Equal", "no"), False),
        (DeviceToleration(TAINT.key, "In", "yes"), False),
        (DeviceToleration(TAINT.key, "exists"), False),
        (DeviceToleration("other", "Exists"), False),
        (DeviceToleration("", "Exists"), True),
        (DeviceToleration("", "Equal", "yes"), False),
        (DeviceToleration(TAINT.key, "Exists", effect="NoExecute"), True),
        (DeviceToleration(TAINT.key, "Exists", effect="NoSchedule"), False),
        (DeviceToleration(TAINT.key, "Exists", effect="None"), False),
    ],
)
def test_which_toleration_matches(toleration: DeviceToleration, matches: bool) -> None:
    assert tolerates(toleration, TAINT) is matches


def for_seconds(seconds: int | None, effect: str = "NoExecute") -> DeviceToleration:
    return DeviceToleration(TAINT.key, "Exists", effect=effect, toleration_seconds=seconds)


@case("EVCT-04")
@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0.0),
        ([for_seconds(300)], 300.0),
        ([for_seconds(300), for_seconds(60)], 60.0),
        ([for_seconds(60), for_seconds(300)], 60.0),
        ([for_seconds(60), for_seconds(None)], math.inf),
        ([for_seconds(None)], math.inf),
        ([for_seconds(0)], 0.0),
        ([for_seconds(-5)], 0.0),
        ([for_seconds(-5), for_seconds(60)], 0.0),
        ([for_seconds(2**63 - 1)], math.inf),
        ([for_seconds(2**63 - 1), for_seconds(60)], 60.0),
        ([DeviceToleration("other", "Exists", effect="NoExecute")], 0.0),
        ([DeviceToleration("other", "Exists"), for_seconds(60)], 60.0),
    ],
)
def test_how_long_a_taint_is_tolerated(tolerations: list[DeviceToleration], seconds: float) -> None:
    assert patience(tolerations, TAINT) == seconds


@case("EVCT-04")
@pytest.mark.parametrize(
    ("tolerations", "as_written", "in_tree"),
    [
        ([for_seconds(None, effect="")], math.inf, 0.0),
        ([for_seconds(60, effect="")], 60.0, 0.0),
        ([for_seconds(60, effect=""), for_seconds(300)], 60.0, 300.0),
        ([for_seconds(None, effect=""), for_seconds(300)], math.inf, 300.0),
        ([for_seconds(None)], math.inf, math.inf),
    ],
)
def test_a_toleration_without_an_effect_is_read_as_written_or_as_in_tree(
    tolerations: list[DeviceToleration], as_written: float, in_tree: float
) -> None:
    assert patience(tolerations, TAINT, AS_WRITTEN) == as_written
    assert patience(tolerations, TAINT, IN_TREE) == in_tree

"""evictions: order, pace, backoff and what is left alone, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog.testing

from dra_core.errors import ApiConflict, ApiError, ApiForbidden, ApiNotFound, ApiUnavailable
from dra_core.eviction import Cause
from dra_core.model.claims import AllocationResult, Consumer
from dra_core.model.objects import Metadata
from dra_core.model.taints import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    DeviceToleration,
    RuleSpec,
)
from dra_core.model.usage import ClaimInUse, Pod, PodClaim, SliceTaints
from dra_core.names import ClaimUID, DeviceName, DriverName, PodUID, PoolName
from dra_core.wire.lean import CONFIRMED
from dra_operator.cluster import PODS, RULES, SLICES, Cluster, Preview
from dra_operator.deallocations import STILL_ALLOCATED
from dra_operator.evictions import BLOCKED, CANCELLED, EVICTED, Evictions, Limits, World
from dra_operator.pacing import Backoff, Rate
from dra_operator.ports import EvictionRefused, Mode, Subject
from dra_operator.progress import Progress
from dra_operator.unprepared import DRIVER_MISSING
from dra_operator.wide_rules import HELD
from dra_testing.cases import case

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
DRIVER, POOL = DriverName("a.example.com"), PoolName("p")
EVERY: dict[str, Any] = {"pods_per_second": 1000.0, "pool_share": 1.0, "hold_share": 1.0}


class Stand:
    """The use case with a virtual clock, an API that does what it is told, and a log of calls."""

    def __init__(self, **limits: Any) -> None:
        self.seconds = 0.0
        self.calls: list[tuple[float, str, str]] = []
        self.told: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.counted: dict[str, float] = {}
        self.wrong: dict[str, Callable[[], ApiError | None]] = {}
        self.mode: Mode | None = Mode.EVICT
        self.leads = True
        self.confirmed = True
        self.doubts = 0
        self.woken = False
        self.evictions = Evictions(
            Cluster(self.now),
            World(
                pods=self,
                taints=self,
                notices=self,
                measures=self,
                clock=self,
                start=lambda work: work(),
                mode=lambda: self.mode,
                allowed=lambda: self.leads,
                wake=self._wake,
                doubt=self._doubt,
            ),
            Limits(**(EVERY | limits)),
        )

    # ports
    def now(self) -> datetime:
        return T0 + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return 1000.0 + self.seconds

    def _call(self, what: str, pod: Pod) -> None:
        self.calls.append((self.seconds, what, pod.uid))
        error = self.wrong.get(what, lambda: None)()
        if error is not None:
            raise error

    def evict(self, pod: Pod) -> None:
        self._call("evict", pod)

    def mark(self, pod: Pod, message: str) -> None:
        self.notes.append(message)
        self._call("mark", pod)

    def delete(self, pod: Pod) -> None:
        self._call("delete", pod)

    def confirm(self, cause: Cause) -> bool:
        self.notes.append(f"confirm {cause}")
        return self.confirmed

    def tell(self, pod: Subject, kind: str, reason: str, note: str) -> None:
        self.told.append((pod.uid, reason))
        self.notes.append(f"{kind} {note}")

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        key = "/".join([name, *labels.values()])
        self.counted[key] = self.counted.get(key, 0.0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        self.counted["/".join([name, *labels.values()])] = value

    def _doubt(self) -> None:
        self.doubts += 1

    def _wake(self) -> None:
        self.woken = True

    # steps
    def put(self, *items: Any) -> None:
        for item in items:
            self.evictions.apply(item)

    def run(self, seconds: float) -> None:
        """Let the loop run for so long, as the program's thread does."""
        end = self.seconds + seconds
        for _ in range(10_000):
            self.woken = False
            pause = self.evictions.run_due()
            pause = 0.0 if self.woken else max(pause, 0.001)
            if self.seconds + pause > end:
                self.seconds = end
                return
            self.seconds += pause
        raise AssertionError("the loop does not come to rest")

    def gone(self, *uids: str) -> None:
        self.evictions.forget(PODS, uids)

    @property
    def evicted(self) -> list[str]:
        return [uid for _, what, uid in self.calls if what == "evict"]

    def times(self, what: str = "evict") -> list[float]:
        return [round(at, 2) for at, name, _ in self.calls if name == what]


def a_pod(uid: str = "u1", **other: Any) -> Pod:
    return replace(Pod("ns", f"pod-{uid}", PodUID(uid), (PodClaim("c"),), node="n"), **other)


def a_claim(*users: str, device: str = "d", **other: Any) -> ClaimInUse:
    toleration = other.pop("toleration", None)
    result = AllocationResult(
        "r", DRIVER, POOL, DeviceName(device), tolerations=(toleration,) if toleration else ()
    )
    consumers = tuple(Consumer("pods", f"pod-{user}", user) for user in users)
    return replace(ClaimInUse("ns", "c", ClaimUID("c1"), (result,), consumers), **other)


def another_claim(user: str, *tolerations: DeviceToleration) -> ClaimInUse:
    """Claim x on device e."""
    result = AllocationResult("r", DRIVER, POOL, DeviceName("e"), tolerations=tolerations)
    return replace(a_claim(user), name="x", uid=ClaimUID("c2"), results=(result,))


def a_rule(uid: str = "r1", since: float = 0.0, **selector: Any) -> DeviceTaintRule:
    taint = DeviceTaint("k", "NoExecute", "", T0 + timedelta(seconds=since))
    return DeviceTaintRule(
        Metadata(name=uid, uid=uid), RuleSpec(taint, DeviceTaintSelector(**selector))
    )


def for_seconds(seconds: int | None) -> DeviceToleration:
    return DeviceToleration("k", "Exists", effect="NoExecute", toleration_seconds=seconds)


def shared(stand: Stand, *uids: str, **pod: Any) -> None:
    """Pods that share a claim."""
    stand.put(a_claim(*uids), *(a_pod(uid, **pod) for uid in uids))


# -- when ------------------------------------------------------------------------------------------
@case("EVCT-04")
@pytest.mark.parametrize(
    ("toleration", "since", "at"),
    [
        (None, 0.0, [0.0]),
        (None, 30.0, [30.0]),
        (for_seconds(60), 0.0, [60.0]),
        (for_seconds(60), -50.0, [10.0]),
        (for_seconds(60), -100.0, [0.0]),
        (for_seconds(None), 0.0, []),
        (for_seconds(-5), 0.0, [0.0]),
    ],
)
def test_a_pod_goes_at_its_moment_whenever_the_operator_was_started(
    toleration: DeviceToleration | None, since: float, at: list[float]
) -> None:
    stand = Stand()
    stand.put(a_pod(), a_claim("u1", toleration=toleration), a_rule(since=since))
    stand.run(500)
    assert stand.times() == at
    assert stand.told == [("u1", EVICTED)] * len(at)


@case("EVCT-04")
def test_a_rule_removed_before_the_moment_cancels_with_an_event() -> None:
    stand = Stand()
    stand.put(a_pod(), a_claim("u1", toleration=for_seconds(60)), a_rule())
    stand.run(59)
    stand.evictions.forget(RULES, ["r1"])
    stand.run(500)
    assert stand.evicted == []
    assert stand.told == [("u1", CANCELLED)]


def test_a_second_taint_brings_the_moment_forward() -> None:
    stand = Stand()
    stand.put(a_pod(), a_claim("u1", toleration=for_seconds(60)), a_rule())
    stand.run(10)
    other = DeviceTaintRule(
        Metadata(name="r2", uid="r2"),
        RuleSpec(DeviceTaint("other", "NoExecute", "", stand.now()), DeviceTaintSelector()),
    )
    stand.put(other)
    stand.run(100)
    assert stand.times() == [10.0]


def test_listing_again_forgets_no_deadline_and_repeats_nothing() -> None:
    stand = Stand()
    items = [a_pod(), a_claim("u1", toleration=for_seconds(60)), a_rule()]
    stand.put(*items)
    for _ in range(6):
        stand.run(9)
        stand.put(*items)
    stand.run(100)
    assert stand.times() == [60.0]


# -- who -------------------------------------------------------------------------------------------
@case("EVCT-05")
def test_a_pod_that_goes_by_itself_is_left_alone() -> None:
    stand = Stand()
    shared(stand, "u1", "u2", "u3")
    stand.put(a_rule(since=10.0))
    stand.put(a_pod("u1", deleting=True))
    stand.gone("u2")
    stand.run(100)
    assert stand.evicted == ["u3"]
    assert stand.told == [("u3", EVICTED)]


@case("EVCT-05")
@pytest.mark.parametrize("error", [ApiNotFound("no pod"), ApiConflict("another UID")])
def test_a_pod_that_is_gone_or_replaced_is_not_tried_again(error: ApiError) -> None:
    stand = Stand()
    stand.wrong["evict"] = lambda: error
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(500)
    assert stand.evicted == ["u1"]
    assert stand.told == []
    assert stand.doubts == 1


def test_the_least_important_and_youngest_go_first() -> None:
    stand = Stand(pods_per_second=1.0)
    stand.put(a_claim("old", "young", "vip", "poor"))
    stand.put(
        a_pod("vip", priority=1000, created=T0),
        a_pod("old", created=T0 - timedelta(days=2)),
        a_pod("young", created=T0 - timedelta(days=1)),
        a_pod("poor", priority=-5, created=T0 - timedelta(days=9)),
    )
    stand.put(a_rule())
    stand.run(10)
    assert stand.evicted == ["poor", "young", "old", "vip"]


def test_observing_evicts_and_tells_nobody() -> None:
    stand = Stand()
    stand.mode = Mode.OBSERVE
    shared(stand, "u1", "u2")
    stand.put(a_rule())
    stand.run(500)
    stand.evictions.forget(RULES, ["r1"])
    stand.run(500)
    assert (stand.calls, stand.told) == ([], [])
    assert stand.counted["observed_total"] == 2


def test_only_the_leader_evicts_and_a_new_one_goes_on_where_the_old_one_was() -> None:
    stand = Stand()
    stand.leads = False
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(100)
    assert stand.calls == []
    stand.leads = True
    stand.run(1)
    assert stand.evicted == ["u1"]


def test_a_taint_that_the_server_does_not_confirm_evicts_nobody() -> None:
    stand = Stand()
    stand.confirmed = False
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(20)
    assert stand.evicted == []
    assert stand.doubts > 0
    stand.confirmed = True
    stand.run(60)
    assert stand.evicted == ["u1"]


# -- how fast --------------------------------------------------------------------------------------
def most_within(times: list[float], seconds: float) -> int:
    return max(sum(1 for t in times if start <= t < start + seconds) for start in times)


@pytest.mark.parametrize(("rate", "window", "most"), [(20.0, 1.0, 20), (0.5, 2.0, 1)])
def test_the_rate_holds_within_any_window(rate: float, window: float, most: int) -> None:
    stand = Stand(pods_per_second=rate)
    uids = [f"u{n:03}" for n in range(100)]
    shared(stand, *uids)
    stand.put(a_rule())
    stand.run(400)
    assert sorted(stand.evicted) == uids
    assert most_within(stand.times(), window) == most
    assert stand.times()[0] == 0.0


def test_a_rate_takes_what_it_is_given() -> None:
    rate = Rate(2.5)
    assert rate.next_at(5.0) == 5.0
    rate.start(5.0)
    rate.start(5.5)
    assert rate.next_at(5.5) == 6.0


@pytest.mark.parametrize(("pods", "share", "most"), [(40, 0.25, 10), (3, 0.25, 1), (8, 1.0, 8)])
def test_only_a_share_of_a_pool_is_on_its_way_out(pods: int, share: float, most: int) -> None:
    stand = Stand(pool_share=share)
    uids = [f"u{n:02}" for n in range(pods)]
    shared(stand, *uids)
    stand.put(a_rule())
    stand.run(30)
    assert len(stand.evicted) == most, "nobody is gone yet"
    stand.put(*(a_pod(uid, deleting=True) for uid in stand.evicted))
    stand.run(30)
    assert len(stand.evicted) == most, "terminating is not gone"
    left, waiting = pods, stand.evicted
    while len(stand.evicted) < pods:
        stand.gone(waiting.pop(0))
        left -= 1
        before = len(stand.evicted)
        stand.run(3)
        waiting += stand.evicted[before:]
        assert len(waiting) <= max(1, share * left)


def test_pods_that_an_earlier_leader_evicted_count_in_the_share() -> None:
    stand = Stand(pool_share=0.25)
    uids = [f"u{n}" for n in range(40)]
    shared(stand, *uids)
    stand.put(*(a_pod(uid, deleting=True) for uid in uids[:8]), a_rule())
    stand.run(10)
    assert len(stand.evicted) == 2, "ten are on their way"
    stand.gone(*uids[:8])
    stand.run(10)
    assert len(stand.evicted) == 8, "a quarter of the 32 that are left"


def test_each_rule_and_pool_has_a_share_of_its_own() -> None:
    stand = Stand()
    stand.evictions = Evictions(
        Cluster(stand.now), stand.evictions._world, Limits(pods_per_second=1000.0)
    )
    for number, pool in enumerate(["p", "q"]):
        result = AllocationResult("r", DRIVER, PoolName(pool), DeviceName("d"))
        uids = [f"{pool}{n}" for n in range(8)]
        consumers = tuple(Consumer("pods", uid, uid) for uid in uids)
        stand.put(ClaimInUse("ns", pool, ClaimUID(pool), (result,), consumers))
        stand.put(*(a_pod(uid, claims=(PodClaim(pool),)) for uid in uids))
        stand.put(a_rule(f"r{number}", pool=pool))
    stand.run(5)
    assert sorted(uid[0] for uid in stand.evicted) == ["p", "p", "q", "q"]


# -- when it does not work -------------------------------------------------------------------------
def blocked(retry_after: float = 0.0) -> Callable[[], ApiError]:
    return lambda: EvictionRefused("429: would violate the budget", retry_after)


def test_a_budget_that_says_no_is_asked_again_with_growing_pauses_and_told_once() -> None:
    stand = Stand()
    stand.wrong["evict"] = blocked()
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(200)
    assert stand.times() == [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 123.0, 183.0]
    del stand.wrong["evict"]
    stand.run(100)
    assert stand.told == [("u1", BLOCKED), ("u1", EVICTED)]
    assert stand.times("delete") == []


def test_the_servers_wish_for_a_pause_is_followed() -> None:
    stand = Stand()
    stand.wrong["evict"] = blocked(10.0)
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(35)
    assert stand.times() == [0.0, 10.0, 20.0, 30.0]


def test_a_blocked_pod_takes_no_room_from_others() -> None:
    stand = Stand(pool_share=0.25)
    answers = iter([blocked()()])
    stand.wrong["evict"] = lambda: next(answers, None)
    shared(stand, "u1", "u2")
    stand.put(a_rule())
    stand.run(0.5)
    assert stand.evicted == ["u1", "u2"]


def test_a_pod_is_deleted_once_its_time_for_eviction_is_over() -> None:
    stand = Stand(delete_after=30.0)
    stand.wrong["evict"] = blocked(7.0)
    shared(stand, "u1")
    stand.put(a_rule(since=5.0))
    stand.run(200)
    assert [(at, what) for at, what, _ in stand.calls[-3:]] == [
        (35.0, "evict"),
        (35.0, "mark"),
        (35.0, "delete"),
    ]
    assert stand.times("delete") == [35.0]
    because = "because k:NoExecute of DeviceTaintRule r1 on a.example.com/p/d (claim c) is not"
    assert [note for note in stand.notes if because in note] == [
        f"Warning is to go {because} tolerated; it cannot be evicted now: {blocked()()}",
        f"deleted {because} tolerated",
        f"Normal evicted {because} tolerated",
    ]


def test_other_failures_are_tried_again_too() -> None:
    stand = Stand()
    answers = iter([ApiForbidden("403"), ApiError("418"), ApiUnavailable("503"), None])
    stand.wrong["evict"] = lambda: next(answers)
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(100)
    assert stand.times() == [0.0, 1.0, 3.0, 7.0]
    assert stand.told == [("u1", EVICTED)]


def test_after_a_long_outage_a_pod_goes_soon() -> None:
    stand = Stand()
    stand.wrong["evict"] = lambda: ApiUnavailable("no answer") if stand.seconds < 250 else None
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(400)
    assert 250.0 <= stand.times()[-1] <= 260.0
    assert stand.told == [("u1", EVICTED)]


def test_a_rule_removed_while_a_pod_is_blocked_cancels() -> None:
    stand = Stand()
    stand.wrong["evict"] = blocked()
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(2)
    stand.evictions.forget(RULES, ["r1"])
    del stand.wrong["evict"]
    stand.run(100)
    assert stand.times() == [0.0, 1.0]
    assert stand.told == [("u1", BLOCKED), ("u1", CANCELLED)]


def test_backoff_doubles_up_to_its_most() -> None:
    backoff = Backoff(1.0, 60.0)
    assert [backoff.pause(n) for n in (1, 2, 3, 7, 1000)] == [1.0, 2.0, 4.0, 60.0, 60.0]
    assert backoff.pause(1, 10.0) == 10.0


def test_the_states_of_pods_are_measured() -> None:
    stand = Stand(pool_share=0.5)
    shared(stand, "u1", "u2")
    stand.put(a_rule())
    stand.run(2)
    stand.evictions.run_due()
    assert stand.counted["pods/in flight"] == 1
    assert stand.counted["pods/ready"] == 1
    stand.gone("u1")
    stand.run(2)
    assert stand.counted["pods_gone_total"] == 1


@case("EVCT-03")
def test_a_rule_for_too_many_pods_waits_for_a_confirmation() -> None:
    stand = Stand(hold_share=0.2)
    shared(stand, *(f"u{n}" for n in range(40)))
    others = [a_pod(f"o{n}", claims=(PodClaim("other"),)) for n in range(10)]
    stand.put(*others, a_rule())
    stand.run(60)
    assert stand.evicted == []
    assert stand.told == [("r1", HELD)], "once, on the rule"
    assert "40 of the 50 pods that use devices would be evicted" in stand.notes[-1]
    assert stand.evictions.progress("r1") == Progress(40, 0, 1, 0, held=True)
    rule = a_rule()
    stand.put(replace(rule, metadata=replace(rule.metadata, annotations={CONFIRMED: "true"})))
    stand.run(5)
    assert len(stand.evicted) == 40
    assert not stand.evictions.progress("r1").held


@case("EVCT-03")
def test_few_pods_and_taints_of_slices_are_never_held() -> None:
    stand = Stand(hold_share=0.0)
    shared(stand, *(f"u{n}" for n in range(10)))
    stand.put(a_rule())
    stand.run(5)
    assert len(stand.evicted) == 10


def test_other_rules_go_on_while_one_is_held() -> None:
    stand = Stand(hold_share=0.5)
    shared(stand, *(f"u{n}" for n in range(40)))
    stand.put(another_claim("x"), a_pod("x", claims=(PodClaim("x"),)))
    stand.put(a_rule(device="d"), a_rule("r2", device="e"))
    stand.run(5)
    assert stand.evicted == ["x"]


def test_a_rule_counts_as_held_no_longer_once_it_concerns_fewer() -> None:
    stand = Stand(hold_share=0.5)
    uids = [f"u{n}" for n in range(20)]
    shared(stand, *uids)
    stand.put(a_rule())
    stand.run(5)
    assert stand.evictions.progress("r1").held
    stand.gone(*uids[:10])
    stand.run(5)
    assert stand.evicted == sorted(uids[10:])


def test_the_mode_may_change_at_any_time() -> None:
    stand = Stand()
    stand.mode = None
    shared(stand, "u1", "u2")
    stand.put(a_rule())
    stand.run(10)
    assert (stand.evicted, stand.counted.get("observed_total")) == ([], None), "not decided"
    stand.mode = Mode.OBSERVE
    stand.run(10)
    assert (stand.evicted, stand.counted["observed_total"]) == ([], 2.0)
    stand.mode = Mode.EVICT
    stand.run(70)
    assert sorted(stand.evicted) == ["u1", "u2"]


def test_the_progress_of_a_rule_counts_each_pod_once() -> None:
    stand = Stand()
    shared(stand, "u1", "u2")
    stand.put(a_rule(), a_rule("r2", since=100.0))
    progress = stand.evictions.progress
    assert progress("r1") == progress("r2") == Progress(pending=2, namespaces=1)
    stand.run(5)
    assert progress("r1") == progress("r2") == Progress(going=2, namespaces=1)
    stand.gone("u1", "u2")
    assert progress("r1") == progress("r2") == Progress(gone=2)
    stand.evictions.forget(RULES, ["r1"])
    assert progress("r1") == Progress()


def test_a_rule_that_comes_second_counts_too_and_one_that_goes_does_not() -> None:
    stand = Stand()
    stand.mode = Mode.OBSERVE
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(1)
    stand.put(a_rule("r2", since=100.0))
    assert stand.evictions.progress("r2").pending == 1
    stand.evictions.forget(RULES, ["r2"])
    assert stand.evictions.progress("r2").pending == 0
    assert stand.evictions.progress("r1").pending == 1


def test_what_a_rule_would_do_is_counted_without_doing_it() -> None:
    stand = Stand()
    shared(stand, "u1", "u2")
    stand.put(another_claim("u3", for_seconds(None)), a_pod("u3", claims=(PodClaim("x"),)))
    rule = a_rule()
    taint = replace(rule.spec.taint, effect="None")
    none = replace(rule, spec=replace(rule.spec, taint=taint, selector=DeviceTaintSelector()))
    stand.put(none)
    stand.run(5)
    assert stand.evicted == []
    found = stand.evictions.preview(none)
    assert found == Preview(published=0, allocated=2, pods=2, namespaces=1)


def freed(stand: Stand) -> float:
    return stand.counted.get("claims_deallocated_total", 0.0)


def test_a_claim_is_seen_deallocated() -> None:
    stand = Stand()
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(1)
    stand.gone("u1")
    stand.run(5)
    assert (freed(stand), stand.counted["claims_to_deallocate"]) == (0.0, 1.0)
    stand.put(replace(a_claim(), results=()))
    stand.run(5)
    assert (freed(stand), stand.counted["claims_to_deallocate"]) == (1.0, 0.0)
    assert STILL_ALLOCATED not in [reason for _, reason in stand.told]


def test_a_claim_that_is_free_before_its_pod_is_seen_gone_counts() -> None:
    """Watches of two resources do not keep the order of events."""
    stand = Stand()
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(1)
    stand.put(replace(a_claim(), results=()))
    stand.gone("u1")
    stand.run(5)
    assert (freed(stand), stand.counted["claims_to_deallocate"]) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("users", "why"),
    [
        ((), "nobody has reserved it, so the resourceclaim controller"),
        (("a",), "reserved for pods/pod-a"),
        (tuple("abcde"), " and 2 more"),
    ],
)
def test_a_claim_that_stays_allocated_is_reported_once_with_the_reason(
    users: tuple[str, ...], why: str
) -> None:
    stand = Stand()
    shared(stand, "u1")
    stand.put(a_rule())
    stand.run(1)
    stand.gone("u1")
    stand.put(a_claim(*users))
    stand.run(100)
    told = [item for item in stand.told if item[1] == STILL_ALLOCATED]
    assert len(told) == 1
    assert any(why in note and "Warning still allocated" in note for note in stand.notes)


# -- who stays -------------------------------------------------------------------------------------
def said(logs: list[Any]) -> list[tuple[str, str]]:
    return [(entry["uid"], entry["reason"]) for entry in logs if entry["event"] == "pod stays"]


def test_why_a_pod_with_a_tainted_device_stays_is_said_once() -> None:
    stand = Stand()
    tolerant = a_claim("u1", toleration=for_seconds(None))
    with structlog.testing.capture_logs() as logs:
        stand.put(
            tolerant, a_pod("u1"), a_pod("u2"), a_pod("u3", node=""), a_pod("u4", finished=True)
        )
        assert said(logs) == [], "nothing is tainted"
        for _ in range(3):
            stand.put(a_rule())
        stand.put(a_pod("u1", priority=1))
    taint = "k:NoExecute of DeviceTaintRule r1 on a.example.com/p/d (claim c)"
    assert sorted(said(logs)) == [
        ("u1", f"{taint} is tolerated without limit"),
        ("u2", "pod claim ns/c is not reserved for it"),
        ("u3", "pod is not on a node yet"),
    ]
    assert stand.counted["spared_total"] == 3
    assert stand.evicted == []


def test_a_pod_that_stayed_and_has_to_go_after_all_is_said_to_stay_again() -> None:
    stand = Stand()
    stand.mode = None
    with structlog.testing.capture_logs() as logs:
        stand.put(a_claim("u1", toleration=for_seconds(None)), a_pod(), a_rule())
        stand.put(a_claim("u1"))
        stand.put(a_claim("u1", toleration=for_seconds(None)))
        stand.put(a_pod(priority=1))
    assert [uid for uid, _ in said(logs)] == ["u1", "u1"]


# -- drivers that are gone -------------------------------------------------------------------------
def starting(seconds: float = 0.0, **other: Any) -> Pod:
    return a_pod(starting=T0 + timedelta(seconds=seconds), **other)


def a_slice() -> SliceTaints:
    return SliceTaints("s", "s1", DRIVER, POOL, 1, 1, frozenset({DeviceName("d")}))


def missing(stand: Stand) -> list[str]:
    return [uid for uid, reason in stand.told if reason == DRIVER_MISSING]


@case("PUB-12")
def test_a_pod_that_waits_for_a_driver_that_is_gone_is_told_once() -> None:
    stand = Stand()
    stand.mode = Mode.OBSERVE
    stand.put(a_slice(), a_claim("u1"), starting())
    stand.run(200)
    assert missing(stand) == [], "it is published: whatever it waits for, it is not that"
    stand.evictions.forget(SLICES, ["s1"])
    stand.run(400)
    assert missing(stand) == ["u1"]
    assert stand.notes[-1] == (
        "Warning still starting on node n after 120 s, and no ResourceSlice of a.example.com/p is "
        "published (any more): see whether the plugin of driver a.example.com runs on that node, "
        "or delete the pod to have it scheduled anew"
    )
    assert stand.counted["pods_without_driver"] == 1


@case("PUB-12")
@pytest.mark.parametrize(
    ("pod", "users"),
    [
        (a_pod(), ("u1",)),
        (starting(1000.0), ("u1",)),
        (starting(deleting=True), ("u1",)),
        (starting(), ("another",)),
    ],
    ids=["runs", "has just begun", "goes", "has not reserved the claim"],
)
def test_other_pods_are_not_told(pod: Pod, users: tuple[str, ...]) -> None:
    stand = Stand()
    stand.put(a_claim(*users), pod)
    stand.run(600)
    assert missing(stand) == []


@case("PUB-12")
def test_only_the_leader_tells_and_it_can_be_switched_off() -> None:
    for stand in (Stand(report_unstarted=0.0), Stand()):
        stand.leads = False
        stand.put(a_claim("u1"), starting())
        stand.run(600)
        assert missing(stand) == []
    stand.leads = True
    stand.run(100)
    assert missing(stand) == ["u1"]

"""cluster: what each change of an object means for which pods, in whichever order events come."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dra_core.model.claims import AllocationResult, Consumer
from dra_core.model.objects import Metadata
from dra_core.model.taints import DeviceTaint, DeviceTaintRule, DeviceTaintSelector, RuleSpec
from dra_core.model.usage import ClaimInUse, Controller, Pod, PodClaim, SliceTaints
from dra_core.names import ClaimUID, DeviceName, DriverName, PodUID, PoolName
from dra_operator.cluster import CLAIMS, NOBODY, PODS, RULES, SLICES, Cluster
from dra_testing.cases import case

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
DRIVER, POOL = DriverName("a.example.com"), PoolName("p")
TAINT = DeviceTaint("k", "NoExecute", "", T0)


def a_pod(uid: str = "u1", claim: str = "c", **other: Any) -> Pod:
    made = Pod("ns", f"pod-{uid}", PodUID(uid), (PodClaim(claim),), node="n")
    return replace(made, **other)


def a_claim(*users: str, uid: str = "c1", device: str = "d", **other: Any) -> ClaimInUse:
    result = AllocationResult("r", DRIVER, POOL, DeviceName(device))
    consumers = tuple(Consumer("pods", f"pod-{user}", user) for user in users)
    made = ClaimInUse("ns", "c", ClaimUID(uid), (result,), consumers)
    return replace(made, **other)


def a_slice(*tainted: str, uid: str = "s1", generation: int = 1, count: int = 1) -> SliceTaints:
    names = frozenset({DeviceName("d"), DeviceName("e"), *map(DeviceName, tainted)})
    taints = {DeviceName(name): (TAINT,) for name in tainted}
    return SliceTaints(uid, uid, DRIVER, POOL, generation, count, names, taints)


def a_rule(uid: str = "r1", taint: DeviceTaint = TAINT, **selector: Any) -> DeviceTaintRule:
    spec = RuleSpec(taint, DeviceTaintSelector(**selector))
    return DeviceTaintRule(Metadata(name=f"rule-{uid}", uid=uid), spec)


def cluster(*items: Any) -> Cluster:
    made = Cluster(lambda: T0 + timedelta(hours=1))
    for item in items:
        made.put(item)
    return made


def at(view: Cluster, uid: str = "u1") -> datetime | None:
    verdict = view.verdict(uid)
    assert verdict is not None
    return verdict.at


@pytest.mark.parametrize(
    "order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
)
@pytest.mark.parametrize("tainting", [a_rule(device="d"), a_slice("d")])
def test_the_order_of_events_does_not_matter(order: tuple[int, ...], tainting: Any) -> None:
    items = [a_pod(), a_claim("u1"), tainting]
    view = cluster(*(items[i] for i in order[:2]))
    assert "u1" in (view.put(items[order[2]]))
    assert at(view) == T0


def test_the_pods_that_a_change_may_concern_are_named() -> None:
    shared = a_claim("u1", "u2")
    other = a_claim("u3", uid="c2", device="e", name="c-e")
    view = cluster(a_pod("u1"), a_pod("u2"), a_pod("u3", "c-e"), shared, other, a_slice())
    assert view.put(a_rule(device="d")) == {"u1", "u2"}
    assert view.put(a_rule("r2", driver="b.example.com")) == NOBODY
    assert view.put(a_rule(device="e")) == {"u1", "u2", "u3"}, "those of before, too"
    assert view.remove(RULES, "r1") == {"u3"}
    assert view.put(a_slice("e")) == {"u3"}
    assert view.put(a_slice("d")) == {"u1", "u2", "u3"}
    assert view.remove(SLICES, "s1") == {"u1", "u2"}
    assert view.put(replace(shared, reserved_for=())) == {"u1", "u2"}
    assert view.remove(CLAIMS, "c2") == {"u3"}
    assert view.remove(PODS, "u3") == {"u3"}


def test_what_has_not_changed_concerns_nobody() -> None:
    items: list[Any] = [a_pod(), a_claim("u1"), a_slice("d"), a_rule(device="d")]
    view = cluster(*items)
    assert [view.put(item) for item in items] == [NOBODY] * 4
    assert [view.remove(kind, "never") for kind in (PODS, CLAIMS, SLICES, RULES)] == [NOBODY] * 4


@case("EVCT-05")
def test_a_successor_under_the_same_name_is_another_pod() -> None:
    old = a_pod("u1", name="web-0")
    new = a_pod("u2", name="web-0", claims=(PodClaim("fresh"),))
    fresh = a_claim("u2", uid="c2", device="e", name="fresh")
    view = cluster(old, a_claim("u1"), a_rule(device="d"), fresh, new)
    assert (at(view, "u1"), at(view, "u2")) == (T0, None)
    assert view.remove(PODS, "u1") == {"u1"}
    assert at(view, "u2") is None


def test_a_claim_made_anew_under_its_name_outlives_the_late_end_of_the_old_one() -> None:
    view = cluster(a_pod(), a_claim("u1", device="d"), a_rule(device="d"))
    view.put(a_claim("u1", uid="c2", device="e"))
    assert at(view) is None
    view.remove(CLAIMS, "c1")
    assert at(view) is None
    view.put(a_rule(device="e"))
    assert at(view) == T0


@case("EVCT-02")
def test_a_claim_that_the_status_of_a_pod_names_later() -> None:
    bare = a_pod(claims=())
    owner = Controller("", "Pod", "pod-u1", "u1")
    view = cluster(bare, a_claim("u1", controller=owner), a_rule(device="d"))
    assert at(view) is None
    assert view.put(replace(bare, claims=(PodClaim("c", made=True),))) == {"u1"}
    assert at(view) == T0


def test_a_device_keeps_its_taints_while_a_new_generation_is_unfinished() -> None:
    view = cluster(a_pod(), a_claim("u1"), a_slice("d"))
    new = replace(a_slice(uid="s2", generation=2, count=2), devices=frozenset({DeviceName("e")}))
    assert view.put(new) == NOBODY
    assert view.remove(SLICES, "s1") == NOBODY
    assert at(view) == T0
    rest = replace(a_slice(uid="s3", generation=2, count=2), devices=frozenset({DeviceName("d")}))
    assert view.put(rest) == {"u1"}
    assert at(view) is None


def test_a_pool_without_slices_has_no_taints() -> None:
    view = cluster(a_pod(), a_claim("u1"), a_slice("d"))
    assert view.remove(SLICES, "s1") == {"u1"}
    assert at(view) is None


def test_pods_on_nodes_make_the_size_of_a_pool() -> None:
    view = cluster(
        a_claim("u1", "u2", "u3"), a_pod("u1"), a_pod("u2", node=""), a_pod("u3", finished=True)
    )
    assert view.pods_in((DRIVER, POOL)) == (1, NOBODY)
    assert view.pods_in((DRIVER, PoolName("other"))) == (0, NOBODY)


def test_everything_gone_leaves_nothing_behind() -> None:
    view = cluster(a_pod(), a_claim("u1"), a_slice("d"), a_rule(device="d"))
    elsewhere = replace(a_claim().results[0], pool=PoolName("q"))
    view.put(a_claim("u1", results=(elsewhere,)))
    view.put(a_pod(claims=(PodClaim("other"),)))
    for kind, uid in ((PODS, "u1"), (CLAIMS, "c1"), (SLICES, "s1"), (RULES, "r1")):
        assert view.known(kind) == {uid}
        view.remove(kind, uid)
    assert not any(value for name, value in vars(view).items() if isinstance(value, dict))
    assert view.verdict("u1") is None

"""eviction: which pods go when, and why the others stay. Times are arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dra_core.eviction import decide, together
from dra_core.model.claims import AllocationResult, Consumer
from dra_core.model.taints import DeviceTaint, DeviceToleration
from dra_core.model.usage import ClaimInUse, Controller, Pod, PodClaim
from dra_core.names import ClaimUID, DeviceName, DriverName, PodUID, PoolName
from dra_core.taints import DeviceId, Placed, Reading, Source
from dra_testing.cases import case

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
KEY = "example.com/bad"
RULE = Source("DeviceTaintRule", "r", "u-r")


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def placed(key: str = KEY, since: datetime = T0, effect: str = "NoExecute") -> Placed:
    return Placed(DeviceTaint(key, effect, "", since), RULE, since)


def tolerating(key: str = KEY, seconds: int | None = None) -> DeviceToleration:
    return DeviceToleration(key, "Exists", effect="NoExecute", toleration_seconds=seconds)


def result(device: str, *tolerations: DeviceToleration) -> AllocationResult:
    driver, pool = DriverName("a.example.com"), PoolName("p")
    return AllocationResult("r", driver, pool, DeviceName(device), tolerations=tolerations)


def a_pod(name: str = "web", uid: str = "u1", **other: object) -> Pod:
    made = Pod("ns", name, PodUID(uid), (PodClaim("c"),), node="n")
    return replace(made, **other)  # type: ignore[arg-type]


def pods(*uids: str) -> tuple[Consumer, ...]:
    return tuple(Consumer("pods", f"pod-{uid}", uid) for uid in uids)


def a_claim(*results: AllocationResult, **other: object) -> ClaimInUse:
    made = ClaimInUse("ns", "c", ClaimUID("u-c"), results or (result("d"),), pods("u1"))
    return replace(made, **other)  # type: ignore[arg-type]


def when(
    claim: ClaimInUse, pod: Pod, taints: dict[str, Sequence[Placed]], **how: Reading
) -> datetime | None:
    def taints_of(device: DeviceId) -> Sequence[Placed]:
        return taints.get(device.device, ())

    (verdict,) = decide(claim, [pod], taints_of, **how)
    return verdict.at


@case("EVCT-04")
@pytest.mark.parametrize(
    ("taints", "tolerations", "at"),
    [
        ([], [], None),
        ([placed(effect="NoSchedule")], [], None),
        ([placed()], [], after(0)),
        ([placed(since=after(90))], [], after(90)),
        ([placed()], [tolerating(seconds=60)], after(60)),
        ([placed()], [tolerating(seconds=300), tolerating(seconds=60)], after(60)),
        ([placed()], [tolerating()], None),
        ([placed()], [tolerating(seconds=-5)], after(0)),
        ([placed(), placed("b")], [tolerating(seconds=600)], after(0)),
        ([placed(), placed("b", after(10))], [tolerating(seconds=600)], after(10)),
        ([placed(), placed("b", after(700))], [tolerating(seconds=600)], after(600)),
        ([placed(), placed("b")], [tolerating(), tolerating("b", 30)], after(30)),
        ([placed(), placed("b")], [tolerating(), tolerating("b")], None),
    ],
)
def test_the_earliest_taint_that_is_not_tolerated_counts(
    taints: list[Placed], tolerations: list[DeviceToleration], at: datetime | None
) -> None:
    assert when(a_claim(result("d", *tolerations)), a_pod(), {"d": taints}) == at


@case("EVCT-01")
def test_each_device_has_tolerations_of_its_own() -> None:
    both = a_claim(result("d", tolerating()), result("e"))
    assert when(both, a_pod(), {"d": [placed()], "e": [placed()]}) == T0
    assert when(both, a_pod(), {"d": [placed()]}) is None
    assert when(both, a_pod(), {"other": [placed()]}) is None


def test_admin_access_counts_like_any_other() -> None:
    assert when(a_claim(replace(result("d"), admin_access=True)), a_pod(), {"d": [placed()]}) == T0


def test_the_reading_of_an_empty_effect_is_passed_on() -> None:
    claim = a_claim(result("d", DeviceToleration(KEY, "Exists")))
    assert when(claim, a_pod(), {"d": [placed()]}) is None
    assert when(claim, a_pod(), {"d": [placed()]}, reading=Reading(empty_effect=False)) == T0


MADE = (PodClaim("c", made=True),)
BY_POD = Controller("", "Pod", "web", "u1")
BY_GROUP = Controller("scheduling.k8s.io", "PodGroup", "g", "u-g")
GROUP = (Consumer("podgroups", "g", "u-g", api_group="scheduling.k8s.io"),)


@case("EVCT-02")
@case("EVCT-05")
@pytest.mark.parametrize(
    ("pod", "claim", "why"),
    [
        (a_pod(), a_claim(), ""),
        (a_pod(deleting=True), a_claim(), "is being deleted already"),
        (a_pod(finished=True), a_claim(), "has finished"),
        (a_pod(node=""), a_claim(), "is not on a node yet"),
        (a_pod(claims=(PodClaim("other"),)), a_claim(), "does not use claim ns/c"),
        (a_pod(claims=()), a_claim(), "does not use claim ns/c"),
        (a_pod(namespace="elsewhere"), a_claim(), "does not use claim ns/c"),
        (a_pod(), a_claim(reserved_for=()), "claim ns/c is not reserved for it"),
        # The pod's successor under the same name.
        (a_pod(uid="u2"), a_claim(), "claim ns/c is not reserved for it"),
        (a_pod(uid="u2", claims=MADE), a_claim(controller=BY_POD), "claim ns/c was made for"),
        (a_pod(claims=MADE), a_claim(), "claim ns/c was made for another pod"),
        (a_pod(claims=MADE), a_claim(controller=BY_POD), ""),
        (a_pod(claims=(*MADE, PodClaim("c"))), a_claim(), ""),
        (a_pod(group="g", claims=MADE), a_claim(controller=BY_GROUP), ""),
        (a_pod(group="h", claims=MADE), a_claim(controller=BY_GROUP), "was made for another pod"),
        (a_pod(uid="u9", group="g"), a_claim(reserved_for=GROUP), ""),
        (a_pod(uid="u9", group="h"), a_claim(reserved_for=GROUP), "is not reserved for it"),
        (a_pod(uid="u9"), a_claim(reserved_for=GROUP), "is not reserved for it"),
        (
            a_pod(uid="u9", group="g"),
            a_claim(reserved_for=(Consumer("podgroups", "g", "u-g", api_group="example.com"),)),
            "is not reserved for it",
        ),
    ],
)
def test_which_pods_are_concerned(pod: Pod, claim: ClaimInUse, why: str) -> None:
    (verdict,) = decide(claim, [pod], lambda _: [placed()])
    assert (verdict.at is None) == bool(why), verdict
    assert why in verdict.reason


def test_every_pod_of_a_shared_claim_gets_a_verdict_with_its_reason() -> None:
    claim = a_claim(result("d", tolerating(seconds=60)), reserved_for=pods("u1", "u2", "u3"))
    several = [a_pod(uid=uid) for uid in ("u1", "u2", "u3", "u4")]
    found = decide(claim, several, lambda _: [placed()])
    assert [v.at for v in found] == [after(60), after(60), after(60), None]
    assert found[0].reason == (
        "example.com/bad:NoExecute of DeviceTaintRule r on a.example.com/p/d (claim c) is "
        "tolerated for 60 s"
    )
    assert found[3].reason == "pod claim ns/c is not reserved for it"


def test_reasons_of_pods_that_stay_say_what_is_tolerated() -> None:
    (kept,) = decide(a_claim(result("d", tolerating())), [a_pod()], lambda _: [placed()])
    assert kept.reason.endswith("is tolerated without limit")
    (clean,) = decide(a_claim(), [a_pod()], lambda _: [])
    assert clean.reason == "no device of claim ns/c has a NoExecute taint"


def test_over_several_claims_the_earliest_counts_and_all_causes_are_kept() -> None:
    pod = a_pod(claims=(PodClaim("c"), PodClaim("late"), PodClaim("clean")))
    taints = {"d": [placed()], "e": [placed(since=after(30))]}
    claims = [
        a_claim(result("e"), name="late"),
        a_claim(result("f"), name="clean"),
        a_claim(result("d", tolerating(seconds=10))),
    ]
    verdicts = [v for c in claims for v in decide(c, [pod], lambda d: taints.get(d.device, []))]
    whole = together(pod, verdicts)
    assert whole.at == after(10)
    assert [cause.claim for cause in whole.causes] == ["c", "late"]


def test_a_pod_that_no_claim_concerns_stays() -> None:
    pod = a_pod()
    assert together(pod, []).at is None
    (verdict,) = decide(a_claim(), [pod], lambda _: [])
    assert together(pod, [verdict]) == verdict

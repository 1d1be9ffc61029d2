"""handlers: what is kept of an event, and when all that there was has arrived."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import kopf
import pytest

from dra_core.model.taints import DeviceTaintRule
from dra_core.model.usage import ClaimInUse, Pod, SliceTaints
from dra_operator import handlers
from dra_operator.cluster import CLAIMS, PODS, RULES, SLICES, Object
from dra_operator.handlers import Intake

API = "resource.k8s.io/v1"


class Sink:
    def __init__(self) -> None:
        self.items: list[Object] = []
        self.gone: list[tuple[str, str]] = []

    def apply(self, item: Object) -> None:
        self.items.append(item)

    def forget(self, kind: str, uids: Collection[str]) -> None:
        self.gone += [(kind, uid) for uid in uids]


@pytest.fixture
def sink() -> Sink:
    return Sink()


def a_pod(uid: str, claims: bool = True) -> dict[str, Any]:
    spec = {"resourceClaims": [{"name": "x", "resourceClaimName": "c"}]} if claims else {}
    return {"metadata": {"name": uid, "namespace": "ns", "uid": uid}, "spec": spec}


def api(kind: str, **body: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": "n", "uid": "u"}, **body}


def test_each_resource_is_read_as_what_it_is(sink: Sink) -> None:
    intake = Intake(sink)
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    taint = {"key": "k", "effect": "None"}
    intake.take(PODS, None, a_pod("u1"))
    intake.take(CLAIMS, "ADDED", api("ResourceClaim"))
    intake.take(SLICES, "MODIFIED", api("ResourceSlice", spec={"driver": "d", "pool": pool}))
    intake.take(RULES, None, api("DeviceTaintRule", spec={"taint": taint}))
    assert list(map(type, sink.items)) == [Pod, ClaimInUse, SliceTaints, DeviceTaintRule]
    assert sink.gone == []


def test_what_was_deleted_and_pods_without_claims_are_forgotten(sink: Sink) -> None:
    intake = Intake(sink)
    intake.take(PODS, "ADDED", a_pod("bare", claims=False))
    intake.take(RULES, "DELETED", api("DeviceTaintRule"))
    assert sink.items == []
    assert sink.gone == [(PODS, "bare"), (RULES, "u")]


def test_an_object_that_cannot_be_read_is_left_out(sink: Sink) -> None:
    Intake(sink).take(SLICES, None, api("ResourceSlice", spec={}))
    assert (sink.items, sink.gone) == ([], [])


def test_a_resource_is_complete_once_all_that_there_was_has_arrived(sink: Sink) -> None:
    intake = Intake(sink)
    assert intake.complete(RULES, 0)
    intake.take(PODS, None, a_pod("u1"))
    intake.take(PODS, None, a_pod("bare", claims=False))
    intake.take(PODS, "DELETED", a_pod("u1"))
    assert not intake.complete(PODS, 2)
    intake.take(PODS, "MODIFIED", a_pod("bare"))
    assert not intake.complete(PODS, 2)
    intake.take(PODS, "ADDED", a_pod("u3"))
    assert intake.complete(PODS, 2)
    intake.take(PODS, "DELETED", a_pod("u3"))
    assert intake.complete(PODS, 2), "it stays so"


def test_a_list_that_is_read_again_is_noticed(sink: Sink) -> None:
    intake = Intake(sink)
    intake.take(PODS, None, a_pod("u1"))
    assert intake.complete(PODS, 1)
    assert intake.listed_again == set()
    intake.take(PODS, "MODIFIED", a_pod("u1"))
    assert intake.listed_again == set()
    intake.take(PODS, None, a_pod("u1"))
    assert intake.listed_again == {PODS}


@pytest.mark.parametrize("setting", ["posting", "scanning", "peering", "storages"])
def test_kopf_writes_nothing_of_its_own(setting: str) -> None:
    """The case OPER-01 is shown on a real server; this is why."""
    made = handlers.settings()
    body = kopf.Body({"metadata": {"name": "x"}, "spec": {"a": 1}})
    right = {
        "posting": not made.posting.enabled,
        "scanning": made.scanning.disabled,
        "peering": made.peering.standalone,
        "storages": not made.persistence.diffbase_storage.build(body=body)
        and made.persistence.diffbase_storage.fetch(body=body) is None,
    }
    assert right[setting]


def test_the_newest_version_counts_whatever_became_of_the_object(sink: Sink) -> None:
    intake = Intake(sink)
    assert intake.newest(PODS) == 0
    for kind, version in ((None, "7"), ("ADDED", "12"), ("MODIFIED", "9")):
        pod = a_pod("u", claims=False)
        pod["metadata"]["resourceVersion"] = version
        intake.take(PODS, kind, pod)
    assert intake.newest(PODS) == 12
    assert intake.newest(CLAIMS) == 0


class Part:
    def __init__(self, *known: str) -> None:
        self.held = set(known)
        self.items: list[Object] = []

    def apply(self, item: Object) -> None:
        self.items.append(item)

    def forget(self, kind: str, uids: Collection[str]) -> None:
        self.held -= {uid for uid in uids if kind == CLAIMS}

    def known(self, kind: str) -> frozenset[str]:
        return frozenset(self.held) if kind == CLAIMS else frozenset()


def test_several_views_are_told_alike_and_know_together() -> None:
    first, second = Part("a", "b"), Part("b", "c")
    both = handlers.Several(first, second)
    assert both.known(CLAIMS) == {"a", "b", "c"}
    both.forget(CLAIMS, ["b"])
    assert (first.held, second.held) == ({"a"}, {"c"})
    Intake(both).take(CLAIMS, None, api("ResourceClaim"))
    assert len(first.items) == len(second.items) == 1

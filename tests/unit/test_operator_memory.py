"""What the operator keeps of each object, in bytes: the rest of it must not stay in memory."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

import pytest

from dra_operator.cluster import CLAIMS, PODS, SLICES, Cluster, Object
from dra_operator.handlers import Intake
from dra_testing.crowd import DEVICES, claim_status, pod_body, pod_status, slice_body

COUNT = 500


class Kept:
    """The view in memory, without evictions."""

    def __init__(self) -> None:
        self.cluster = Cluster(lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def apply(self, item: Object) -> None:
        self.cluster.put(item)

    def forget(self, kind: str, uids: Collection[str]) -> None:
        for uid in uids:
            self.cluster.remove(kind, uid)


def an_object(kind: str, number: int, body: dict[str, Any]) -> dict[str, Any]:
    """As it comes from the wire: no string is shared with another object."""
    metadata = body.get("metadata", {}) | {
        "uid": f"{number:08d}-1111-2222-3333-444444444444",
        "namespace": "crowd-0",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    version = "v1" if kind == "Pod" else "resource.k8s.io/v1"
    made = body | {"apiVersion": version, "kind": kind, "metadata": metadata}
    found: dict[str, Any] = json.loads(json.dumps(made))
    return found


def a_pod(n: int) -> dict[str, Any]:
    body = pod_body(f"pod-{n}", whole=True) | {"status": pod_status(whole=True)}
    return an_object("Pod", n, body)


def a_claim(n: int) -> dict[str, Any]:
    status = claim_status(f"pool-{n}", "dev-0", f"pod-{n}", f"{n:08d}-1111-2222-3333-444444444444")
    return an_object("ResourceClaim", n, {"metadata": {"name": f"pod-{n}"}, "status": status})


def a_slice(n: int) -> dict[str, Any]:
    return an_object("ResourceSlice", n, slice_body(f"slice-{n}", f"pool-{n}", range(DEVICES)))


@pytest.mark.parametrize(
    ("plural", "make", "most"),
    [(PODS, a_pod, 1300), (CLAIMS, a_claim, 1800), (SLICES, a_slice, 2800)],
)
def test_little_is_kept_of_an_object(
    plural: str, make: Callable[[int], dict[str, Any]], most: int
) -> None:
    kept = Kept()
    intake = Intake(kept)
    intake.take(plural, None, make(COUNT))
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(COUNT):
            intake.take(plural, None, make(number))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept.cluster.known(plural)) == COUNT + 1
    assert 200 < (after - before) / COUNT < most

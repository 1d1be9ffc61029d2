"""slice_store and pacing: what is known of our slices; how often they are written."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dra_driver.pacing import BURST, RATE, RETRY_FIRST, RETRY_LONGEST, WriteLimit, backoff
from dra_driver.ports import Changed, Scope
from dra_driver.slice_store import SliceStore


def item(name: str, version: int, uid: str = "", *, shared: bool = False) -> dict[str, Any]:
    where = {"allNodes": True} if shared else {"nodeName": "n1"}
    metadata = {"name": name, "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {**where, "pool": {"name": "p"}, "version": version}}


@pytest.fixture
def store() -> SliceStore:
    made = SliceStore()
    made.relist(Scope.NODE, (item("a", 1),))
    made.relist(Scope.SHARED, (item("s", 1, shared=True),))
    return made


def test_it_is_complete_once_every_scope_is_listed() -> None:
    store = SliceStore()
    assert store.relist(Scope.NODE, ()), "the first list is news, empty or not"
    assert not store.complete
    store.relist(Scope.SHARED, ())
    assert store.complete


def test_a_list_of_one_scope_leaves_the_other_alone(store: SliceStore) -> None:
    assert store.relist(Scope.NODE, (item("b", 2),))
    assert {i["metadata"]["name"] for i in store.items()} == {"b", "s"}
    assert not store.relist(Scope.NODE, (item("b", 2),))


def test_our_own_write_is_no_news(store: SliceStore) -> None:
    store.written(item("a", 5))
    assert not store.take(Changed("MODIFIED", item("a", 5)))
    assert not store.take(Changed("MODIFIED", item("a", 3))), "an event from before the write"
    assert store.take(Changed("MODIFIED", item("a", 6)))
    assert store.take(Changed("ADDED", item("c", 7)))


def test_our_own_deletion_is_no_news(store: SliceStore) -> None:
    store.deleted("a")
    assert not store.take(Changed("MODIFIED", item("a", 2))), "an event from before the deletion"
    assert store.get("a") is None
    assert not store.take(Changed("DELETED", item("a", 3)))
    assert store.take(Changed("ADDED", item("a", 4, "another")))
    assert not store.take(Changed("DELETED", item("a", 5))), "that was the one before"
    assert store.take(Changed("DELETED", item("a", 6, "another")))


def test_a_burst_is_let_through_and_more_has_to_wait() -> None:
    waits: list[float] = []

    class Stopping(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return False

    now = 100.0
    limit = WriteLimit(lambda: now, Stopping())
    for _ in range(int(BURST)):
        limit.wait()
    assert waits == []
    limit.wait()
    limit.wait()
    assert waits == [pytest.approx(1 / RATE), pytest.approx(2 / RATE)]
    now += 1000.0
    for _ in range(int(BURST)):
        limit.wait()
    assert len(waits) == 2


def test_retries_back_off_up_to_a_limit() -> None:
    for failures in range(1, 40):
        wait = backoff(failures)
        doubled = min(RETRY_LONGEST, RETRY_FIRST * 2 ** (failures - 1))
        assert doubled / 2 <= wait <= doubled

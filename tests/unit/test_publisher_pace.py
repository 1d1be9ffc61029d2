"""publisher: how often and how much it writes, with a cluster in memory and virtual time."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dra_core import layout, wire
from dra_core.errors import ApiBusy, ApiForbidden, ApiUnavailable
from dra_core.model.devices import Device
from dra_core.model.slices import Pool, PublishedSlice
from dra_core.names import DeviceName, DriverName, NodeName, PoolName
from dra_driver.adapters import metrics
from dra_driver.discovery import Found
from dra_driver.news import News
from dra_driver.offer import Offer
from dra_driver.pacing import (
    BURST,
    RATE,
    REST_LONGEST,
    RETRY_FIRST,
    RETRY_LONGEST,
    SETTLE,
    SETTLE_LONGEST,
    Pace,
    Patience,
    TooSoon,
    WriteLimit,
)
from dra_driver.ports import Changed, Listed, Scope
from dra_driver.publisher import Publisher
from dra_driver.slice_watch import Relisted

DRIVER, NODE = DriverName("pace.example.com"), NodeName("n1")
JSON = dict[str, Any]


def _copy(body: JSON) -> JSON:
    copied: JSON = json.loads(json.dumps(body))
    return copied


class Memory:
    """A SliceApi over a dictionary; nothing is dropped, refused or changed by others."""

    def __init__(self) -> None:
        self.items: dict[str, JSON] = {}
        self.writes = 0
        self.broken = ""  # the pool whose writes fail
        #: Raised by the next writes, which are made all the same.
        self.after: list[Exception] = []
        #: Raised by the n-th write from now, which is not made.
        self.before: dict[int, Exception] = {}
        self.lists = 0
        self._version = 0

    def owner(self) -> JSON:
        return {"kind": "Node", "name": NODE, "uid": "u"}

    def pools_of_nodes(self) -> Mapping[str, str]:
        return {}

    def minor_version(self) -> int:
        return 37

    def list(self, scope: Scope) -> Listed:
        self.lists += 1
        items = self.items.values() if scope is Scope.NODE else ()
        return Listed(tuple(_copy(item) for item in items), str(self._version))

    def watch(
        self,
        scope: Scope,  # noqa: ARG002 - a SliceApi
        resource_version: str,  # noqa: ARG002
    ) -> Iterator[Changed]:
        yield from ()

    def create(self, body: JSON) -> JSON:
        return self._store(body, {"uid": body["metadata"]["name"]})

    def update(self, body: JSON) -> JSON:
        return self._store(body, {})

    def try_out(self, body: JSON) -> JSON:
        return body

    def delete(self, name: str, uid: str) -> None:  # noqa: ARG002 - a SliceApi
        self.writes += 1
        del self.items[name]
        if self.after:
            raise self.after.pop()

    def _store(self, body: JSON, more: JSON) -> JSON:
        if body["spec"]["pool"]["name"] == self.broken:
            raise ApiUnavailable("broken")
        self.before = {number - 1: error for number, error in self.before.items()}
        if 0 in self.before:
            raise self.before.pop(0)
        self.writes += 1
        self._version += 1
        stored = _copy(body)
        stored["metadata"] |= {"resourceVersion": str(self._version), **more}
        self.items[stored["metadata"]["name"]] = stored
        if self.after:
            raise self.after.pop()
        return _copy(stored)

    def serials(self, pool: str) -> set[int]:
        """Attributes ``serial`` of the devices of a pool that is complete."""
        items = [i for i in self.items.values() if i["spec"]["pool"]["name"] == pool]
        pools = [item["spec"]["pool"] for item in items]
        assert len({p["generation"] for p in pools}) == 1
        assert {p["resourceSliceCount"] for p in pools} == {len(items)}
        devices = [device for item in items for device in item["spec"]["devices"]]
        return {device["attributes"]["serial"]["int"] for device in devices}


class Quiet:
    """Notices for nobody."""

    def warn(
        self,
        owner: Mapping[str, Any] | None,  # noqa: ARG002 - Notices
        reason: str,  # noqa: ARG002
        note: str,
    ) -> None:
        raise AssertionError(note)


class Stand:
    def __init__(self) -> None:
        self.now = 1000.0
        self.api = Memory()
        measures = metrics.registry()
        offer = Offer(DRIVER, NODE, in_use=list, measures=measures)
        self.publisher = Publisher(
            DRIVER,
            NODE,
            self.api,
            offer,
            news=News(Quiet(), self.api.owner),
            measures=measures,
            clock=lambda: self.now,
        )
        for scope in Scope:
            self.publisher._take(Relisted(scope, ()))

    def publish(self, *pools: Pool) -> float | None:
        """One round; in how many seconds there must be another one."""
        self.publisher._take(Found(pools))
        return self.publisher._converge()


#: Devices in a slice, for less work.
FULL = 2


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MAX_DEVICES", FULL)


def pool(slices: int, serial: int, name: str = "n1") -> Pool:
    """Full slices; all of their devices have this number."""
    names = [DeviceName(f"d-{n}") for n in range(slices * FULL)]
    return Pool(PoolName(name), tuple(Device(n, {"serial": serial}) for n in names))


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_a_change_that_has_to_wait_begins_once_it_can_be_made_in_one_go(stand: Stand) -> None:
    slices = 40
    assert stand.publish(pool(slices, 0)) is None
    assert stand.publish(pool(slices, 1)) is None
    assert stand.api.writes == 2 * slices
    wait = stand.publish(pool(slices, 2)) or 0.0
    assert wait is not None
    assert wait == pytest.approx((3 * slices - BURST) / RATE)
    assert stand.api.writes == 2 * slices, "nothing of it has begun"
    assert stand.api.serials("n1") == {1}
    assert stand.publisher.trouble == ""
    stand.now += wait / 2
    assert stand.publish(pool(slices, 3)) == pytest.approx(wait / 2)
    stand.now += wait / 2
    assert stand.publisher._converge() is None
    assert stand.api.serials("n1") == {3}, "the newest state, the one between is never written"
    assert stand.api.writes == 3 * slices


@pytest.mark.parametrize("slices", [60, int(BURST)])
def test_a_pool_that_waits_is_not_overtaken_for_ever(stand: Stand, slices: int) -> None:
    for serial in range(12):
        stand.publish(pool(60, serial, "a"), pool(slices, serial, "b"))
        stand.now += 60 / RATE
    assert max(stand.api.serials("a")) >= 5
    assert max(stand.api.serials("b")) >= 5


@pytest.mark.parametrize("error", [ApiUnavailable("the answer broke off"), KeyError("metadata")])
def test_a_change_without_an_answer_that_is_taken_back_is_taken_back(
    stand: Stand, error: Exception
) -> None:
    """It was made, and the watch has not said so yet: nothing to do would be wrong."""
    stand.publish(pool(1, 0))
    stand.api.after = [error]
    assert stand.publish(pool(1, 1)) is not None, "to be tried again"
    assert stand.api.serials("n1") == {1}
    assert stand.publish(pool(1, 0)) is None
    assert stand.api.serials("n1") == {0}
    assert stand.publisher.trouble == ""


def test_a_deletion_without_an_answer_that_is_taken_back_is_taken_back(stand: Stand) -> None:
    stand.publish(pool(1, 0))
    stand.api.after = [ApiUnavailable("the answer broke off")]
    assert stand.publish() is not None
    assert stand.api.items == {}
    assert stand.publish(pool(1, 0)) is None
    assert stand.api.serials("n1") == {0}


def test_what_was_created_without_an_answer_is_withdrawn(stand: Stand) -> None:
    stand.api.after = [ApiUnavailable("the answer broke off")]
    assert stand.publish(pool(1, 0)) is not None
    stand.publisher.withdraw()
    assert stand.publisher._converge() is None
    assert stand.api.items == {}
    assert stand.publisher.withdrawn.is_set()


def test_a_change_that_gets_on_is_continued_soon(stand: Stand) -> None:
    """A pool that is half written is no pool: it must not wait for half a minute."""
    stand.api.broken = "n1"
    waits = [stand.publish(pool(3, 0)) or 0.0 for _ in range(8)]
    assert waits[-1] >= RETRY_LONGEST / 2, "while nothing gets on"
    stand.api.broken = ""
    stand.api.before = {2: ApiUnavailable("the second write")}
    assert 0.0 < (stand.publisher._converge() or 0.0) <= RETRY_FIRST
    assert stand.publisher._converge() is None
    assert stand.api.serials("n1") == {0}


@pytest.mark.parametrize(
    ("error", "lists"), [(ApiUnavailable("502"), 2), (ApiBusy("429"), 0), (ApiForbidden("403"), 0)]
)
def test_what_is_there_is_read_again_only_if_that_is_not_known(
    stand: Stand, error: Exception, lists: int
) -> None:
    """A server that is busy is not asked for more."""
    stand.publish(pool(1, 0))
    stand.api.before = {1: error}
    assert stand.publish(pool(1, 1)) is not None
    assert stand.publisher._converge() is None
    assert stand.api.serials("n1") == {1}
    assert stand.api.lists == lists
    assert stand.publisher._converge() is None
    assert stand.api.lists == lists


def test_an_error_is_told_while_another_pool_waits(stand: Stand) -> None:
    stand.publish(pool(40, 0, "b"))
    stand.publish(pool(40, 1, "b"))
    stand.api.broken = "a"
    assert stand.publish(pool(1, 0, "a"), pool(40, 2, "b")) is not None
    assert "broken" in stand.publisher.trouble


def test_what_came_back_as_it_was_sent_is_not_read_again(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    inner = wire.published_slice

    def counted(item: JSON) -> PublishedSlice:
        read.append(item["metadata"]["name"])
        return inner(item)

    monkeypatch.setattr(wire, "published_slice", counted)
    stand.publish(pool(3, 0))
    stand.publish(pool(3, 1))
    assert stand.publisher._converge() is None
    assert read == []
    listed = stand.api.list(Scope.NODE).items
    stand.publisher._take(Relisted(Scope.NODE, listed))
    assert stand.publisher._converge() is None
    assert read == [], "a list that brings nothing new"
    changed = listed[1]
    changed["metadata"]["resourceVersion"] = "1000"
    changed["spec"]["devices"][0]["attributes"]["serial"] = {"int": 7}
    stand.publisher._take(Changed("MODIFIED", changed))
    assert stand.publisher._converge() is None
    assert set(read) == {changed["metadata"]["name"]}
    assert stand.api.serials("n1") == {1}, "what somebody else changed is put right"


def test_a_limit_that_is_reached_says_how_long() -> None:
    now = 0.0
    stopped = threading.Event()
    stopped.set()  # nothing really waits
    limit = WriteLimit(lambda: now, stopped)
    pace = Pace(limit, lambda: now)
    pace.begin("a", int(BURST))
    pace.begin("a", 10 * int(BURST))  # more than can be had at once: a burst of it
    for _ in range(int(BURST) + 1):
        limit.wait()
    pace.begin("a", 0)
    with pytest.raises(TooSoon) as too_soon:
        pace.begin("a", 1)
    assert too_soon.value.seconds == pytest.approx(2 / RATE)
    assert too_soon.value.others
    assert pace.first == "a"
    now += too_soon.value.seconds + 1e-9
    pace.begin("a", 1)
    assert pace.first == ""


def test_a_pool_rests_for_as_long_as_its_change_took() -> None:
    now = 0.0
    pace = Pace(WriteLimit(lambda: now, threading.Event()), lambda: now)
    pace.begin("a", 3)
    now = 1.0
    pace.end("a")
    with pytest.raises(TooSoon) as too_soon:
        pace.begin("a", 1)
    assert (too_soon.value.seconds, too_soon.value.others) == (1.0, False)
    pace.begin("b", 1)
    pace.begin("a", 0)
    now = 2.0
    pace.begin("a", 1)
    now = 100.0
    pace.end("a")
    with pytest.raises(TooSoon) as too_soon:
        pace.begin("a", 1)
    assert too_soon.value.seconds == REST_LONGEST


def test_a_pool_that_rests_does_not_hold_up_others(stand: Stand) -> None:
    def slow(body: JSON) -> JSON:
        stand.now += 1.0
        return store(body, {})

    store = stand.api._store
    stand.api.update = slow  # type: ignore[method-assign]
    stand.publish(pool(1, 0, "a"), pool(1, 0, "b"))
    assert stand.publish(pool(1, 1, "a"), pool(1, 0, "b")) is None
    assert stand.publish(pool(1, 2, "a"), pool(1, 1, "b")) == 1.0
    assert stand.api.serials("a") == {1}
    assert stand.api.serials("b") == {1}
    stand.now += 1.0
    stand.publisher._converge()
    assert stand.api.serials("a") == {2}


def test_patience_grows_while_others_undo_and_comes_back() -> None:
    now = 0.0
    patience = Patience(lambda: now)
    waits = []
    for _ in range(7):
        waits.append(patience.seconds)
        patience.written()
        now += 1.0
    assert waits == [SETTLE, SETTLE, *(SETTLE * 2**n for n in range(1, 5)), SETTLE_LONGEST]
    now += 10 * SETTLE_LONGEST
    assert patience.seconds == SETTLE, "who comes after a long time is not the one before"
    patience.written()
    assert patience.seconds == SETTLE

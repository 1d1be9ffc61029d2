"""The publisher when others, or the API server, do what they should not.

The driver is a process with the rights of its service account; between it and a real API server is
a proxy with faults.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess
from dra_testing.fault_proxy import Call, Rule
from dra_testing.polling import until
from dra_testing.publishing_stand import SLICES, Stand, devices, numbered
from dra_testing.slices import Cluster

pytestmark = pytest.mark.control_plane

#: Random changes of a pool.
CHANGES = int(os.environ.get("DRAGOMAN_SOAK", "25"))


def names(count: int) -> tuple[str, ...]:
    return tuple(f"d-{n}" for n in range(count))


@pytest.fixture
def stand(
    control_plane: Cluster, short_path: Path, start_driver: Callable[..., DriverProcess]
) -> Iterator[Stand]:
    made = Stand(control_plane, short_path, start_driver)
    yield made
    made.close()


def a_write(call: Call) -> bool:
    return call.write and call.about_slices


@case("PUB-01")
def test_what_happens_while_the_watch_is_away_is_repaired(stand: Stand) -> None:
    stand.start(numbered(200))
    stand.wait_for(*names(200))
    stand.settled()
    until("it watches", stand.proxy.watches)
    stand.proxy.add(lambda c: c.method == "GET" and c.about_slices, times=3, status=503)
    assert stand.proxy.cut_watches() >= 1
    at = len(stand.watcher.moments)
    for item in stand.slices():
        stand.cluster.api("DELETE", f"{SLICES}/{item['metadata']['name']}")
    stand.watcher.saw(None, at)
    stand.wait_for(*names(200))
    assert stand.watcher.now.generation == 1, "what vanished comes back as it was"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": 500, "times": 3}, id="500"),
        pytest.param({"status": 429, "times": 2, "headers": {"Retry-After": "1"}}, id="429"),
        pytest.param({"status": 409, "times": 2}, id="409"),
        pytest.param({"cut": True, "times": 2}, id="answer lost"),
        pytest.param({"seconds": 1.0, "times": 4}, id="slow"),
    ],
)
def test_writes_that_fail_are_made_again_and_nothing_wrong_is_seen(
    stand: Stand, fault: dict[str, object]
) -> None:
    stand.proxy.add(a_write, **fault)
    stand.start(numbered(200))
    stand.wait_for(*names(200))
    assert {m.devices for m in stand.watcher.moments} == {None, names(200)}
    assert len(stand.slices()) == 2, "an answer that got lost leaves no second copy"
    stand.settled()


def test_a_server_that_asks_for_time_gets_it(stand: Stand) -> None:
    stand.proxy.add(a_write, status=429, times=1, headers={"Retry-After": "4"})
    stand.start(numbered(1))
    waited = stand.driver.wait_for("cannot publish")["retry_seconds"]
    assert waited == 4.0
    stand.wait_for("d-0")


def test_a_watch_from_a_version_that_is_too_old_begins_with_a_list(stand: Stand) -> None:
    stand.start(numbered(1))
    stand.wait_for("d-0")
    stand.proxy.add(lambda c: "watch=1" in c.query, times=1, status=410)
    stand.proxy.cut_watches()
    stand.becomes(numbered(2))
    stand.wait_for("d-0", "d-1")
    assert stand.driver.events("a thread ended unexpectedly") == []


@case("PUB-02")
def test_dropped_fields_are_named_once_and_the_devices_withheld(stand: Stand) -> None:
    """Sharing and counters: without them the devices would be something else."""
    stand.proxy.add(lambda _: True, strip=("allowMultipleAllocations", "consumesCounters"))
    counters = {"slots": {"value": "4"}}
    consumes = [{"counterSet": "set", "counters": {"slots": {"value": "1"}}}]
    pool = {
        "devices": [
            *devices("plain"),
            *devices("shared", allowMultipleAllocations=True),
            *devices("part", consumesCounters=consumes),
        ],
        "sharedCounters": [{"name": "set", "counters": counters}],
    }
    stand.start(pool, rescan=0.2)
    stand.wait_for("plain")
    stand.settled()
    discovered = 'dra_driver_publisher_discoveries_total{result="done"} '

    def discoveries() -> int:
        line = next(x for x in stand.metrics().splitlines() if x.startswith(discovered))
        return int(line.removeprefix(discovered))

    at = discoveries()
    until("20 more rescans", lambda: discoveries() >= at + 20, timeout=60.0)
    asked = [c for c in stand.proxy.calls if c.about_slices and c.method != "GET"]
    assert len(asked) <= 4, "a try for each kind of slice, and one write"
    assert len([c for c in asked if c.write]) == 1
    assert {m.devices for m in stand.watcher.moments} <= {None, ("plain",)}

    told = {r["feature"]: r["fields"] for r in stand.driver.events("feature is not there")}
    assert set(told) == {"DRAConsumableCapacity", "DRAPartitionableDevices"}
    assert "allowMultipleAllocations" in told["DRAConsumableCapacity"]
    assert len(stand.driver.events("feature is not there")) == 2
    assert "DRAConsumableCapacity" in stand.ready()["Features"][1]
    assert stand.ready()["Published"][0], "what can be published is"
    assert "dra_driver_publisher_features_missing 2" in stand.metrics()
    until("the Node has the events", lambda: len(stand.events()) == 2)
    assert {e["reason"] for e in stand.events()} == {"FeatureNotThere"}


@case("PUB-02")
def test_a_vendor_may_have_the_devices_published_without(stand: Stand) -> None:
    stand.proxy.add(lambda _: True, strip=("taints",))
    taints = [{"key": "pools.example.com/hot", "effect": "NoSchedule"}]
    pool = {
        "devices": [*devices("a"), *devices("b", taints=taints)],
        "fallbacks": {"DRADeviceTaints": "publish without"},
    }
    stand.start(pool)
    stand.wait_for("a", "b")
    assert stand.published()["b"] == {"name": "b"}
    assert len(stand.driver.events("feature is not there")) == 1


class Killed:
    """One round: the pool changes, the driver is killed at the ``number``-th call after that."""

    def __init__(self, stand: Stand, when: str, number: int) -> None:
        self.stand = stand
        self.when = when
        self.nth = len(stand.proxy.calls) + number
        # A call counts once it is in the list; the rule is asked right after.
        before: dict[str, Any] = {"act": self._kill, "status": 500}
        action = before if when == "before" else {"cut": True}
        self.rule = stand.proxy.add(lambda _: len(stand.proxy.calls) > self.nth, times=1, **action)

    def _kill(self, _: Call) -> None:
        self.stand.driver.kill()

    def run(self, target: tuple[str, ...]) -> bool:
        """Whether it was killed; False if all was done before its turn came."""
        driver = self.stand.run()
        until(
            "the call or the end",
            lambda: self.rule.used or self.stand.watcher.now.devices == target,
        )
        self.stand.proxy.clear()  # from here on its turn does not come any more
        if self.rule.used and self.when == "after":
            call = self.stand.proxy.calls[self.nth]
            until("the server has answered the proxy", lambda: call.status)
            driver.kill()
        if self.rule.used:
            until("it is dead", lambda: driver.process.poll() is not None)
        return bool(self.rule.used)


@case("PUB-03")
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_call_it_never_shows_a_wrong_pool(stand: Stand, when: str) -> None:
    """300 devices, then others; killed before the server gets a call, or before its answer."""
    contents = {names(300): numbered(300)}
    other = tuple(f"e-{n}" for n in range(270))
    contents[other] = devices(*other)
    stand.start(numbered(300))
    stand.wait_for(*names(300))
    stand.settled()
    stand.driver.kill()
    killed = 0
    while True:
        before = stand.watcher.now.devices
        target = other if before == names(300) else names(300)
        at = len(stand.watcher.moments)
        stand.offer(contents[target])
        again = Killed(stand, when, killed).run(target)
        if again:
            stand.run()
        stand.wait_for(*target)
        seen = {m.devices for m in stand.watcher.moments[at:]}
        assert seen <= {None, before, target}, (killed, when)
        stand.driver.kill()
        if not again:
            break
        killed += 1
    assert killed >= 8, "two lists, the version, a try-out or the Node, three writes and more"
    assert len({s["spec"]["pool"]["generation"] for s in stand.slices()}) == 1
    print(f"killed {when} the answer at each of {killed} calls")  # noqa: T201 - the count


class RandomPool:
    """A pool that changes at random; some changes make some devices sick."""

    SIZES = (0, 1, 64, 128, 200, 300, 512, 1000)

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._fresh = 0
        self.names = names(10)
        self.devices = devices(*self.names)

    def change(self) -> None:
        rng, current = self._rng, list(self.names)
        match rng.randrange(5):
            case 0:
                self._fresh += 1
                current.insert(rng.randint(0, len(current)), f"n-{self._fresh}")
            case 1 if current:
                current.pop(rng.randrange(len(current)))
            case 2:
                rng.shuffle(current)
            case 3:
                current = list(names(rng.choice(self.SIZES)))
            case _:
                current = current[::-1]
        sick = rng.choice([0, 0, 40])
        taints = [{"key": "pools.example.com/x", "effect": "NoSchedule"}]
        self.names = tuple(current)
        self.devices = [
            {"name": n, "taints": taints} if sick and i % sick == 0 else {"name": n}
            for i, n in enumerate(current)
        ]


def kill_at_a_write(stand: Stand, number: int) -> Rule:
    """The driver crashes when the server gets its ``number``-th write from now on."""
    seen = itertools.count(1)

    def act(_: Call) -> None:
        if next(seen) == number:
            stand.driver.process.kill()

    return stand.proxy.add(a_write, act=act)


@case("PUB-03")
def test_random_changes_are_never_seen_half_done(stand: Stand) -> None:
    """Pools of up to 1,000 devices, with taints; faults and crashes on the way."""
    seed = int(os.environ.get("DRAGOMAN_CHANGES_SEED") or random.randrange(2**32))
    rng = random.Random(seed)
    pool = RandomPool(rng)
    stand.start(pool.devices)
    stand.wait_for(*pool.names)
    crashes, longest, slowest = 0, 0.0, 0.0
    for change in range(CHANGES):
        before = pool.names
        pool.change()
        stand.proxy.clear()
        at, began = len(stand.watcher.moments), time.monotonic()
        undisturbed = False
        match rng.randrange(8):
            case 0 | 1 | 2:
                undisturbed = True
            case 3:
                kill_at_a_write(stand, rng.randint(1, 4))
            case _:
                fault: dict[str, Any] = rng.choice(
                    [{"status": 500}, {"cut": True}, {"status": 409}, {"seconds": 0.5}]
                )
                stand.proxy.add(a_write, times=rng.randint(1, 2), **fault)
        if rng.random() < 0.2:
            stand.proxy.cut_watches()
        stand.becomes(pool.devices)

        def there_or_dead() -> bool:
            dead = stand.driver.process.poll() is not None
            return dead or stand.watcher.now.devices == pool.names

        try:
            until("the change or a crash", there_or_dead, timeout=40.0)
            if stand.driver.process.poll() is not None:
                crashes += 1
                stand.proxy.clear()
                stand.run()
                stand.settled_again()
            stand.wait_for(*pool.names, timeout=40.0)
        except AssertionError as error:
            error.add_note(f"change {change} of seed {seed}\n{stand.story()}")
            raise
        slowest = max(slowest, time.monotonic() - began)
        seen = {m.devices for m in stand.watcher.moments[at:]}
        assert seen <= {None, before, pool.names}, (seed, change)
        slices = max(len(m.slices) for m in stand.watcher.moments[at - 1 :])
        if undisturbed and slices <= 4:
            longest = max(longest, stand.watcher.longest_incomplete(at))
    print(  # noqa: T201 - for a repetition
        f"{CHANGES} changes, {crashes} crashes, seed {seed}; incomplete for {longest:.2f} s at "
        f"most, the slowest took {slowest:.1f} s"
    )
    assert longest <= 1.0, "seconds for a pool of up to 4 slices, when nothing disturbs"


def test_strict_generations(stand: Stand) -> None:
    """As the API's text has it: any change is a new generation in all slices."""
    stand.offer(numbered(200))
    stand.run("--generations=strict")
    stand.wait_for(*names(200))
    changed = numbered(200)
    changed[150]["attributes"] = {"x": {"int": 1}}
    stand.becomes(changed)
    until("the change is there", lambda: "attributes" in stand.published()["d-150"])
    until("all is done", lambda: stand.watcher.now.devices == names(200))
    assert [s["spec"]["pool"]["generation"] for s in stand.slices()] == [2, 2]


@case("PUB-04")
def test_an_empty_pool_is_not_a_failed_discovery(stand: Stand) -> None:
    stand.fail("the module is not loaded")
    stand.proxy.add(lambda c: c.write and c.path.endswith("/events"), times=2, status=503)
    stand.run(rescan=0.3)
    stand.port = stand.driver.wait_for("answering probes")["port"]
    until("it is said", lambda: "RuntimeError" in stand.ready()["Published"][1])
    assert not stand.ready()["Published"][0]
    assert stand.proxy.writes() == []
    until("the Node has an event", stand.events)
    (event,) = stand.events()
    assert (event["reason"], event["type"]) == ("DiscoveryFailed", "Warning")
    assert "RuntimeError" in event["note"]
    stand.offer([])
    until("one empty slice", lambda: stand.watcher.moments and stand.watcher.now.devices == ())
    (item,) = stand.slices()
    assert item["spec"]["pool"]["resourceSliceCount"] == 1
    stand.offer()
    until("no pool, no slice", lambda: stand.slices() == [])


@case("PUB-06")
def test_shared_pools_and_those_of_nodes_do_not_touch_each_other(
    stand: Stand, short_path: Path, start_driver: Callable[..., DriverProcess]
) -> None:
    """Two nodes of one driver; one of them publishes a pool for all nodes as well."""
    (short_path / "other").mkdir()
    other = Stand(stand.cluster, short_path / "other", start_driver)
    try:
        other.start({"devices": devices("o")})
        other.wait_for("o")
        fabric = {"name": "fabric", "nodes": "all", "devices": devices("f")}
        stand.start({"devices": devices("a")}, fabric, rescan=0.2)
        until("both pools", lambda: set(stand.published()) == {"a", "f"})
        uids = {s["metadata"]["uid"] for s in (*stand.slices(), *other.slices())}
        shared = next(s for s in stand.slices() if "nodeName" not in s["spec"])
        assert shared["spec"]["allNodes"] is True
        other.becomes({"devices": devices("o")})
        stand.driver.stop()
        stand.run(rescan=0.2)
        stand.driver.wait_for("the API server is there")
        stand.settled_again()
        after = {s["metadata"]["uid"] for s in (*stand.slices(), *other.slices())}
        assert after == uids
        assert all(c.method != "DELETE" for c in (*stand.proxy.calls, *other.proxy.calls))
        # What vanishes comes back, also without a node's name; what is no longer wanted goes.
        stand.cluster.api("DELETE", f"{SLICES}/{shared['metadata']['name']}")
        until("the shared pool is back", lambda: "f" in stand.published())
        stand.becomes({"devices": devices("a")})
        until("the shared pool is gone", lambda: set(stand.published()) == {"a"})
        assert set(other.published()) == {"o"}
    finally:
        other.close()


@case("PUB-07")
def test_times_of_taints_survive_other_changes_and_lost_slices(stand: Stand) -> None:
    def tainted(**attributes: int) -> list[dict[str, object]]:
        taints = [
            {"key": "pools.example.com/a", "effect": "NoExecute"},
            {"key": "pools.example.com/b", "effect": "NoSchedule", "value": "v"},
        ]
        found = {k: {"int": v} for k, v in attributes.items()}
        return devices("x", taints=taints, **({"attributes": found} if found else {}))

    def times() -> list[str]:
        return [t["timeAdded"] for t in stand.published()["x"]["taints"]]

    stand.start(tainted(), rescan=0.2)
    stand.wait_for("x")
    before = times()
    until("a second passes", lambda: stand.watcher.age() > 1.2)
    stand.becomes(tainted(n=1))
    until("the attribute is there", lambda: "attributes" in stand.published()["x"])
    assert times() == before
    (item,) = stand.slices()
    stand.cluster.api("DELETE", f"{SLICES}/{item['metadata']['name']}")
    until("it is back", lambda: "x" in stand.published())
    assert times() == before, "the taints have been there all the time"
    assert len(stand.proxy.writes()) == 3


@case("PUB-09")
def test_the_first_taint_cuts_a_slice_of_100(stand: Stand) -> None:
    stand.start(numbered(100))
    stand.wait_for(*names(100))
    assert len(stand.slices()) == 1
    sick = numbered(100)
    sick[3]["taints"] = [{"key": "pools.example.com/sick", "effect": "NoSchedule"}]
    at = len(stand.watcher.moments)
    stand.becomes(sick)
    until("two slices", lambda: len(stand.slices()) == 2)
    stand.wait_for(*names(100))
    assert [len(s["spec"]["devices"]) for s in stand.slices()] == [64, 36]
    assert {s["spec"]["pool"]["generation"] for s in stand.slices()} == {2}
    assert {m.devices for m in stand.watcher.moments[at:]} <= {None, names(100)}


@case("PUB-09")
def test_what_only_the_server_refuses_is_left_out_with_its_words(stand: Stand) -> None:
    """Offline rules are those of a server with everything on; the real one may be stricter."""
    # An attribute whose list is dropped has no value left, and that is an error.
    bad = devices("b", attributes={"n": {"ints": [1, 2]}})
    policy = {"default": "1", "validRange": {"min": "1", "step": "1"}}
    good = devices(
        "g",
        allowMultipleAllocations=True,
        capacity={"c": {"value": "4", "requestPolicy": policy}},
    )
    stand.proxy.add(lambda _: True, strip=("ints",))
    stand.start([*bad, *good, *devices("a")])
    stand.wait_for("b", "g", "a")
    assert "attributes" not in stand.published()["b"]
    assert stand.published()["g"]["capacity"]["c"]["requestPolicy"]["default"] == "1"
    (told,) = stand.driver.events("feature is not there")
    assert told["feature"] == "DRAListTypeAttributes"


@case("PUB-12")
def test_uninstalling_withdraws_before_it_deregisters(stand: Stand) -> None:
    stand.offer(numbered(3))
    stand.run("--on-stop=withdraw")
    stand.wait_for(*names(3))
    stand.driver.wait_for("serving")
    registration = next((stand.folder / "k" / "plugins_registry").iterdir())
    stand.driver.process.terminate()
    until("the slices are gone", lambda: stand.slices() == [])
    assert registration.exists(), "pods that were scheduled a moment ago find the driver"
    assert stand.driver.stop() == 0
    assert not registration.exists()


@case("PUB-12")
def test_a_restart_withdraws_nothing(stand: Stand) -> None:
    stand.start(numbered(3))
    stand.wait_for(*names(3))
    assert stand.driver.stop() == 0
    assert stand.watcher.now.devices == names(3)


def test_a_vanished_device_in_use_stays_with_a_taint(stand: Stand) -> None:
    """A claim was prepared with it; its CDI file says so."""
    stand.start(numbered(3), rescan=0.2)
    stand.wait_for(*names(3))
    uid = "0b1d5f0a-8f2f-4c39-9d0c-7a1e5c2b9f01"
    cdi = stand.folder / "cdi" / f"k8s.pools.example.com-claim_{uid}.json"
    cdi.write_text(
        '{"cdiVersion": "0.3.0", "kind": "k8s.pools.example.com/claim", "devices": '
        f'[{{"name": "{uid}_0_gpu_d-1", "containerEdits": {{"env": ["A=1"]}}}}]}}'
    )
    stand.offer(devices("d-0"))
    stand.wait_for("d-0", "d-1")
    (taint,) = stand.published()["d-1"]["taints"]
    assert (taint["key"], taint["effect"]) == ("pools.example.com/vanished", "NoSchedule")
    stand.driver.stop()
    stand.run(rescan=0.2)
    stand.driver.wait_for("the API server is there")
    stand.settled_again()
    assert set(stand.published()) == {"d-0", "d-1"}, "a restart does not forget it"
    cdi.unlink()
    stand.wait_for("d-0")

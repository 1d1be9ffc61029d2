"""publishing.plan: few writes, order kept, and never a pool that is complete and wrong."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from dra_core.layout import chunks, spread
from dra_core.model.devices import Counter, CounterConsumption, Device
from dra_core.model.nodes import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.model.slices import MAX_GENERATION, CounterSet, Nodes, Pool, PublishedSlice
from dra_core.model.taints import DeviceTaint
from dra_core.names import DeviceName, PoolName
from dra_core.publishing import Create, Delete, Plan, Update, Write, plan
from dra_core.quantity import Quantity

POOL = PoolName("node-1")


def devices(*numbers: int, **attributes: int) -> tuple[Device, ...]:
    return tuple(Device(DeviceName(f"d{n}"), attributes) for n in numbers)


def pool(content: tuple[Device, ...]) -> Pool:
    return Pool(POOL, content)


def name(index: int) -> str:
    return f"{index:05x}-node-1"


class Cluster:
    """ResourceSlices of one pool, and what a consumer makes of them."""

    def __init__(self, *, strict: bool = False) -> None:
        self.slices: dict[str, PublishedSlice] = {}
        self.last_generation = 0
        self.strict = strict
        self.now = datetime(2026, 1, 1, 10, 0, tzinfo=UTC)

    def plan(self, wanted: Pool) -> Plan:
        return plan(
            wanted,
            self.slices.values(),
            name,
            last_generation=self.last_generation,
            strict=self.strict,
        )

    def apply(self, write: Write) -> None:
        if isinstance(write, Delete):
            del self.slices[write.name]
            return
        old = self.slices.get(write.slice.name)
        assert (old is not None) == isinstance(write, Update), write
        if old is not None:
            assert (old.nodes is Nodes.THIS) == (write.slice.nodes is Nodes.THIS), "immutable"
        assert not (write.slice.devices and write.slice.shared_counters)
        advanced = any(d.taints or d.consumes_counters for d in write.slice.devices)
        assert len(write.slice.devices) <= (64 if advanced else 128)
        self.slices[write.slice.name] = replace(
            write.slice, devices=tuple(map(self._stored, write.slice.devices))
        )

    def _stored(self, device: Device) -> Device:
        """The server sets the time of taints that lack it."""
        taints = tuple(replace(t, time_added=t.time_added or self.now) for t in device.taints)
        return replace(device, taints=taints)

    def converge(self, content: tuple[Device, ...] | Pool) -> list[Write]:
        wanted = content if isinstance(content, Pool) else pool(content)
        result = self.plan(wanted)
        for write in result.writes:
            self.apply(write)
        self.last_generation = result.generation
        seen = self.visible()
        assert seen is not None
        assert [d.name for d in seen] == [d.name for d in wanted.devices]
        assert tuple(c for s in self.current() for c in s.shared_counters) == wanted.shared_counters
        assert self.plan(wanted).writes == (), "a second plan has nothing to do"
        return list(result.writes)

    def current(self) -> list[PublishedSlice]:
        """The slices of the newest generation, by name."""
        newest = max((s.generation for s in self.slices.values()), default=0)
        return sorted(
            (s for s in self.slices.values() if s.generation == newest), key=lambda s: s.name
        )

    def visible(self) -> tuple[Device, ...] | None:
        """The devices of the pool in the allocator's order, or None if it looks incomplete."""
        found = self.current()
        if not found or any(s.slice_count != len(found) for s in found):
            return None
        return tuple(_timeless(d) for s in found for d in s.devices)

    def sizes(self) -> list[int]:
        return [len(s.devices) for s in self.current()]

    def taints(self) -> dict[str, dict[str, str]]:
        """When each taint of each device was added."""
        return {
            d.name: {t.key: f"{t.time_added:%H:%M:%S}" for t in d.taints}
            for s in self.current()
            for d in s.devices
            if d.taints
        }

    def at(self, clock: str) -> Cluster:
        """The time is this now."""
        self.now = datetime.fromisoformat(f"2026-01-01T{clock}+00:00")
        return self

    def generations(self) -> set[int]:
        return {s.generation for s in self.slices.values()}


def _timeless(device: Device) -> Device:
    return replace(device, taints=tuple(replace(t, time_added=None) for t in device.taints))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_pool_of_300_is_three_slices_of_one_generation(cluster: Cluster) -> None:
    writes = cluster.converge(devices(*range(300)))
    assert [type(w) for w in writes] == [Create] * 3
    assert [len(s.devices) for s in cluster.slices.values()] == [128, 128, 44]
    assert cluster.generations() == {1}
    assert {s.slice_count for s in cluster.slices.values()} == {3}


def test_an_empty_pool_is_one_empty_slice(cluster: Cluster) -> None:
    cluster.converge(())
    assert [s.devices for s in cluster.slices.values()] == [()]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(range(300), range(301), id="one more at the end"),
        pytest.param(range(300), range(299), id="last one gone"),
        pytest.param(range(300), range(1, 300), id="first one gone"),
        pytest.param(range(300), [*range(150), *range(160, 300)], id="ten in the middle gone"),
        pytest.param(range(120), [500, *range(120)], id="one more at the front"),
        pytest.param(range(3), [], id="all gone"),
        pytest.param([], [1], id="the first one"),
        pytest.param(range(300), [1, 0, *range(2, 300)], id="two swapped"),
    ],
)
def test_a_change_within_one_slice_is_one_update(
    cluster: Cluster, before: range, after: list[int]
) -> None:
    cluster.converge(devices(*before))
    writes = cluster.converge(devices(*after))
    assert [type(w) for w in writes] == [Update]
    assert cluster.generations() == {1}


def test_a_changed_attribute_is_one_update(cluster: Cluster) -> None:
    content = list(devices(*range(300)))
    cluster.converge(tuple(content))
    content[200] = replace(content[200], attributes={"health": 1})
    assert [type(w) for w in cluster.converge(tuple(content))] == [Update]


def test_true_is_not_one(cluster: Cluster) -> None:
    cluster.converge((Device(DeviceName("d"), {"x": 1}),))
    assert len(cluster.converge((Device(DeviceName("d"), {"x": True}),))) == 1


def test_a_fourth_slice_is_a_new_generation_and_names_stay(cluster: Cluster) -> None:
    cluster.converge(devices(*range(384)))
    before = set(cluster.slices)
    writes = cluster.converge(devices(*range(385)))
    assert [type(w) for w in writes] == [Update, Update, Update, Create]
    assert before < set(cluster.slices)
    assert cluster.generations() == {2}


def test_changes_in_two_slices_are_a_new_generation(cluster: Cluster) -> None:
    cluster.converge(devices(*range(300)))
    writes = cluster.converge(devices(*range(1, 299)))
    assert cluster.generations() == {2}
    assert len(writes) == 3


def test_fewer_slices_delete_last(cluster: Cluster) -> None:
    cluster.converge(devices(*range(300)))
    writes = cluster.converge(devices(*range(100)))
    assert [type(w) for w in writes] == [Update, Delete, Delete]


@pytest.mark.parametrize("gone", [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]])
def test_deleted_slices_come_back_with_their_generation(cluster: Cluster, gone: list[int]) -> None:
    content = devices(*range(300))
    cluster.converge(content)
    for index in gone:
        del cluster.slices[name(index)]
    writes = cluster.converge(content)
    assert [type(w) for w in writes] == [Create] * len(gone)
    assert cluster.generations() == {1}


def test_a_slice_of_someone_else_with_our_driver_is_replaced(cluster: Cluster) -> None:
    cluster.slices["foreign"] = PublishedSlice("foreign", POOL, 7, 1, devices(1, 2))
    cluster.converge(devices(1, 2))
    assert list(cluster.slices) == [name(0)]
    assert cluster.generations() == {8}


def test_other_pools_are_left_alone() -> None:
    other = PublishedSlice("00000-x", PoolName("other"), 3, 1, devices(1))
    assert plan(pool(devices(1)), [other], name).writes == (
        Create(PublishedSlice(name(0), POOL, 1, 1, devices(1))),
    )


def test_contradictory_counts_are_replaced(cluster: Cluster) -> None:
    cluster.converge(devices(*range(300)))
    cluster.slices[name(1)] = replace(cluster.slices[name(1)], slice_count=2)
    cluster.converge(devices(*range(300)))
    assert cluster.generations() == {2}


@pytest.mark.parametrize("generation", [MAX_GENERATION - 1, MAX_GENERATION])
def test_the_highest_generation_is_survived(cluster: Cluster, generation: int) -> None:
    cluster.slices[name(0)] = PublishedSlice(name(0), POOL, generation, 1, devices(1))
    cluster.converge(devices(*range(300)))
    assert cluster.generations() == ({MAX_GENERATION} if generation < MAX_GENERATION else {1})


def test_leftovers_of_older_generations_are_removed(cluster: Cluster) -> None:
    cluster.converge(devices(1))
    cluster.slices["00009-old"] = PublishedSlice("00009-old", POOL, 0, 3, devices(9))
    assert cluster.converge(devices(1)) == [Delete("00009-old")]


def test_chunks_cover_everything_in_order() -> None:
    for count in (0, 1, 127, 128, 129, 256, 300, 1000):
        content = devices(*range(count))
        cut = chunks(content)
        assert tuple(d for c in cut for d in c) == content
        assert all(0 < len(c) <= 128 for c in cut) or content == ()


def test_a_pool_of_counter_sets_alone_grows_into_one_with_devices(cluster: Cluster) -> None:
    cluster.converge(Pool(POOL, (), counter_sets(1)))
    assert [type(w) for w in cluster.converge(Pool(POOL, devices(1), counter_sets(1)))] == [
        Update,
        Create,
    ]
    assert cluster.generations() == {2}


def counter_sets(count: int, amount: str = "4") -> tuple[CounterSet, ...]:
    value = Counter(Quantity.parse(amount))
    return tuple(CounterSet(f"gpu-{n}", {"slots": value}) for n in range(count))


def partitions(*numbers: int) -> tuple[Device, ...]:
    one = CounterConsumption("gpu-0", {"slots": Counter(Quantity.parse("1"))})
    return tuple(replace(d, consumes_counters=(one,)) for d in devices(*numbers))


def tainted(device: Device, **effects: str) -> Device:
    return replace(
        device, taints=tuple(DeviceTaint(key, effect) for key, effect in effects.items())
    )


class TestLimits:
    """128 devices a slice; 64 with taints, counters or lists; counter sets in their own."""

    def test_the_first_taint_cuts_the_slice_in_one_step(self, cluster: Cluster) -> None:
        healthy = devices(*range(100))
        cluster.converge(healthy)
        assert cluster.sizes() == [100]
        sick = (*healthy[:5], tainted(healthy[5], broken="NoSchedule"), *healthy[6:])
        cluster.converge(sick)
        assert cluster.sizes() == [64, 36]
        assert cluster.generations() == {2}
        assert {s.slice_count for s in cluster.slices.values()} == {2}
        assert [type(w) for w in cluster.converge(healthy)] == [Update], "cut it stays"

    def test_a_tainted_device_far_behind_begins_a_slice(self, cluster: Cluster) -> None:
        healthy = devices(*range(100))
        cluster.converge((*healthy[:99], tainted(healthy[99], broken="NoSchedule")))
        assert cluster.sizes() == [99, 1]

    @pytest.mark.parametrize(
        "special",
        [
            pytest.param(lambda d: replace(d, attributes={"numaNode": (0, 1)}), id="list"),
            pytest.param(lambda d: partitions(int(d.name[1:]))[0], id="counters"),
            pytest.param(lambda d: tainted(d, x="None"), id="taint"),
        ],
    )
    def test_what_lowers_the_limit(
        self, cluster: Cluster, special: Callable[[Device], Device]
    ) -> None:
        cluster.converge(tuple(map(special, devices(*range(130)))))
        assert cluster.sizes() == [64, 64, 2]

    def test_counter_sets_come_first_in_slices_of_their_own(self, cluster: Cluster) -> None:
        cluster.converge(Pool(POOL, partitions(*range(100)), counter_sets(9)))
        assert cluster.sizes() == [0, 0, 64, 36]
        assert [len(s.shared_counters) for s in cluster.current()] == [8, 1, 0, 0]

    def test_a_counter_that_changes_is_one_update(self, cluster: Cluster) -> None:
        cluster.converge(Pool(POOL, partitions(*range(100)), counter_sets(1)))
        writes = cluster.converge(Pool(POOL, partitions(*range(100)), counter_sets(1, "8")))
        assert [type(w) for w in writes] == [Update]
        assert cluster.generations() == {1}

    def test_a_counter_and_a_device_that_change_are_a_new_generation(
        self, cluster: Cluster
    ) -> None:
        cluster.converge(Pool(POOL, partitions(*range(10)), counter_sets(1)))
        cluster.converge(Pool(POOL, partitions(*range(11)), counter_sets(1, "8")))
        assert cluster.generations() == {2}

    @pytest.mark.parametrize("gone", [0, 1, 2, 3])
    def test_a_deleted_slice_comes_back_with_its_generation(
        self, cluster: Cluster, gone: int
    ) -> None:
        content = Pool(POOL, partitions(*range(100)), counter_sets(9))
        cluster.converge(content)
        del cluster.slices[name(gone)]
        assert [type(w) for w in cluster.converge(content)] == [Create]
        assert cluster.generations() == {1}

    def test_fewer_counter_sets_leave_no_empty_slice(self, cluster: Cluster) -> None:
        cluster.converge(Pool(POOL, partitions(1), counter_sets(9)))
        cluster.converge(Pool(POOL, partitions(1), counter_sets(8)))
        assert cluster.sizes() == [0, 1]

    def test_spread_fills_exactly_as_many_slices_as_asked(self) -> None:
        mixed = tuple(
            tainted(d, x="None") if n % 50 == 49 else d for n, d in enumerate(devices(*range(200)))
        )
        for count in range(1, 201):
            found = spread(mixed, count)
            if count < len(chunks(mixed)):
                assert found is None
                continue
            assert found is not None
            assert len(found) == count
            assert all(found)
            assert tuple(d for c in found for d in c) == mixed
        assert spread(mixed, 201) is None


class TestStrict:
    """The API's text: any change is a new generation in all slices."""

    def test_one_attribute_rewrites_all_slices(self) -> None:
        cluster = Cluster(strict=True)
        content = list(devices(*range(300)))
        cluster.converge(tuple(content))
        content[200] = replace(content[200], attributes={"health": 1})
        assert [type(w) for w in cluster.converge(tuple(content))] == [Update] * 3
        assert cluster.generations() == {2}
        assert cluster.converge(tuple(content)) == []

    def test_a_repair_is_no_change(self) -> None:
        cluster = Cluster(strict=True)
        cluster.converge(devices(*range(300)))
        del cluster.slices[name(1)]
        assert [type(w) for w in cluster.converge(devices(*range(300)))] == [Create]
        assert cluster.generations() == {1}


class TestNodes:
    """On which nodes the devices are; ``nodeName`` of a slice cannot change."""

    zone = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "In", ("a",)),)),))

    def test_from_one_node_to_all_the_slices_are_made_anew(self, cluster: Cluster) -> None:
        cluster.converge(devices(*range(200)))
        writes = cluster.converge(Pool(POOL, devices(*range(200)), nodes=Nodes.ALL))
        assert [type(w) for w in writes] == [Delete, Create, Delete, Create]
        assert cluster.generations() == {2}
        assert {s.nodes for s in cluster.slices.values()} == {Nodes.ALL}

    def test_another_selector_is_an_update(self, cluster: Cluster) -> None:
        cluster.converge(Pool(POOL, devices(1), nodes=Nodes.ALL))
        writes = cluster.converge(Pool(POOL, devices(1), nodes=self.zone))
        assert [type(w) for w in writes] == [Update]
        assert cluster.current()[0].nodes == self.zone

    def test_another_selector_in_many_slices_is_a_new_generation(self, cluster: Cluster) -> None:
        cluster.converge(Pool(POOL, devices(*range(200)), nodes=Nodes.ALL))
        cluster.converge(Pool(POOL, devices(*range(200)), nodes=self.zone))
        assert cluster.generations() == {2}

    def test_a_slice_that_is_away_does_not_hide_that_the_others_are_old(
        self, cluster: Cluster
    ) -> None:
        cluster.converge(Pool(POOL, devices(*range(200)), nodes=Nodes.ALL))
        del cluster.slices[name(0)]
        for write in cluster.plan(Pool(POOL, devices(*range(200)), nodes=self.zone)).writes:
            cluster.apply(write)
            right = all(s.nodes == self.zone for s in cluster.current())
            assert right or cluster.visible() is None
        assert cluster.generations() == {2}

    def test_what_stands_in_the_spec_is_part_of_the_plan(self, cluster: Cluster) -> None:
        content = Pool(POOL, (*devices(1), *partitions(2)), counter_sets(1))
        cluster.converge(content)
        changed = replace(
            content,
            partition_type_attribute="gpu.example.com/profile",
            skip_node_operations=("*",),
        )
        cluster.converge(changed)
        assert [s.partition_type_attribute for s in cluster.current()] == [
            None,
            "gpu.example.com/profile",
        ]
        assert {s.skip_node_operations for s in cluster.current()} == {("*",)}

    def test_slices_without_partitions_do_not_name_their_type(self, cluster: Cluster) -> None:
        content = Pool(POOL, devices(1), partition_type_attribute="gpu.example.com/profile")
        cluster.converge(content)
        assert [s.partition_type_attribute for s in cluster.current()] == [None]


class TestTaintTimes:
    """``timeAdded`` of an unchanged taint survives every write (PUB-07)."""

    device = devices(1)[0]

    def start(self, cluster: Cluster) -> None:
        cluster.at("10:00:00").converge((tainted(self.device, t1="NoExecute"),))
        cluster.at("10:05:00").converge((tainted(self.device, t1="NoExecute", t2="NoSchedule"),))
        assert cluster.taints() == {"d1": {"t1": "10:00:00", "t2": "10:05:00"}}
        cluster.at("10:30:00")

    def test_an_unrelated_change_keeps_both(self, cluster: Cluster) -> None:
        self.start(cluster)
        changed = replace(self.device, attributes={"x": 1})
        writes = cluster.converge((tainted(changed, t2="NoSchedule", t1="NoExecute"),))
        assert [type(w) for w in writes] == [Update]
        assert cluster.taints() == {"d1": {"t1": "10:00:00", "t2": "10:05:00"}}

    def test_another_effect_or_value_is_another_taint(self, cluster: Cluster) -> None:
        self.start(cluster)
        cluster.converge((tainted(self.device, t1="NoExecute", t2="NoExecute"),))
        assert cluster.taints() == {"d1": {"t1": "10:00:00", "t2": "10:30:00"}}
        valued = replace(self.device, taints=(DeviceTaint("t1", "NoExecute", "v"),))
        cluster.at("10:31:00").converge((valued,))
        assert cluster.taints() == {"d1": {"t1": "10:31:00"}}

    def test_removed_and_added_again_is_a_new_one(self, cluster: Cluster) -> None:
        self.start(cluster)
        cluster.converge((tainted(self.device, t2="NoSchedule"),))
        cluster.at("10:40:00").converge((tainted(self.device, t2="NoSchedule", t1="NoExecute"),))
        assert cluster.taints() == {"d1": {"t2": "10:05:00", "t1": "10:40:00"}}

    def test_the_times_go_with_the_device_into_another_slice(self, cluster: Cluster) -> None:
        self.start(cluster)
        cluster.converge(
            (*devices(*range(100, 200)), tainted(self.device, t1="NoExecute", t2="NoSchedule"))
        )
        assert cluster.taints() == {"d1": {"t1": "10:00:00", "t2": "10:05:00"}}

    def test_a_hundred_heartbeats_write_nothing(self, cluster: Cluster) -> None:
        self.start(cluster)
        for minute in range(100):
            cluster.now += timedelta(minutes=minute)
            content = (tainted(self.device, t1="NoExecute", t2="NoSchedule"),)
            assert cluster.converge(content) == []

    def test_the_vendors_time_counts_in_whole_seconds(self, cluster: Cluster) -> None:
        west = timezone(timedelta(hours=-2))
        moment = datetime(2026, 1, 1, 7, 59, 59, 999_999, tzinfo=west)
        content = replace(self.device, taints=(DeviceTaint("t1", "NoExecute", "", moment),))
        cluster.converge((content,))
        assert cluster.taints() == {"d1": {"t1": "09:59:59"}}

    def test_memory_serves_when_the_slices_are_gone(self) -> None:
        added = datetime(2026, 1, 1, 10, 0, tzinfo=UTC)
        memory = {(self.device.name, "t1", "", "NoExecute"): added}
        wanted = pool((tainted(self.device, t1="NoExecute", t2="NoExecute"),))
        (write,) = plan(wanted, [], name, last_generation=3, taint_memory=memory).writes
        assert isinstance(write, Create)
        assert [t.time_added for t in write.slice.devices[0].taints] == [added, None]
        assert write.slice.generation == 3


def test_a_generation_that_was_seen_is_not_used_again(cluster: Cluster) -> None:
    """The newer slices were deleted by hand, those of the generation before are still there."""
    cluster.slices[name(0)] = PublishedSlice(name(0), POOL, 5, 1, devices(1))
    cluster.last_generation = 8
    cluster.converge(devices(*range(300)))
    assert cluster.generations() == {9}


@pytest.mark.parametrize(
    "wanted",
    [
        Pool(POOL, devices(*range(200)), nodes=Nodes.ALL),
        Pool(POOL, (), tuple(CounterSet(f"c{n}") for n in range(9)), nodes=Nodes.ALL),
    ],
    ids=["the same devices", "counter sets alone"],
)
def test_a_missing_slice_of_a_pool_that_moves_to_other_nodes(
    cluster: Cluster, wanted: Pool
) -> None:
    """What is there has to be made anew: it is not what was begun."""
    cluster.converge(devices(*range(200)))
    del cluster.slices[name(0)]
    for write in cluster.plan(wanted).writes:
        cluster.apply(write)
        if cluster.visible() is not None:
            assert {s.nodes for s in cluster.current()} == {Nodes.ALL}
            assert cluster.visible() == wanted.devices
    assert cluster.generations() == {2}
    cluster.converge(wanted)


@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
@pytest.mark.parametrize("turn", range(3))
def test_at_no_moment_complete_and_wrong(turn: int, strict: bool) -> None:
    """Random changes, crashes between any two writes, slices deleted by others."""
    seed = f"{os.environ.get('DRAGOMAN_SEED') or random.randrange(2**32)}-{turn}"
    rng = random.Random(seed)
    cluster = Cluster(strict=strict)
    wanted: tuple[Device, ...] = ()
    allowed: list[tuple[Device, ...] | None] = [None]
    for _ in range(60):
        wanted = _changed(rng, wanted)
        allowed = [None, cluster.visible(), wanted]
        if cluster.slices and rng.random() < 0.2:
            del cluster.slices[rng.choice(sorted(cluster.slices))]
            assert cluster.visible() in allowed
        result = cluster.plan(pool(wanted))
        crash_after = rng.choice([None, None, 0, 1, 2])
        for number, write in enumerate(result.writes):
            if number == crash_after:
                break
            cluster.apply(write)
            assert cluster.visible() in allowed, (seed, number, write)
        else:
            assert cluster.visible() == wanted
        cluster.last_generation = max(cluster.generations(), default=cluster.last_generation)
    cluster.converge(wanted)


def _changed(rng: random.Random, content: tuple[Device, ...]) -> tuple[Device, ...]:
    numbers = [int(d.name[1:]) for d in content]
    match rng.randrange(6):
        case 0:
            numbers = list(range(rng.choice([0, 1, 100, 128, 129, 256, 300, 385])))
        case 1:
            fresh = max(numbers, default=0) + 1
            numbers.insert(rng.randint(0, len(numbers)), fresh)
        case 2 if numbers:
            numbers.pop(rng.randrange(len(numbers)))
        case 3:
            rng.shuffle(numbers)
        case 4:
            numbers += range(5000, 5000 + rng.randrange(200))
            numbers = list(dict.fromkeys(numbers))
        case _:
            pass
    changed, sick = rng.randrange(3), rng.choice([0, 0, 53])
    found = (Device(DeviceName(f"d{n}"), {"v": changed if n % 97 == 0 else 0}) for n in numbers)
    return tuple(tainted(d, x="None") if sick and int(d.name[1:]) % sick == 0 else d for d in found)

"""publishing.plan: few writes, order kept, and never a pool that is complete and wrong."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from dra_core.model.devices import Device
from dra_core.model.slices import MAX_GENERATION, Pool, PublishedSlice
from dra_core.names import DeviceName, PoolName
from dra_core.publishing import Create, Delete, Plan, Update, Write, chunks, plan

POOL = PoolName("node-1")


def devices(*numbers: int, **attributes: int) -> tuple[Device, ...]:
    return tuple(Device(DeviceName(f"d{n}"), attributes) for n in numbers)


def pool(content: tuple[Device, ...]) -> Pool:
    return Pool(POOL, content)


def name(index: int) -> str:
    return f"{index:05x}-node-1"


class Cluster:
    """ResourceSlices of one pool, and what a consumer makes of them."""

    def __init__(self) -> None:
        self.slices: dict[str, PublishedSlice] = {}
        self.last_generation = 0

    def plan(self, wanted: Pool) -> Plan:
        return plan(wanted, self.slices.values(), name, last_generation=self.last_generation)

    def apply(self, write: Write) -> None:
        if isinstance(write, Delete):
            del self.slices[write.name]
            return
        exists = write.slice.name in self.slices
        assert exists == isinstance(write, Update), write
        self.slices[write.slice.name] = write.slice

    def converge(self, content: tuple[Device, ...]) -> list[Write]:
        result = self.plan(pool(content))
        for write in result.writes:
            self.apply(write)
        self.last_generation = result.generation
        assert self.visible() == content
        assert self.plan(pool(content)).writes == (), "a second plan has nothing to do"
        return list(result.writes)

    def visible(self) -> tuple[Device, ...] | None:
        """The devices of the pool in the allocator's order, or None if it looks incomplete."""
        newest = max((s.generation for s in self.slices.values()), default=0)
        found = sorted(
            (s for s in self.slices.values() if s.generation == newest), key=lambda s: s.name
        )
        if not found or any(s.slice_count != len(found) for s in found):
            return None
        return tuple(d for s in found for d in s.devices)

    def generations(self) -> set[int]:
        return {s.generation for s in self.slices.values()}


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


@pytest.mark.parametrize("seed", [random.randrange(2**32) for _ in range(3)])
def test_at_no_moment_complete_and_wrong(seed: int) -> None:
    """Random changes, crashes between any two writes, slices deleted by others."""
    rng = random.Random(seed)
    cluster = Cluster()
    wanted: tuple[Device, ...] = ()
    allowed: list[tuple[Device, ...] | None] = [None]
    for _ in range(150):
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
    changed = rng.randrange(3)
    return tuple(
        Device(DeviceName(f"d{n}"), {"version": changed if n % 97 == 0 else 0}) for n in numbers
    )

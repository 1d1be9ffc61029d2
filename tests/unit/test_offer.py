"""offer: from the driver's pools to what can be published here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra_core.errors import ApiForbidden, ApiUnavailable
from dra_core.model.devices import AllocatableMapping, Device, NodeAllocatable
from dra_core.model.slices import Nodes, Pool, PublishedSlice
from dra_core.model.taints import DeviceTaint
from dra_core.names import DeviceName, DriverName, NodeName, PoolName
from dra_core.quantity import Quantity
from dra_driver.adapters import metrics
from dra_driver.discovery import Found
from dra_driver.offer import Offer

POOL = PoolName("n1")
A, B = Device(DeviceName("a")), Device(DeviceName("b"))
TAINT = DeviceTaint("gpu.example.com/vanished", "NoSchedule")


class Bench:
    """An offer, and the devices that claims use."""

    def __init__(self) -> None:
        self.in_use: set[str] = set()
        self.registry = metrics.registry()
        self.offer = Offer(
            DriverName("gpu.example.com"),
            NodeName("n1"),
            in_use=lambda: self.in_use,
            measures=self.registry,
        )

    def found(self, *pools: Pool) -> None:
        self.offer.take(Found(pools))

    def published(self, *devices: Device) -> list[PublishedSlice]:
        return [PublishedSlice("00000-n1", POOL, 1, 1, devices)]

    def names(self, published: list[PublishedSlice]) -> dict[str, list[str]]:
        return {p.name: [d.name for d in p.devices] for p in self.offer.pools(published)}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_failed_discovery_keeps_what_was_known(bench: Bench) -> None:
    assert not bench.offer.known
    bench.offer.take(Found(trouble="not now"))
    assert not bench.offer.known
    bench.found(Pool(POOL, (A,)))
    bench.offer.take(Found(trouble="not now"))
    assert bench.offer.trouble == "not now"
    assert bench.names([]) == {"n1": ["a"]}


def test_a_pool_that_became_wrong_stays_as_it_was(bench: Bench) -> None:
    bench.found(Pool(POOL, (A,)))
    bench.found(Pool(POOL, (A, A)), Pool(PoolName("n1/other"), (B,)))
    assert "two devices named 'a'" in bench.offer.trouble
    assert bench.names([]) == {"n1": ["a"], "n1/other": ["b"]}
    bench.found(Pool(POOL, (A,)), Pool(POOL, (B,)))
    assert "two pools named 'n1'" in bench.offer.trouble


def test_a_vanished_device_stays_while_it_is_used(bench: Bench) -> None:
    bench.found(Pool(POOL, (A,)))
    assert bench.names(bench.published(A, B)) == {"n1": ["a"]}
    bench.in_use = {"b"}
    (pool,) = bench.offer.pools(bench.published(A, B))
    assert pool.devices == (A, replace(B, taints=(TAINT,)))
    assert bench.offer.pools(bench.published(*pool.devices)) == [pool], "it is stable"
    bench.found(Pool(POOL, (A, B)))
    assert bench.offer.pools(bench.published(*pool.devices)) == [Pool(POOL, (A, B))]


def test_a_vanished_pool_stays_with_what_is_used_of_it(bench: Bench) -> None:
    bench.found()
    bench.in_use = {"b"}
    (pool,) = bench.offer.pools(bench.published(A, B))
    assert pool == Pool(POOL, (replace(B, taints=(TAINT,)),))


def test_only_the_newest_generation_counts(bench: Bench) -> None:
    bench.found(Pool(POOL, (A,)))
    bench.in_use = {"b"}
    old = PublishedSlice("00001-n1", POOL, 1, 2, (B,))
    new = PublishedSlice("00000-n1", POOL, 2, 1, (A,))
    assert bench.names([old, new]) == {"n1": ["a"]}


def test_what_the_server_refused_is_left_out_until_it_changes(bench: Bench) -> None:
    bench.found(Pool(POOL, (A, B)))
    (pool,) = bench.offer.pools([])
    wanted = bench.published(*pool.devices)[0]
    assert not bench.offer.refusals.add(
        wanted, [("spec.pool", "wrong"), ("spec.devices[9].name", "?")]
    )
    causes = [("spec.devices[1].name", "too plain"), ("spec.devices[1]", "and dull")]
    assert bench.offer.refusals.add(wanted, causes)
    assert bench.offer.adapted(pool, ()) == Pool(POOL, (A,))
    assert 'devices_left_out{by="server",pool="n1"} 1' in bench.registry.text()
    better = replace(pool, devices=(A, replace(B, attributes={"x": 1})))
    assert bench.offer.adapted(better, ()) == better
    assert 'devices_left_out{by="server",pool="n1"} 0' in bench.registry.text()
    assert bench.offer.adapted(pool, ()) == Pool(POOL, (A,))
    bench.offer.meet_again()
    bench.offer.meet(lambda: 37)
    assert bench.offer.adapted(pool, ()) == pool, "another server may take it"


@pytest.mark.parametrize("minor", [35, 36, 37, 38])
def test_node_resources_have_the_shape_of_the_server(bench: Bench, minor: int) -> None:
    bench.offer.meet(lambda: minor)
    mapping = AllocatableMapping(device_multiplier=Quantity.parse("1"))
    mapped = replace(A, node_allocatable={"cpu": NodeAllocatable(mapping)})
    pool = bench.offer.adapted(Pool(POOL, (mapped,)), ())
    assert pool is not None
    (device,) = pool.devices
    assert bool(device.node_allocatable) == (minor >= 37)
    assert bool(device.node_allocatable_136) == (minor == 36)


def test_a_version_that_may_not_be_read_is_taken_for_the_newest(bench: Bench) -> None:
    def forbidden() -> int:
        raise ApiForbidden("no /version for you")

    def silent() -> int:
        raise ApiUnavailable("no answer")

    with pytest.raises(ApiUnavailable):
        bench.offer.meet(silent)
    assert bench.offer.minor is None
    bench.offer.meet(forbidden)
    assert bench.offer.minor == 37


def test_a_pool_that_cannot_be_here_is_none(bench: Bench) -> None:
    pool = Pool(POOL, (replace(A, all_nodes=True),), nodes=Nodes.EACH_DEVICE)
    assert bench.offer.adapted(pool, ["DRAPartitionableDevices"]) is None

"""Publishing without a node: turns, names of pools, what profiles and settings may ask for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dra_core import names, wire
from dra_core.errors import ApiUnavailable, InvalidValue, UnknownDevice
from dra_core.model.claims import AllocationResult
from dra_core.model.devices import Device
from dra_core.model.slices import Nodes, Pool, PublishedSlice
from dra_core.names import DeviceName, DriverName, NodeName, PoolName
from dra_core.soundness import Soundness
from dra_driver import api, config
from dra_driver.adapters import metrics
from dra_driver.config import OnNode, Profiles, Replica, Settings
from dra_driver.discovery import Found
from dra_driver.news import News
from dra_driver.offer import Offer
from dra_driver.pool_names import AGAIN, PoolNames
from dra_driver.ports import Changed, Listed, Scope
from dra_driver.profiles.cpu import CpuProfile
from dra_driver.profiles.gpu import GpuProfile
from dra_driver.profiles.ports import PortsProfile
from dra_driver.publisher import Publisher
from dra_driver.slice_watch import Relisted
from dra_driver.turns import LeaseTurn, LockTurn
from dra_service.leadership import Leadership, LeaseRecord
from dra_testing.cases import case

DRIVER = DriverName("ports.example.com")
JSON = dict[str, Any]


def pool(name: str = "fabric", devices: int = 1, nodes: Nodes = Nodes.ALL) -> Pool:
    listed = tuple(Device(DeviceName(f"d-{n}")) for n in range(devices))
    return Pool(PoolName(name), listed, nodes=nodes)


# -- names of pools


class Names:
    """Pools of nodes, and the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.of_nodes: dict[str, str] = {}
        self.asked = 0
        self.said: list[str] = []
        self.told: dict[tuple[str, str], str] = {}
        self.names = PoolNames(self._used, self._report, self._tell, lambda: self.now)

    def _used(self) -> Mapping[str, str]:
        self.asked += 1
        return dict(self.of_nodes)

    def _report(self, subject: str, event: str, error: str) -> None:  # noqa: ARG002 - PoolNames
        if error:
            self.said.append(f"{event}: {error}")

    def _tell(self, reason: str, subject: str, note: str) -> None:
        self.told[reason, subject] = note

    def free(self, *wanted: str) -> list[str]:
        return [str(p.name) for p in self.names.free([pool(name) for name in wanted])]


@case("PUB-06")
def test_a_pool_waits_until_no_node_has_its_name() -> None:
    stand = Names()
    stand.of_nodes = {"a": "slice 's' of node 'n1'"}
    assert stand.free("a", "b") == ["b"]
    assert "pool 'a'" in stand.names.trouble
    assert "slice 's' of node 'n1'" in stand.names.trouble
    assert stand.said == [f"pool refused: {stand.names.trouble}"]
    assert stand.told["PoolNameTaken", "a"] == stand.names.trouble
    stand.of_nodes = {}
    assert stand.free("a", "b") == ["b"], "the answer is good for a while"
    stand.now += AGAIN
    assert stand.free("a", "b") == ["a", "b"]
    assert stand.names.trouble == ""
    assert stand.told["PoolNameTaken", "a"] == ""
    assert stand.asked == 2


def test_a_new_name_is_asked_about_at_once() -> None:
    stand = Names()
    assert stand.free("a") == ["a"]
    stand.of_nodes = {"b": "slice 's' of node 'n1'"}
    assert stand.free("a", "b") == ["a"]
    assert stand.free("a") == ["a"]
    assert stand.asked == 2


# -- whose turn it is


class Memory:
    """A SliceApi without a node, over a dictionary."""

    def __init__(self) -> None:
        self.items: dict[str, JSON] = {}
        self.writes: list[str] = []
        self.then: list[Any] = []
        self.of_nodes: dict[str, str] = {}
        self._version = 0

    def owner(self) -> None:
        return None

    def pools_of_nodes(self) -> Mapping[str, str]:
        return self.of_nodes

    def minor_version(self) -> int:
        return 37

    def list(self, scope: Scope) -> Listed:
        assert scope is Scope.SHARED, "there is no node whose slices could be listed"
        return Listed(tuple(self.items.values()), "1")

    def watch(self, scope: Scope, resource_version: str) -> Iterator[Changed]:  # noqa: ARG002 - a SliceApi
        yield from ()

    def create(self, body: JSON) -> JSON:
        return self._store(body)

    def update(self, body: JSON) -> JSON:
        return self._store(body)

    def try_out(self, body: JSON) -> JSON:
        return body

    def delete(self, name: str, uid: str) -> None:  # noqa: ARG002 - a SliceApi
        self.writes.append(f"delete {name}")
        del self.items[name]

    def _store(self, body: JSON) -> JSON:
        self._version += 1
        stored: JSON = json.loads(json.dumps(body))
        stored["metadata"] |= {"uid": "u", "resourceVersion": str(self._version)}
        self.items[stored["metadata"]["name"]] = stored
        self.writes.append(stored["metadata"]["name"])
        for act in self.then:
            act()
        return stored


class Notes:
    """Events, which regard no Node here."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def warn(self, owner: Mapping[str, Any] | None, reason: str, note: str) -> None:
        assert owner is None
        self.notes.append(f"{reason}: {note}")


class Stand:
    def __init__(self) -> None:
        self.turn = True
        self.api = Memory()
        self.notes = Notes()
        measures = metrics.registry()
        self.publisher = Publisher(
            DRIVER,
            None,
            self.api,
            Offer(DRIVER, None, in_use=tuple, measures=measures),
            news=News(self.notes, self.api.owner),
            measures=measures,
            turn=lambda: self.turn,
            clock=lambda: 0.0,
        )
        self.publisher._take(Relisted(Scope.SHARED, ()))

    def waits(self) -> bool:
        return self.publisher.standby

    def publish(self, *pools: Pool) -> float | None:
        self.publisher._take(Found(pools))
        return self.publisher._converge()


def test_slices_of_no_node_have_neither_nodename_nor_owner() -> None:
    stand = Stand()
    assert stand.publish(pool()) is None
    (item,) = stand.api.items.values()
    assert "ownerReferences" not in item["metadata"]
    assert item["spec"].keys() == {"driver", "pool", "devices", "allNodes"}
    assert item["metadata"]["name"].startswith("00000-ports.example.com-")


@case("PUB-06")
def test_a_pool_is_taken_back_when_a_node_comes_with_its_name() -> None:
    stand = Stand()
    assert stand.publish(pool("a", devices=200)) is None
    stand.api.of_nodes = {"a": "slice 's' of node 'n1'"}
    assert stand.publish(pool("a", devices=200), pool("b")) is None
    assert [i["spec"]["pool"]["name"] for i in stand.api.items.values()] == ["b"]
    assert "pool 'a' is not published" in stand.publisher.trouble
    (note,) = stand.notes.notes
    assert note.startswith("PoolNameTaken: pool 'a' is not published")


@case("PUB-06")
def test_who_does_not_lead_writes_nothing_and_looks_again() -> None:
    stand = Stand()
    stand.turn = False
    assert stand.publish(pool()) is not None, "it has to look by itself"
    assert stand.waits()
    assert stand.publisher.trouble == ""
    stand.publisher._withdrawing = True
    assert stand.publisher._converge() is not None
    assert stand.api.writes == []
    stand.publisher._withdrawing = False
    stand.turn = True
    assert stand.publisher._converge() is None
    assert not stand.waits()
    assert len(stand.api.writes) == 1


@case("PUB-06")
def test_who_loses_the_lease_stops_between_two_writes() -> None:
    stand = Stand()
    stand.api.then = [lambda: setattr(stand, "turn", len(stand.api.writes) < 2)]
    stand.publish(pool(devices=500))
    assert len(stand.api.writes) == 2, "of four"
    stand.publisher._converge()
    assert stand.waits()
    stand.api.then = []
    stand.turn = True
    assert stand.publisher._converge() is None
    assert len(stand.api.items) == 4


class Lease:
    """One Lease that nobody else wants."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.error = False

    def read(self) -> LeaseRecord | None:
        if self.error:
            raise ApiUnavailable("no answer")
        return self.record

    def write(self, holder: str, last: LeaseRecord | None, seconds: int) -> LeaseRecord:  # noqa: ARG002 - a LeaseApi
        self.record = LeaseRecord(holder, "now", "1")
        return self.record


def thread(name: str, work: Any) -> threading.Thread:
    made = threading.Thread(target=work, name=name, daemon=True)
    made.start()
    return made


def test_a_lease_is_held_until_the_end_and_then_released() -> None:
    lease, now = Lease(), [100.0]
    leadership = Leadership(lease, "me", metrics.registry(), lambda: now[0], lambda: None)
    turn = LeaseTurn(leadership)
    assert not turn.mine()
    turn.start(thread)
    turn.settle()
    assert turn.mine()
    turn.stop()
    assert turn.mine(), "what is being written can be finished"
    turn.end()
    assert not turn.mine()
    assert lease.record is not None
    assert lease.record.holder == ""


def test_a_stop_does_not_wait_for_a_lease_that_cannot_be_read() -> None:
    lease = Lease()
    lease.error = True
    turn = LeaseTurn(Leadership(lease, "me", metrics.registry(), lambda: 0.0, lambda: None))
    turn.stop()
    turn.settle()
    turn.end()
    assert not turn.mine()


def test_a_lock_is_one_instances_until_it_ends(tmp_path: Path) -> None:
    old, new = LockTurn(tmp_path / "lock"), LockTurn(tmp_path / "lock")
    assert [old.mine(), new.mine(), old.mine()] == [True, False, True]
    old.stop()
    assert old.mine()
    old.end()
    assert new.mine()
    new.stop()
    new.end()


# -- what is refused


def test_a_pool_of_this_node_needs_one() -> None:
    sound = Soundness(DRIVER, None)
    with pytest.raises(
        InvalidValue, match=r"pool 'p' has nodes=Nodes\.THIS .* NodeSelector, Nodes"
    ):
        sound.check(pool("p", nodes=Nodes.THIS))
    assert sound.check(pool("p")).faults == {}
    this = PublishedSlice("s", PoolName("p"), 1, 1)
    with pytest.raises(InvalidValue, match="pool 'p' is on this node"):
        wire.slice_to_json(this, DRIVER, None, None)


def test_names_of_slices_differ_from_those_of_any_node() -> None:
    found = {
        names.slice_name(0, owner, DRIVER, PoolName("p"))
        for owner in ("", "n", "fabric", "cluster")
    }
    assert len(found) == 4


def context(node: str | None, **options: str) -> api.Context:
    known = {option.name: option.default for option in PortsProfile.OPTIONS} | options
    name = NodeName(node) if node else None
    return api.Context(DRIVER, name, Path("/p") if node else None, lambda: known)


@pytest.mark.parametrize("profile", [GpuProfile, CpuProfile])
def test_profiles_of_nodes_say_that_they_need_one(profile: type[api.Driver]) -> None:
    with pytest.raises(InvalidValue, match="needs a node's name, and this instance runs without"):
        profile(context(None))  # type: ignore[call-arg]  # a profile makes it
    with pytest.raises(InvalidValue, match="needs a folder on the node"):
        _ = context(None).plugin_dir


def test_ports_are_published_without_a_node_and_prepared_on_one() -> None:
    (everywhere,) = PortsProfile(context(None, count="2")).pools()
    assert (everywhere.name, everywhere.nodes) == ("network", Nodes.ALL)
    assert [d.name for d in everywhere.devices] == ["port-0", "port-1"]
    zones = PortsProfile(context(None, zones="a,b")).pools()
    assert [p.name for p in zones] == ["network-a", "network-b"]
    for one in (everywhere, *zones):
        assert Soundness(DRIVER, None).check(one).faults == {}
    on_node = PortsProfile(context("n1"))
    assert on_node.pools() == []
    claim = wire.claim_from_json(
        {"metadata": {"name": "c", "namespace": "d", "uid": "u"}, "spec": {"devices": {}}}
    )
    result = AllocationResult("r", DRIVER, PoolName("network"), DeviceName("port-1"))
    (edits,) = on_node.prepare(claim, [result])
    assert edits.env == {"NETWORK_PORT_1": "network/port-1"}
    on_node.unprepare(api.ClaimReference("d", "c", api.ClaimUID("u")))
    wrong = AllocationResult("r", DRIVER, PoolName("network"), DeviceName("gpu-1"))
    with pytest.raises(UnknownDevice, match="no port of the network"):
        on_node.prepare(claim, [wrong])


@pytest.mark.parametrize("zones", ["A", "a,,b", "a,a"])
def test_zones_that_no_node_can_have_are_refused(zones: str) -> None:
    with pytest.raises((InvalidValue, ValueError)):
        PortsProfile.OPTIONS[1].check(zones)


# -- settings


def parsed(*arguments: str) -> Settings:
    found = config.parse([*arguments, "--profile=ports"], Profiles())
    assert isinstance(found, Settings)
    return found


def test_settings_say_where_an_instance_is() -> None:
    on_node = parsed("--node-name=n1", "--kubelet-root=/k").place
    assert isinstance(on_node, OnNode)
    assert on_node.plugin_dir == Path("/k/plugins/ports.example.com")
    replica = parsed("--no-node", "--lease-namespace=n").place
    assert replica == Replica(None, "n", "ports.example.com-publisher")
    named = parsed("--no-node", "--lease-namespace=n", "--lease-name=l", "--identity=i").place
    assert named == Replica("i", "n", "l")
    assert parsed("--no-node", "--no-leader-election").place == Replica(None, None, None)


def test_the_file_can_say_so_too(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("no-node: true\nleader-election: false\n")
    assert parsed(f"--config={file}").place == Replica(None, None, None)


@case("PUB-06")
def test_an_instance_that_gave_up_its_turn_has_it_no_longer(tmp_path: Path) -> None:
    turn = LockTurn(tmp_path / "lock")
    assert turn.mine()
    turn.stop()
    assert turn.mine(), "until the end"
    turn.end()
    assert not turn.mine()
    turn.end()
    assert LockTurn(tmp_path / "lock").mine()

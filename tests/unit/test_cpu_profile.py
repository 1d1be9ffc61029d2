"""Profile cpu: NUMA nodes as shared devices that count as cpu of the node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dra_core import wire
from dra_core.errors import PreparationFailed, UnknownDevice
from dra_core.model.claims import AllocationResult
from dra_core.names import DeviceName, DriverName, NodeName, PoolName
from dra_core.quantity import Quantity
from dra_core.soundness import Soundness
from dra_driver import api
from dra_driver.profiles.cpu import CpuProfile


def profile(**options: str) -> CpuProfile:
    known = {option.name: option.default for option in CpuProfile.OPTIONS} | options
    context = api.Context(
        DriverName("cpu.example.com"), NodeName("n1"), Path("/plugin"), lambda: known
    )
    return CpuProfile(context)


def result(device: str, **amounts: str) -> AllocationResult:
    consumed = {k: Quantity.parse(v) for k, v in amounts.items()}
    return AllocationResult(
        "cpu",
        DriverName("cpu.example.com"),
        PoolName("n1"),
        DeviceName(device),
        consumed_capacity=consumed,
    )


def prepared(made: CpuProfile, *results: AllocationResult) -> list[Any]:
    claim = wire.claim_from_json(
        {"metadata": {"name": "c", "namespace": "d", "uid": "u"}, "spec": {"devices": {}}}
    )
    return [edits.env for edits in made.prepare(claim, results)]


def test_a_device_for_each_node() -> None:
    (pool,) = profile(topology="2x8").pools()
    assert pool.name == "n1"
    assert wire.device_to_json(pool.devices[1]) == {
        "name": "numa-1",
        "attributes": {"resource.kubernetes.io/numaNode": {"int": 1}, "socket": {"int": 1}},
        "capacity": {
            "cpus": {
                "value": "8",
                "requestPolicy": {
                    "default": "1",
                    "validRange": {"min": "1", "max": "8", "step": "1"},
                },
            }
        },
        "allowMultipleAllocations": True,
        "nodeAllocatableResources": {
            "cpu": {"mapping": {"capacityKey": "cpus", "capacityMultiplier": "1"}}
        },
    }


@pytest.mark.parametrize("topology", ["1x1", "2x1", "1x2", "2x8", "8x128"])
def test_what_it_offers_can_be_published(topology: str) -> None:
    (pool,) = profile(topology=topology).pools()
    sound = Soundness(DriverName("cpu.example.com"), NodeName("n1")).check(pool)
    assert sound.faults == {}


def test_the_topology_is_that_of_the_machine(tmp_path: Path) -> None:
    online = tmp_path / "devices" / "system" / "cpu" / "online"
    online.parent.mkdir(parents=True)
    online.write_text("0-3\n")
    (pool,) = profile(sysfs=str(tmp_path)).pools()
    (device,) = pool.devices
    assert (device.name, str(device.capacity["cpus"].value)) == ("numa-0", "4")
    assert "socket" not in device.attributes


def test_no_cpu_at_all_is_a_failed_discovery(tmp_path: Path) -> None:
    with pytest.raises(PreparationFailed, match="is sysfs mounted there"):
        profile(sysfs=str(tmp_path)).pools()


def test_containers_learn_what_they_have() -> None:
    made = profile(topology="2x8")
    found = prepared(made, result("numa-1", cpus="2"), result("numa-0"))
    assert found == [{"DRA_CPUS_NUMA_1": "2"}, {"DRA_CPUS_NUMA_0": "8"}]


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownDevice, match=r"'numa-7'.*which has: numa-0"):
        prepared(profile(topology="1x2"), result("numa-7"))


@pytest.mark.parametrize(
    ("option", "value"), [("topology", "2"), ("topology", "0x1"), ("sysfs", "sys")]
)
def test_options_that_are_wrong(option: str, value: str) -> None:
    check = {o.name: o.check for o in CpuProfile.OPTIONS}[option]
    with pytest.raises(ValueError, match="expected"):
        check(value)

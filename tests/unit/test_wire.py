"""ResourceSlices and ResourceClaims as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_core import wire
from dra_core.errors import InvalidObject
from dra_core.model.devices import Device, Version
from dra_core.model.slices import PublishedSlice
from dra_core.names import DeviceName, DriverName, NodeName, PoolName
from dra_core.quantity import Quantity

DEVICE = Device(
    DeviceName("gpu-0"),
    {"model": "x", "index": 3, "shared": True, "driverVersion": Version("1.2.3")},
    {"memory": Quantity.parse("81920Mi")},
)


def test_a_device_as_the_api_server_gives_it_back() -> None:
    assert wire.device_to_json(DEVICE) == {
        "name": "gpu-0",
        "attributes": {
            "model": {"string": "x"},
            "index": {"int": 3},
            "shared": {"bool": True},
            "driverVersion": {"version": "1.2.3"},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }
    assert wire.device_from_json(wire.device_to_json(DEVICE)) == DEVICE


def test_empty_maps_are_left_out() -> None:
    assert wire.device_to_json(Device(DeviceName("d"))) == {"name": "d"}


@pytest.mark.parametrize(
    "extra",
    [
        {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        {"allowMultipleAllocations": True},
        {"attributes": {"a": {"strings": ["x"]}, "b": {"int": 1}}},
        {"attributes": {"a": {"int": 1, "later": 2}}},
        {"capacity": {"c": {"value": "1", "requestPolicy": {"default": "1"}}}},
        {"fieldOfTheFuture": {"x": [1, {"y": None}]}},
    ],
)
def test_fields_without_a_name_here_survive_and_count(extra: dict[str, Any]) -> None:
    data = {"name": "d", **extra}
    read = wire.device_from_json(data)
    assert wire.device_to_json(read) == data
    assert (read == wire.device_from_json({"name": "d"})) is (not extra)


def test_a_slice_round_trips() -> None:
    published = PublishedSlice("00000-x", PoolName("rack/n1"), 5, 2, (DEVICE,))
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}
    data = wire.slice_to_json(published, DriverName("gpu.example.com"), NodeName("n1"), owner)
    assert wire.slice_from_json(json.loads(json.dumps(data))) == published
    golden = Path(__file__).parents[1] / "data" / "wire" / "slice.json"
    assert data == json.loads(golden.read_text())


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"metadata": {"name": "x"}},
        {"metadata": {"name": "x"}, "spec": {"pool": {"name": "p", "generation": "?"}}},
        {
            "metadata": {"name": "x"},
            "spec": {
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "d", "capacity": {"c": {"value": "many"}}}],
            },
        },
    ],
)
def test_a_slice_that_cannot_be_read_is_named(data: dict[str, Any]) -> None:
    with pytest.raises(InvalidObject, match=r"ResourceSlice ('x'|without metadata)"):
        wire.slice_from_json(data)


def claim(status: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": "c", "uid": "u1"}, "status": status}


def test_results_of_one_driver() -> None:
    results = [
        {
            "request": "gpu/small",
            "driver": "gpu.example.com",
            "pool": "p",
            "device": "gpu-0",
            "shareID": "s1",
            "adminAccess": True,
        },
        {"request": "nic", "driver": "other.example.com", "pool": "p", "device": "nic-0"},
    ]
    read = wire.claim_from_json(claim({"allocation": {"devices": {"results": results}}}))
    (mine,) = read.results_of(DriverName("gpu.example.com"))
    assert (mine.request, mine.main_request) == ("gpu/small", "gpu")
    assert (mine.share_id, mine.admin_access) == ("s1", True)


@pytest.mark.parametrize("status", [{}, {"allocation": None}, {"devices": []}])
def test_not_allocated_is_not_an_empty_allocation(status: dict[str, Any]) -> None:
    assert wire.claim_from_json(claim(status)).results is None
    assert wire.claim_from_json(claim({"allocation": {}})).results == ()


def test_a_claim_that_cannot_be_read_is_named() -> None:
    with pytest.raises(InvalidObject, match="ResourceClaim 'c'"):
        wire.claim_from_json(claim({"allocation": {"devices": {"results": [{"request": "r"}]}}}))

"""ResourceSlices and ResourceClaims as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_core import wire
from dra_core.errors import InvalidObject, InvalidValue
from dra_core.model.devices import Capacity, Device, Version
from dra_core.model.requests import AllocationMode, ExactRequest
from dra_core.model.slices import PublishedSlice
from dra_core.model.taints import DeviceTaint, Effect
from dra_core.names import DeviceName, DriverName, NodeName, PoolName
from dra_testing.wire_parts import unknown_parts

DEVICE = Device(
    DeviceName("gpu-0"),
    {"model": "x", "index": 3, "shared": True, "driverVersion": Version("1.2.3")},
    {"memory": Capacity.of("81920Mi")},
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
    assert wire.published_slice(json.loads(json.dumps(data))) == published
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
        wire.published_slice(data)


def claim(status: dict[str, Any]) -> dict[str, Any]:
    metadata = {"namespace": "ns", "name": "c", "uid": "u1"}
    return {"metadata": metadata, "spec": {"devices": {}}, "status": status}


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


OBJECTS = Path(__file__).parents[1] / "data" / "wire" / "objects"


@pytest.mark.parametrize("name", sorted(p.name for p in OBJECTS.glob("*.json")))
def test_objects_with_every_field_round_trip_and_nothing_is_unknown(name: str) -> None:
    data = json.loads((OBJECTS / name).read_text())
    value = wire.read(data)
    assert wire.write(value) == data
    assert list(unknown_parts(value)) == []


@pytest.mark.parametrize("name", ["slice.json", "claim.json", "template.json", "class.json"])
@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_older_versions_are_read_as_v1(name: str, version: str) -> None:
    data = json.loads((OBJECTS / name).read_text())
    older = wire.from_v1(data, version)
    assert older["apiVersion"] == f"resource.k8s.io/{version}"
    assert (version == "v1beta1" and name != "class.json") == (older["spec"] != data["spec"])
    assert wire.read(older) == wire.read(data)
    assert wire.to_v1(older) == data


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta2"])
def test_rules_of_older_versions(version: str) -> None:
    data = json.loads((OBJECTS / "rule.json").read_text())
    assert wire.read(wire.from_v1(data, version)) == wire.read(data)


@pytest.mark.parametrize(
    ("kind", "api", "message"),
    [
        ("Pod", "v1", "kind 'Pod' is not one of"),
        ("ResourceSlice", "resource.k8s.io/v1alpha3", "apiVersion .* is not one of"),
        ("ResourceSlice", "resource.k8s.io/v2", "apiVersion .* is not one of"),
        ("ResourceSlice", "v1", "apiVersion 'v1' of a ResourceSlice is not one of"),
        ("DeviceTaintRule", "resource.k8s.io/v1beta1", "apiVersion .* is not one of"),
    ],
)
def test_what_is_not_of_this_group_is_refused(kind: str, api: str, message: str) -> None:
    with pytest.raises(InvalidObject, match=message):
        wire.read({"kind": kind, "apiVersion": api, "metadata": {}, "spec": {}})


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("spec", "pool", "generation"), True, r"spec\.pool\.generation: True is not a whole"),
        (("spec", "pool", "generation"), "1", r"spec\.pool\.generation: '1' is not a whole"),
        (("spec", "devices"), {}, r"spec\.devices: \{\} is not a list"),
        (("spec", "devices", 0, "name"), 5, r"spec\.devices\[0\]\.name: 5 is not a string"),
        (
            ("spec", "devices", 0, "capacity", "memory", "value"),
            "many",
            r"spec\.devices\[0\]\.capacity\[memory\]\.value: quantity 'many'",
        ),
        (
            ("spec", "devices", 0, "attributes", "model"),
            {"string": 5},
            r"spec\.devices\[0\]\.attributes\[model\]: 5 is not what 'string' stands for",
        ),
        (
            ("spec", "devices", 0, "taints", 0, "timeAdded"),
            "yesterday",
            r"taints\[0\]\.timeAdded: 'yesterday' is not a time",
        ),
        (("spec", "driver"), None, r"spec\.driver: is missing"),
    ],
)
def test_data_of_the_wrong_kind_is_named(path: tuple[Any, ...], value: Any, message: str) -> None:
    data = json.loads((OBJECTS / "slice.json").read_text())
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(InvalidObject, match=message):
        wire.read(data)


def test_an_unknown_effect_is_none_and_an_unknown_mode_is_refused() -> None:
    assert DeviceTaint("k", "NoExecute").known_effect is Effect.NO_EXECUTE
    assert DeviceTaint("k", "PreferNoSchedule").known_effect is Effect.NONE
    assert ExactRequest("c").mode is AllocationMode.EXACT_COUNT
    assert ExactRequest("c", allocation_mode="All").mode is AllocationMode.ALL
    with pytest.raises(InvalidValue, match="allocation mode 'Some' is not known here"):
        _ = ExactRequest("c", allocation_mode="Some").mode
    assert (ExactRequest("c").device_count, ExactRequest("c", count=3).device_count) == (1, 3)

"""Every field that a driver can publish: kept by the server as it was sent, or reported as dropped.

On real API servers of 1.37 and 1.36, with our feature gates on and off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_core.wire.dropped import dropped_fields
from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess
from dra_testing.polling import until
from dra_testing.publishing_stand import FEATURE, Stand, devices
from dra_testing.slices import Cluster
from testcluster import start
from testcluster.fixtures import unique_name
from testcluster.progress import Progress
from testcluster.record import Options

pytestmark = pytest.mark.control_plane

JSON = dict[str, Any]

#: Gates that can be off in both versions.
OFF = (
    "DRAConsumableCapacity=false,DRADeviceBindingConditions=false,DRADeviceTaints=false,"
    "DRADeviceTaintRules=false,DRAPartitionableDevices=false"
)
WITHOUT = ("kube-controller-manager", "kube-scheduler")
SELECTOR = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    ]
}
RANGE = {"default": "1", "validRange": {"min": "1", "max": "4", "step": "1"}}
VALUES = {"default": "1Gi", "validValues": ["1Gi", "2Gi"]}
EVERYTHING: JSON = {
    "sharedCounters": [{"name": "gpu-0", "counters": {"slots": {"value": "4"}}}],
    "partitionTypeAttribute": "pools.example.com/profile",
    "skipNodeOperations": ["NodePrepareResources", "NodeUnprepareResources"],
    "devices": [
        {
            "name": "plain",
            "attributes": {
                "text": {"string": "x"},
                "count": {"int": 0},
                "flag": {"bool": False},
                "other.example.com/firmware": {"version": "1.2.3-rc.1"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        },
        {
            "name": "listed",
            "attributes": {
                "texts": {"strings": ["a", "b"]},
                "counts": {"ints": [0, 1]},
                "flags": {"bools": [True, False]},
                "versions": {"versions": ["1.0.0", "2.0.0"]},
            },
        },
        {
            "name": "tainted",
            "taints": [
                {
                    "key": "pools.example.com/sick",
                    "value": "v",
                    "effect": "NoExecute",
                    "timeAdded": "2026-01-02T03:04:05Z",
                }
            ],
        },
        {
            "name": "shared",
            "allowMultipleAllocations": True,
            "capacity": {
                "cores": {"value": "4", "requestPolicy": RANGE},
                "memory": {"value": "2Gi", "requestPolicy": VALUES},
            },
        },
        {
            "name": "bound",
            "bindsToNode": True,
            "bindingConditions": ["pools.example.com/ready"],
            "bindingFailureConditions": ["pools.example.com/failed"],
        },
        {
            "name": "part",
            "attributes": {"profile": {"string": "half"}},
            "consumesCounters": [
                {
                    "counterSet": "gpu-0",
                    "counters": {"slots": {"value": "2"}},
                    "compatibilityGroups": ["halves"],
                }
            ],
        },
    ],
}
SELECTED: JSON = {"name": "selected", "nodes": SELECTOR, "devices": devices("on-some")}
ALL: JSON = {"name": "rack/all", "nodes": "all", "devices": devices("on-all")}
MAPPED: JSON = {
    "name": "mapped",
    "devices": [
        {
            "name": "numa-0",
            "allowMultipleAllocations": True,
            "capacity": {"cores": {"value": "4", "requestPolicy": RANGE}},
            "nodeAllocatableResources": {
                "cpu": {
                    "mapping": {"capacityKey": "cores", "capacityMultiplier": "2"},
                    "overhead": {"perPod": "10m", "perContainer": "1m"},
                },
                "memory": {"mapping": {"deviceMultiplier": "64Mi"}},
            },
        }
    ],
}


def each(node: str) -> JSON:
    """Devices that say themselves where they are."""
    found = [
        {"name": "here", "nodeName": node},
        {"name": "there", "nodeSelector": SELECTOR},
        {"name": "everywhere", "allNodes": True},
    ]
    return {"name": "each", "nodes": "each", "devices": found}


@pytest.fixture(scope="module", params=["1.37-on", "1.37-off", "1.36-on", "1.36-off"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Cluster]]:
    version, _, gates = request.param.partition("-")
    if gates == "on":
        fixture = {"1.37": "control_plane", "1.36": "control_plane_136"}[version]
        yield request.param, request.getfixturevalue(fixture)
        return
    options = Options(name=unique_name("f"), version=version, gates=OFF, without=WITHOUT)
    cluster = start.up(options, Progress(), owner=os.getpid())
    try:
        yield request.param, cluster
    finally:
        start.down(cluster.name, Progress())


@pytest.fixture
def param(server: tuple[str, Cluster]) -> str:
    return server[0]


@pytest.fixture
def stand(
    server: tuple[str, Cluster], short_path: Path, start_driver: Callable[..., DriverProcess]
) -> Iterator[Stand]:
    made = Stand(server[1], short_path, start_driver)
    yield made
    made.close()


def sent_devices(stand: Stand, withheld: set[str]) -> dict[str, JSON]:
    pools = [EVERYTHING, SELECTED, ALL, each(stand.node), MAPPED]
    return {d["name"]: d for p in pools for d in p["devices"] if d["name"] not in withheld}


def reported(stand: Stand) -> str:
    """All that the driver has said about fields that are not there."""
    found = [r["fields"] for r in stand.driver.events("feature is not there")]
    found += [f for r in stand.driver.events("the API server dropped fields") for f in r["fields"]]
    return "; ".join(found)


@case("PUB-02")
def test_every_field_is_kept_or_reported(stand: Stand, param: str) -> None:
    stand.declare()
    fallbacks = dict.fromkeys(
        [
            "DRADeviceTaints",
            "DRAPartitionableDevices",
            "DRADeviceCompatibilityGroups",
            "DRADeviceBindingConditions",
            "DRAConsumableCapacity",
        ],
        "publish without",
    )
    offered = [
        {**pool, "fallbacks": fallbacks}
        for pool in (EVERYTHING, SELECTED, ALL, each(stand.node), MAPPED)
    ]
    stand.start(*offered)
    stand.settled()
    stored = stand.published()
    # A pool of devices that say where they are cannot be said in another way.
    gone = {"here", "there", "everywhere"} if param.endswith("off") else set()
    sent = sent_devices(stand, gone)
    assert stored.keys() == sent.keys()
    lost = {
        field
        for name, device in sent.items()
        for field in dropped_fields(device, stored[name])
        if "nodeAllocatable" not in field
    }
    told = reported(stand)
    for field in lost:
        word = field.replace("[]", "").split(".")
        known = {"attributes": "list", "capacity": "requestPolicy"}.get(word[0], word[0])
        if word[-1] == "compatibilityGroups":
            known = "compatibilityGroups"
        assert known in told, (field, told)
    specs = [s["spec"] for s in stand.slices()]
    assert any(s["pool"]["name"] == "rack/all" and s["allNodes"] for s in specs)
    assert any(s.get("nodeSelector") == SELECTOR for s in specs)
    if param == "1.37-on":
        assert lost == set()
        assert told == ""
        assert any(s.get("partitionTypeAttribute") for s in specs)
        assert all(
            s["skipNodeOperations"] == EVERYTHING["skipNodeOperations"]
            for s in specs
            if s["pool"]["name"] == stand.node
        )
        assert any(s.get("sharedCounters") == EVERYTHING["sharedCounters"] for s in specs)
        assert any(s.get("perDeviceNodeSelection") for s in specs)
    else:
        assert "skipNodeOperations" in told
        assert "partitionTypeAttribute" in told or param.endswith("off")
    if param.endswith("off"):
        for gate_fields in ("taints", "consumesCounters", "bindingConditions", "requestPolicy"):
            assert gate_fields in told
        notes = [
            n for r in stand.driver.events("pool is not published as it is") for n in r["notes"]
        ]
        assert "the pool cannot be published: needs DRAPartitionableDevices" in notes


@case("PUB-10")
def test_node_resources_have_the_shape_of_the_version(stand: Stand, param: str) -> None:
    stand.declare()
    keep = {"DRAConsumableCapacity": "publish without"}
    stand.start({**MAPPED, "fallbacks": keep})
    stand.settled()
    device = stand.published()["numa-0"]
    newer = device.get("nodeAllocatableResources")
    older = device.get("nodeAllocatableResourceMappings")
    accounting = stand.ready()["NodeResources"][1]
    if param == "1.37-on":
        assert newer == MAPPED["devices"][0]["nodeAllocatableResources"]
        assert older is None
        assert accounting == "scheduler and kubelet"
    elif param == "1.36-on":
        assert newer is None
        assert older == {
            "cpu": {"capacityKey": "cores", "allocationMultiplier": "2"},
            "memory": {"allocationMultiplier": "64Mi"},
        }
        assert accounting.startswith("scheduler only")
        (notes,) = stand.driver.events("pool is not published as it is")
        assert "overhead" in " ".join(notes["notes"])
    else:
        assert newer is None
        assert older is None
        assert accounting.startswith("inactive: the API server dropped")
        told = [r["feature"] for r in stand.driver.events("feature is not there")]
        assert FEATURE in told


@case("PUB-10")
def test_a_node_that_does_not_declare_the_feature(
    control_plane: Cluster, short_path: Path, start_driver: Callable[..., DriverProcess]
) -> None:
    """1.37 forbids the whole slice then; the devices are published without the mapping."""
    stand = Stand(control_plane, short_path, start_driver)
    try:
        stand.start(MAPPED, rescan=0.5)
        until("the device is there", lambda: "numa-0" in stand.published())
        assert "nodeAllocatableResources" not in stand.published()["numa-0"]
        assert stand.published()["numa-0"]["allowMultipleAllocations"] is True
        stand.settled()
        assert "does not support" in stand.ready()["NodeResources"][1]
        (told,) = stand.driver.events("feature is not there")
        assert told["feature"] == FEATURE
        until("the Node has the event", lambda: len(stand.events()) == 1)
        # The kubelet declares it later, and another try is due after a minute.
        stand.declare()
        until(
            "the mapping is there",
            lambda: "nodeAllocatableResources" in stand.published()["numa-0"],
            timeout=90.0,
        )
        assert stand.ready()["NodeResources"][1] == "scheduler and kubelet"
        assert len(stand.driver.events("feature is there now")) == 1
    finally:
        stand.close()


def test_a_change_raises_the_generation_of_the_object(stand: Stand) -> None:
    stand.start(devices("d", attributes={"serial": {"int": 1}}))
    stand.wait_for("d")
    (before,) = stand.slices()
    stand.becomes(devices("d", attributes={"serial": {"int": 2}}))

    def raised() -> bool:
        (after,) = stand.slices()
        spec, was = after["spec"], before["spec"]
        return bool(
            spec["devices"] != was["devices"]
            and spec["pool"] == was["pool"]
            and after["metadata"]["generation"] == before["metadata"]["generation"] + 1
        )

    until("the object has another generation, the pool the same", raised)

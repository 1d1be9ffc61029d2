"""CDI documents: valid for every UID, one device for each result, nothing that leaves its place."""

from __future__ import annotations

import json

import pytest

from dra_core import cdi
from dra_core.errors import InvalidName, InvalidValue
from dra_core.model.claims import AllocationResult
from dra_core.names import ClaimUID, DeviceName, DriverName, PoolName

DRIVER = DriverName("gpu.example.com")


def result(device: str, request: str = "gpu", share: str | None = None) -> AllocationResult:
    return AllocationResult(request, DRIVER, PoolName("p"), DeviceName(device), share_id=share)


@pytest.mark.parametrize("first", "0123456789abcdef")
def test_the_declared_version_has_what_is_used(first: str) -> None:
    uid = ClaimUID(f"{first}0000000-1111-2222-3333-444444444444")
    device = cdi.device_name(uid, 0, result("gpu-0"))
    spec = json.loads(cdi.document(cdi.kind_of(DRIVER), [(device, cdi.ContainerEdits())]))
    assert spec["cdiVersion"] == ("0.5.0" if first.isdigit() else "0.3.0")
    assert spec["kind"] == "k8s.gpu.example.com/claim"


def test_one_device_twice_in_a_claim_has_two_names() -> None:
    uid = ClaimUID("u1")
    results = [result("nic-0", "a", "s1"), result("nic-0", "a", "s2"), result("nic-0", "b/small")]
    found = [cdi.device_name(uid, i, r) for i, r in enumerate(results)]
    assert found == ["u1_0_a_nic-0", "u1_1_a_nic-0", "u1_2_b.small_nic-0"]


def test_the_same_input_gives_the_same_bytes() -> None:
    edits = cdi.ContainerEdits(
        env={"A": "1"},
        device_nodes=(cdi.DeviceNode("/dev/x", "c", 120, 7),),
        mounts=(cdi.Mount("/host/f", "/in/f"),),
    )
    first, second = (cdi.document("v/c", [("d", edits)]) for _ in range(2))
    assert first == second
    assert json.loads(first)["devices"][0] == {
        "name": "d",
        "containerEdits": {
            "env": ["A=1"],
            "deviceNodes": [
                {
                    "path": "/dev/x",
                    "type": "c",
                    "major": 120,
                    "minor": 7,
                    "fileMode": 0o666,
                    "permissions": "rw",
                }
            ],
            "mounts": [
                {
                    "hostPath": "/host/f",
                    "containerPath": "/in/f",
                    "options": ["ro", "nosuid", "nodev", "bind"],
                }
            ],
        },
    }


@pytest.mark.parametrize(
    "edits",
    [
        cdi.ContainerEdits(env={"": "x"}),
        cdi.ContainerEdits(env={"A=B": "x"}),
        cdi.ContainerEdits(env={"A": "x\0"}),
        cdi.ContainerEdits(mounts=(cdi.Mount("relative", "/in"),)),
        cdi.ContainerEdits(mounts=(cdi.Mount("/a/../b", "/in"),)),
        cdi.ContainerEdits(mounts=(cdi.Mount("/a", "in"),)),
        cdi.ContainerEdits(device_nodes=(cdi.DeviceNode("dev/x", "c", 1, 1),)),
        cdi.ContainerEdits(device_nodes=(cdi.DeviceNode("/dev/x", "p", 1, 1),)),
        cdi.ContainerEdits(device_nodes=(cdi.DeviceNode("/dev/x", "c", -1, 1),)),
    ],
)
def test_edits_that_no_runtime_takes_are_refused(edits: cdi.ContainerEdits) -> None:
    with pytest.raises(InvalidValue, match="CDI device 'd'"):
        cdi.document("v/c", [("d", edits)])


def test_file_names_belong_to_one_claim() -> None:
    name = cdi.file_name(DRIVER, ClaimUID("u1"))
    assert name == "k8s.gpu.example.com-claim_u1.json"
    assert cdi.claim_of_file(DRIVER, name) == "u1"
    assert cdi.claim_of_file(DriverName("other.example.com"), name) is None
    with pytest.raises(InvalidName):
        cdi.file_name(DRIVER, ClaimUID("../u1"))

"""What a server stores of claims, classes and rules: dropped fields, defaults, canonical values."""

from __future__ import annotations

from typing import Any

import pytest

from dra_core.validation.claim_gates import drop_disabled, on
from dra_core.validation.servers import Server

JSON = dict[str, Any]
DERIVED = {"DRADerivedAttributes": True}
OFF = dict.fromkeys(
    (
        "DRAConsumableCapacity",
        "DRADerivedAttributes",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAOptionalNodeOperations",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRAExtendedResource",
    ),
    False,
)


def claim(request: JSON, **more: Any) -> JSON:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request], **more}}}


def stored(obj: JSON, server: Server, old: JSON | None = None) -> JSON:
    request: JSON = drop_disabled("ResourceClaim", obj, old, server)["spec"]["devices"]["requests"][
        0
    ]
    return request


FIELDS: dict[str, Any] = {
    "tolerations": [{"operator": "Exists"}],
    "capacity": {"requests": {"m": "1Gi"}},
    "derivedAttributes": [{"name": "a/b", "expression": "1"}],
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_goes_with_its_gate_unless_it_is_used(field: str) -> None:
    plain = claim({"name": "r", "exactly": {"deviceClassName": "c"}})
    using = claim({"name": "r", "exactly": {"deviceClassName": "c", field: FIELDS[field]}})
    assert field in stored(using, Server(37, DERIVED))["exactly"]
    assert field not in stored(using, Server(37, OFF))["exactly"]
    assert field not in stored(using, Server(37, OFF), plain)["exactly"]
    assert field in stored(using, Server(37, OFF), using)["exactly"]


def test_a_gate_is_used_wherever_one_of_its_fields_is() -> None:
    using = claim({"name": "r"}, constraints=[{"distinctAttribute": "a/b"}])
    asking = claim({"name": "r", "exactly": {"deviceClassName": "c", "capacity": {}}})
    assert "capacity" in stored(asking, Server(37, OFF), using)["exactly"]


def test_a_field_of_a_later_version_goes() -> None:
    using = claim({"name": "r", "exactly": {"derivedAttributes": FIELDS["derivedAttributes"]}})
    assert "derivedAttributes" not in stored(using, Server(36, DERIVED), using)["exactly"]


def test_unknown_fields_go() -> None:
    assert stored(claim({"name": "r", "surprise": 1}), Server()) == {"name": "r"}


def test_alternatives_go_with_their_gate() -> None:
    using = claim({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]})
    assert stored(using, Server(36, OFF)) == {"name": "r"}


def test_defaults_of_a_request() -> None:
    asked = {"deviceClassName": "c", "tolerations": [{}]}
    assert stored(claim({"name": "r", "exactly": asked}), Server())["exactly"] == {
        "deviceClassName": "c",
        "allocationMode": "ExactCount",
        "count": 1,
        "tolerations": [{"operator": "Equal"}],
    }
    asked = {"deviceClassName": "c", "allocationMode": "All"}
    assert stored(claim({"name": "r", "exactly": asked}), Server())["exactly"] == asked


def test_quantities_and_times_are_canonical() -> None:
    asked = {"deviceClassName": "c", "capacity": {"requests": {"m": "1024Mi", "n": 5}}}
    kept = stored(claim({"name": "r", "exactly": asked}), Server())["exactly"]
    assert kept["capacity"] == {"requests": {"m": "1Gi", "n": "5"}}
    taint = {"key": "k", "effect": "None", "timeAdded": "2026-01-01T01:00:00.5+01:00"}
    rule = {"metadata": {"name": "r"}, "spec": {"taint": taint}}
    kept = drop_disabled("DeviceTaintRule", rule, None, Server())["spec"]["taint"]
    assert kept["timeAdded"] == "2026-01-01T00:00:00Z"


def test_a_new_effect_gets_the_servers_time() -> None:
    def rule(effect: str, time: str) -> JSON:
        return {"spec": {"taint": {"key": "k", "effect": effect, "timeAdded": time}}}

    one, two = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    cases = [("None", one, True), ("NoExecute", one, False), ("NoExecute", two, True)]
    for effect, time, kept in cases:
        made = drop_disabled("DeviceTaintRule", rule(effect, time), rule("None", one), Server())
        assert ("timeAdded" in made["spec"]["taint"]) is kept


def test_the_status_is_not_set_with_the_spec_nor_the_spec_with_the_status() -> None:
    old = {**claim({"name": "old"}), "status": {"reservedFor": [{"uid": "u"}]}}
    new = {**claim({"name": "new"}), "status": {}}
    assert drop_disabled("ResourceClaim", new, None, Server())["status"] == {}
    kept = drop_disabled("ResourceClaim", new, old, Server())
    assert kept["status"]["reservedFor"][0]["uid"] == "u"
    kept = drop_disabled("ResourceClaim", new, old, Server(), subresource="status")
    assert kept["spec"]["devices"]["requests"] == [{"name": "old"}]
    assert kept["status"] == {}


RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
USED = {
    "shareID": "i",
    "consumedCapacity": {"m": "1"},
    "bindingConditions": ["a"],
    "bindingFailureConditions": ["b"],
    "skipNodeOperations": ["*"],
}


def status(result: JSON, devices: list[JSON]) -> JSON:
    allocation = {"devices": {"results": [result]}}
    return {**claim({"name": "r"}), "status": {"allocation": allocation, "devices": devices}}


@pytest.mark.parametrize("field", USED)
def test_fields_of_results_go_with_their_gate_unless_used(field: str) -> None:
    plain, using = status(RESULT, []), status({**RESULT, field: USED[field]}, [])
    for old, kept in ((plain, False), (using, True)):
        made = drop_disabled("ResourceClaim", using, old, Server(37, OFF), subresource="status")
        assert (field in made["status"]["allocation"]["devices"]["results"][0]) is kept


def test_tolerations_of_results_stay_whatever_the_gate() -> None:
    using = status({**RESULT, "tolerations": [{}]}, [])
    made = drop_disabled(
        "ResourceClaim", using, claim({"name": "r"}), Server(37, OFF), subresource="status"
    )
    result = made["status"]["allocation"]["devices"]["results"][0]
    assert result["tolerations"] == [{"operator": "Equal"}]


def test_reports_of_devices_go_with_their_gate_and_with_the_device() -> None:
    device = {k: RESULT[k] for k in ("driver", "pool", "device")}
    old, new = status(RESULT, []), status(RESULT, [device])
    off, gone = Server(36, OFF), {**new, "status": {"devices": [device]}}
    for before, after, server, kept in (
        (old, new, Server(36), True),
        (old, new, off, False),
        (new, new, off, True),
        (new, gone, Server(36), False),
    ):
        made = drop_disabled("ResourceClaim", after, before, server, subresource="status")
        assert ("devices" in made["status"]) is kept


def test_extended_resource_names_go_with_their_gate() -> None:
    made = {"spec": {"extendedResourceName": "a.b/c"}}
    for server, old, kept in (
        (Server(36), None, True),
        (Server(36, OFF), None, False),
        (Server(36, OFF), made, True),
    ):
        spec = drop_disabled("DeviceClass", made, old, server)["spec"]
        assert ("extendedResourceName" in spec) is kept


def test_gates_that_a_version_does_not_list_are_on_there() -> None:
    assert on(Server(37), "DRAExtendedResource")
    assert not on(Server(37), "DRADerivedAttributes")

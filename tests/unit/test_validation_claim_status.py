"""Rules for the status of a ResourceClaim: both sides of each boundary, by table."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dra_core.validation import claim_status
from dra_core.validation.problems import ErrorType, Problem
from dra_core.validation.servers import Server

JSON = dict[str, Any]
V137, V136 = Server(37, {"DRAOptionalNodeOperations": True}), Server(36)
LIMIT = 10 * 1024

REQUIRED, INVALID = ErrorType.REQUIRED, ErrorType.INVALID
DUPLICATE, TOO_MANY, TOO_LONG = ErrorType.DUPLICATE, ErrorType.TOO_MANY, ErrorType.TOO_LONG
NOT_SUPPORTED, FORBIDDEN = ErrorType.NOT_SUPPORTED, ErrorType.FORBIDDEN
Found = set[tuple[str, ErrorType]]

UUID = "0a1b2c3d-0000-4000-8000-000000000001"
CONDITION = {
    "type": "Ready",
    "status": "True",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "Ready",
    "message": "",
}
RESULT = {"request": "r0", "driver": "d.e", "pool": "p", "device": "x"}
NODES = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
    ]
}
OLD: JSON = {
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {
        "devices": {"requests": [{"name": "r0", "exactly": {"deviceClassName": "gpu"}}]},
    },
}
ALLOCATED: JSON = {
    **OLD,
    "status": {
        "allocation": {
            "devices": {
                "results": [RESULT],
                "config": [{"source": "FromClass", "opaque": {"driver": "d", "parameters": {}}}],
            },
            "nodeSelector": NODES,
        },
        "reservedFor": [{"resource": "pods", "name": "n", "uid": "u"}],
        "devices": [
            {
                **{k: RESULT[k] for k in ("driver", "pool", "device")},
                "conditions": [CONDITION],
                "data": {},
                "networkData": {"ips": ["10.9.8.7/24"]},
            }
        ],
    },
}


def put(obj: JSON, path: str, value: Any) -> JSON:
    """A copy with one value set; numbers in the path are indexes."""
    changed = copy.deepcopy(obj)
    *steps, last = path.split("/")
    place: Any = changed
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[int(last) if isinstance(place, list) else last] = value
    return changed


def found(problems: list[Problem]) -> Found:
    return {(p.field, p.type) for p in problems}


A = "status.allocation"
R, S, N = f"{A}.devices.results[0]", "status.devices[0]", f"{A}.nodeSelector.nodeSelectorTerms"
G = f"{A}.devices.config[0]"
RESULTS, CONFIG = "status/allocation/devices/results", "status/allocation/devices/config"
RES, DEV = f"{RESULTS}/0", "status/devices/0"
TERMS = "status/allocation/nodeSelector/nodeSelectorTerms"
CON = f"{DEV}/conditions"
NET = f"{DEV}/networkData"


def bound(good: list[str], bad: list[str]) -> JSON:
    return {**RESULT, "bindingConditions": good, "bindingFailureConditions": bad}


def many(count: int) -> list[JSON]:
    return [{**CONDITION, "type": f"t{n}"} for n in range(count)]


def consumers(count: int) -> list[JSON]:
    return [{"resource": "pods", "name": "n", "uid": str(n)} for n in range(count)]


IPS = [f"10.0.0.{n}/8" for n in range(17)]
#: Where, a value that passes, one that does not, and what is said of it.
RULES: list[tuple[str, Any, Any, Found]] = [
    (RESULTS, [RESULT] * 32, [RESULT] * 33, {(f"{A}.devices.results", TOO_MANY)}),
    (f"{RES}/request", "r0", "r1", {(f"{R}.request", INVALID)}),
    (f"{RES}/request", "r0", "r0/s", {(f"{R}.request", INVALID)}),
    (
        RES,
        bound(["a", "b", "c", "d"], ["e"]),
        bound(list("abcde"), ["f"]),
        {(f"{R}.bindingConditions", TOO_MANY)},
    ),
    (
        RES,
        bound(["a"], ["e"]),
        bound(["a"], list("bcdef")),
        {(f"{R}.bindingFailureConditions", TOO_MANY)},
    ),
    (
        RES,
        bound(["a"], ["b"]),
        bound(["a", "a"], ["b"]),
        {(f"{R}.bindingConditions[1]", DUPLICATE)},
    ),
    (
        RES,
        bound(["a"], ["b"]),
        bound(["a"], ["b", "b"]),
        {(f"{R}.bindingFailureConditions[1]", DUPLICATE)},
    ),
    (
        RES,
        bound(["a"], ["b"]),
        bound(["a"], ["a"]),
        {(f"{R}.bindingFailureConditions[0]", INVALID)},
    ),
    (RES, bound([], []), bound([], ["b"]), {(f"{R}.bindingConditions", INVALID)}),
    (RES, bound([], []), bound(["b"], []), {(f"{R}.bindingFailureConditions", INVALID)}),
    (RES, bound(["a/b"], ["b"]), bound(["a b"], ["b"]), {(f"{R}.bindingConditions[0]", INVALID)}),
    (
        f"{RES}/tolerations",
        [{"operator": "Exists"}],
        [{"operator": "x"}],
        {(f"{R}.tolerations[0].operator", NOT_SUPPORTED)},
    ),
    (f"{RES}/skipNodeOperations", ["*"], ["*", "*"], {(f"{R}.skipNodeOperations[1]", DUPLICATE)}),
    (
        f"{RES}/skipNodeOperations",
        ["NodeUnprepareResources"],
        ["Node"],
        {(f"{R}.skipNodeOperations[0]", NOT_SUPPORTED)},
    ),
    (
        f"{RES}/skipNodeOperations",
        ["NodePrepareResources", "*"],
        ["NodePrepareResources"],
        {(f"{R}.skipNodeOperations", INVALID)},
    ),
    (
        CONFIG,
        [{"source": "FromClaim", "opaque": {"driver": "d", "parameters": {}}}] * 64,
        [{}] * 65,
        {(f"{A}.devices.config", TOO_MANY)},
    ),
    (f"{CONFIG}/0/source", "FromClaim", "", {(f"{G}.source", REQUIRED)}),
    (f"{CONFIG}/0/source", "FromClaim", "From", {(f"{G}.source", NOT_SUPPORTED)}),
    (f"{CONFIG}/0/requests", ["r0"], ["r0", "r0"], {(f"{G}.requests[1]", DUPLICATE)}),
    (TERMS, [{}], [], {(N, REQUIRED)}),
    (
        f"{TERMS}/0/matchExpressions/0/values",
        ["a", "b"],
        [],
        {(f"{N}[0].matchExpressions[0].values", REQUIRED)},
    ),
    (
        f"{TERMS}/0/matchExpressions/0/operator",
        "NotIn",
        "Exists",
        {(f"{N}[0].matchExpressions[0].values", FORBIDDEN)},
    ),
    (
        f"{TERMS}/0/matchExpressions/0/operator",
        "Gt",
        "",
        {(f"{N}[0].matchExpressions[0].operator", INVALID)},
    ),
    (
        f"{TERMS}/1/matchFields/0/key",
        "metadata.name",
        "spec.x",
        {(f"{N}[1].matchFields[0].key", INVALID)},
    ),
    ("status/reservedFor", consumers(256), consumers(257), {("status.reservedFor", TOO_MANY)}),
    ("status/reservedFor", consumers(2), consumers(1) * 2, {("status.reservedFor[1]", DUPLICATE)}),
    ("status/reservedFor/0/uid", "v", "", {("status.reservedFor[0].uid", REQUIRED)}),
    ("status/reservedFor/0/name", "v", "", {("status.reservedFor[0].name", REQUIRED)}),
    ("status/reservedFor/0/resource", "v", "", {("status.reservedFor[0].resource", REQUIRED)}),
    (f"{DEV}/device", "x", "y", {(S, INVALID)}),
    (f"{DEV}/data", {"a": "x" * (LIMIT - 8)}, {"a": "x" * (LIMIT - 7)}, {(f"{S}.data", TOO_LONG)}),
    (f"{DEV}/data", None, "x", {(f"{S}.data", INVALID)}),
    (f"{NET}/interfaceName", "i" * 256, "i" * 257, {(f"{S}.networkData.interfaceName", TOO_LONG)}),
    (
        f"{NET}/hardwareAddress",
        "h" * 128,
        "h" * 129,
        {(f"{S}.networkData.hardwareAddress", TOO_LONG)},
    ),
    (f"{NET}/ips", IPS[:16], IPS, {(f"{S}.networkData.ips", TOO_MANY)}),
    (f"{NET}/ips", IPS[:2], IPS[:1] * 2, {(f"{S}.networkData.ips[1]", DUPLICATE)}),
    (CON, many(8), many(9), {(f"{S}.conditions", TOO_MANY)}),
    (f"{CON}/0/status", "Unknown", "unknown", {(f"{S}.conditions[0].status", NOT_SUPPORTED)}),
    (f"{CON}/0/observedGeneration", 0, -1, {(f"{S}.conditions[0].observedGeneration", INVALID)}),
    (
        f"{CON}/0/lastTransitionTime",
        "2026-01-01T00:00:00+01:00",
        None,
        {(f"{S}.conditions[0].lastTransitionTime", REQUIRED)},
    ),
    (
        f"{CON}/0/lastTransitionTime",
        "0001-01-01T00:00:01Z",
        "0001-01-01T00:00:00Z",
        {(f"{S}.conditions[0].lastTransitionTime", REQUIRED)},
    ),
    (f"{CON}/0/reason", "r" * 1024, "r" * 1025, {(f"{S}.conditions[0].reason", TOO_LONG)}),
    (f"{CON}/0/reason", "A_b:c,D", "a-b", {(f"{S}.conditions[0].reason", INVALID)}),
    (f"{CON}/0/reason", "A", "", {(f"{S}.conditions[0].reason", REQUIRED)}),
    (f"{CON}/0/message", "m" * 32768, "m" * 32769, {(f"{S}.conditions[0].message", TOO_LONG)}),
    (f"{CON}/0/type", "a.b/c", "a b", {(f"{S}.conditions[0].type", INVALID)}),
]


@pytest.mark.parametrize(("path", "good", "bad", "said"), RULES)
def test_rules_of_a_new_status(path: str, good: Any, bad: Any, said: Found) -> None:
    assert claim_status.validate_status_update(put(ALLOCATED, path, good), OLD, V137) == []
    problems = claim_status.validate_status_update(put(ALLOCATED, path, bad), OLD, V137)
    assert found(problems) == said


@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("1.2.3.4/24", True),
        ("2001:db8::1/64", True),
        ("1:0:0:2::3/64", True),
        ("1:0:0:2:0:0:0:3/64", False),
        ("2001:DB8::1/64", False),
        ("::ffff:1.2.3.4/120", False),
        ("fe80::1%eth0/64", False),
        ("1.2.3.4", False),
        ("1.2.3.4/33", False),
        ("1.2.3.4/024", False),
        ("01.2.3.4/24", False),
        ("1.2.3.4/255.0.0.0", False),
        ("", False),
    ],
)
def test_addresses_are_in_canonical_form(address: str, good: bool) -> None:
    new = put(ALLOCATED, f"{NET}/ips", [address])
    said = set() if good else {(f"{S}.networkData.ips[0]", INVALID)}
    assert found(claim_status.validate_status_update(new, OLD, V137)) == said


@pytest.mark.parametrize(("share", "good"), [(UUID, True), (UUID.upper(), False), ("", False)])
def test_share_ids(share: str, good: bool) -> None:
    new = put(put(ALLOCATED, f"{RES}/shareID", share), f"{DEV}/shareID", share)
    said = set() if good else {(f"{R}.shareID", INVALID), (f"{S}.shareID", INVALID)}
    assert found(claim_status.validate_status_update(new, OLD, V137)) == said


def test_a_share_is_another_device() -> None:
    new = put(ALLOCATED, f"{RES}/shareID", UUID)
    assert found(claim_status.validate_status_update(new, OLD, V137)) == {(S, INVALID)}


def test_a_device_reports_once() -> None:
    new = put(ALLOCATED, "status/devices", ALLOCATED["status"]["devices"] * 2)
    said = {("status.devices[1]", DUPLICATE)}
    assert found(claim_status.validate_status_update(new, OLD, V137)) == said


def test_conditions_said_otherwise_before_137() -> None:
    at = f"{S}.conditions[0]"
    twice = put(ALLOCATED, CON, [CONDITION, CONDITION])
    new = put(ALLOCATED, CON, [{**CONDITION, "type": "", "status": ""}])
    for server, said in (
        (V137, {(f"{at}.type", REQUIRED), (f"{at}.status", REQUIRED)}),
        (V136, {(f"{at}.type", INVALID), (f"{at}.status", NOT_SUPPORTED)}),
    ):
        assert found(claim_status.validate_status_update(new, OLD, server)) == said
    for server, where in ((V137, f"{S}.conditions[1]"), (V136, f"{S}.conditions[1].type")):
        problems = claim_status.validate_status_update(twice, OLD, server)
        assert found(problems) == {(where, DUPLICATE)}


def test_tolerations_of_results_are_checked_since_137() -> None:
    new = put(ALLOCATED, f"{RES}/tolerations", [{"operator": "In"}])
    said = {(f"{R}.tolerations[0].operator", NOT_SUPPORTED)}
    assert found(claim_status.validate_status_update(new, OLD, V137)) == said
    assert claim_status.validate_status_update(new, OLD, V136) == []


def test_an_allocation_stays_until_it_goes() -> None:
    assert claim_status.validate_status_update(ALLOCATED, ALLOCATED, V137) == []
    changed = put(ALLOCATED, f"{RES}/pool", "q")
    changed = put(changed, "status/devices", [])
    assert found(claim_status.validate_status_update(changed, ALLOCATED, V137)) == {(A, INVALID)}
    gone = {**ALLOCATED, "status": {}}
    assert claim_status.validate_status_update(gone, ALLOCATED, V137) == []


def test_a_stored_allocation_is_not_checked_again() -> None:
    old = put(ALLOCATED, f"{CONFIG}/0/source", "Elsewhere")
    assert claim_status.validate_status_update(old, old, V137) == []


def test_reports_go_with_the_device() -> None:
    gone = put(ALLOCATED, "status/reservedFor", [])
    del gone["status"]["allocation"]
    assert claim_status.validate_status_update(gone, ALLOCATED, V137) == []
    assert found(claim_status.validate_status_update(gone, OLD, V137)) == {(S, INVALID)}


def test_reservations_need_an_allocation() -> None:
    new = {**ALLOCATED, "status": {"reservedFor": consumers(1)}}
    said = {("status.reservedFor", FORBIDDEN)}
    assert found(claim_status.validate_status_update(new, OLD, V137)) == said


def test_a_claim_that_is_deleted_takes_no_new_consumers() -> None:
    old = put(ALLOCATED, "metadata/deletionTimestamp", "2026-01-01T00:00:00Z")
    more = put(old, "status/reservedFor", [*old["status"]["reservedFor"], *consumers(1)])
    said = {("status.reservedFor", FORBIDDEN)}
    assert found(claim_status.validate_status_update(more, old, V137)) == said
    fewer = put(old, "status/reservedFor", [])
    assert claim_status.validate_status_update(fewer, old, V137) == []


def test_admin_access_needs_a_namespace_for_it() -> None:
    new = put(ALLOCATED, f"{RES}/adminAccess", True)
    assert claim_status.validate_status_update(new, OLD, V137, admin_namespace=True) == []
    assert found(claim_status.validate_status_update(new, OLD, V137)) == {
        (f"{R}.adminAccess", FORBIDDEN)
    }
    assert claim_status.validate_status_update(new, new, V137) == []

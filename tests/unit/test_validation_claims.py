"""Rules for ResourceClaim and ResourceClaimTemplate: both sides of each boundary, by table."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dra_core.validation import claims
from dra_core.validation.problems import ErrorType, Problem
from dra_core.validation.servers import Server

JSON = dict[str, Any]
ON = {"DRADerivedAttributes": True, "DRAOptionalNodeOperations": True}
V137, V136 = Server(37, ON), Server(36)
LIMIT = 10 * 1024

REQUIRED, INVALID = ErrorType.REQUIRED, ErrorType.INVALID
DUPLICATE, TOO_MANY, TOO_LONG = ErrorType.DUPLICATE, ErrorType.TOO_MANY, ErrorType.TOO_LONG
NOT_SUPPORTED, FORBIDDEN = ErrorType.NOT_SUPPORTED, ErrorType.FORBIDDEN
Found = set[tuple[str, ErrorType]]


def sub(name: str, **more: Any) -> JSON:
    return {"name": name, "deviceClassName": "gpu", **more}


CLAIM: JSON = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "r0",
                    "exactly": {
                        "deviceClassName": "gpu",
                        "selectors": [{"cel": {"expression": "true"}}],
                        "tolerations": [{"operator": "Exists"}],
                        "derivedAttributes": [{"name": "a.b/x", "expression": "1"}],
                    },
                },
                {"name": "r1", "firstAvailable": [sub("s0"), sub("s1")]},
            ],
            "constraints": [{"requests": ["r0", "r1/s0"], "matchAttribute": "a.b/x"}],
            "config": [{"requests": ["r1"], "opaque": {"driver": "d.e", "parameters": {}}}],
        }
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


D = "spec.devices"
R0, R1, C0, G0 = f"{D}.requests[0]", f"{D}.requests[1]", f"{D}.constraints[0]", f"{D}.config[0]"
E0 = f"{R0}.exactly"
DEVICES = "spec/devices"
EXACT = f"{DEVICES}/requests/0/exactly"
ATTRIBUTE = f"{DEVICES}/constraints/0/matchAttribute"
DERIVED = f"{EXACT}/derivedAttributes"
OPAQUE = f"{DEVICES}/config/0/opaque"


def named(count: int) -> list[JSON]:
    return [{"name": f"r{n}", "exactly": {"deviceClassName": "gpu"}} for n in range(count)]


#: Where, a value that passes, one that does not, and what is said of it.
RULES: list[tuple[str, Any, Any, Found]] = [
    ("metadata/name", "n" * 253, "n" * 254, {("metadata.name", INVALID)}),
    ("metadata/name", "a.b", "", {("metadata.name", REQUIRED)}),
    ("metadata/labels", {"a/b": "c"}, {"a": "b c"}, {("metadata.labels", INVALID)}),
    (
        f"{DEVICES}/requests/1/name",
        "r1",
        "R",
        {(f"{R1}.name", INVALID), (f"{G0}.requests[0]", INVALID), (f"{C0}.requests[1]", INVALID)},
    ),
    (
        f"{DEVICES}/requests/1/name",
        "r1",
        "r0",
        {(R1, DUPLICATE), (f"{G0}.requests[0]", INVALID), (f"{C0}.requests[1]", INVALID)},
    ),
    (f"{EXACT}/deviceClassName", "c" * 253, "c" * 254, {(f"{E0}.deviceClassName", INVALID)}),
    (f"{EXACT}/deviceClassName", "a.b", "", {(f"{E0}.deviceClassName", REQUIRED)}),
    (f"{EXACT}/allocationMode", "All", "Some", {(f"{E0}.allocationMode", NOT_SUPPORTED)}),
    (f"{EXACT}/count", 1, -1, {(f"{E0}.count", INVALID)}),
    (
        f"{EXACT}/selectors",
        [{"cel": {"expression": "true"}}] * 32,
        [{"cel": {"expression": ""}}] * 33,
        {(f"{E0}.selectors", TOO_MANY)},
    ),
    (
        f"{EXACT}/selectors/0",
        {"cel": {"expression": "true" + " " * (LIMIT - 4)}},
        {"cel": {"expression": "1" * (LIMIT + 1)}},
        {(f"{E0}.selectors[0].cel.expression", TOO_LONG)},
    ),
    (
        f"{EXACT}/selectors/0",
        {"cel": {"expression": "true"}},
        {"cel": {}},
        {(f"{E0}.selectors[0].cel.expression", INVALID)},
    ),
    (
        f"{EXACT}/selectors/0",
        {"cel": {"expression": "true"}},
        {},
        {(f"{E0}.selectors[0].cel", REQUIRED)},
    ),
    (
        f"{EXACT}/tolerations/0",
        {"key": "k" * 63},
        {"key": "k" * 64},
        {(f"{E0}.tolerations[0].key", INVALID)},
    ),
    (
        f"{EXACT}/tolerations/0",
        {"operator": ""},
        {"operator": "In"},
        {(f"{E0}.tolerations[0].operator", NOT_SUPPORTED)},
    ),
    (
        f"{EXACT}/tolerations/0",
        {"value": "v" * 63},
        {"value": "v" * 64},
        {(f"{E0}.tolerations[0].value", INVALID)},
    ),
    (
        f"{EXACT}/tolerations/0",
        {"operator": "Exists"},
        {"operator": "Exists", "value": "v"},
        {(f"{E0}.tolerations[0].value", INVALID)},
    ),
    (
        f"{EXACT}/tolerations/0",
        {"effect": "None"},
        {"effect": "none"},
        {(f"{E0}.tolerations[0].effect", NOT_SUPPORTED)},
    ),
    (
        DERIVED,
        [{"name": "a.b/x", "expression": "1"}],
        [{"name": "a.b/y", "expression": "1"}],
        {(f"{E0}.derivedAttributes[0].name", INVALID)},
    ),
    (
        f"{DERIVED}/0/expression",
        "1" + " " * (LIMIT - 1),
        "1" * (LIMIT + 1),
        {(f"{E0}.derivedAttributes[0].expression", TOO_LONG)},
    ),
    (f"{DERIVED}/0/expression", "1", "", {(f"{E0}.derivedAttributes[0].expression", REQUIRED)}),
    (f"{DERIVED}/0/name", "a.b/x", "", {(f"{E0}.derivedAttributes[0].name", REQUIRED)}),
    (f"{DEVICES}/requests/0/exactly", {"deviceClassName": "gpu"}, None, {(R0, REQUIRED)}),
    (f"{DEVICES}/requests/0/firstAvailable", [], [sub("s")], {(R0, INVALID)}),
    (
        f"{DEVICES}/requests/1/firstAvailable",
        [sub(f"s{n}") for n in range(8)],
        [sub(f"s{n}") for n in range(9)],
        {(f"{R1}.firstAvailable", TOO_MANY)},
    ),
    (
        f"{DEVICES}/requests/1/firstAvailable/1",
        sub("s" * 63),
        sub("s0"),
        {(f"{R1}.firstAvailable[1]", DUPLICATE)},
    ),
    (
        f"{DEVICES}/requests/1/firstAvailable/1",
        sub("s" * 63),
        sub("s" * 64),
        {(f"{R1}.firstAvailable[1].name", INVALID)},
    ),
    (
        f"{DEVICES}/constraints/0/requests",
        ["r0", "r1"],
        ["r0", "r0"],
        {(f"{C0}.requests[1]", DUPLICATE)},
    ),
    (
        f"{DEVICES}/constraints/0/requests",
        ["r0", "r1/s1"],
        ["r0", "r1/s2"],
        {(f"{C0}.requests[1]", INVALID)},
    ),
    (
        f"{DEVICES}/constraints/0/requests",
        ["r0"],
        ["r0", "r1/s0/x"],
        {(f"{C0}.requests[1]", INVALID)},
    ),
    (
        f"{DEVICES}/constraints",
        [{"matchAttribute": "a.b/x"}] * 32,
        [{"matchAttribute": "a.b/x"}] * 33,
        {(f"{D}.constraints", TOO_MANY)},
    ),
    (f"{DEVICES}/config/0/requests", ["r0"], ["r2"], {(f"{G0}.requests[0]", INVALID)}),
    (
        f"{DEVICES}/config",
        [{"opaque": {"driver": "d", "parameters": {}}}] * 32,
        [{}] * 33,
        {(f"{D}.config", TOO_MANY)},
    ),
    (
        f"{DEVICES}/config/0/opaque",
        {"driver": "d", "parameters": {}},
        None,
        {(f"{G0}.opaque", REQUIRED)},
    ),
    (f"{OPAQUE}/driver", "D" * 63, "d" * 64, {(f"{G0}.opaque.driver", TOO_LONG)}),
    (f"{OPAQUE}/driver", "A.b", "a_b", {(f"{G0}.opaque.driver", INVALID)}),
    (f"{OPAQUE}/driver", "a", "", {(f"{G0}.opaque.driver", REQUIRED)}),
    (
        f"{OPAQUE}/parameters",
        {"a": "x" * (LIMIT - 8)},
        {"a": "x" * (LIMIT - 7)},
        {(f"{G0}.opaque.parameters", TOO_LONG)},
    ),
    (f"{OPAQUE}/parameters", {"a": None}, None, {(f"{G0}.opaque.parameters", REQUIRED)}),
    (f"{OPAQUE}/parameters", {}, [], {(f"{G0}.opaque.parameters", INVALID)}),
]


@pytest.mark.parametrize(("path", "good", "bad", "said"), RULES)
def test_rules_of_a_new_claim(path: str, good: Any, bad: Any, said: Found) -> None:
    assert claims.validate_create(put(CLAIM, path, good), V137) == []
    assert found(claims.validate_create(put(CLAIM, path, bad), V137)) == said


@pytest.mark.parametrize(("path", "good", "bad", "said"), RULES)
def test_rules_of_a_new_template(path: str, good: Any, bad: Any, said: Found) -> None:
    metadata, spec = CLAIM["metadata"], CLAIM["spec"]
    template = {"kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": spec}}
    where = path.replace("spec/", "spec/spec/")
    there = {(f.replace("spec.devices", "spec.spec.devices"), t) for f, t in said}
    assert claims.validate_template_create(put(template, where, good), V137) == []
    assert found(claims.validate_template_create(put(template, where, bad), V137)) == there


def test_a_claim_has_at_most_32_requests() -> None:
    for count, said in ((32, set()), (33, {(f"{D}.requests", TOO_MANY)})):
        claim = put(CLAIM, DEVICES, {"requests": named(count)})
        assert found(claims.validate_create(claim, V137)) == said


def test_derived_attributes_are_at_most_32_and_have_one_name_each() -> None:
    items = [{"name": f"a.b/x{n}", "expression": "1"} for n in range(33)]
    names = [item["name"] for item in items]
    claim = put(CLAIM, f"{DEVICES}/constraints", [{"matchAttribute": name} for name in names[:32]])
    assert claims.validate_create(put(claim, DERIVED, items[:32]), V137) == []
    at = f"{E0}.derivedAttributes"
    many = {(at, TOO_MANY), (f"{at}[32].name", INVALID)}
    assert found(claims.validate_create(put(claim, DERIVED, items), V137)) == many
    twice = [items[0], items[0]]
    assert found(claims.validate_create(put(claim, DERIVED, twice), V137)) == {
        (f"{at}[1]", DUPLICATE)
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.b/c", []),
        ("d" * 63 + "/" + "i" * 32, []),
        ("a/b/c", []),
        ("d" * 64 + "/i", [TOO_LONG]),
        ("a/" + "i" * 33, [TOO_LONG]),
        ("a", [INVALID]),
        ("", [INVALID]),
        ("/a", [INVALID]),
        ("a/", [INVALID]),
        ("a/1b", [INVALID]),
    ],
)
@pytest.mark.parametrize("field", ["matchAttribute", "distinctAttribute"])
@pytest.mark.parametrize("server", [V136, V137])
def test_attribute_names(server: Server, field: str, name: str, said: list[ErrorType]) -> None:
    claim = put(CLAIM, f"{DEVICES}/constraints", [{field: name}])
    claim = put(claim, DERIVED, [])
    expected = {(f"{C0}.{field}", kind) for kind in said}
    assert found(claims.validate_create(claim, server)) == expected


def test_attribute_domains_are_in_lower_case_since_137() -> None:
    claim = put(put(CLAIM, ATTRIBUTE, "A.b/c"), DERIVED, [])
    assert claims.validate_create(claim, V136) == []
    assert found(claims.validate_create(claim, V137)) == {(f"{C0}.matchAttribute", INVALID)}


def test_two_attributes_in_a_constraint_are_both_checked_since_137() -> None:
    claim = put(CLAIM, f"{DEVICES}/constraints/0/distinctAttribute", "c")
    assert claims.validate_create(put(claim, DERIVED, []), V136) == []
    assert found(claims.validate_create(claim, V137)) == {(f"{C0}.distinctAttribute", INVALID)}


def test_both_request_kinds_are_looked_into_since_137() -> None:
    claim = put(CLAIM, f"{DEVICES}/requests/0/firstAvailable", [{"name": "s"}])
    assert found(claims.validate_create(claim, V136)) == {(R0, INVALID)}
    there = {(R0, INVALID), (f"{R0}.firstAvailable[0].deviceClassName", REQUIRED)}
    assert found(claims.validate_create(claim, V137)) == there


def test_a_constraint_needs_an_attribute_and_the_gate_says_where() -> None:
    claim = put(put(CLAIM, f"{DEVICES}/constraints/0", {}), DERIVED, [])
    assert found(claims.validate_create(claim, V137)) == {(C0, REQUIRED)}
    off = Server(37, {**ON, "DRAConsumableCapacity": False})
    assert found(claims.validate_create(claim, off)) == {(f"{C0}.matchAttribute", REQUIRED)}


def test_a_derived_attribute_is_constrained_for_its_own_request() -> None:
    at = f"{DEVICES}/requests/1/firstAvailable/1/derivedAttributes"
    claim = put(CLAIM, at, [{"name": "a.b/x", "expression": "1"}])
    said = {(f"{R1}.firstAvailable[1].derivedAttributes[0].name", INVALID)}
    assert found(claims.validate_create(claim, V137)) == said
    for targets in (["r0", "r1"], ["r0", "r1/s1"], []):
        constrained = put(claim, f"{DEVICES}/constraints/0/requests", targets)
        assert claims.validate_create(constrained, V137) == []


def test_counts_go_with_exact_count() -> None:
    claim = put(CLAIM, f"{EXACT}/allocationMode", "All")
    assert claims.validate_create(claim, V137) == []
    said = {(f"{E0}.count", INVALID)}
    assert found(claims.validate_create(put(claim, f"{EXACT}/count", 1), V137)) == said


def test_admin_access_needs_a_namespace_for_it() -> None:
    claim = put(CLAIM, f"{EXACT}/adminAccess", True)
    assert claims.validate_create(claim, V137, admin_namespace=True) == []
    assert found(claims.validate_create(claim, V137)) == {(f"{R0}.adminAccess", FORBIDDEN)}


def test_wrong_types_are_said_alone() -> None:
    claim = put(put(CLAIM, f"{EXACT}/count", "1"), f"{EXACT}/deviceClassName", "")
    assert found(claims.validate_create(claim, V137)) == {(f"{E0}.count", ErrorType.TYPE_INVALID)}
    wrongs: list[Any] = [3, "x", [1], {"devices": []}, {"devices": {"requests": {}}}]
    for wrong in wrongs:
        problems = claims.validate_create(put(CLAIM, "spec", wrong), V137)
        assert {p.type for p in problems} == {ErrorType.TYPE_INVALID}
    capacity = put(CLAIM, f"{EXACT}/capacity", {"requests": {"m": "1 GB"}})
    said = {(f"{E0}.capacity.requests[m]", ErrorType.TYPE_INVALID)}
    assert found(claims.validate_create(capacity, V137)) == said


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata/labels", {1: "a"}),
        ("metadata/labels", {"a": 1}),
        ("metadata/name", ["c"]),
        ("metadata", "c"),
        (f"{EXACT}/count", 2**63),
        (f"{EXACT}/count", 1.0),
        (f"{EXACT}/count", True),
        (f"{EXACT}/adminAccess", "true"),
        (f"{EXACT}/capacity", {"requests": {"m": 10**5000}}),
        (f"{EXACT}/capacity", {"requests": {"m": True}}),
        (f"{DEVICES}/requests", [[]]),
    ],
)
def test_what_the_server_could_not_decode(path: str, value: Any) -> None:
    problems = claims.validate_create(put(CLAIM, path, value), V137)
    assert {p.type for p in problems} == {ErrorType.TYPE_INVALID}


def test_the_spec_of_a_claim_stays() -> None:
    asked = put(CLAIM, f"{EXACT}/capacity", {"requests": {"m": "1Gi"}})
    same = put(asked, f"{EXACT}/capacity", {"requests": {"m": "1024Mi"}})
    same = put(put(same, f"{EXACT}/allocationMode", "ExactCount"), f"{EXACT}/count", 1)
    assert claims.validate_update(same, asked, V137) == []
    for path, value in ((f"{EXACT}/count", 2), (f"{OPAQUE}/parameters", {"a": 1})):
        assert found(claims.validate_update(put(asked, path, value), asked, V137)) == {
            ("spec", INVALID)
        }


def test_an_invalid_claim_that_is_stored_may_get_labels() -> None:
    old = put(CLAIM, f"{EXACT}/deviceClassName", "")
    assert claims.validate_update(put(old, "metadata/labels", {"a": "b"}), old, V137) == []


def test_the_spec_of_a_template_stays_and_is_checked() -> None:
    old = {"metadata": {"name": "t"}, "spec": {"spec": CLAIM["spec"]}}
    assert claims.validate_template_update(put(old, "metadata/labels", {"a": "b"}), old, V137) == []
    bad = put(old, f"spec/{EXACT}/count", -1)
    where = f"spec.{E0}.count"
    assert found(claims.validate_template_update(bad, old, V137)) == {
        ("spec", INVALID),
        (where, INVALID),
    }
    assert found(claims.validate_template_update(bad, bad, V137)) == {(where, INVALID)}


def test_declared_rules_skip_what_an_update_leaves_alone() -> None:
    """The domain in upper case was good when it was stored."""
    spec = put(put(CLAIM, ATTRIBUTE, "A.b/x"), DERIVED, [])["spec"]
    old = {"metadata": {"name": "t"}, "spec": {"spec": spec}}
    assert claims.validate_template_update(old, old, V137) == []
    new = put(old, "spec/spec/devices/constraints/0/requests", ["r0"])
    where = "spec.spec.devices.constraints[0].matchAttribute"
    said = {("spec", INVALID), (where, INVALID)}
    assert found(claims.validate_template_update(new, old, V137)) == said


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"labels": {"a": "b"}, "annotations": {"A": "b c"}}, set()),
        ({"labels": {"": ""}}, {("spec.metadata.labels", INVALID)}),
        ({"name": "n"}, {("spec.metadata.name", FORBIDDEN)}),
        ({"uid": "u"}, {("spec.metadata.uID", FORBIDDEN)}),
        ({"finalizers": []}, {("spec.metadata.finalizers", FORBIDDEN)}),
    ],
)
def test_the_metadata_of_claims_of_a_template(metadata: JSON, said: Found) -> None:
    template = {"metadata": {"name": "t"}, "spec": {"metadata": metadata, "spec": CLAIM["spec"]}}
    assert found(claims.validate_template_create(template, V137)) == said


def test_sentences_name_value_limit_and_fix() -> None:
    claim = put(CLAIM, f"{DEVICES}/constraints/0/requests", ["r0", "nobody"])
    (problem,) = claims.validate_create(claim, V137)
    assert str(problem) == (
        "spec.devices.constraints[0].requests[1]: "
        "'nobody' is not a request of this claim; its requests: r0, r1"
    )

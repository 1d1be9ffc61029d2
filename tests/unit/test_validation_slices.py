"""Rules for ResourceSlices, each at both sides of its limit: field and type of a problem."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from dra_core.errors import InvalidObject
from dra_core.validation.problems import ErrorType, Problem
from dra_core.validation.servers import GATES, Server, server
from dra_core.validation.slice_gates import GATED, drop_disabled
from dra_core.validation.slices import validate_create, validate_update
from dra_testing import slice_objects

JSON = dict[str, Any]
ON_37 = Server(37, dict.fromkeys(GATES[37], True))
ON_36 = Server(36, dict.fromkeys(GATES[36], True))
INVALID, REQUIRED, TOO_MANY = ErrorType.INVALID, ErrorType.REQUIRED, ErrorType.TOO_MANY
TOO_LONG, DUPLICATE, FORBIDDEN = ErrorType.TOO_LONG, ErrorType.DUPLICATE, ErrorType.FORBIDDEN
NOT_SUPPORTED, NOT_FOUND = ErrorType.NOT_SUPPORTED, ErrorType.NOT_FOUND


def slice_(**spec: Any) -> JSON:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    base = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n"}
    return {"metadata": {"name": "s"}, "spec": {**base, **spec}}


def device(name: str = "d", **fields: Any) -> JSON:
    return slice_(devices=[{"name": name, **fields}])


def on_nodes(**spec: Any) -> JSON:
    made = slice_(**spec)
    del made["spec"]["nodeName"]
    return made


def found(problems: list[Problem]) -> set[tuple[str, ErrorType]]:
    for problem in problems:
        assert problem.detail, problem.field
    return {(p.field, p.type) for p in problems}


def ints(count: int, prefix: str = "a") -> JSON:
    return {f"{prefix}{i}": {"int": i} for i in range(count)}


def counters(count: int) -> JSON:
    return {f"c{i}": {"value": "1"} for i in range(count)}


def consumption(name: str = "s", count: int = 1, **fields: Any) -> JSON:
    return {"counterSet": name, "counters": counters(count), **fields}


def taints(count: int, **fields: Any) -> list[JSON]:
    return [{"key": "k", "effect": "None", **fields} for _ in range(count)]


def many(count: int, **last: Any) -> JSON:
    made = slice_(devices=[{"name": f"d{i}"} for i in range(count)])
    made["spec"]["devices"][-1].update(last)
    return made


def policy(total: str = "20", shared: bool | None = True, **fields: Any) -> JSON:
    extra: JSON = {} if shared is None else {"allowMultipleAllocations": shared}
    return device(capacity={"c": {"value": total, "requestPolicy": fields}}, **extra)


def selector(*terms: JSON) -> JSON:
    return on_nodes(nodeSelector={"nodeSelectorTerms": list(terms)})


def expression(operator: str, *values: str, key: str = "k") -> JSON:
    return selector(
        {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    )


def node_field(operator: str, *values: str, key: str = "metadata.name") -> JSON:
    return selector({"matchFields": [{"key": key, "operator": operator, "values": list(values)}]})


D, P = "spec.devices[0]", "spec.devices[0].capacity[c].requestPolicy"
S = "spec.nodeSelector.nodeSelectorTerms"

VALID: dict[str, JSON] = {
    "a slice without devices": slice_(),
    "a driver of 63": slice_(driver="d" * 63),
    "a driver in upper case": slice_(driver="Gpu.Example.com"),
    "a pool of 253": slice_(pool={"name": "p" * 253, "resourceSliceCount": 1}),
    "a pool of parts": slice_(pool={"name": "a/b.c/d", "resourceSliceCount": 1}),
    "all nodes": on_nodes(allNodes=True),
    "128 devices": many(128),
    "64 devices and a taint": many(64, taints=taints(1)),
    "64 devices and counters": many(64, consumesCounters=[consumption()]),
    "64 devices and a list": many(64, attributes={"l": {"ints": [1]}}),
    "32 attributes and capacities": device(attributes=ints(31), capacity={"c": {"value": "1"}}),
    "48 values": device(attributes={"l": {"ints": [1] * 47}, "m": {"int": 1}}),
    "a key of 63 and 32": device(attributes={f"{'d' * 63}/{'i' * 32}": {"int": 1}}),
    "a key with two slashes": device(attributes={"a/b/c": {"int": 1}}),
    "a string of 64": device(attributes={"a": {"string": "ä" * 32}}),
    "a version": device(attributes={"a": {"version": "1.0.0-alpha.1+b"}}),
    "16 taints": device(taints=taints(16)),
    "4 conditions": device(bindingConditions=list("abcd"), bindingFailureConditions=list("efgh")),
    "2 consumptions": device(consumesCounters=[consumption("a", 32), consumption("b")]),
    "2 groups": device(consumesCounters=[consumption(compatibilityGroups=["a", "b"])]),
    "8 counter sets": slice_(
        sharedCounters=[{"name": f"s{i}", "counters": counters(32)} for i in range(8)]
    ),
    "an operator with values": expression("In", "a", "b"),
    "an operator without values": expression("Exists"),
    "an operator with one value": expression("Gt", "5"),
    "a node by name": node_field("In", "n"),
    "per device": on_nodes(perDeviceNodeSelection=True, devices=[{"name": "d", "nodeName": "n"}]),
    "10 values": policy(default="1", validValues=[str(i) for i in range(1, 11)]),
    "a range": policy(default="4", validRange={"min": "2", "max": "20", "step": "2"}),
    "a default alone": policy(default="100"),
    "a fractional step": policy(default="1500m", validRange={"min": "0.5", "step": "500m"}),
    "skipped both": slice_(skipNodeOperations=["NodePrepareResources", "NodeUnprepareResources"]),
    "skipped all": slice_(skipNodeOperations=["*"]),
    "a partition type": slice_(
        partitionTypeAttribute="gpu.example.com/profile",
        devices=[
            {
                "name": "a",
                "consumesCounters": [consumption()],
                "attributes": {"profile": {"string": "x"}},
            },
            {"name": "b"},
        ],
    ),
    "node resources": device(
        capacity={"c": {"value": "1"}},
        nodeAllocatableResources={
            "cpu": {"mapping": {"capacityKey": "c", "capacityMultiplier": "1"}},
            "memory": {"mapping": {"deviceMultiplier": "1"}, "overhead": {"perPod": "0"}},
            "hugepages-2Mi": {"overhead": {"perContainer": "1"}},
        },
    ),
    "an unknown field": slice_(somethingNew={"x": 1}),
    "nulls": slice_(devices=None, allNodes=None, nodeSelector=None),
}

WRONG: dict[str, tuple[JSON, set[tuple[str, ErrorType]]]] = {
    "no name": ({"spec": slice_()["spec"]}, {("metadata.name", REQUIRED)}),
    "a bad name": (
        {**slice_(), "metadata": {"name": "S"}},
        {("metadata.name", INVALID)},
    ),
    "no driver": (slice_(driver=""), {("spec.driver", REQUIRED)}),
    "a driver of 64": (slice_(driver="d" * 64), {("spec.driver", TOO_LONG)}),
    "a driver with a slash": (slice_(driver="a/b"), {("spec.driver", INVALID)}),
    "no pool": (
        slice_(pool=None),
        {("spec.pool.name", REQUIRED), ("spec.pool.resourceSliceCount", INVALID)},
    ),
    "a pool of 254": (
        slice_(pool={"name": f"{'p' * 200}/{'q' * 53}", "resourceSliceCount": 1}),
        {("spec.pool.name", TOO_LONG)},
    ),
    "an empty part": (
        slice_(pool={"name": "a//b", "resourceSliceCount": 1}),
        {("spec.pool.name", INVALID)},
    ),
    "a generation below 0": (
        slice_(pool={"name": "p", "generation": -1, "resourceSliceCount": 1}),
        {("spec.pool.generation", INVALID)},
    ),
    "no node at all": (on_nodes(), {("spec", REQUIRED)}),
    "two ways": (slice_(allNodes=True), {("spec", INVALID)}),
    "allNodes false": (slice_(allNodes=False), {("spec.allNodes", INVALID)}),
    "an empty node name": (
        slice_(nodeName=""),
        {("spec.nodeName", INVALID), ("spec", REQUIRED)},
    ),
    "devices and counters": (
        slice_(devices=[], sharedCounters=[{"name": "s", "counters": counters(1)}]),
        {("spec", INVALID)},
    ),
    "129 devices": (many(129), {("spec.devices", TOO_MANY)}),
    "129 devices, one bad": (many(129, name="A"), {("spec.devices", TOO_MANY)}),
    "65 devices and a taint": (many(65, taints=taints(1)), {("spec.devices", TOO_MANY)}),
    "65 devices and counters": (
        many(65, consumesCounters=[consumption()]),
        {("spec.devices", TOO_MANY)},
    ),
    "65 devices and a list": (
        many(65, attributes={"l": {"ints": [1]}}),
        {("spec.devices", TOO_MANY)},
    ),
    "a device twice": (
        slice_(devices=[{"name": "d"}, {"name": "d"}]),
        {("spec.devices[1]", DUPLICATE)},
    ),
    "a device name of 64": (device("d" * 64), {(f"{D}.name", INVALID)}),
    "33 attributes": (device(attributes=ints(33)), {(D, INVALID)}),
    "33 attributes and capacities": (
        device(attributes=ints(32), capacity={"c": {"value": "1"}}),
        {(D, INVALID)},
    ),
    "49 values": (
        device(attributes={"l": {"ints": [1] * 48}, "m": {"int": 1}}),
        {(D, INVALID)},
    ),
    "no value": (device(attributes={"a": {}}), {(f"{D}.attributes[a]", INVALID)}),
    "two values": (
        device(attributes={"a": {"int": 1, "bool": True}}),
        {(f"{D}.attributes[a]", INVALID)},
    ),
    "an empty list": (
        device(attributes={"a": {"ints": []}}),
        {(f"{D}.attributes[a].ints", INVALID), (f"{D}.attributes[a]", INVALID)},
    ),
    "a string of 65 bytes": (
        device(attributes={"a": {"string": "ä" * 33}}),
        {(f"{D}.attributes[a].string", TOO_LONG)},
    ),
    "no semver": (
        device(attributes={"a": {"versions": ["1.0.0", "01.0.0"]}}),
        {(f"{D}.attributes[a].versions[1]", INVALID)},
    ),
    "an identifier of 33": (
        device(attributes={"a" * 33: {"int": 1}}),
        {(f"{D}.attributes", TOO_LONG)},
    ),
    "a domain of 64": (
        device(capacity={f"{'d' * 64}/a": {"value": "1"}}),
        {(f"{D}.capacity", TOO_LONG)},
    ),
    "a long key in a path": (
        device(attributes={"a" * 100: {"string": "x" * 65}}),
        {
            (f"{D}.attributes", TOO_LONG),
            (f"{D}.attributes[{'a' * 47}...{'a' * 46}].string", TOO_LONG),
        },
    ),
    "17 taints": (device(taints=taints(17)), {(f"{D}.taints", TOO_MANY)}),
    "17 taints without effect": (
        device(taints=[*taints(16), {"key": "k"}]),
        {(f"{D}.taints", TOO_MANY), (f"{D}.taints[16].effect", REQUIRED)},
    ),
    "an unknown effect": (
        device(taints=taints(1, effect="no")),
        {(f"{D}.taints[0].effect", NOT_SUPPORTED)},
    ),
    "a taint without key": (device(taints=taints(1, key="")), {(f"{D}.taints[0].key", INVALID)}),
    "5 conditions": (
        device(bindingConditions=list("abcde"), bindingFailureConditions=["f"]),
        {(f"{D}.bindingConditions", TOO_MANY)},
    ),
    "a condition twice": (
        device(bindingConditions=["a", "a"], bindingFailureConditions=["f"]),
        {(f"{D}.bindingConditions[1]", DUPLICATE)},
    ),
    "a condition in both": (
        device(bindingConditions=["a"], bindingFailureConditions=["a"]),
        {(f"{D}.bindingFailureConditions[0]", INVALID)},
    ),
    "conditions without failures": (
        device(bindingConditions=["a"]),
        {(f"{D}.bindingFailureConditions", INVALID)},
    ),
    "3 consumptions": (
        device(consumesCounters=[consumption(f"s{i}") for i in range(3)]),
        {(f"{D}.consumesCounters", TOO_MANY)},
    ),
    "a set consumed twice": (
        device(consumesCounters=[consumption(), consumption()]),
        {(f"{D}.consumesCounters[1]", DUPLICATE)},
    ),
    "33 consumed counters": (
        device(consumesCounters=[consumption(count=33)]),
        {(f"{D}.consumesCounters[0].counters", TOO_MANY)},
    ),
    "no consumed counters": (
        device(consumesCounters=[consumption(count=0)]),
        {(f"{D}.consumesCounters[0].counters", REQUIRED)},
    ),
    "3 groups": (
        device(consumesCounters=[consumption(compatibilityGroups=["a", "b", "c"])]),
        {(f"{D}.consumesCounters[0].compatibilityGroups", TOO_MANY)},
    ),
    "9 counter sets": (
        slice_(sharedCounters=[{"name": f"s{i}", "counters": counters(1)} for i in range(9)]),
        {("spec.sharedCounters", TOO_MANY)},
    ),
    "33 counters": (
        slice_(sharedCounters=[{"name": "s", "counters": counters(33)}]),
        {("spec.sharedCounters[0].counters", TOO_MANY)},
    ),
    "no terms": (selector(), {(S, REQUIRED), (S, INVALID)}),
    "two terms": (selector({}, {}), {(S, INVALID)}),
    "In without values": (
        expression("In"),
        {(f"{S}[0].matchExpressions[0].values", REQUIRED)},
    ),
    "Exists with values": (
        expression("Exists", "a"),
        {(f"{S}[0].matchExpressions[0].values", FORBIDDEN)},
    ),
    "Lt with two values": (
        expression("Lt", "1", "2"),
        {(f"{S}[0].matchExpressions[0].values", REQUIRED)},
    ),
    "no operator": (expression(""), {(f"{S}[0].matchExpressions[0].operator", INVALID)}),
    "another field": (
        node_field("In", "n", key="spec.x"),
        {(f"{S}[0].matchFields[0].key", INVALID)},
    ),
    "two node names": (
        node_field("In", "a", "b"),
        {(f"{S}[0].matchFields[0].values", REQUIRED)},
    ),
    "a device without node": (
        on_nodes(perDeviceNodeSelection=True, devices=[{"name": "d"}]),
        {(D, REQUIRED)},
    ),
    "a device with two ways": (
        on_nodes(
            perDeviceNodeSelection=True,
            devices=[{"name": "d", "nodeName": "n", "allNodes": True}],
        ),
        {(D, INVALID)},
    ),
    "a node without perDeviceNodeSelection": (device(nodeName="n"), {(D, INVALID)}),
    "a policy of a device for one": (policy(shared=None, default="1"), {(P, FORBIDDEN)}),
    "values and range": (
        policy(default="1", validValues=["1"], validRange={"min": "1"}),
        {(P, FORBIDDEN)},
    ),
    "values without default": (policy(validValues=["1"]), {(f"{P}.default", REQUIRED)}),
    "11 values": (
        policy(default="1", validValues=[str(i) for i in range(1, 12)]),
        {(f"{P}.validValues", TOO_MANY), (f"{P}.validValues", INVALID)},
    ),
    "unsorted values": (
        policy(default="1", validValues=["2", "1"]),
        {(f"{P}.validValues[1]", INVALID)},
    ),
    "a value twice": (
        policy(default="1", validValues=["1", "1"]),
        {(f"{P}.validValues[1]", DUPLICATE)},
    ),
    "a value beyond the capacity": (
        policy(default="21", validValues=["21"]),
        {(f"{P}.validValues[0]", INVALID)},
    ),
    "a default that is no value": (
        policy(default="2", validValues=["1"]),
        {(f"{P}.validValues", INVALID)},
    ),
    "a range without min": (
        policy(default="2", validRange={"max": "3"}),
        {(f"{P}.validRange.min", REQUIRED)},
    ),
    "a default below min": (
        policy(default="1", validRange={"min": "2"}),
        {(f"{P}.validRange.default", INVALID)},
    ),
    "a step that misses max": (
        policy(default="2", validRange={"min": "2", "max": "5", "step": "2"}),
        {(f"{P}.validRange.step", INVALID)},
    ),
    "a step of 0": (
        policy(default="2", validRange={"min": "2", "step": "0"}),
        {(f"{P}.validRange.step", INVALID)},
    ),
    "less than a thousandth": (
        policy(default="100n", validRange={"min": "0"}),
        {(f"{P}.validRange.default", INVALID)},
    ),
    "prepare skipped alone": (
        slice_(skipNodeOperations=["NodePrepareResources"]),
        {("spec.skipNodeOperations", INVALID)},
    ),
    "an operation twice": (
        slice_(skipNodeOperations=["*", "*"]),
        {("spec.skipNodeOperations[1]", DUPLICATE)},
    ),
    "an unknown operation": (
        slice_(skipNodeOperations=["x"]),
        {("spec.skipNodeOperations[0]", NOT_SUPPORTED)},
    ),
    "a partition type without counters": (
        slice_(partitionTypeAttribute="a/b"),
        {("spec.partitionTypeAttribute", INVALID)},
    ),
    "a partition type without domain": (
        slice_(
            partitionTypeAttribute="profile",
            devices=[{"name": "d", "consumesCounters": [consumption()]}],
        ),
        {("spec.partitionTypeAttribute", INVALID)},
    ),
    "a partition type that lacks": (
        slice_(
            partitionTypeAttribute="a/b",
            devices=[{"name": "d", "consumesCounters": [consumption()]}],
        ),
        {(f"{D}.attributes[a/b]", REQUIRED)},
    ),
    "a node resource of nothing": (
        device(nodeAllocatableResources={"cpu": {}}),
        {(f"{D}.nodeAllocatableResources[cpu]", REQUIRED)},
    ),
    "a node resource of another kind": (
        device(nodeAllocatableResources={"storage": {"overhead": {"perPod": "1"}}}),
        {(f"{D}.nodeAllocatableResources[storage]", INVALID)},
    ),
    "a capacity that is not there": (
        device(
            nodeAllocatableResources={
                "cpu": {"mapping": {"capacityKey": "c", "capacityMultiplier": "1"}}
            }
        ),
        {(f"{D}.nodeAllocatableResources[cpu].mapping.capacityKey", NOT_FOUND)},
    ),
    "both multipliers and no key": (
        device(
            nodeAllocatableResources={
                "cpu": {"mapping": {"capacityMultiplier": "1", "deviceMultiplier": "0"}}
            }
        ),
        {
            (f"{D}.nodeAllocatableResources[cpu].mapping.capacityKey", REQUIRED),
            (f"{D}.nodeAllocatableResources[cpu].mapping.deviceMultiplier", INVALID),
        },
    ),
    "an overhead below 0": (
        device(nodeAllocatableResources={"cpu": {"overhead": {"perPod": "-1"}}}),
        {(f"{D}.nodeAllocatableResources[cpu].overhead.perPod", INVALID)},
    ),
}


@pytest.mark.parametrize("name", VALID)
def test_accepted(name: str) -> None:
    assert validate_create(VALID[name], ON_37) == []


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    obj, expected = WRONG[name]
    before = copy.deepcopy(obj)
    assert found(validate_create(obj, ON_37)) == expected
    assert obj == before, "the object is left as it was"


@pytest.mark.parametrize("minor", GATES)
def test_the_generator_makes_valid_slices(minor: int) -> None:
    every = Server(minor, dict.fromkeys(GATES[minor], True))
    for seed in range(200):
        made = slice_objects.valid_slice(random.Random(seed), minor)
        assert validate_create(made, every) == [], seed


# -- versions


def test_1_36_blames_the_bound_for_the_default() -> None:
    below = policy(default="1", validRange={"min": "2"})
    assert found(validate_create(below, ON_36)) == {(f"{P}.validRange.min", INVALID)}


def test_1_36_maps_node_resources_in_its_own_way() -> None:
    def mapped(key: str, **mapping: str) -> set[tuple[str, ErrorType]]:
        made = device(
            capacity={"c": {"value": "1"}}, nodeAllocatableResourceMappings={key: mapping}
        )
        return found(validate_create(made, ON_36))

    path = f"{D}.nodeAllocatableResourceMappings"
    assert mapped("storage") == set(), "allocationMultiplier is 1 unless said otherwise"
    assert mapped("example.com/x") == {(f"{path}[example.com/x]", INVALID)}
    zero = mapped("cpu", allocationMultiplier="0", capacityKey="d")
    assert zero == {
        (f"{path}[cpu].allocationMultiplier", INVALID),
        (f"{path}[cpu].capacityKey", NOT_FOUND),
    }


def test_1_36_knows_no_fields_of_1_37() -> None:
    made = slice_(skipNodeOperations=["x"], partitionTypeAttribute="")
    assert validate_create(made, ON_36) == []
    assert validate_create(device(nodeAllocatableResources={"x": {}}), ON_36) == []


# -- updates


def test_immutable_fields() -> None:
    other = {"name": "q", "generation": 1, "resourceSliceCount": 1}
    changed = slice_(driver="e", pool=other, nodeName="m")
    assert found(validate_update(changed, slice_(), ON_37)) == {
        ("spec.driver", INVALID),
        ("spec.pool.name", INVALID),
        ("spec.nodeName", INVALID),
    }
    assert validate_update(on_nodes(allNodes=True), selector({}), ON_37) == []


def test_unchanged_taints_are_not_looked_at_again() -> None:
    old = device(taints=taints(1, key=""))
    assert validate_update(device(taints=taints(1, key=""), bindsToNode=True), old, ON_37) == []
    assert found(validate_update(device(taints=taints(1, key="", value="v")), old, ON_37)) == {
        (f"{D}.taints[0].key", INVALID)
    }


def test_an_unknown_effect_is_looked_at_again_by_1_37_if_any_device_changes() -> None:
    old = device(taints=taints(1, effect="x"))
    new = device(taints=taints(1, effect="x"), bindsToNode=True)
    assert validate_update(new, old, ON_36) == []
    assert found(validate_update(new, old, ON_37)) == {(f"{D}.taints[0].effect", NOT_SUPPORTED)}
    assert validate_update(copy.deepcopy(old), old, ON_37) == []


def test_unchanged_capacity_is_looked_at_again_by_1_36_only() -> None:
    old, new = policy(validValues=["1"]), policy(validValues=["1000m"])
    assert validate_update(new, old, ON_37) == [], "the same amounts"
    assert found(validate_update(new, old, ON_36)) == {(f"{P}.default", REQUIRED)}


def test_a_stored_unknown_operation_stays() -> None:
    old = slice_(skipNodeOperations=["x"])
    new = slice_(skipNodeOperations=["x", "NodeUnprepareResources", "y"])
    assert found(validate_update(new, old, ON_37)) == {
        ("spec.skipNodeOperations[2]", NOT_SUPPORTED)
    }


def test_a_partition_type_cannot_change_while_its_gate_is_off() -> None:
    consuming = [
        {
            "name": "d",
            "consumesCounters": [consumption()],
            "attributes": {"b": {"string": "x"}, "c": {"string": "x"}},
        }
    ]

    def typed(name: str) -> JSON:
        return slice_(driver="a", partitionTypeAttribute=name, devices=consuming)

    off = server("1.37")
    assert validate_update(typed("a/b"), typed("a/b"), off) == []
    assert found(validate_update(typed("a/c"), typed("a/b"), off)) == {
        ("spec.partitionTypeAttribute", FORBIDDEN)
    }


# -- gates and stored form


@pytest.mark.parametrize("gated", GATED, ids=lambda g: "+".join(g.gates))
def test_each_gate_drops_its_fields_unless_they_are_in_use(gated: Any) -> None:
    values: JSON = {
        "taints": taints(1),
        "sharedCounters": [{"name": "s", "counters": counters(1)}],
        "perDeviceNodeSelection": True,
        "consumesCounters": [consumption(compatibilityGroups=["g"])],
        "compatibilityGroups": ["g"],
        "bindingConditions": ["a"],
        "bindingFailureConditions": ["b"],
        "requestPolicy": {"default": "1"},
        "nodeAllocatableResources": {"cpu": {"overhead": {"perPod": "1"}}},
        "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "2"}},
        "bools": [True],
        "ints": [1],
        "strings": ["a"],
        "versions": ["1.0.0"],
        "partitionTypeAttribute": "a/b",
        "skipNodeOperations": ["*"],
        "nodeName": "n",
        "nodeSelector": {"nodeSelectorTerms": [{}]},
    }
    for field in gated.fields:
        *_, name = field.split(".")
        made, seen = _with(field, values.get(name, True)), 0
        for minor in GATES:
            every = Server(minor, dict.fromkeys(GATES[minor], True))
            if name not in _inside(drop_disabled(made, None, every)["spec"], field):
                continue  # a version that does not know the field
            seen += 1
            off = Server(minor, {**every.gates, gated.gates[-1]: False})
            assert name not in _inside(drop_disabled(made, None, off)["spec"], field), field
            assert name in _inside(drop_disabled(made, made, off)["spec"], field), field
        assert seen, field


def _with(field: str, value: Any) -> JSON:
    made = device(attributes={"a": {}}, capacity={"c": {"value": "1"}})
    spec, target = made["spec"], made["spec"]["devices"][0]
    *steps, name = field.split(".")
    if not steps:
        spec[name] = value
    elif len(steps) == 1:
        target[name] = value
    elif steps[1] == "consumesCounters[]":
        target["consumesCounters"] = [consumption(**{name: value})]
    else:
        (holder,) = target[steps[1][:-2]].values()
        holder[name] = value
    return made


def _inside(spec: JSON, field: str) -> JSON:
    *steps, _ = field.split(".")
    here: Any = spec
    for step in steps:
        here = here[step[:-2]]
        here = next(iter(here.values() if isinstance(here, dict) else here))
    assert isinstance(here, dict)
    return here


def test_the_stored_form() -> None:
    made = device(
        unknown=1,
        attributes={},
        taints=[{"key": "k", "value": "", "effect": "None"}],
        capacity={"c": {"value": "1024Mi"}, "d": {"value": 5}, "e": {}},
    )
    made["spec"]["devices"][0]["taints"].append(
        {"key": "k", "effect": "None", "timeAdded": "2026-01-31T12:00:00.7+01:00"}
    )
    stored = drop_disabled(made, None, ON_37, now="2026-11-30T00:00:00Z")["spec"]["devices"]
    assert stored == [
        {
            "name": "d",
            "capacity": {"c": {"value": "1Gi"}, "d": {"value": "5"}, "e": {"value": "0"}},
            "taints": [
                {"key": "k", "effect": "None", "timeAdded": "2026-11-30T00:00:00Z"},
                {"key": "k", "effect": "None", "timeAdded": "2026-01-31T11:00:00Z"},
            ],
        }
    ]


@pytest.mark.parametrize(
    ("obj", "where"),
    [
        (slice_(devices={}), "spec.devices"),
        (slice_(allNodes="yes"), "spec.allNodes"),
        (slice_(pool={"name": 5}), "spec.pool.name"),
        (slice_(pool={"generation": 2**63}), "spec.pool.generation"),
        (device(capacity={"c": {"value": "lots"}}), "spec.devices[0].capacity[c].value"),
        (device(taints=taints(1, timeAdded="now")), "spec.devices[0].taints[0].timeAdded"),
    ],
)
def test_json_of_the_wrong_type(obj: JSON, where: str) -> None:
    with pytest.raises(InvalidObject, match=r"write|is not valid") as caught:
        validate_create(obj, ON_37)
    assert str(caught.value).startswith(f"{where}: ")


def test_a_dropped_field_may_be_wrong() -> None:
    off = Server(37, {"DRADeviceTaints": False})
    assert validate_create(device(taints=taints(17)), off) == []


def test_sentences_say_value_limit_and_fix() -> None:
    (problem,) = validate_create(many(65, taints=taints(1)), ON_37)
    assert str(problem) == "spec.devices: has 65 items, at most 64 are allowed"
    (problem,) = validate_create(policy(shared=None, default="1"), ON_37)
    assert "set it or remove the policy" in problem.detail

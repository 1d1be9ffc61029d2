"""Random ResourceSlices: valid ones of many kinds, and each exactly one change away from one.

All of it follows from a ``random.Random``: the same seed gives the same objects. Every change has a
name, so that a failing test can say how to get its object again.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dra_core.quantity import Quantity

JSON = dict[str, Any]
Change = Callable[[random.Random, JSON], str | None]

DRIVER = "gpu.example.com"
#: Nodes that valid slices are for.
NODES = ("verdict-1", "verdict-2")
QUANTITIES = (
    *("0", "1", "2", "3", "4", "5", "8", "10", "12", "16", "20", "100", "1k", "1Ki", "10Gi"),
    *("80Gi", "1024Mi", "1.5", "500m", "1.0", "1000m", "250m", "0.5Gi", "1e3", "12E", "100n"),
    *("0.0001", "2.50", "1Mi", "1536Mi", "-1", "-500m", "7", "6"),
)
#: Without those that servers misread inside a policy: fractions below 0 and, on 1.36, more than 64
#: bits (the result depends on how the number was parsed).
PLAIN_QUANTITIES = tuple(q for q in QUANTITIES if q not in {"-500m", "12E"})
LABELS = ("a", "0", "gpu-0", "a" * 63, "a" * 64, "", "A", "a.b", "-a", "a-", "a_b", "ä")
SUBDOMAINS = ("n", "node-1.example", "a" * 253, "a" * 254, "", "A", "a..b", ".a", "a/b", "a_b")
DRIVERS = ("d", "Gpu.Example.com", "a" * 63, "a" * 64, "", "a..b", "-x", "x/y", "a b", "é.com")
POOLS = ("p", "a/b/c.d", "a" * 253, "a" * 254, f"{'a' * 200}/{'b' * 60}", "", "a//b", "/a", "A")
LABEL_KEYS = (
    *("k", "example.com/k", "K_k.k", "a" * 63, f"{'a' * 253}/{'k' * 63}"),
    *("", "a" * 64, "/k", "a/", "a/b/c", "Ex.com/k", "-k", "k k"),
)
LABEL_VALUES = ("", "v", "V.v_v-1", "v" * 63, "v" * 64, "-v", "v v", "v/")
EFFECTS = ("NoSchedule", "NoExecute", "None", "", "noschedule", "PreferNoSchedule")
TIMES = ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00+01:00", "1999-12-31T23:59:59.5Z", None)
VERSIONS = (
    *("1.2.3", "0.0.0", "1.0.0-alpha.1+b.001", "1.0.0--", "1.2.3-0a", f"1.0.0-{'a' * 58}"),
    *("", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", f"1.0.0-{'a' * 59}"),
)
STRINGS = ("", "x", "x" * 64, "x" * 65, "ä" * 32, "ä" * 33, "a b\n")
QUALIFIED = (
    *("model", "_x", "example.com/model", "Ex.com/m", "a" * 32, f"{'d' * 63}/{'m' * 32}"),
    *("a/b/c", "", "1a", "a-b", "a" * 33, "a" * 100, "/a", "a/", f"{'d' * 64}/a", "a b/c"),
)
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "in", "Equals")
VALUES: tuple[list[str], ...] = ([], ["a"], ["1"], ["a", "b"], ["-a"], ["a" * 64], [""], ["1", "2"])
SKIPPED: tuple[list[str], ...] = (
    *(["*"], ["NodePrepareResources", "NodeUnprepareResources"], ["NodeUnprepareResources"]),
    *(["NodePrepareResources", "*"], ["*", "*"], ["NodePrepareResources"], ["Nothing"], [], [""]),
)
FINALIZERS = (
    *(["example.com/f"], ["orphan"], ["kubernetes"], ["foregroundDeletion"], ["example.com/F_1"]),
    *(["f"], ["a b"], ["orphan", "foregroundDeletion"], ["a/b/c"], [""], ["/x"]),
)
INTS = (0, 1, -1, 2, 2**31, 2**63 - 1, -(2**63))


@dataclass(frozen=True, slots=True)
class Changed:
    """An object and the name of the change that made it."""

    obj: JSON
    change: str


# -- valid slices


def valid_slice(rng: random.Random, minor: int, name: str = "s") -> JSON:
    """A slice that a server of that minor version takes with all gates on."""
    spec: JSON = {"driver": DRIVER, "pool": _pool(rng)}
    place = rng.choice(["nodeName", "nodeName", "nodeSelector", "allNodes", "perDevice"])
    if place == "nodeName":
        spec["nodeName"] = NODES[0]
    elif place == "nodeSelector":
        spec["nodeSelector"] = _selector(rng)
    elif place == "allNodes":
        spec["allNodes"] = True
    else:
        spec["perDeviceNodeSelection"] = True
    if rng.random() < 0.15:
        spec["sharedCounters"] = [_counter_set(rng, f"set-{i}") for i in range(rng.randint(1, 3))]
    else:
        count = rng.choice([0, 1, 1, 2, 3])
        spec["devices"] = [_device(rng, minor, i, place == "perDevice") for i in range(count)]
    if minor >= 37 and rng.random() < 0.15:
        spec["skipNodeOperations"] = list(rng.choice(SKIPPED[:3]))
    if minor >= 37 and rng.random() < 0.3:
        _typed_partitions(rng, spec)
    metadata: JSON = {"name": name}
    if rng.random() < 0.1:
        metadata |= {"labels": {"k": "v"}, "annotations": {"Example.com/k": "any thing"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": metadata,
        "spec": spec,
    }


def _pool(rng: random.Random) -> JSON:
    return {
        "name": rng.choice(["pool", "rack-1/pool", "node-1.example"]),
        "generation": rng.choice([0, 1, 7]),
        "resourceSliceCount": rng.choice([1, 2, 100]),
    }


def _selector(rng: random.Random) -> JSON:
    term: JSON = {}
    if rng.random() < 0.8:
        term["matchExpressions"] = [_expression(rng) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.35:
        term["matchFields"] = [
            {"key": "metadata.name", "operator": rng.choice(["In", "NotIn"]), "values": [NODES[0]]}
        ]
    return {"nodeSelectorTerms": [term]}


def _expression(rng: random.Random) -> JSON:
    operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    made: JSON = {"key": rng.choice(["zone", "example.com/rack"]), "operator": operator}
    if operator in {"In", "NotIn"}:
        made["values"] = ["a", "b"]
    elif operator in {"Gt", "Lt"}:
        made["values"] = ["5"]
    return made


def _counter_set(rng: random.Random, name: str) -> JSON:
    return {"name": name, "counters": _counters(rng)}


def _counters(rng: random.Random) -> JSON:
    return {f"c-{i}": {"value": rng.choice(QUANTITIES[:17])} for i in range(rng.randint(1, 3))}


def _device(rng: random.Random, minor: int, index: int, placed: bool) -> JSON:
    made: JSON = {"name": f"gpu-{index}"}
    if placed:
        made |= rng.choice(
            [{"nodeName": NODES[1]}, {"allNodes": True}, {"nodeSelector": _selector(rng)}]
        )
    parts: list[tuple[float, Callable[[random.Random, JSON, int], None]]] = [
        (0.7, _add_attributes),
        (0.6, _add_capacity),
        (0.25, _add_taints),
        (0.25, _add_consumption),
        (0.2, _add_conditions),
        (0.25, _add_node_resources),
    ]
    for chance, add in parts:
        if rng.random() < chance:
            add(rng, made, minor)
    return made


def _add_attributes(rng: random.Random, device: JSON, minor: int) -> None:
    choices: list[JSON] = [
        {"int": rng.choice(INTS)},
        {"bool": rng.random() < 0.5},
        {"string": rng.choice(STRINGS[:3])},
        {"version": rng.choice(VERSIONS[:6])},
    ]
    lists: list[JSON] = [
        {"ints": [1, 2]},
        {"bools": [True, False]},
        {"strings": ["a", "a"]},
        {"versions": ["1.0.0"]},
    ]
    attributes = {
        f"a{i}": rng.choice(lists if rng.random() < 0.06 else choices)
        for i in range(rng.randint(1, 4))
    }
    device["attributes"] = copy.deepcopy(attributes)


def _add_capacity(rng: random.Random, device: JSON, minor: int) -> None:
    capacity: JSON = {"memory": {"value": rng.choice(QUANTITIES[:17])}}
    if rng.random() < 0.5:
        device["allowMultipleAllocations"] = True
        capacity["shares"] = {"value": "20", "requestPolicy": valid_policy(rng, minor)}
    device["capacity"] = capacity


def valid_policy(rng: random.Random, minor: int) -> JSON:
    """A policy that fits a capacity of 20."""
    policies: list[JSON] = [
        {},
        {"default": "5"},
        {"default": "5", "validValues": ["1", "5", "10", "20"]},
        {"default": "1", "validValues": ["1"]},
        {"default": "4", "validRange": {"min": "2"}},
        {"default": "4", "validRange": {"min": "2", "max": "20", "step": "2"}},
        {"default": "2", "validRange": {"min": "2", "max": "2"}},
        {"default": "1", "validRange": {"min": "1", "step": "1"}},
        {"default": "1500m", "validRange": {"min": "0.5", "max": "10.5"}},
    ]
    if minor >= 37:
        policies.append(
            {"default": "1500m", "validRange": {"min": "0.5", "max": "10.5", "step": "500m"}}
        )
    return copy.deepcopy(rng.choice(policies))


def _add_taints(rng: random.Random, device: JSON, minor: int) -> None:
    device["taints"] = [
        {"key": f"example.com/k{i}", "value": "v", "effect": rng.choice(EFFECTS[:3])}
        for i in range(rng.randint(1, 2))
    ]
    for taint in device["taints"]:
        if rng.random() < 0.5:
            taint["timeAdded"] = rng.choice(TIMES[:2])


def _add_consumption(rng: random.Random, device: JSON, minor: int) -> None:
    device["consumesCounters"] = [
        {"counterSet": f"set-{i}", "counters": _counters(rng)} for i in range(rng.randint(1, 2))
    ]
    if rng.random() < 0.35:
        device["consumesCounters"][0]["compatibilityGroups"] = ["g-1", "g-2"]


def _add_conditions(rng: random.Random, device: JSON, minor: int) -> None:
    device["bindingConditions"] = ["example.com/ready", "attached"]
    device["bindingFailureConditions"] = ["example.com/failed"]
    if rng.random() < 0.5:
        device["bindsToNode"] = rng.random() < 0.5


def _add_node_resources(rng: random.Random, device: JSON, minor: int) -> None:
    device.setdefault("capacity", {})["cores"] = {"value": "8"}
    if minor < 37:
        device["nodeAllocatableResourceMappings"] = copy.deepcopy(
            {
                "cpu": rng.choice([{"capacityKey": "cores"}, {"allocationMultiplier": "2"}]),
                "memory": {"capacityKey": "cores", "allocationMultiplier": "1Gi"},
            }
        )
        return
    per_core = {"capacityKey": "cores", "capacityMultiplier": "1.5"}
    device["nodeAllocatableResources"] = copy.deepcopy(
        {
            "cpu": {"mapping": rng.choice([per_core, {"deviceMultiplier": "2"}])},
            rng.choice(["memory", "hugepages-2Mi"]): {"overhead": {"perPod": "1Gi"}},
        }
    )


def _typed_partitions(rng: random.Random, spec: JSON) -> None:
    consuming = [d for d in spec.get("devices", []) if d.get("consumesCounters")]
    if not consuming:
        return
    spec["partitionTypeAttribute"] = f"{DRIVER}/profile"
    for device in consuming:
        key = rng.choice(["profile", f"{DRIVER}/profile"])
        device.setdefault("attributes", {})[key] = {"string": "1g.5gb"}


# -- one change


def _pick(rng: random.Random, items: Any) -> Any:
    return copy.deepcopy(rng.choice(list(items)))


def _devices(obj: JSON) -> list[JSON]:
    """The devices, without what an earlier change made null."""
    return [device for device in obj["spec"].get("devices") or [] if device]


def _some_device(rng: random.Random, obj: JSON) -> JSON | None:
    devices = _devices(obj)
    return rng.choice(devices) if devices else None


def _map(device: JSON, field: str) -> JSON:
    """A map of the device, made if it is not there."""
    device[field] = device.get(field) or {}
    made: JSON = device[field]
    return made


def _setting(get: Callable[[random.Random, JSON], JSON | None], field: str, values: Any) -> Change:
    """A change that gives one field a value from a list."""

    def change(rng: random.Random, obj: JSON) -> str | None:
        holder = get(rng, obj)
        if holder is None:
            return None
        value = _pick(rng, values if rng.random() < 0.4 else values[:3])
        holder[field] = value
        return f"{field}={_shown(value)}"

    return change


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:40]}...({len(text)})"


def _part(*path: str) -> Callable[[random.Random, JSON], JSON | None]:
    """Something inside a random device; lists and maps are stepped into at random."""

    def get(rng: random.Random, obj: JSON) -> JSON | None:
        here: Any = _some_device(rng, obj)
        for step in path:
            here = here.get(step) if here else None
            if isinstance(here, list) and here:
                here = rng.choice(here)
            elif isinstance(here, dict) and step in _MAPS and here:
                here = here[rng.choice(sorted(here))]
        return here if isinstance(here, dict) and here else None

    return get


_MAPS = (
    *("attributes", "capacity", "counters"),
    *("nodeAllocatableResources", "nodeAllocatableResourceMappings"),
)


def _spec_of(rng: random.Random, obj: JSON) -> JSON:
    spec: JSON = obj["spec"]
    return spec


def _pool_of(rng: random.Random, obj: JSON) -> JSON | None:
    pool: JSON | None = obj["spec"].get("pool")
    return pool


def _metadata_of(rng: random.Random, obj: JSON) -> JSON:
    metadata: JSON = obj["metadata"]
    return metadata


def _selector_of(rng: random.Random, obj: JSON) -> JSON | None:
    holders = [obj["spec"], *_devices(obj)]
    found = [h["nodeSelector"] for h in holders if h.get("nodeSelector")]
    return rng.choice(found) if found else None


def _requirement_of(kind: str) -> Callable[[random.Random, JSON], JSON | None]:
    def get(rng: random.Random, obj: JSON) -> JSON | None:
        selector = _selector_of(rng, obj)
        terms = selector.get("nodeSelectorTerms") if selector else None
        found = terms[0].get(kind) if terms and terms[0] else None
        chosen: JSON | None = rng.choice(found) if found else None
        return chosen

    return get


def _counter_set_of(rng: random.Random, obj: JSON) -> JSON | None:
    found = list(obj["spec"].get("sharedCounters") or [])
    found += [c for d in _devices(obj) for c in d.get("consumesCounters") or []]
    found = [item for item in found if item]
    return rng.choice(found) if found else None


def _remove(rng: random.Random, obj: JSON) -> str:
    holder, path, key = rng.choice(_places(obj["spec"], "spec"))
    del holder[key]
    return f"remove {path}"


def _null(rng: random.Random, obj: JSON) -> str:
    holder, path, key = rng.choice(_places(obj["spec"], "spec"))
    holder[key] = None
    return f"null {path}"


def _empty(rng: random.Random, obj: JSON) -> str | None:
    places = [p for p in _places(obj["spec"], "spec") if isinstance(p[0][p[2]], str | list | dict)]
    holder, path, key = rng.choice(places)
    value = holder[key]
    if isinstance(value, str):
        if _is_quantity_place(path):
            return None
        holder[key] = ""
    else:
        holder[key] = type(value)()
    return f"empty {path}"


def _wrong_type(rng: random.Random, obj: JSON) -> str | None:
    """A value of another JSON type, which the server cannot read or, for quantities, can."""
    holder, path, key = rng.choice(_places(obj["spec"], "spec"))
    value = _pick(rng, [5, -1, "x", "5", True, [], {}, ["x"], {"x": 1}, 2**63, "2026-01-31"])
    if type(value) is type(holder[key]):
        return None
    holder[key] = value
    return f"{path} = {value!r}"


def _unknown(rng: random.Random, obj: JSON) -> str:
    places = [p for p in _places(obj["spec"], "spec") if isinstance(p[0], dict)]
    holder, path, _ = rng.choice(places)
    if path.rpartition(".")[0].rpartition(".")[2] in _MAPS:
        holder = obj["spec"]
    holder["unknownField"] = {"x": 1}
    return f"unknown field beside {path}"


_QUANTITY_ENDS = (
    *(".value", ".default", ".min", ".max", ".step", "Multiplier", ".perPod", ".perContainer"),
)


def _is_quantity_place(path: str) -> bool:
    named = path.endswith(_QUANTITY_ENDS) and "taints" not in path
    return named or path.endswith(".timeAdded") or "validValues" in path


def _places(value: Any, path: str) -> list[tuple[Any, str, Any]]:
    """Every value inside, with its holder and key."""
    found: list[tuple[Any, str, Any]] = []
    items = enumerate(value) if isinstance(value, list) else value.items()
    for key, inner in items:
        where = f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}"
        found.append((value, where, key))
        if isinstance(inner, list | dict):
            found += _places(inner, where)
    return found


def _duplicate(rng: random.Random, obj: JSON) -> str | None:
    lists = [p for p in _places(obj["spec"], "spec") if isinstance(p[0][p[2]], list)]
    lists = [p for p in lists if p[0][p[2]]]
    if not lists:
        return None
    holder, path, key = rng.choice(lists)
    holder[key].append(_pick(rng, holder[key]))
    return f"duplicate an item of {path}"


def _many_devices(rng: random.Random, obj: JSON) -> str | None:
    devices = obj["spec"].get("devices")
    if not devices:
        return None
    count = rng.choice([64, 64, 65, 128, 129])
    extra: JSON = {"nodeName": "n"} if obj["spec"].get("perDeviceNodeSelection") else {}
    devices[1:] = [{"name": f"x-{i}", **extra} for i in range(count - 1)]
    kind = rng.choice(["taints", "attributes", "consumesCounters", "bad", "none", "none"])
    given: JSON = {
        "taints": [{"key": "k", "effect": rng.choice(["None", "", "Bad"])}],
        "attributes": {"l": {"ints": [1]}},
        "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}],
        "bad": {},
        "none": {},
    }
    if kind in {"taints", "attributes", "consumesCounters"}:
        devices[-1][kind] = given[kind]
    if kind == "bad":
        devices[-1]["attributes"] = {"m": {}}
    return f"{count} devices, the last with {kind}"


def _many_entries(rng: random.Random, obj: JSON) -> str | None:
    device = _some_device(rng, obj)
    if device is None:
        return None
    attributes = rng.randint(0, 33)
    total = rng.choice([31, 32, 32, 33])
    device.pop("nodeAllocatableResources", None)
    device.pop("nodeAllocatableResourceMappings", None)
    device["attributes"] = {f"m{i}": {"int": i} for i in range(min(attributes, total))}
    device["capacity"] = {f"q{i}": {"value": "1"} for i in range(max(0, total - attributes))}
    return f"{total} attributes and capacities, {attributes} of them attributes"


def _many_values(rng: random.Random, obj: JSON) -> str | None:
    device = _some_device(rng, obj)
    if device is None:
        return None
    count = rng.choice([47, 48, 48, 49])
    first = rng.randint(1, 40)
    device["attributes"] = {"m": {"ints": list(range(first))}}
    device["attributes"]["n"] = {"strings": ["x"] * (count - first)}
    return f"{count} attribute values"


def _attribute(rng: random.Random, obj: JSON) -> str | None:
    device = _some_device(rng, obj)
    if device is None:
        return None
    key = _pick(rng, QUALIFIED) if rng.random() < 0.5 else "m"
    kinds: list[JSON] = [
        *({"string": s} for s in STRINGS),
        *({"version": v} for v in VERSIONS),
        *({"versions": [v, "1.0.0"]} for v in VERSIONS),
        *({"strings": ["a", s]} for s in STRINGS),
        *({"int": i} for i in INTS),
        *({kind: []} for kind in ("ints", "bools", "strings", "versions")),
        {},
        {"int": 1, "bool": True},
        {"int": 1, "ints": []},
        {"ints": [], "bools": []},
        {"int": None, "string": "x"},
    ]
    value = _pick(rng, kinds) if key == "m" or rng.random() < 0.3 else {"int": 1}
    _map(device, "attributes")[key] = value
    return f"attribute {_shown(key)}: {_shown(value)}"


def _capacity(rng: random.Random, obj: JSON) -> str | None:
    device = _some_device(rng, obj)
    if device is None:
        return None
    key = _pick(rng, QUALIFIED if rng.random() < 0.6 else QUALIFIED[:6])
    value: JSON = {"value": _pick(rng, QUANTITIES)}
    _map(device, "capacity")[key] = value
    return f"capacity {_shown(key)}: {value}"


def _policy(rng: random.Random, obj: JSON) -> str | None:
    device = _some_device(rng, obj)
    if device is None:
        return None
    device["allowMultipleAllocations"] = rng.choice([True, True, True, True, False, None])
    if rng.random() < 0.25:
        policy = valid_policy(rng, 36)
        _map(device, "capacity")["shares"] = {"value": "20", "requestPolicy": policy}
        return f"policy of 20, shared {device['allowMultipleAllocations']}: {policy}"
    policy = {}
    if rng.random() < 0.9:
        policy["default"] = _pick(rng, PLAIN_QUANTITIES)
    if rng.random() < 0.5:
        count = rng.choice([0, 1, 2, 3, 10, 11])
        values = [str(i + 1) for i in range(count)] if count > 3 else []
        listed = sorted((_pick(rng, PLAIN_QUANTITIES) for _ in range(count)), key=_size)
        if rng.random() < 0.3:
            rng.shuffle(listed)
        policy["validValues"] = values or listed
        if values or (listed and rng.random() < 0.6):
            policy["default"] = policy["validValues"][0]
    if not policy.get("validValues") or rng.random() < 0.1:
        limits = {
            k: _pick(rng, PLAIN_QUANTITIES) for k in ("min", "max", "step") if rng.random() < 0.7
        }
        if _size(limits.get("step", "1")) <= 0:
            limits["step"] = rng.choice(["1", "12E"])
        policy["validRange"] = limits
        if rng.random() < 0.5 and "min" in limits:
            policy["default"] = limits["min"]
    total = rng.choice(["20", "10Gi", "80Gi", "12E", *PLAIN_QUANTITIES])
    _map(device, "capacity")["shares"] = {"value": total, "requestPolicy": policy}
    return f"policy of {total}, shared {device['allowMultipleAllocations']}: {policy}"


def _size(quantity: str) -> int:
    return Quantity.parse(quantity).nanos


def _zero_step(rng: random.Random, obj: JSON) -> str | None:
    """Steps that 1.36 cannot stand; used for 1.37 only."""
    device = _some_device(rng, obj)
    if device is None:
        return None
    device["allowMultipleAllocations"] = True
    limits = {"min": _pick(rng, ["0", "1", "-1"]), "step": _pick(rng, ["0", "-1", "0.0", "-1m"])}
    policy = {"default": _pick(rng, ["1", "-1", "500m"]), "validRange": limits}
    _map(device, "capacity")["shares"] = {"value": "20", "requestPolicy": policy}
    return f"policy {policy}"


def _many_taints(rng: random.Random, obj: JSON) -> str | None:
    device = _some_device(rng, obj)
    if device is None:
        return None
    count, last = rng.choice([16, 16, 17]), rng.choice(["None", "None", "None", "", "Bad"])
    device["taints"] = [{"key": "k", "effect": "None"} for _ in range(count - 1)]
    device["taints"].append({"key": "k", "effect": last})
    return f"{count} taints, the last {last!r}"


def _conditions(rng: random.Random, obj: JSON) -> str | None:
    device = _some_device(rng, obj)
    if device is None:
        return None
    names = ["a", "b", "c", "d", "e", "f", "g", "h", *LABEL_KEYS]
    for field, first in (("bindingConditions", 0), ("bindingFailureConditions", 1)):
        count = rng.choice([0, 1, 2, 3, 4, 4, 5])
        source = names if rng.random() < 0.3 else names[:8]
        device[field] = [source[(first + 2 * i) % len(source)] for i in range(count)]
        if rng.random() < 0.1:
            device[field] = [rng.choice(source) for _ in range(count)]
    return f"{device['bindingConditions']} {device['bindingFailureConditions']}"[:120]


def _counter_names(rng: random.Random, obj: JSON) -> str | None:
    holder = _counter_set_of(rng, obj)
    if holder is None:
        return None
    count = rng.choice([1, 31, 32, 32, 33])
    holder["counters"] = {f"n-{i}": {"value": "1"} for i in range(count - 1)}
    holder["counters"][rng.choice(LABELS if rng.random() < 0.6 else LABELS[:4])] = {
        "value": _pick(rng, QUANTITIES)
    }
    return f"{count} counters, the last {_shown(list(holder['counters'])[-1])}"


def _counter_sets(rng: random.Random, obj: JSON) -> str:
    count = rng.choice([1, 7, 8, 9])
    spec = obj["spec"]
    if rng.random() < 0.8:
        spec.pop("devices", None)
    spec["sharedCounters"] = [_counter_set(rng, f"s-{i}") for i in range(count)]
    if rng.random() < 0.3:
        spec["sharedCounters"][-1]["name"] = _pick(rng, [*LABELS, "s-0"])
    return f"{count} counter sets, devices {'devices' in spec}"


def _consumptions(rng: random.Random, obj: JSON) -> str | None:
    device = _some_device(rng, obj)
    if device is None:
        return None
    count = rng.choice([1, 2, 3])
    device["consumesCounters"] = [_counter_set(rng, "") for _ in range(count)]
    for i, consumption in enumerate(device["consumesCounters"]):
        consumption["counterSet"] = rng.choice(
            ["s-0", *LABELS] if rng.random() < 0.3 else [f"s-{i}"]
        )
        del consumption["name"]
    return f"{count} consumptions"


def _groups(rng: random.Random, obj: JSON) -> str | None:
    device = _some_device(rng, obj)
    if device is None or not device.get("consumesCounters"):
        return None
    source = ["g", "h", *LABELS] if rng.random() < 0.4 else ["g", "h", "i"]
    groups = [_pick(rng, source) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    device["consumesCounters"][0]["compatibilityGroups"] = groups
    return f"groups {_shown(groups)}"


def _terms(rng: random.Random, obj: JSON) -> str | None:
    selector = _selector_of(rng, obj)
    if selector is None:
        return None
    count = rng.choice([0, 1, 2])
    selector["nodeSelectorTerms"] = [{"matchExpressions": [_expression(rng)]} for _ in range(count)]
    return f"{count} terms"


def _place(rng: random.Random, obj: JSON) -> str:
    """Another way, a second way or no way to say on which nodes."""
    holder = obj["spec"] if rng.random() < 0.6 else (_some_device(rng, obj) or obj["spec"])
    ways: JSON = {
        "nodeName": _pick(rng, SUBDOMAINS if rng.random() < 0.5 else SUBDOMAINS[:3]),
        "allNodes": _pick(rng, [True, True, False]),
        "nodeSelector": _selector(rng),
        "perDeviceNodeSelection": _pick(rng, [True, True, False]),
    }
    way = rng.choice(list(ways))
    if rng.random() < 0.7:
        for other in ways:
            holder.pop(other, None)
    holder[way] = ways[way]
    return f"{way}={_shown(ways[way])}"


def _node_resource(rng: random.Random, obj: JSON) -> str | None:
    device = _some_device(rng, obj)
    if device is None:
        return None
    key = rng.choice(
        ["cpu", "memory", "hugepages-2Mi", "storage", "example.com/x", "hugepages-", ""]
    )
    keys = ["cores", "other", "", *(device.get("capacity") or {})]
    if rng.random() < 0.7:
        keys = keys[3:] or keys
    mapping = {
        "capacityKey": _pick(rng, keys),
        "capacityMultiplier": _pick(rng, QUANTITIES),
        "deviceMultiplier": _pick(rng, QUANTITIES),
    }
    chosen = rng.choice(
        [
            *(["capacityKey", "capacityMultiplier"], ["deviceMultiplier"], ["capacityKey"]),
            *(["capacityMultiplier"], [], list(mapping)),
        ]
    )
    overhead = {k: _pick(rng, QUANTITIES) for k in ("perPod", "perContainer") if rng.random() < 0.6}
    value: JSON = {"mapping": {k: mapping[k] for k in chosen}, "overhead": overhead}
    for part in ("mapping", "overhead"):
        if rng.random() < 0.4:
            del value[part]
    old: JSON = {
        "capacityKey": mapping["capacityKey"],
        "allocationMultiplier": _pick(rng, QUANTITIES),
    }
    for part in list(old):
        if rng.random() < 0.4:
            del old[part]
    _map(device, "nodeAllocatableResources")[key] = value
    _map(device, "nodeAllocatableResourceMappings")[key] = old
    return f"node resource {key}: {value} {old}"


def _partition_type(rng: random.Random, obj: JSON) -> str:
    spec = obj["spec"]
    name = rng.choice([f"{DRIVER}/profile", "Ex.com/profile", "example.com/p", *QUALIFIED])
    spec["partitionTypeAttribute"] = name
    for device in _devices(obj):
        if rng.random() < 0.7:
            key = rng.choice([name, name.removeprefix(f"{DRIVER}/")])
            _map(device, "attributes")[key] = rng.choice([{"string": "x"}, {"int": 1}])
    return f"partitionTypeAttribute={_shown(name)}"


#: Changes of the spec, by name, each as often as its number says.
SPEC_CHANGES: dict[str, tuple[int, Change]] = {
    "remove": (5, _remove),
    "null": (2, _null),
    "empty": (4, _empty),
    "unknown": (2, _unknown),
    "wrong type": (1, _wrong_type),
    "duplicate": (2, _duplicate),
    "driver": (2, _setting(_spec_of, "driver", DRIVERS)),
    "pool name": (2, _setting(_pool_of, "name", POOLS)),
    "generation": (2, _setting(_pool_of, "generation", INTS)),
    "slice count": (1, _setting(_pool_of, "resourceSliceCount", INTS)),
    "place": (5, _place),
    "terms": (2, _terms),
    "label operator": (2, _setting(_requirement_of("matchExpressions"), "operator", OPERATORS)),
    "label values": (2, _setting(_requirement_of("matchExpressions"), "values", VALUES)),
    "label key": (2, _setting(_requirement_of("matchExpressions"), "key", LABEL_KEYS)),
    "field operator": (1, _setting(_requirement_of("matchFields"), "operator", OPERATORS)),
    "field values": (1, _setting(_requirement_of("matchFields"), "values", VALUES)),
    "field key": (1, _setting(_requirement_of("matchFields"), "key", ["metadata.name", "x", ""])),
    "device name": (2, _setting(_part(), "name", LABELS)),
    "many devices": (3, _many_devices),
    "many entries": (2, _many_entries),
    "many values": (2, _many_values),
    "attribute": (6, _attribute),
    "capacity": (3, _capacity),
    "policy": (8, _policy),
    "taint key": (2, _setting(_part("taints"), "key", LABEL_KEYS)),
    "taint value": (2, _setting(_part("taints"), "value", LABEL_VALUES)),
    "taint effect": (2, _setting(_part("taints"), "effect", EFFECTS)),
    "taint time": (1, _setting(_part("taints"), "timeAdded", TIMES)),
    "many taints": (2, _many_taints),
    "conditions": (3, _conditions),
    "binds to node": (1, _setting(_part(), "bindsToNode", [True, False, None])),
    "shared": (2, _setting(_part(), "allowMultipleAllocations", [True, False, None])),
    "counter names": (3, _counter_names),
    "counter sets": (3, _counter_sets),
    "consumptions": (3, _consumptions),
    "groups": (3, _groups),
    "node resource": (5, _node_resource),
    "partition type": (3, _partition_type),
    "skipped": (2, _setting(_spec_of, "skipNodeOperations", SKIPPED)),
}

#: Changes of metadata: for creates only, and for both.
NAME_CHANGES: dict[str, tuple[int, Change]] = {
    "name": (2, _setting(_metadata_of, "name", SUBDOMAINS)),
    "generate name": (1, _setting(_metadata_of, "generateName", [*SUBDOMAINS, "a-", "a.", "-"])),
}
METADATA_CHANGES: dict[str, tuple[int, Change]] = {
    "labels": (2, _setting(_metadata_of, "labels", [{k: "v"} for k in LABEL_KEYS])),
    "label": (1, _setting(_metadata_of, "labels", [{"k": v} for v in LABEL_VALUES])),
    "annotations": (1, _setting(_metadata_of, "annotations", [{k: "v v"} for k in LABEL_KEYS])),
    "finalizers": (2, _setting(_metadata_of, "finalizers", FINALIZERS)),
    "owners": (
        2,
        _setting(
            _metadata_of,
            "ownerReferences",
            [
                [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
                [{"apiVersion": "", "kind": "", "name": "", "uid": ""}],
                [{"apiVersion": "a/b/c", "kind": "Node", "name": "n", "uid": "u"}],
                [{"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"}],
                [
                    {"apiVersion": "v1", "kind": "A", "name": n, "uid": "u", "controller": True}
                    for n in "ab"
                ],
            ],
        ),
    ),
}
#: What 1.36 answers with a panic.
CHANGES_37: dict[str, tuple[int, Change]] = {"zero step": (2, _zero_step)}


def changed(
    rng: random.Random, obj: JSON, minor: int, *, update: bool = False, stored: bool = False
) -> Changed:
    """A copy with exactly one change, picked at random among those that apply.

    Not those that an ``update`` of the object, or a ``stored`` one, cannot have.
    """
    catalogue = SPEC_CHANGES | METADATA_CHANGES
    if not update:
        catalogue = catalogue | NAME_CHANGES
    if stored:
        catalogue = {name: entry for name, entry in catalogue.items() if name != "wrong type"}
    if minor >= 37:
        catalogue = catalogue | CHANGES_37
    names, weights = list(catalogue), [weight for weight, _ in catalogue.values()]
    while True:
        (name,) = rng.choices(names, weights)
        result = copy.deepcopy(obj)
        detail = catalogue[name][1](rng, result)
        if detail is not None:
            return Changed(result, f"{name}: {detail}")


def random_create(seed: str, minor: int) -> Changed:
    """One object for a create, one change away from a valid one."""
    rng = random.Random(seed)
    return changed(rng, valid_slice(rng, minor), minor)


@dataclass(frozen=True, slots=True)
class Update:
    """An update: what is stored, what is to replace it, and how both came about."""

    old: JSON
    new: JSON
    change: str


def random_update(seed: str, minor: int) -> Update:
    """One update.

    Most of them are one change away from a valid stored object. In the others the stored object is
    already changed (so, perhaps, wrong by today's rules), and the update does something else or
    nothing: that shows what is looked at again.
    """
    rng = random.Random(seed)
    old = valid_slice(rng, minor)
    before = ""
    if rng.random() < 0.3:
        first = changed(rng, old, minor, update=True, stored=True)
        old, before = first.obj, f"stored {first.change}; then "
        old["metadata"] = {"name": "s"}
    _date_taints(old)
    new = copy.deepcopy(old)
    if rng.random() < (0.7 if before else 0.15):
        return Update(old, new, f"{before}{_harmless(rng, new)}")
    second = changed(rng, new, minor, update=True)
    return Update(old, second.obj, f"{before}{second.change}")


def _harmless(rng: random.Random, obj: JSON) -> str:
    kind = rng.choice(["nothing", "generation", "device", "attribute"])
    pool, devices = obj["spec"].get("pool"), obj["spec"].get("devices")
    if kind == "generation" and pool:
        pool["generation"] = 8
    elif kind == "device" and devices:
        devices.append({"name": "another"})
    elif kind == "attribute" and devices and devices[0]:
        attributes = devices[0].get("attributes") or {}
        devices[0]["attributes"] = {**attributes, "another": {"int": 1}}
    return f"harmless {kind}"


def _date_taints(obj: JSON) -> None:
    """A stored taint always has its time; without one the server makes up a new one each read."""
    for device in obj["spec"].get("devices") or []:
        for taint in (device or {}).get("taints") or []:
            if taint is not None and taint.get("timeAdded") is None:
                taint["timeAdded"] = TIMES[0]


# -- corners that chance rarely meets


def _policy_slice(total: str, **policy: Any) -> JSON:
    return _one_device(
        allowMultipleAllocations=True, capacity={"c": {"value": total, "requestPolicy": policy}}
    )


def _one_device(**fields: Any) -> JSON:
    return _whole(devices=[{"name": "d", **fields}])


def _whole(**spec: Any) -> JSON:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"driver": DRIVER, "pool": pool, "nodeName": NODES[0], **spec},
    }


def _with_metadata(**metadata: Any) -> JSON:
    made = _whole()
    made["metadata"] |= metadata
    return made


def corner_creates(minor: int) -> dict[str, JSON]:
    """Creates at limits that need several things at once, by name."""
    most, fine = 2**63 - 1, "9223372036854775.807"
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    made = {
        "min and step are the capacity": _policy_slice(
            "20", default="5", validRange={"min": "5", "step": "15"}
        ),
        "min and step are one more": _policy_slice(
            "20", default="5", validRange={"min": "5", "step": "16"}
        ),
        "a fine step": _policy_slice(
            "20", default="500m", validRange={"min": "500m", "step": "0.001"}
        ),
        "a too fine step": _policy_slice(
            "20", default="500m", validRange={"min": "500m", "step": "0.0001"}
        ),
        "64 bits": _policy_slice("20E", default="1", validRange={"min": "1", "max": str(most)}),
        "64 bits of steps": _policy_slice(
            "20E", default="1", validRange={"min": "1", "max": str(most), "step": "1"}
        ),
        "beyond 64 bits without step": _policy_slice(
            "20E", default="1", validRange={"min": "1", "max": str(most + 1)}
        ),
        "64 bits of thousandths": _policy_slice(
            "20E", default="1", validRange={"min": "0.5", "max": fine}
        ),
        "beyond 64 bits of thousandths": _policy_slice(
            "20E", default="1", validRange={"min": "0.5", "max": "9223372036854775.808"}
        ),
        "annotations of 256 Ki": _with_metadata(annotations={"k": "v" * (256 * 1024 - 1)}),
        "annotations of 256 Ki and 1": _with_metadata(annotations={"k": "v" * (256 * 1024)}),
        "one controller": _with_metadata(ownerReferences=[{**owner, "controller": True}, owner]),
        "two controllers": _with_metadata(
            ownerReferences=[{**owner, "name": n, "controller": True} for n in "ab"]
        ),
        "a controller twice": _with_metadata(ownerReferences=[{**owner, "controller": True}] * 2),
        "a bad owner after a double": _with_metadata(
            ownerReferences=[owner, owner, {**owner, "kind": ""}]
        ),
        "an owner of a group": _with_metadata(ownerReferences=[{**owner, "apiVersion": "a/v1"}]),
        "an owner without version": _with_metadata(ownerReferences=[{**owner, "apiVersion": "a/"}]),
        "a prefix with a slash": _with_metadata(generateName="a/b"),
        "a prefix with a bad end": _with_metadata(generateName="a--"),
        "8 counter sets with 33 counters": _whole(
            sharedCounters=[
                {"name": f"s{i}", "counters": {f"c{'X' * i}{k}": {"value": "1"} for k in range(33)}}
                for i in range(8)
            ]
        ),
        "too many devices with 5 conditions": _whole(
            devices=[
                {
                    "name": f"d{i}",
                    "bindingConditions": list("abcde"),
                    "bindingFailureConditions": list("fghij"),
                }
                for i in range(129)
            ]
        ),
    }
    made |= _corner_counts()
    if minor >= 37:
        steps = {"min": "1", "max": str(most + 1), "step": "1"}
        made["beyond 64 bits of steps"] = _policy_slice("20E", default="1", validRange=steps)
    for one, other in (
        *(("1", "1.0"), ("1", "1000m"), ("1k", "1000"), ("1e3", "1000"), ("1e3", "1k")),
        *(("0.5Gi", "512Mi"), ("1500m", "1.5"), ("1.50", "1.5"), ("1Ki", "1024"), ("0", "0.0")),
        *(("1000u", "1m"), ("1.0E3", "1k"), ("1M", "1e6"), ("1.5k", "1500"), ("2", "2.0000000001")),
        *(("1000000n", "1m"), ("1G", "1000M"), ("1T", "1000G"), ("1P", "1e15"), ("1E", "1e18")),
    ):
        made[f"{one} and {other}"] = _policy_slice("20E", default=one, validValues=[one, other])
    return made


def _corner_counts() -> dict[str, JSON]:
    """As many devices as a slice may have and one more, the last of them plain or not."""
    lasts: dict[str, tuple[int, JSON]] = {
        "plain ones": (128, {}),
        "a taint": (64, {"taints": [{"key": "k", "effect": "None"}]}),
        "consumed counters": (
            64,
            {"consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]},
        ),
        **{
            f"a list of {kind}": (64, {"attributes": {"l": {kind: values}}})
            for kind, values in (
                ("ints", [1]),
                ("bools", [True]),
                ("strings", ["x"]),
                ("versions", ["1.0.0"]),
            )
        },
    }
    return {
        f"{count} devices with {what}": _whole(
            devices=[*({"name": f"d{i}"} for i in range(count - 1)), {"name": "last", **last}]
        )
        for what, (limit, last) in lasts.items()
        for count in (limit, limit + 1)
    }


def corner_updates() -> dict[str, tuple[JSON, JSON]]:
    """Updates (stored, new) of the same sort."""
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    kept = {"finalizers": ["example.com/a"], **going}
    return {
        "a finalizer while deleted": (
            _with_metadata(**kept),
            _with_metadata(finalizers=["example.com/a", "example.com/b"]),
        ),
        "no new finalizer while deleted": (
            _with_metadata(**kept),
            _with_metadata(finalizers=["example.com/a"], labels={"k": "v"}),
        ),
        "a finalizer": (_whole(), _with_metadata(finalizers=["example.com/b"])),
        "a prefix with a slash": (_whole(), _with_metadata(generateName="a/b")),
        "a prefix with a percent sign": (_whole(), _with_metadata(generateName="a%b")),
        "another prefix": (_whole(), _with_metadata(generateName="A-")),
        "a fraction of a policy below 0": (
            _policy_slice("20", default="1", validRange={"min": "2"}),
            _policy_slice("20.0", default="1000m", validRange={"min": "2000m"}),
        ),
    }

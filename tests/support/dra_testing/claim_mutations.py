"""One change to a claim, template, class or rule, of which about half leave it valid.

The catalogue is data: at places (``requests[]`` stands for any item) the values that may be put
there. A change that finds no place in an object is not taken.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

JSON = dict[str, Any]
Place = tuple[Any, Any]
"""A list or object, and the index or name in it."""


@dataclass(frozen=True)
class Repeat:
    """As many items, copied from the first; names and the like are numbered."""

    count: int


DELETE: Final = object()
TWICE: Final = object()
"""A list with its last item once more."""

LONG: Final = 10 * 1024
_NAMES: Final = ["b", "c-9", "a", "0-a", "x" * 63, "x" * 64, "", "A", "a.b", "-a", "ä"]
_CLASSES: Final = ["b", "c.d", "a", "a.b", "x" * 253, "x" * 254, "", "A", "a_b", "a..b", None]
_DRIVERS: Final = [
    "b",
    "c-1.d",
    "E",
    "a",
    "A.b",
    "d" * 63,
    "d" * 64,
    "ä" * 40,
    "",
    "a_b",
    "a/b",
    None,
]
_POOLS: Final = [
    "b",
    "1.2/3",
    "c-d",
    "a",
    "a/b.c/d",
    "p" * 253,
    "p" * 254,
    "",
    "/a",
    "a//b",
    "A",
    "a/",
    None,
]
_FULL: Final = "d" * 63 + "/" + "i" * 32
_ATTRIBUTES: Final = [
    *("x.y/z", "b/C_d", "example.com/numa", "gpu.example.com/model"),
    *("a.b/c", "A.b/c", _FULL, "d" + _FULL, _FULL + "i", "c", "", "/", "a/", "/a", "a/b/c", "a/1b"),
    *("a_b/c", "ä/c", None),
]
_KEYS: Final = [
    "b",
    "C_d.e",
    "f/g",
    "",
    "a",
    "a.b/c",
    "k" * 63,
    "k" * 64,
    "a/b/c",
    "/a",
    "a/",
    "a b",
    "A.b/c",
    None,
]
_VALUES: Final = ["b", "C.d_e", "", "a", "v" * 63, "v" * 64, "a b", "-", None]
_EFFECTS: Final = [
    "None",
    "NoSchedule",
    "",
    "NoSchedule",
    "NoExecute",
    "None",
    "PreferNoSchedule",
    "none",
    None,
]
_OPERATORS: Final = ["Exists", "Equal", "Equal", "Exists", "", "exists", "In", None]
_MODES: Final = ["All", "ExactCount", "All", "ExactCount", "", "Some", "all", None]
_COUNTS: Final = [2, 3, 0, 1, 2**62, -1, None, DELETE]
_EXPRESSIONS: Final = [
    "false",
    "1 == 1",
    "true",
    "true" + " " * (LONG - 4),
    "true" + " " * (LONG - 3),
    "",
    " ",
]
_DERIVED: Final = ["2", "true", "1", "1" + " " * (LONG - 1), "1" + " " * LONG, "", DELETE]
# The server measures what it is sent; the blank that a client may put behind ':' is left room for.
_DOCUMENTS: Final = [
    *({}, {"a": None}, {"a": "x" * (LONG - 11)}, {"a": "x" * (LONG - 7)}, None, DELETE),
    *("text", [], 3, True),
]
_REFERENCES: Final = ["nobody", "r0", "r0/s0", "r0/s0/x", "", "A", "r0/", "/s0", "r1/s1"]
_UUIDS: Final = ["0a1b2c3d-0000-4000-8000-00000000000f", "", "0A1b2c3d-0000-4000-8000-00000000000f"]
_UUIDS_TOO: Final = [*_UUIDS, "0a1b2c3d000040008000000000000001", None]
_TIMES: Final = ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+02:00", None, DELETE]
_ADDRESSES: Final = [
    *("1.2.3.4/24", "1.2.3.4", "1.2.3.4/33", "01.2.3.4/24", "1.2.3.4/024", "::1/128", "::1/129"),
    *("2001:DB8::1/64", "2001:db8:0:0::1/64", "::ffff:1.2.3.4/120", "fe80::1%eth0/64", ""),
    *("1:0:0:2:0:0:0:3/64", "1:0:0:2::3/64", "1:2:3:4:5:0:7:8/64", "1.2.3.4/255.255.255.0"),
]
_BOOLEANS: Final = [True, False, None]


def _list(*counts: int) -> list[Any]:
    return [TWICE, [], None, DELETE, *(Repeat(count) for count in counts)]


_TOLERATION: Final[Mapping[str, list[Any]]] = {
    "key": [*_KEYS, DELETE],
    "operator": [*_OPERATORS, DELETE],
    "value": [*_VALUES, "yes"],
    "effect": [*_EFFECTS, DELETE],
    "tolerationSeconds": [0, -5, None],
}
_OPAQUE: Final[Mapping[str, list[Any]]] = {
    "opaque": [None, DELETE, {}],
    "opaque.driver": _DRIVERS,
    "opaque.parameters": _DOCUMENTS,
}
_CONDITION: Final[Mapping[str, list[Any]]] = {
    "type": [*_KEYS, DELETE, "example.com/t1"],
    "status": ["True", "true", "", DELETE],
    "observedGeneration": [0, 5, -1],
    "lastTransitionTime": [*_TIMES, "0001-01-01T00:00:00Z"],
    "reason": ["A", "a_", "1a", "a-b", "", "r" * 1024, "r" * 1025, DELETE, "r,", "r:s"],
    "message": ["", "m" * 32768, "m" * 32769, DELETE],
}
_DERIVED_ITEM: Final[Mapping[str, list[Any]]] = {
    "name": [*_ATTRIBUTES, "example.com/numa", "gpu.example.com/model"],
    "expression": _DERIVED,
}


def _under(prefix: str, table: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    return {f"{prefix}.{name}": values for name, values in table.items()}


_ASKED: Final[Mapping[str, list[Any]]] = {
    "deviceClassName": _CLASSES,
    "allocationMode": [*_MODES, DELETE],
    "count": _COUNTS,
    "selectors": _list(32, 33),
    "selectors[].cel": [None, DELETE, {}],
    "selectors[].cel.expression": _EXPRESSIONS,
    "tolerations": _list(16, 40),
    **_under("tolerations[]", _TOLERATION),
    "capacity": [{}, {"requests": {"a/b/c": "1Gi"}}, {"requests": {"": "-5"}}, None],
    "derivedAttributes": _list(32, 33),
    **_under("derivedAttributes[]", _DERIVED_ITEM),
}
_DEVICES: Final[Mapping[str, list[Any]]] = {
    "requests": _list(32, 33),
    "requests[].name": [*_NAMES, "r0", "r1"],
    "requests[].exactly": [None, DELETE, {}, {"deviceClassName": "gpu"}],
    **_under("requests[].exactly", _ASKED),
    "requests[].exactly.adminAccess": _BOOLEANS,
    "requests[].firstAvailable": [*_list(8, 9), [{}], [{"name": "s", "deviceClassName": "gpu"}]],
    "requests[].firstAvailable[].name": [*_NAMES, "s0", "s1"],
    **_under("requests[].firstAvailable[]", _ASKED),
    "constraints": _list(32, 33),
    "constraints[].requests": [*_list(32, 33), ["r0"], ["r0", "r0"]],
    "constraints[].requests[]": _REFERENCES,
    "constraints[].matchAttribute": [*_ATTRIBUTES, DELETE, *_ATTRIBUTES],
    "constraints[].distinctAttribute": [*_ATTRIBUTES, DELETE],
    "config": _list(32, 33),
    "config[].requests": [*_list(32, 33), ["r0"], ["r1/s0"]],
    "config[].requests[]": _REFERENCES,
    **_under("config[]", _OPAQUE),
}
_META: Final[Mapping[str, list[Any]]] = {
    "metadata.name": [*_CLASSES, "x.y-z", "9", DELETE],
    "metadata.generateName": ["b", "c.d-", "a-", "a.", "A-", "n" * 60 + "-", "n" * 254],
    "metadata.labels": [
        {},
        {"a": "", "b": "C"},
        {"a.b/c": "v"},
        {"": ""},
        {"a": "b c"},
        {"A b": ""},
        {"k" * 64: "v"},
    ],
    "metadata.annotations": [{"A.b/C": "any thing"}, {"a b": ""}, {"a": "x" * 262144}],
    "metadata.finalizers": [["c.d/e", "f/g"], ["a/b"], ["b"], ["kubernetes"], ["A b/c"]],
}
#: A wrong type: the server answers 400 and names no field.
_TYPES: Final[Mapping[str, list[Any]]] = {"spec": ["text", [1]]}
_ALLOCATION: Final[Mapping[str, list[Any]]] = {
    "devices.results": _list(32, 33),
    "devices.results[].request": _REFERENCES,
    "devices.results[].driver": _DRIVERS,
    "devices.results[].pool": _POOLS,
    "devices.results[].device": _NAMES,
    "devices.results[].adminAccess": _BOOLEANS,
    **_under("devices.results[].tolerations[]", _TOLERATION),
    "devices.results[].bindingConditions": [["a", "b", "c", "d"], list("abcde"), ["a", "a"], []],
    "devices.results[].bindingConditions[]": [*_KEYS[:-1], "example.com/broken"],
    "devices.results[].bindingFailureConditions": [["a"], list("abcde"), ["a", "a"], [], DELETE],
    "devices.results[].bindingFailureConditions[]": [*_KEYS[:-1], "Attached"],
    "devices.results[].shareID": [*_UUIDS_TOO, DELETE],
    "devices.results[].consumedCapacity": [{}, {"a": "1e3"}, {"/": "0.5"}],
    "devices.results[].skipNodeOperations": [
        *([], ["*"], ["NodePrepareResources"], ["NodeUnprepareResources"], ["Other"], [""]),
        *(["*", "*"], ["NodePrepareResources", "*"]),
    ],
    "devices.config": _list(64, 65),
    "devices.config[].source": ["FromClaim", "FromClass", "", "Elsewhere", DELETE],
    "devices.config[].requests": [*_list(33), ["r0"]],
    "devices.config[].requests[]": _REFERENCES,
    **_under("devices.config[]", _OPAQUE),
    "nodeSelector": [None, {}, {"nodeSelectorTerms": [{}]}, {"nodeSelectorTerms": [{}, {}]}],
    "nodeSelector.nodeSelectorTerms[].matchExpressions[].key": _KEYS,
    "nodeSelector.nodeSelectorTerms[].matchExpressions[].operator": [
        *("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "Equals")
    ],
    "nodeSelector.nodeSelectorTerms[].matchExpressions[].values": [
        *([], ["a"], ["a", "b"], ["a b"], DELETE)
    ],
    "nodeSelector.nodeSelectorTerms[].matchFields[].key": ["metadata.name", "spec.x", ""],
    "nodeSelector.nodeSelectorTerms[].matchFields[].operator": ["In", "NotIn", "Exists", ""],
    "nodeSelector.nodeSelectorTerms[].matchFields[].values": [[], ["a"], ["a", "b"], ["A"]],
    "allocationTimestamp": _TIMES,
}
_DEVICE_STATUS: Final[Mapping[str, list[Any]]] = {
    "driver": _DRIVERS,
    "pool": _POOLS,
    "device": _NAMES,
    "shareID": [*_UUIDS_TOO, DELETE],
    "conditions": _list(8, 9),
    **_under("conditions[]", _CONDITION),
    "data": _DOCUMENTS,
    "networkData": [{}, None],
    "networkData.interfaceName": ["", "i" * 256, "i" * 257],
    "networkData.hardwareAddress": ["", "h" * 128, "h" * 129],
    "networkData.ips": [[], ["1.2.3.4/8"] * 2, [f"1.2.3.{n}/8" for n in range(16)]],
    "networkData.ips[]": _ADDRESSES,
}
_STATUS: Final[Mapping[str, list[Any]]] = {
    "allocation": [None, DELETE, {}],
    **_under("allocation", _ALLOCATION),
    "reservedFor": [*_list(256, 257)],
    "reservedFor[].resource": ["jobs", "", DELETE],
    "reservedFor[].name": ["p", "", DELETE],
    "reservedFor[].uid": ["uid-0", "uid-9", "", DELETE],
    "devices": _list(),
    **_under("devices[]", _DEVICE_STATUS),
}

CATALOGUE: Final[Mapping[str, Mapping[str, list[Any]]]] = {
    "ResourceClaim": {**_META, **_TYPES, **_under("spec.devices", _DEVICES)},
    "ResourceClaimTemplate": {
        **_META,
        **_TYPES,
        "spec.metadata": [
            None,
            {"name": "a"},
            {"uid": "u", "finalizers": []},
            {"labels": {"": ""}},
        ],
        "spec.metadata.annotations": [{"a b": "c"}, {"A": "b"}],
        **_under("spec.spec.devices", _DEVICES),
    },
    "DeviceClass": {
        **_META,
        **_TYPES,
        "spec.selectors": _list(32, 33),
        "spec.selectors[].cel": [None, DELETE, {}],
        "spec.selectors[].cel.expression": _EXPRESSIONS,
        "spec.config": _list(32, 33),
        **_under("spec.config[]", _OPAQUE),
        "spec.extendedResourceName": [
            *("a.b/c", "a", "", "kubernetes.io/a", "a.kubernetes.io/b", "requests.a/b", "A.b/c"),
            *("a.b/" + "n" * 63, "a.b/" + "n" * 64, "a/b/c", "a/", "d" * 244 + "/a", None),
            *("d" * 245 + "/a",),
        ],
    },
    "DeviceTaintRule": {
        **_META,
        **_TYPES,
        "spec.deviceSelector": [None, {}, DELETE],
        "spec.deviceSelector.driver": [*_DRIVERS, DELETE],
        "spec.deviceSelector.pool": [*_POOLS, DELETE],
        "spec.deviceSelector.device": [*_NAMES, None],
        "spec.taint": [{}, DELETE],
        "spec.taint.key": [*_KEYS, DELETE],
        "spec.taint.value": [*_VALUES, DELETE],
        "spec.taint.effect": [*_EFFECTS, DELETE],
        "spec.taint.timeAdded": _TIMES,
    },
    "ResourceClaim status": _under("status", _STATUS),
    "DeviceTaintRule status": _under(
        "status", {"conditions": _list(8, 9), **_under("conditions[]", _CONDITION)}
    ),
}


def mutated(
    rng: random.Random, obj: JSON, part: str = "", without: tuple[str, ...] = ()
) -> tuple[JSON, str]:
    """A copy with one change, and what it was.

    ``part`` is ``status`` for changes of the status; fields in ``without`` are left alone.
    """
    table = CATALOGUE[f"{obj['kind']} {part}".strip()]
    paths = [path for path in table if path not in without]
    while True:
        path = rng.choice(paths)
        changed = copy.deepcopy(obj)
        places = list(_places(changed, path.replace("[]", ".[]").split(".")))
        if not places:
            continue
        value = rng.choice(table[path])
        if _apply(rng.choice(places), value):
            return changed, f"{path} = {_shown(value)}"


def _places(value: Any, steps: list[str]) -> Iterator[Place]:
    step, rest = steps[0], steps[1:]
    if step == "[]":
        for number in range(len(value) if isinstance(value, list) else 0):
            if rest:
                yield from _places(value[number], rest)
            else:
                yield value, number
    elif isinstance(value, dict):
        if not rest:
            yield value, step
        elif step in value:
            yield from _places(value[step], rest)


def _apply(place: Place, value: Any) -> bool:
    container, key = place
    old = container.get(key) if isinstance(container, dict) else container[key]
    if value is DELETE:
        return isinstance(container, dict) and container.pop(key, DELETE) is not DELETE
    if value is TWICE or isinstance(value, Repeat):
        if not isinstance(old, list) or not old:
            return False
        value = _repeated(old[0], value.count) if isinstance(value, Repeat) else [*old, old[-1]]
    container[key] = copy.deepcopy(value)
    return True


def _repeated(item: Any, count: int) -> list[Any]:
    if isinstance(item, str):
        return [f"{item}{n}" if n else item for n in range(count)]
    copies: list[Any] = []
    for number in range(count):
        made = copy.deepcopy(item)
        for name in ("name", "uid", "type", "device"):
            if number and isinstance(made, dict) and isinstance(made.get(name), str):
                made[name] = f"{made[name]}{number}"
        copies.append(made)
    return copies


def _shown(value: Any) -> str:
    text = {DELETE: "deleted", TWICE: "last item twice"}.get(value) if _is_word(value) else None
    text = text or repr(value)
    return text if len(text) < 60 else f"{text[:50]}... ({len(text)})"


def _is_word(value: Any) -> bool:
    return value is DELETE or value is TWICE

"""Rows of ResourceSlice and its spec."""

from __future__ import annotations

from typing import Any, Final

from dra_core.model.devices import Counter, Device
from dra_core.model.nodes import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.model.objects import Metadata
from dra_core.model.slices import CounterSet, ResourcePool
from dra_core.names import DeviceName, PoolName
from dra_core.quantity import Quantity
from dra_testing.rows.example import (
    DUPLICATE,
    GONE,
    INVALID,
    JSON,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    UNREADABLE,
    V1,
    Base,
    Row,
    table,
)

#: Nodes that the slices are for.
NODE, OTHER_NODE = "verdict-1", "verdict-2"
SPEC: Final[JSON] = {
    "driver": "gpu.example.com",
    "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
    "nodeName": NODE,
    "devices": [{"name": "d"}],
}
SLICE: Final[JSON] = {
    "apiVersion": V1,
    "kind": "ResourceSlice",
    "metadata": {"name": "row"},
    "spec": SPEC,
}
ANYWHERE: Final[JSON] = {k: v for k, v in SPEC.items() if k != "nodeName"}
ONE: Final[JSON] = {"c": {"value": "1"}}
SET: Final[JSON] = {"name": "s", "counters": ONE}
EXISTS: Final[JSON] = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
SELECTOR: Final[JSON] = {"nodeSelectorTerms": [EXISTS]}
READ_SELECTOR: Final = NodeSelector(
    (NodeSelectorTerm((NodeSelectorRequirement("zone", "Exists"),)),)
)
NO_SPEC: Final = {
    "spec": REQUIRED,
    "spec.driver": REQUIRED,
    "spec.pool.name": REQUIRED,
    "spec.pool.resourceSliceCount": INVALID,
}
NO_POOL: Final = {"pool.name": REQUIRED, "pool.resourceSliceCount": INVALID}


def slice_of(**spec: Any) -> JSON:
    """A slice with other fields in its spec."""
    return {**SLICE, "spec": {**SPEC, **spec}}


def devices(count: int, **last: Any) -> list[JSON]:
    """So many devices, the last with these fields."""
    named: list[JSON] = [{"name": f"d{i}"} for i in range(count)]
    named[-1] |= last
    return named


def counters(count: int, name: str = "c{}") -> JSON:
    """So many counters."""
    return {name.format(i): {"value": "1"} for i in range(count)}


def second_slice(**spec: Any) -> JSON:
    """The other slice of a pool of two."""
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    return {**slice_of(pool=pool, **spec), "metadata": {"name": "second"}}


TAINTED: Final = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
CONSUMING: Final = {"consumesCounters": [{"counterSet": "s", "counters": ONE}]}
LISTED: Final = {"attributes": {"l": {"ints": [1]}}}

_SLICE: Final = table(
    Base(SLICE),
    Row(
        "ResourceSlice.apiVersion",
        "apiVersion",
        "resource.k8s.io/v1beta1",
        reads=("spec.devices.0.attributes", {"a": 1}),
        written=V1,
        more={"spec.devices.0.basic": {"attributes": {"a": {"int": 1}}}},
        judged=False,
    ),
    Row("ResourceSlice.apiVersion", "apiVersion", V1, "resource.k8s.io/v2", UNREADABLE),
    Row(
        "ResourceSlice.kind",
        "kind",
        "ResourceSlice",
        "Pod",
        UNREADABLE,
        reads=("__class__.__name__", "ResourceSlice"),
    ),
    Row(
        "ResourceSlice.metadata",
        "metadata",
        {"name": "row", "labels": {"k": "v"}},
        {"name": "row", "labels": {"k k": "v"}},
        {"metadata.labels": INVALID},
        reads=("metadata", Metadata("row", labels={"k": "v"})),
    ),
    Row(
        "ResourceSlice.spec", "spec", SPEC, GONE, NO_SPEC, reads=("spec.driver", "gpu.example.com")
    ),
    Row("ResourceSlice.spec#required", "spec", SPEC, GONE, NO_SPEC),
    Row(
        "ResourceSlice.kind#unchangeable",
        "kind",
        "ResourceSlice",
        "DeviceClass",
        update=True,
        server=400,
    ),
)
_PLACED: Final = Base(slice_of(), "spec", model="spec")
_FREE: Final = Base({**SLICE, "spec": ANYWHERE}, "spec", model="spec")
_SPEC: Final = [
    *table(
        _FREE,
        Row(
            "ResourceSliceSpec.allNodes",
            "allNodes",
            True,
            False,
            {"allNodes": INVALID, "": REQUIRED},
            reads=("all_nodes", True),
        ),
        Row(
            "ResourceSliceSpec.nodeName",
            "nodeName",
            NODE,
            "Node",
            INVALID,
            reads=("node_name", NODE),
        ),
        Row(
            "ResourceSliceSpec.nodeSelector",
            "nodeSelector",
            SELECTOR,
            {"nodeSelectorTerms": []},
            {"nodeSelector.nodeSelectorTerms": (REQUIRED, INVALID)},
            reads=("node_selector", READ_SELECTOR),
        ),
        Row(
            "ResourceSliceSpec.perDeviceNodeSelection",
            "perDeviceNodeSelection",
            True,
            False,
            {"perDeviceNodeSelection": INVALID, "": REQUIRED, "devices[0]": INVALID},
            reads=("per_device_node_selection", True),
            more={"devices.0.nodeName": NODE},
        ),
        Row("ResourceSliceSpec#one-node-choice", "nodeName", NODE, GONE, {"": REQUIRED}),
        Row(
            "ResourceSliceSpec.nodeSelector#one-term",
            "nodeSelector.nodeSelectorTerms",
            [EXISTS],
            [EXISTS, EXISTS],
        ),
        Row(
            "ResourceSliceSpec.perDeviceNodeSelection#each-device",
            "devices",
            [{"name": "a", "nodeName": NODE}, {"name": "b", "allNodes": True}],
            [{"name": "a", "nodeName": NODE}, {"name": "b"}],
            {"devices[1]": REQUIRED},
            more={"perDeviceNodeSelection": True},
        ),
    ),
    *table(
        _PLACED,
        Row(
            "ResourceSliceSpec.devices",
            "devices",
            [{"name": "e"}],
            [{"name": "e"}, {"name": "e"}],
            {"devices[1]": DUPLICATE},
            reads=("devices", (Device(DeviceName("e")),)),
        ),
        Row(
            "ResourceSliceSpec.driver",
            "driver",
            "net.example.com",
            "net/x",
            reads=("driver", "net.example.com"),
        ),
        Row(
            "ResourceSliceSpec.pool",
            "pool",
            {"name": "q", "generation": 2, "resourceSliceCount": 3},
            GONE,
            NO_POOL,
            reads=("pool", ResourcePool(PoolName("q"), 2, 3)),
        ),
        Row(
            "ResourceSliceSpec.sharedCounters",
            "sharedCounters",
            [SET],
            [SET, SET],
            {"sharedCounters[1]": DUPLICATE},
            reads=("shared_counters", (CounterSet("s", {"c": Counter(Quantity.parse("1"))}),)),
            more={"devices": GONE},
        ),
        Row("ResourceSliceSpec.driver#required", "driver", "d", GONE, REQUIRED),
        Row("ResourceSliceSpec.pool#required", "pool", SPEC["pool"], GONE, NO_POOL),
        Row("ResourceSliceSpec#one-node-choice", "allNodes", GONE, True, {"": INVALID}),
        Row(
            "ResourceSliceSpec#devices-or-shared-counters",
            "sharedCounters",
            GONE,
            [SET],
            {"": INVALID},
        ),
        Row("ResourceSliceSpec.devices#max-128", "devices", devices(128), devices(129), TOO_MANY),
        *(
            Row(
                "ResourceSliceSpec.devices#max-64",
                "devices",
                devices(64, **last),
                devices(65, **last),
                TOO_MANY,
            )
            for last in (TAINTED, CONSUMING, LISTED)
        ),
        Row("ResourceSliceSpec.driver#dns-subdomain", "driver", "d" * 63, "d" * 64, TOO_LONG),
        Row("ResourceSliceSpec.driver#dns-subdomain", "driver", "Gpu.b-1", "gpu..b"),
        Row(
            "ResourceSliceSpec.driver#vendor-domain",
            "driver",
            "gpu.example",
            "gpu",
            warned="vendor-domain",
        ),
        Row(
            "ResourceSliceSpec.driver#lower-case",
            "driver",
            "gpu.example",
            "gPu.example",
            warned="lower-case",
        ),
        Row(
            "ResourceSliceSpec.driver#immutable",
            "driver",
            "gpu.example",
            "gpu2.example",
            update=True,
        ),
        Row("ResourceSliceSpec.nodeName#immutable", "nodeName", NODE, OTHER_NODE, update=True),
        Row(
            "ResourceSliceSpec.sharedCounters#max-8",
            "sharedCounters",
            [{**SET, "name": f"s{i}"} for i in range(8)],
            [{**SET, "name": f"s{i}"} for i in range(9)],
            TOO_MANY,
            more={"devices": GONE},
        ),
        Row(
            "ResourceSliceSpec.sharedCounters#names-unique-in-pool",
            "sharedCounters.0.name",
            "t",
            "s",
            warned="pool",
            more={"devices": GONE, "sharedCounters": [SET], "pool.resourceSliceCount": 2},
            beside=(second_slice(sharedCounters=[SET], devices=[]),),
        ),
    ),
]
ROWS: Final = [*_SLICE, *_SPEC]

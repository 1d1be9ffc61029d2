"""Rows of devices, less their attributes and resources of the node."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from dra_core.model.devices import Capacity, Counter, CounterConsumption
from dra_core.model.taints import DeviceTaint
from dra_core.quantity import Quantity
from dra_testing.rows.example import (
    DUPLICATE,
    FORBIDDEN,
    GONE,
    INVALID,
    JSON,
    MALFORMED,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_MANY,
    TWICE,
    Base,
    Row,
    table,
)
from dra_testing.rows.slices import (
    ANYWHERE,
    EXISTS,
    NODE,
    ONE,
    READ_SELECTOR,
    SELECTOR,
    SLICE,
    second_slice,
    slice_of,
)

AMOUNT: Final = Quantity.parse
CONSUMED: Final[JSON] = {"counterSet": "s", "counters": ONE}
READ_CONSUMED: Final = CounterConsumption("s", {"c": Counter(AMOUNT("1"))})
TAINT: Final[JSON] = {"key": "k", "effect": "NoSchedule"}
#: A time as written and as read.
WHEN, MOMENT = "2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVERYTHING: Final[JSON] = {
    "attributes": {"a": {"int": 1}},
    "capacity": ONE,
    "taints": [TAINT],
    "consumesCounters": [CONSUMED],
    "bindsToNode": True,
    "bindingConditions": ["a"],
    "bindingFailureConditions": ["b"],
    "allowMultipleAllocations": True,
}


def _ints(count: int) -> JSON:
    return {f"a{i}": {"int": i} for i in range(count)}


def device_base(root: str = "", path: str = "", model: str = "", **fields: Any) -> Base:
    """A slice with one device; the part is below the device."""
    device = "spec.devices.0"
    obj = slice_of(devices=[{"name": "d", **fields}])
    return Base(obj, device + root, f"spec.devices[0]{path}", device + model)


def _per_device(**fields: Any) -> Base:
    device = {"name": "d", **fields}
    spec = {**ANYWHERE, "perDeviceNodeSelection": True, "devices": [device]}
    return Base({**SLICE, "spec": spec}, "spec.devices.0", model="spec.devices.0")


_NODES: Final = [
    *table(
        _per_device(),
        Row(
            "Device.allNodes",
            "allNodes",
            True,
            False,
            {"allNodes": INVALID, "": REQUIRED},
            reads=("all_nodes", True),
        ),
        Row("Device.nodeName", "nodeName", NODE, "Node", reads=("node_name", NODE)),
        Row(
            "Device.nodeSelector",
            "nodeSelector",
            SELECTOR,
            {"nodeSelectorTerms": []},
            {"nodeSelector.nodeSelectorTerms": REQUIRED},
            reads=("node_selector", READ_SELECTOR),
        ),
        Row("Device#node-choice-max-1", "allNodes", True, GONE, {"": REQUIRED}),
    ),
    *table(
        _per_device(nodeName=NODE),
        Row("Device#node-choice-max-1", "allNodes", GONE, True, {"": INVALID}),
        Row("Device#node-choice-max-1", "nodeSelector", GONE, SELECTOR, {"": INVALID}),
    ),
    *(
        row
        for field, value in (("allNodes", True), ("nodeName", NODE), ("nodeSelector", SELECTOR))
        for row in table(
            _per_device(),
            Row(
                f"Device.{field}#needs-per-device",
                field,
                value,
                value,
                {"": INVALID},
                bad_more={"/spec.perDeviceNodeSelection": GONE, "/spec.nodeName": NODE},
            ),
        )
    ),
    *table(
        _per_device(),
        Row(
            "Device.nodeSelector#one-term",
            "nodeSelector.nodeSelectorTerms",
            [EXISTS],
            [EXISTS, EXISTS],
            warned="several-terms",
        ),
    ),
]
_DEVICE: Final = table(
    device_base(),
    Row(
        "Device.allowMultipleAllocations",
        "allowMultipleAllocations",
        True,
        False,
        {"capacity[c].requestPolicy": FORBIDDEN},
        reads=("allow_multiple_allocations", True),
        more={"capacity": {"c": {"value": "2", "requestPolicy": {"default": "1"}}}},
    ),
    Row(
        "Device.attributes",
        "attributes",
        {"model": {"string": "a"}},
        {"mod-el": {"string": "a"}},
        reads=("attributes", {"model": "a"}),
    ),
    Row(
        "Device.bindingConditions",
        "bindingConditions",
        ["example.com/ready"],
        ["a", "a"],
        {"bindingConditions[1]": DUPLICATE},
        reads=("binding_conditions", ("example.com/ready",)),
        more={"bindingFailureConditions": ["b"]},
    ),
    Row(
        "Device.bindingFailureConditions",
        "bindingFailureConditions",
        ["example.com/broken"],
        ["a"],
        {"bindingFailureConditions[0]": INVALID},
        reads=("binding_failure_conditions", ("example.com/broken",)),
        more={"bindingConditions": ["a"]},
    ),
    Row("Device.bindsToNode", "bindsToNode", True, "yes", MALFORMED, reads=("binds_to_node", True)),
    Row(
        "Device.capacity",
        "capacity",
        {"memory": {"value": "1Gi"}},
        {"mem-ory": {"value": "1Gi"}},
        reads=("capacity", {"memory": Capacity.of("1Gi")}),
    ),
    Row(
        "Device.consumesCounters",
        "consumesCounters",
        [CONSUMED],
        [CONSUMED, CONSUMED],
        {"consumesCounters[1]": DUPLICATE},
        reads=("consumes_counters", (READ_CONSUMED,)),
    ),
    Row("Device.name", "name", "gpu-0", "gpu_0", reads=("name", "gpu-0")),
    Row(
        "Device.taints",
        "taints",
        [TAINT],
        [{**TAINT, "effect": "Never"}],
        {"taints[0].effect": NOT_SUPPORTED},
        reads=("taints", (DeviceTaint("k", "NoSchedule"),)),
    ),
    Row("Device.name#required", "name", "d", GONE),
    Row("Device.name#dns-label", "name", "d" * 63, "d" * 64),
    Row("Device.name#dns-label", "name", "0-d", "d.d"),
    Row(
        "Device.name#unique-in-pool",
        "name",
        "e",
        "d",
        warned="pool",
        more={"/spec.pool.resourceSliceCount": 2},
        beside=(second_slice(),),
    ),
    Row("Device#one-field-beside-name", "", {"name": "d"}),
    *(
        Row("Device#one-field-beside-name", field, value)
        for field, value in EVERYTHING.items()
        if not field.startswith("binding")
    ),
    Row("Device#one-field-beside-name", "", {"name": "d", **EVERYTHING}),
    *(
        Row(
            f"Device.{field}#names-unique",
            field,
            {"a": value, "b": value},
            {"a": value, "again:a": value},
            TWICE,
        )
        for field, value in (("attributes", {"int": 1}), ("capacity", {"value": "1"}))
    ),
    Row(
        "Device#attributes-and-capacity-max-32",
        "attributes",
        _ints(31),
        _ints(32),
        {"": INVALID},
        more={"capacity": ONE},
    ),
    *(
        row
        for field, other in (
            ("bindingConditions", "bindingFailureConditions"),
            ("bindingFailureConditions", "bindingConditions"),
        )
        for row in (
            Row(
                f"Device.{field}#max-4",
                field,
                list("abcd"),
                list("abcde"),
                TOO_MANY,
                more={other: ["z"]},
            ),
            Row(
                f"Device.{field}#condition-type",
                field,
                ["example.com/Ready"],
                ["example.com/not ready"],
                {f"{field}[0]": INVALID},
                more={other: ["z"]},
            ),
        )
    ),
    Row(
        "Device.consumesCounters#max-2",
        "consumesCounters",
        [{**CONSUMED, "counterSet": f"s{i}"} for i in range(2)],
        [{**CONSUMED, "counterSet": f"s{i}"} for i in range(3)],
        TOO_MANY,
    ),
    Row(
        "Device.consumesCounters#one-per-set",
        "consumesCounters",
        [CONSUMED, {**CONSUMED, "counterSet": "t"}],
        [CONSUMED, CONSUMED],
        {"consumesCounters[1]": DUPLICATE},
    ),
    Row("Device.taints#max-16", "taints", [TAINT] * 16, [TAINT] * 17, TOO_MANY),
)
ROWS: Final = [*_NODES, *_DEVICE]

"""Rows of the resources of a node that devices stand for, in 1.36 and 1.37."""

from __future__ import annotations

from typing import Final

from dra_core.model.devices import AllocatableMapping, NodeAllocatable, NodeAllocatableMapping136
from dra_testing.rows.devices import AMOUNT, device_base
from dra_testing.rows.example import GONE, INVALID, JSON, NOT_FOUND, REQUIRED, Row, table

BY_CAPACITY: Final[JSON] = {"capacityKey": "cores", "capacityMultiplier": "1"}
_MAPPED_36: Final = table(
    device_base(
        ".nodeAllocatableResourceMappings",
        ".nodeAllocatableResourceMappings",
        ".node_allocatable_136",
        capacity={"cores": {"value": "8"}},
    ),
    Row(
        "Device.nodeAllocatableResourceMappings",
        "",
        {"cpu": {"capacityKey": "cores"}},
        {"cpu": {"capacityKey": "kernels"}},
        {"[cpu].capacityKey": NOT_FOUND},
        reads=("", {"cpu": NodeAllocatableMapping136("cores")}),
        minors=(36,),
    ),
    *(
        Row(
            "Device.nodeAllocatableResourceMappings#native-keys",
            "",
            {key: {"capacityKey": "cores"}},
            {"example.com/gpu": {"capacityKey": "cores"}},
            {"[example.com/gpu]": INVALID},
            minors=(36,),
        )
        for key in ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi")
    ),
    Row(
        "NodeAllocatableResourceMapping.allocationMultiplier",
        "cpu.allocationMultiplier",
        "2",
        "0",
        {"[cpu].allocationMultiplier": INVALID},
        reads=("cpu.allocation_multiplier", AMOUNT("2")),
        minors=(36,),
    ),
    Row(
        "NodeAllocatableResourceMapping.capacityKey",
        "cpu.capacityKey",
        "cores",
        "",
        {"[cpu].capacityKey": INVALID},
        reads=("cpu.capacity_key", "cores"),
        minors=(36,),
    ),
    Row(
        "NodeAllocatableResourceMapping.capacityKey#names-a-capacity",
        "cpu.capacityKey",
        "cores",
        "kernels",
        {"[cpu].capacityKey": NOT_FOUND},
        minors=(36,),
    ),
)
_MAPPED_37: Final = [
    *table(
        device_base(
            ".nodeAllocatableResources",
            ".nodeAllocatableResources",
            ".node_allocatable",
            capacity={"cores": {"value": "8"}},
        ),
        Row(
            "Device.nodeAllocatableResources",
            "",
            {"cpu": {"mapping": BY_CAPACITY}},
            {"storage": {"mapping": BY_CAPACITY}},
            {"[storage]": INVALID},
            reads=("", {"cpu": NodeAllocatable(AllocatableMapping("cores", AMOUNT("1")))}),
            minors=(37,),
        ),
        Row(
            "NodeAllocatableResource.mapping",
            "cpu.mapping",
            {"deviceMultiplier": "2"},
            {},
            {"[cpu].mapping": INVALID},
            reads=("cpu.mapping", AllocatableMapping(device_multiplier=AMOUNT("2"))),
            minors=(37,),
        ),
    ),
    *table(
        device_base(
            ".nodeAllocatableResources.cpu.mapping",
            ".nodeAllocatableResources[cpu].mapping",
            ".node_allocatable.cpu.mapping",
            capacity={"cores": {"value": "8"}},
            nodeAllocatableResources={"cpu": {"mapping": {}}},
        ),
        Row(
            "NodeAllocatableMapping.capacityKey",
            "capacityKey",
            "cores",
            "",
            reads=("capacity_key", "cores"),
            more={"capacityMultiplier": "1"},
            minors=(37,),
        ),
        Row(
            "NodeAllocatableMapping.capacityMultiplier",
            "capacityMultiplier",
            "1500m",
            "0",
            reads=("capacity_multiplier", AMOUNT("1.5")),
            more={"capacityKey": "cores"},
            minors=(37,),
        ),
        Row(
            "NodeAllocatableMapping.deviceMultiplier",
            "deviceMultiplier",
            "2",
            "-2",
            reads=("device_multiplier", AMOUNT("2")),
            minors=(37,),
        ),
        Row(
            "NodeAllocatableMapping#device-or-capacity",
            "deviceMultiplier",
            GONE,
            "2",
            {"": INVALID},
            more=BY_CAPACITY,
            minors=(37,),
        ),
        Row(
            "NodeAllocatableMapping.capacityKey#names-a-capacity",
            "capacityKey",
            "cores",
            "kernels",
            NOT_FOUND,
            more={"capacityMultiplier": "1"},
            minors=(37,),
        ),
        Row(
            "NodeAllocatableMapping.capacityKey#needs-multiplier",
            "capacityMultiplier",
            "1",
            GONE,
            REQUIRED,
            more={"capacityKey": "cores"},
            minors=(37,),
        ),
        Row(
            "NodeAllocatableMapping.capacityMultiplier#needs-key",
            "capacityKey",
            "cores",
            GONE,
            {"capacityKey": REQUIRED, "": INVALID},
            more={"capacityMultiplier": "1"},
            minors=(37,),
        ),
    ),
]

ROWS: Final = [*_MAPPED_36, *_MAPPED_37]

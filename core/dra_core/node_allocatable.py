"""Node-allocatable resources of a device in the shapes of 1.37 and 1.36.

1.37 (``nodeAllocatableResources``) tells apart a multiplier of consumed capacity, a multiplier of
the number of devices, and overhead. 1.36 (``nodeAllocatableResourceMappings``) has one multiplier,
which is 1 if it is not given and counts devices where there is no ``capacityKey``; it knows no
overhead.
"""

from __future__ import annotations

from typing import Final

from dra_core.model.devices import (
    AllocatableMapping,
    NodeAllocatable,
    NodeAllocatableMapping136,
)
from dra_core.quantity import Quantity

_ONE: Final = Quantity.parse("1")


def to_137(mapping: NodeAllocatableMapping136) -> NodeAllocatable:
    """The same in the shape of 1.37, its multiplier written out."""
    multiplier = mapping.allocation_multiplier or _ONE
    if mapping.capacity_key is None:
        return NodeAllocatable(AllocatableMapping(device_multiplier=multiplier))
    return NodeAllocatable(
        AllocatableMapping(capacity_key=mapping.capacity_key, capacity_multiplier=multiplier)
    )


def to_136(allocatable: NodeAllocatable) -> NodeAllocatableMapping136 | None:
    """The mapping in the shape of 1.36; None if there is overhead only, which 1.36 cannot say."""
    mapping = allocatable.mapping
    if mapping is None:
        return None
    if mapping.capacity_key is None:
        return NodeAllocatableMapping136(None, mapping.device_multiplier)
    return NodeAllocatableMapping136(mapping.capacity_key, mapping.capacity_multiplier)

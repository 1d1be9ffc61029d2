"""Node-allocatable resources: 1.36 and 1.37 say the same in two shapes."""

from __future__ import annotations

import pytest

from dra_core.model.devices import (
    AllocatableMapping,
    AllocatableOverhead,
    NodeAllocatable,
    NodeAllocatableMapping136,
)
from dra_core.node_allocatable import to_136, to_137
from dra_core.quantity import Quantity

ONE, TWO = Quantity.parse("1"), Quantity.parse("2")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (NodeAllocatableMapping136(), AllocatableMapping(device_multiplier=ONE)),
        (
            NodeAllocatableMapping136("cores"),
            AllocatableMapping(capacity_key="cores", capacity_multiplier=ONE),
        ),
        (NodeAllocatableMapping136(None, TWO), AllocatableMapping(device_multiplier=TWO)),
        (
            NodeAllocatableMapping136("cores", TWO),
            AllocatableMapping(capacity_key="cores", capacity_multiplier=TWO),
        ),
    ],
)
def test_a_missing_multiplier_is_one_and_without_a_key_it_counts_devices(
    older: NodeAllocatableMapping136, newer: AllocatableMapping
) -> None:
    assert to_137(older) == NodeAllocatable(newer)
    back = to_136(NodeAllocatable(newer))
    assert back is not None
    assert to_137(back) == NodeAllocatable(newer)


def test_overhead_has_no_form_in_136() -> None:
    overhead = AllocatableOverhead(per_pod=ONE)
    assert to_136(NodeAllocatable(overhead=overhead)) is None
    mapped = NodeAllocatable(AllocatableMapping(device_multiplier=TWO), overhead)
    assert to_136(mapped) == NodeAllocatableMapping136(None, TWO)

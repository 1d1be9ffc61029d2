"""How large a value may become.

The reference shares the parts of a list, and has strings made that it charges nothing for; a few
nested doublings would take all memory here, and now and then there. So no function makes a value of
which walking over it once costs more than a selector may spend, 1,000,000 units: the cost limit
would end any evaluation that looks at it, and here it ends where the value would be made.
"""

from __future__ import annotations

from typing import Final

from dra_core.cel.faults import CostExceeded

#: Items of a list: a loop over one item costs at least a unit.
MAX_ITEMS: Final = 1_000_000
#: Code points of a string, or bytes: ten cost a unit to read.
MAX_TEXT: Final = 10_000_000


def check_items(count: int) -> None:
    """Errors: ``CostExceeded`` if a list would have more items than it may."""
    if count > MAX_ITEMS:
        raise CostExceeded(f"actual cost limit exceeded: a list of {count} items")


def check_text(length: int) -> None:
    """Errors: ``CostExceeded`` if a string or bytes would be longer than they may be."""
    if length > MAX_TEXT:
        raise CostExceeded(f"actual cost limit exceeded: a text of length {length}")

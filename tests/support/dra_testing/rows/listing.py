"""Examples for the rows of ``docs/api-fields.md``, by the name of the row."""

from __future__ import annotations

from typing import Final

from dra_testing.rows import (
    allocatable,
    attributes,
    capacity,
    claims,
    devices,
    pools,
    requests,
    slices,
)
from dra_testing.rows.example import Row

_TABLES: Final = (slices, pools, devices, attributes, allocatable, capacity, requests, claims)
ROWS: Final[dict[str, list[Row]]] = {}
for _row in (row for table in _TABLES for row in table.ROWS):
    ROWS.setdefault(_row.name, []).append(_row)

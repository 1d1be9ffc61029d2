"""Pools as a driver describes them, and ResourceSlices as the API server has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dra_core import names
from dra_core.errors import InvalidValue
from dra_core.model.devices import Device
from dra_core.names import PoolName

#: ``ResourceSliceMaxDevices`` of the API (64 for features that are not published yet).
MAX_DEVICES: Final = 128
#: ``spec.pool.generation`` is an int64.
MAX_GENERATION: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Pool:
    """What a driver has to offer on one node, in the order in which it wants it handed out."""

    name: PoolName
    devices: tuple[Device, ...]


@dataclass(frozen=True, slots=True)
class PublishedSlice:
    """A ResourceSlice in the cluster, reduced to what planning needs.

    ``slice_count`` is ``spec.pool.resourceSliceCount``.
    """

    name: str
    pool: PoolName
    generation: int
    slice_count: int
    devices: tuple[Device, ...]


def check_pools(pools: Sequence[Pool]) -> Sequence[Pool]:
    """What would make a pool invalid to the allocator: bad names, and names used twice."""
    for pool in pools:
        names.check_pool_name(pool.name)
        _once(f"pool {pool.name!r} has two devices named", [d.name for d in pool.devices])
    _once("there are two pools named", [pool.name for pool in pools])
    return pools


def _once(where: str, found: Sequence[str]) -> None:
    twice = [name for name, count in Counter(found).items() if count > 1]
    if twice:
        raise InvalidValue(f"{where} {twice[0]!r}; names must be unique")

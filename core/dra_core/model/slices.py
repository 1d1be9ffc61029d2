"""Pools as a driver describes them, and ResourceSlices as the API server has them."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_core import names
from dra_core.errors import InvalidValue
from dra_core.model.defaults import empty_map
from dra_core.model.devices import Counter, Device
from dra_core.model.nodes import NodeSelector
from dra_core.model.objects import Metadata
from dra_core.names import DriverName, PoolName

#: ``ResourceSliceMaxDevices`` of the API (64 for features that are not published yet).
MAX_DEVICES: Final = 128
#: ``spec.pool.generation`` is an int64.
MAX_GENERATION: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class CounterSet:
    """Counters that devices of a pool share."""

    name: str
    counters: Mapping[str, Counter] = empty_map()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class ResourcePool:
    """Which pool a slice belongs to; ``slice_count`` is ``resourceSliceCount``."""

    name: PoolName
    generation: int
    slice_count: int
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class SliceSpec:
    """``spec`` of a ResourceSlice."""

    driver: DriverName
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """What a driver publishes of a pool."""

    metadata: Metadata
    spec: SliceSpec
    unknown: Mapping[str, Any] = empty_map()


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


def check_pool(pool: Pool) -> Pool:
    """What would make a pool invalid to the allocator: a bad name, or a device named twice."""
    names.check_pool_name(pool.name)
    twice = [name for name, n in Tally(d.name for d in pool.devices).items() if n > 1]
    if twice:
        raise InvalidValue(
            f"pool {pool.name!r} has two devices named {twice[0]!r}; names must be unique"
        )
    return pool

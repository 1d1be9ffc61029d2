"""Pools as a driver describes them, and ResourceSlices as the API server has them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_core.model.defaults import empty_map
from dra_core.model.devices import Counter, Device
from dra_core.model.nodes import NodeSelector
from dra_core.model.objects import Metadata
from dra_core.names import DriverName, PoolName

#: ``ResourceSliceMaxDevices`` of the API.
MAX_DEVICES: Final = 128
#: ``ResourceSliceMaxDevicesWithTaintsOrConsumesCounters``; list attributes lower it too (1.37.2).
MAX_ADVANCED_DEVICES: Final = 64
#: ``ResourceSliceMaxCounterSets`` of the API.
MAX_COUNTER_SETS: Final = 8
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


class Nodes(enum.Enum):
    """On which nodes the devices of a pool are, where it takes no selector to say so."""

    #: The node on which the driver runs (``nodeName``).
    THIS = "nodeName"
    #: Every node (``allNodes``).
    ALL = "allNodes"
    #: Each device says where it is (``perDeviceNodeSelection``).
    EACH_DEVICE = "perDeviceNodeSelection"


class Fallback(enum.Enum):
    """What becomes of a device that uses a feature which the cluster does not have."""

    #: It is left out of the pool.
    WITHHOLD = "withhold"
    #: It is published without the fields of that feature.
    PUBLISH_WITHOUT = "publish without"


#: A vendor's own answer: the device to publish instead, or None to leave it out.
Replace = Callable[[Device], Device | None]


@dataclass(frozen=True, slots=True)
class Pool:
    """What a driver has to offer, in the order in which it wants it handed out.

    Pools with ``nodes`` other than ``Nodes.THIS`` are seen by other nodes, too; their names must be
    unique among all nodes that run the driver. ``fallbacks`` are keyed by feature gate; see
    :mod:`dra_core.features` for the gates and what happens without a fallback.
    """

    name: PoolName
    devices: tuple[Device, ...]
    shared_counters: tuple[CounterSet, ...] = ()
    nodes: Nodes | NodeSelector = Nodes.THIS
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()
    fallbacks: Mapping[str, Fallback | Replace] = empty_map()


@dataclass(frozen=True, slots=True)
class PublishedSlice:
    """A ResourceSlice in the cluster, reduced to what planning needs.

    ``slice_count`` is ``spec.pool.resourceSliceCount``. ``Nodes.THIS`` stands for any ``nodeName``:
    a publisher sees slices of its own node only.
    """

    name: str
    pool: PoolName
    generation: int
    slice_count: int
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    nodes: Nodes | NodeSelector = Nodes.THIS
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()

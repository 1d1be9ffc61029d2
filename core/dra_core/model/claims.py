"""Claims: what was asked for, what was allocated, and how the devices are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dra_core.model.defaults import empty_map
from dra_core.model.nodes import NodeSelector
from dra_core.model.objects import Condition, Metadata
from dra_core.model.requests import ClaimSpec, DeviceConfiguration
from dra_core.model.taints import DeviceToleration
from dra_core.names import ClaimUID, DeviceName, DriverName, PoolName
from dra_core.quantity import Quantity


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """What the kubelet tells about a claim."""

    namespace: str
    name: str
    uid: ClaimUID

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} (UID {self.uid})"


@dataclass(frozen=True, slots=True)
class AllocationResult:
    """One entry of ``status.allocation.devices.results[]``.

    ``request`` is as the scheduler wrote it: ``<request>`` or ``<request>/<subrequest>``.
    """

    request: str
    driver: DriverName
    pool: PoolName
    device: DeviceName
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = None
    consumed_capacity: Mapping[str, Quantity] = empty_map()
    skip_node_operations: tuple[str, ...] = ()
    unknown: Mapping[str, Any] = empty_map()

    @property
    def main_request(self) -> str:
        """The name that containers use: the part before the slash."""
        return self.request.partition("/")[0]


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """Results, and the configuration that was in force when they were made."""

    results: tuple[AllocationResult, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class Allocation:
    """``status.allocation``."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class Consumer:
    """Who has reserved a claim; a pod unless ``api_group`` and ``resource`` say otherwise."""

    resource: str
    name: str
    uid: str
    api_group: str = ""
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class NetworkData:
    """What a network device looks like in the pod."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """What a driver says of an allocated device: ``status.devices[]``.

    ``consumed_capacity`` is where one design puts it; servers keep it in the allocation's results.
    """

    driver: str
    pool: str
    device: str
    share_id: str | None = None
    conditions: tuple[Condition, ...] = ()
    data: Any = None
    network_data: NetworkData | None = None
    consumed_capacity: Mapping[str, Quantity] = empty_map()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class ClaimStatus:
    """``status`` of a claim."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    devices: tuple[DeviceStatus, ...] = ()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class Claim:
    """A ResourceClaim."""

    metadata: Metadata
    spec: ClaimSpec
    status: ClaimStatus | None = None
    unknown: Mapping[str, Any] = empty_map()

    @property
    def reference(self) -> ClaimReference:
        """Namespace, name and UID."""
        m = self.metadata
        return ClaimReference(m.namespace, m.name, ClaimUID(m.uid))

    @property
    def results(self) -> tuple[AllocationResult, ...] | None:
        """The allocation results; None while the claim is not allocated."""
        allocation = self.status.allocation if self.status else None
        return None if allocation is None else allocation.devices.results

    def results_of(self, driver: DriverName) -> tuple[AllocationResult, ...]:
        """The results that ``driver`` has to prepare, in the order of the allocation."""
        return tuple(r for r in self.results or () if r.driver == driver)


@dataclass(frozen=True, slots=True)
class TemplateSpec:
    """Metadata and spec of the claims made from a template."""

    spec: ClaimSpec
    metadata: Metadata | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """A ResourceClaimTemplate."""

    metadata: Metadata
    spec: TemplateSpec
    unknown: Mapping[str, Any] = empty_map()

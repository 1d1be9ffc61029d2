"""Which API server: its version and feature gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from dra_core.errors import InvalidValue

#: Gates that change what resource.k8s.io objects may hold, with their default by minor version of
#: Kubernetes 1. A gate that a version does not list does not exist there (its fields neither).
GATES: Final[Mapping[int, Mapping[str, bool]]] = {
    36: {
        "DRAAdminAccess": True,
        "DRAConsumableCapacity": True,
        "DRADeviceBindingConditions": True,
        "DRADeviceTaintRules": False,
        "DRADeviceTaints": True,
        "DRAExtendedResource": True,
        "DRAListTypeAttributes": False,
        "DRANodeAllocatableResources": False,
        "DRAPartitionableDevices": True,
        "DRAPrioritizedList": True,
        "DRAResourceClaimDeviceStatus": True,
    },
    37: {
        "DRAAdminAccess": True,
        "DRAConsumableCapacity": True,
        "DRADerivedAttributes": False,
        "DRADeviceBindingConditions": True,
        "DRADeviceCompatibilityGroups": False,
        "DRADeviceTaintRules": True,
        "DRADeviceTaints": True,
        "DRAFractionalCapacityRange": False,
        "DRAListTypeAttributes": False,
        "DRANodeAllocatableResources": False,
        "DRAOptionalNodeOperations": False,
        "DRAPartitionableDevices": True,
        "DRAPartitionableDevicesType": False,
        "DRAPrioritizedList": True,
        "DRAResourceClaimDeviceStatus": True,
    },
}


#: Gates that a server of that minor version refuses to have off.
LOCKED: Final[Mapping[int, frozenset[str]]] = {
    36: frozenset({"DRAAdminAccess"}),
    37: frozenset({"DRAAdminAccess", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus"}),
}


@dataclass(frozen=True, slots=True)
class Server:
    """An API server of Kubernetes 1.``minor`` with some gates set other than by default."""

    minor: int = 37
    gates: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))

    def has(self, gate: str) -> bool:
        """Whether the gate is on; False where it does not exist."""
        known = GATES[self.minor]
        return gate in known and self.gates.get(gate, known[gate])


def server(version: str, gates: Mapping[str, bool] | None = None) -> Server:
    """The server for ``1.37`` or ``v1.37.2``; raises InvalidValue for one that is not known."""
    parts = version.removeprefix("v").split(".")
    known = ", ".join(f"1.{minor}" for minor in GATES)
    if len(parts) < 2 or parts[0] != "1" or not parts[1].isdigit() or int(parts[1]) not in GATES:
        raise InvalidValue(f"Kubernetes version {version!r} is not known here; known are: {known}")
    minor = int(parts[1])
    for gate, on in (gates or {}).items():
        if gate in LOCKED[minor] and not on:
            raise InvalidValue(f"Kubernetes 1.{minor} cannot have feature gate {gate!r} off")
        if gate not in GATES[minor]:
            raise InvalidValue(
                f"Kubernetes 1.{minor} has no feature gate {gate!r} for resource.k8s.io; "
                f"it has: {', '.join(GATES[minor])}"
            )
    return Server(minor, dict(gates or {}))

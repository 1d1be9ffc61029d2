"""What users ask for: requests, constraints and configuration, in claims, templates and classes."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dra_core.errors import InvalidValue
from dra_core.model.defaults import empty_map
from dra_core.model.objects import Metadata
from dra_core.model.taints import DeviceToleration
from dra_core.quantity import Quantity


class AllocationMode(enum.Enum):
    """How many devices a request is for."""

    EXACT_COUNT = "ExactCount"
    ALL = "All"


@dataclass(frozen=True, slots=True)
class DeviceSelector:
    """A CEL expression on one device; ``expression`` is None if there is no ``cel`` part."""

    expression: str | None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class DerivedAttribute:
    """A virtual attribute: a CEL expression that constraints can refer to by ``name``."""

    name: str
    expression: str
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class CapacityRequirements:
    """Amounts that each device must be able to give."""

    requests: Mapping[str, Quantity] = empty_map()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class ExactRequest:
    """``exactly``, and a subrequest of ``firstAvailable``, which has a ``name`` of its own.

    ``allocation_mode`` is the text of the API; :attr:`mode` is what clients go by.
    """

    device_class_name: str
    name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int | None = None
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()
    unknown: Mapping[str, Any] = empty_map()

    @property
    def mode(self) -> AllocationMode:
        """ExactCount unless said otherwise; clients must refuse modes that they do not know."""
        if not self.allocation_mode:
            return AllocationMode.EXACT_COUNT
        try:
            return AllocationMode(self.allocation_mode)
        except ValueError as error:
            known = ", ".join(mode.value for mode in AllocationMode)
            raise InvalidValue(
                f"allocation mode {self.allocation_mode!r} is not known here, known are: {known}; "
                "the claim needs a newer client"
            ) from error

    @property
    def device_count(self) -> int:
        """How many devices in mode ExactCount: one unless said otherwise."""
        return self.count or 1


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """One of ``exactly`` and ``first_available`` is there."""

    name: str
    exactly: ExactRequest | None = None
    first_available: tuple[ExactRequest, ...] = ()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class DeviceConstraint:
    """All devices of ``requests`` (of all if empty) match in, or differ by, an attribute."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class OpaqueConfiguration:
    """Parameters that only the driver understands, as JSON."""

    driver: str
    parameters: Any
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class DeviceConfiguration:
    """Configuration for ``requests`` (for all if empty).

    ``source`` is FromClass or FromClaim in an allocation, and empty elsewhere.
    """

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None
    source: str = ""
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """``spec.devices`` of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """``spec`` of a claim, and of the claims made from a template."""

    devices: DeviceClaim = DeviceClaim()
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class ClassSpec:
    """``spec`` of a DeviceClass."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str | None = None
    unknown: Mapping[str, Any] = empty_map()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """What admins define and requests name."""

    metadata: Metadata
    spec: ClassSpec = ClassSpec()
    unknown: Mapping[str, Any] = empty_map()

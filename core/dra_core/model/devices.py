"""Devices as a driver publishes them: ``ResourceSlice.spec.devices[]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from dra_core import names
from dra_core.errors import InvalidValue
from dra_core.names import DeviceName
from dra_core.quantity import Quantity

#: ``ResourceSliceMaxAttributesAndCapacitiesPerDevice`` of the API.
MAX_ATTRIBUTES_AND_CAPACITIES: Final = 32
#: ``DeviceAttributeMaxValueLength`` of the API, in bytes.
MAX_STRING: Final = 64


@dataclass(frozen=True, slots=True)
class Version:
    """The value of a ``version`` attribute (semver.org 2.0.0)."""

    text: str


#: The value of an attribute, exactly one of the API's ``string``, ``int``, ``bool``, ``version``.
AttributeValue = str | int | bool | Version


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One instance of hardware.

    ``attributes`` and ``capacity`` are keyed by name, with or without a domain. ``unknown`` keeps
    the fields this release has no name for, as JSON, so that reading and writing loses nothing.
    """

    name: DeviceName
    attributes: Mapping[str, AttributeValue] = field(default_factory=_nothing)
    capacity: Mapping[str, Quantity] = field(default_factory=_nothing)
    unknown: Mapping[str, Any] = field(default_factory=_nothing)

    def __eq__(self, other: object) -> bool:
        """Equal names, values and types: ``int: 1`` is not ``bool: true``."""
        if not isinstance(other, Device):
            return NotImplemented
        return (
            self.name == other.name
            and self.attributes == other.attributes
            and all(type(v) is type(other.attributes[k]) for k, v in self.attributes.items())
            and self.capacity == other.capacity
            and self.unknown == other.unknown
        )

    def __hash__(self) -> int:
        return hash(self.name)


def check_device(device: Device) -> Device:
    """What the API server would refuse: names, counts, lengths, the range of ``int``."""
    where = f"device {device.name!r}"
    names.check_dns_label("device name", device.name)
    count = len(device.attributes) + len(device.capacity)
    if count > MAX_ATTRIBUTES_AND_CAPACITIES:
        raise InvalidValue(
            f"{where} has {count} attributes and capacities, the API allows "
            f"{MAX_ATTRIBUTES_AND_CAPACITIES} together; leave some out"
        )
    for name in device.capacity:
        names.check_qualified_name(f"{where}: capacity", name)
    for name, value in device.attributes.items():
        names.check_qualified_name(f"{where}: attribute", name)
        _check_value(f"{where}: attribute {name!r}", value)
    return device


def _check_value(where: str, value: AttributeValue) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidValue(f"{where} is {value}, outside the 64-bit range of the API")
    text = value.text if isinstance(value, Version) else value
    if isinstance(text, str) and len(text.encode()) > MAX_STRING:
        raise InvalidValue(
            f"{where} has {len(text.encode())} bytes, the API allows {MAX_STRING}; shorten it"
        )

"""Devices as the variable ``device`` of an expression, and values as attributes of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dra_core.cel.faults import EvaluationFailed
from dra_core.cel.values import Map, Optional, QuantityValue, SemverValue, TypeValue, Value, type_of
from dra_core.errors import InvalidVersion
from dra_core.model.devices import AttributeValue, Capacity, Device, RawAttribute, Scalar, Version
from dra_core.semver import SemVer

_NOTHING: Final = Map({})

_LISTS: Final = ("strings", "ints", "bools", "versions")


@dataclass(frozen=True, slots=True)
class DeviceInput:
    """A device made ready for any number of expressions.

    ``broken`` says why no expression has a value for it.
    """

    value: Map
    broken: str = ""


def device_input(driver: str, device: Device) -> DeviceInput:
    """Make a device ready. Names without a domain are in that of the driver.

    A version that is none makes every expression fail, as in Kubernetes.
    """
    try:
        attributes = _by_domain(
            driver, {name: _attribute(name, value) for name, value in device.attributes.items()}
        )
    except EvaluationFailed as error:
        return DeviceInput(_NOTHING, broken=error.text)
    capacity = {name: _quantity(value) for name, value in device.capacity.items()}
    root = _named(
        {
            "driver": driver,
            "allowMultipleAllocations": bool(device.allow_multiple_allocations),
            "attributes": attributes,
            "capacity": _by_domain(driver, capacity),
        }
    )
    return DeviceInput(root)


def attribute_value(value: Value) -> AttributeValue:
    """The value of a derived attribute as one of the API's types.

    Errors: ``EvaluationFailed`` for a type that no attribute has; lists are of one type.
    """
    if type(value) is list:
        return _list_value([_native(item) for item in value])
    native = _native(value)
    if type(native) in (bool, int, str):
        scalar: Scalar = native
        return scalar
    if type(native) is SemverValue:
        return Version(str(native.version))
    raise EvaluationFailed(f"unsupported CEL return type: {type_of(value).name}")


def _list_value(items: list[Value]) -> AttributeValue:
    if not items:
        return ()
    kind = type(items[0])
    if kind not in (bool, int, str, SemverValue):
        raise EvaluationFailed(f"unsupported list element type: {type_of(items[0]).name}")
    for place, item in enumerate(items):
        if type(item) is not kind:
            raise EvaluationFailed(
                f"expected list element at index {place} to be {type_of(items[0]).name}, "
                f"got {type_of(item).name}"
            )
    if kind is SemverValue:
        return tuple(Version(str(item.version)) for item in items)
    return tuple(items)


def _native(value: Value) -> Value:
    while type(value) is Optional:
        value = value.value
    return value.name if type(value) is TypeValue else value


def _attribute(name: str, value: AttributeValue) -> Value:
    if isinstance(value, RawAttribute):
        if len(value.data) == 1 and any(value.data.get(kind) == [] for kind in _LISTS):
            return []
        raise EvaluationFailed(f"attribute {name}: unsupported attribute value")
    if isinstance(value, tuple):
        return [_scalar(name, item) for item in value]
    return _scalar(name, value)


def _scalar(name: str, value: Scalar) -> Value:
    if not isinstance(value, Version):
        return value
    try:
        return SemverValue(SemVer.parse(value.text))
    except InvalidVersion as error:
        raise EvaluationFailed(f"attribute {name}: parse semantic version: {error}") from error


def _quantity(capacity: Capacity) -> Value:
    return QuantityValue(capacity.value)


def _by_domain(driver: str, values: Mapping[str, Value]) -> Map:
    domains: dict[str, dict[str, Value]] = {}
    for name, value in values.items():
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domains.setdefault(domain, {})[identifier] = value
    found = {domain: (domain, _named(entries)) for domain, entries in domains.items()}
    return Map(found, default=_NOTHING, named=True)


def _named(entries: Mapping[str, Value]) -> Map:
    return Map({name: (name, value) for name, value in entries.items()}, named=True)

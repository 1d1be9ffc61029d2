"""Devices for ``dra cel``: from slices, from a file with one device, from a line of a batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_cli.documents import load
from dra_core import wire
from dra_core.cel.devices import DeviceInput, device_input
from dra_core.errors import DraError, InvalidObject, InvalidValue
from dra_core.model.devices import AttributeValue, Device, Version
from dra_core.model.slices import ResourceSlice

#: What a device of a file or a batch has beside the fields of the API.
_PLACE: Final = ("driver", "pool")
_FIELDS: Final = "driver, attributes, capacity, allowMultipleAllocations"
_INT64: Final = 2**63


@dataclass(frozen=True, slots=True)
class Subject:
    """A device that an expression is asked about, and what to call it."""

    driver: str
    pool: str
    device: Device
    input: DeviceInput


def from_slices(files: Sequence[str]) -> Iterator[Subject]:
    """The devices of all ResourceSlices in files; other objects are passed over."""
    for name in files:
        for document in load(name):
            if document.data.get("kind") != "ResourceSlice":
                continue
            value = wire.read(document.data)
            assert isinstance(value, ResourceSlice)  # noqa: S101 - decided by the kind
            spec = value.spec
            for device in spec.devices:
                yield _subject(spec.driver, spec.pool.name, device)


def from_file(name: str) -> Subject:
    """The device that a file describes: as an entry of ``spec.devices`` with its ``driver``.

    A field that no device has is refused here: misspelt, it would make selectors fail.
    """
    documents = list(load(name))
    where = "standard input" if name == "-" else name
    if len(documents) != 1:
        raise InvalidValue(f"{where}: holds {len(documents)} documents, one device is expected")
    data = documents[0].data
    if "kind" in data:
        kind = data["kind"]
        raise InvalidValue(f"{where}: holds a {kind}, a device is expected; slices go to -f")
    try:
        subject = from_data(data)
    except DraError as error:
        raise InvalidValue(f"{where}: {error}") from error
    if subject.device.unknown:
        unknown = ", ".join(sorted(subject.device.unknown))
        raise InvalidValue(f"{where}: a device has no field {unknown}; {_FIELDS} are looked at")
    return subject


def from_data(data: object) -> Subject:
    """A device as data, as in ``spec.devices`` of a slice and with its ``driver``.

    A capacity may be a quantity rather than an object with ``value``.
    """
    if not isinstance(data, Mapping):
        raise InvalidObject(f"a device is an object, not {_kind_of_json(data)}")
    known = {key: value for key, value in data.items() if key not in _PLACE}
    driver, pool = (data.get(key, "") for key in _PLACE)
    if not isinstance(driver, str) or not isinstance(pool, str):
        raise InvalidObject("driver and pool of a device are text")
    capacity = known.get("capacity")
    if isinstance(capacity, Mapping):
        known["capacity"] = {name: _amount(value) for name, value in capacity.items()}
    device = wire.device_from_json({"name": "device", **known})
    _check_numbers(device)
    return _subject(driver, pool, device)


def _amount(value: object) -> Mapping[str, Any]:
    """A capacity in the form of the API; a number may have a fraction there."""
    found = value if isinstance(value, Mapping) else {"value": value}
    amount = found.get("value")
    return {**found, "value": repr(amount)} if isinstance(amount, float) else found


def _check_numbers(device: Device) -> None:
    """The API has whole numbers of 64 bits."""
    for name, value in device.attributes.items():
        for number in value if isinstance(value, tuple) else (value,):
            if type(number) is int and not -_INT64 <= number < _INT64:
                raise InvalidObject(f"attribute {name}: a number does not fit into 64 bits")


def _kind_of_json(data: object) -> str:
    if isinstance(data, list):
        return "a list"
    return f"{data!r:.60}" if isinstance(data, str) else json.dumps(data)


def _subject(driver: str, pool: str, device: Device) -> Subject:
    return Subject(driver, pool, device, device_input(driver, device))


def short(value: AttributeValue) -> dict[str, Any]:
    """An attribute's value as the API writes it: ``{"string": "a"}``, ``{"ints": [1]}``."""
    if isinstance(value, tuple):
        key = f"{_kind(value[0])}s" if value else "strings"
        return {key: [_plain(item) for item in value]}
    return {_kind(value): _plain(value)}


def _kind(value: object) -> str:
    if isinstance(value, Version):
        return "version"
    return {bool: "bool", int: "int"}.get(type(value), "string")


def _plain(value: object) -> object:
    return value.text if isinstance(value, Version) else value

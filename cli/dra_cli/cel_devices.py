"""Devices for ``dra cel``: from slices, from a file with one device, from a line of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dra_cli.documents import load
from dra_core import wire
from dra_core.cel.devices import DeviceInput, device_input
from dra_core.errors import InvalidObject, InvalidValue
from dra_core.model.devices import AttributeValue, Device, Version
from dra_core.model.slices import ResourceSlice


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
    """The device that a file describes: as an entry of ``spec.devices`` with its ``driver``."""
    documents = list(load(name))
    if len(documents) != 1:
        raise InvalidValue(f"{name}: holds {len(documents)} documents, one device is expected")
    return from_data(documents[0].data)


def from_data(data: object) -> Subject:
    """A device as data, as in ``spec.devices`` of a slice and with its ``driver``.

    A capacity may be a quantity rather than an object with ``value``.
    """
    if not isinstance(data, Mapping):
        raise InvalidObject(f"a device is an object, not {data!r:.60}")
    known = {key: value for key, value in data.items() if key != "driver"}
    driver = data.get("driver", "")
    if not isinstance(driver, str):
        raise InvalidObject(f"driver is text, not {driver!r:.60}")
    capacity = known.get("capacity")
    if isinstance(capacity, Mapping):
        known["capacity"] = {
            name: value if isinstance(value, Mapping) else {"value": value}
            for name, value in capacity.items()
        }
    return _subject(driver, "", wire.device_from_json({"name": "device", **known}))


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

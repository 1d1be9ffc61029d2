"""Pools as they are at one moment, whatever their driver does with its objects later.

Dataclasses are frozen, the maps in them are not: a driver that changes one in place would change
what was published before, too, and nobody could see a difference. Lists become the tuples that they
should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import is_dataclass, replace
from typing import Any, Final

from dra_core.model.defaults import EMPTY
from dra_core.model.devices import Device, RawAttribute
from dra_core.model.slices import Pool

_SIMPLE: Final = (str, int, bool, type(None))
#: Fields that hold plain JSON.
_JSON: Final = ("unknown",)


def of_pool(pool: Pool, before: Pool | None) -> Pool:
    """A pool that nobody else can change; devices that are as ``before`` are the same objects."""
    known = {device.name: device for device in before.devices} if before else {}
    devices = []
    for device in pool.devices:
        same = known.get(device.name)
        devices.append(same if same == device and same is not None else of_device(device))
    return replace(
        pool,
        devices=tuple(devices),
        shared_counters=_value(pool.shared_counters),
        nodes=_value(pool.nodes),
        skip_node_operations=_value(pool.skip_node_operations),
        fallbacks=dict(pool.fallbacks),
    )


def of_device(device: Device) -> Device:
    """A device that nobody else can change."""
    copied: Device = _part(device)
    return copied


def _value(value: Any) -> Any:
    if type(value) in _SIMPLE:
        return value
    if isinstance(value, Mapping):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple([_value(item) for item in value])
    if isinstance(value, RawAttribute):
        return RawAttribute(deepcopy(dict(value.data)))
    return _part(value) if is_dataclass(value) else value


def _part(part: Any) -> Any:
    """A dataclass; itself if there is nothing in it that could change."""
    found = {}
    for name in part.__dataclass_fields__:
        value = getattr(part, name)
        if type(value) in _SIMPLE or value is EMPTY or (type(value) is tuple and not value):
            continue
        found[name] = deepcopy(dict(value)) if name in _JSON else _value(value)
    return replace(part, **found) if found else part

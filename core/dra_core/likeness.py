"""Whether a device is as right as one that has been judged already.

Devices of a pool are mostly alike: they differ in their name and in numbers and texts. Where that
is all, only these have to be judged, in a tenth of the time.
"""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Final

from dra_core.model.devices import AttributeValue, Device, Version
from dra_core.validation import devices, names
from dra_core.validation.problems import Path

_INT64: Final = range(-(2**63), 2**63)
_WHERE: Final = Path("")
_rest = attrgetter(*(f.name for f in fields(Device) if f.name not in ("name", "attributes")))


def as_right_as(device: Device, right: Device) -> bool:
    """Whether ``device`` is right because ``right`` is; False says nothing."""
    try:
        return (
            tuple(device.attributes) == tuple(right.attributes)
            and all(map(_as_right, device.attributes.values(), right.attributes.values()))
            and all(map(_same, _rest(device), _rest(right)))
            and not names.dns_label(device.name, _WHERE)
        )
    except (AttributeError, TypeError):  # not even a device
        return False


def _same(part: object, other: object) -> bool:
    """As written: 1 is not True, and for some rules ``1000m`` is not ``1``."""
    if isinstance(part, dict) and isinstance(other, dict):
        return tuple(part) == tuple(other) and all(map(_same, part.values(), other.values()))
    return part is other or repr(part) == repr(other)


def _as_right(value: AttributeValue, right: AttributeValue) -> bool:
    if type(value) is not type(right):
        return False
    if isinstance(value, str):
        return value == right or not devices.string_value(value, _WHERE)
    if isinstance(value, int):
        return value in _INT64
    if isinstance(value, Version):
        return value == right or not devices.version_value(value.text, _WHERE)
    return value is right

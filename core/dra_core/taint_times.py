"""When taints were added: ``timeAdded`` of an unchanged taint survives every write.

The API server sets ``timeAdded`` of a device taint to now on any write that lacks it, and the
evictions of ``tolerationSeconds`` count from there. So a publisher that rewrites a slice has to
send the time that is there. A taint is the same one while its key, value and effect are (API text
of DeviceTaint); a changed one gets a new time, and so does one that was away in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from dra_core.model.devices import Device
from dra_core.model.taints import DeviceTaint
from dra_core.names import DeviceName

#: Times by device, key, value and effect.
Times = Mapping[tuple[DeviceName, str, str, str], datetime]


def times(devices: Iterable[Device]) -> dict[tuple[DeviceName, str, str, str], datetime]:
    """The times that the taints of these devices have; the last one counts."""
    return {
        _identity(device, taint): taint.time_added
        for device in devices
        for taint in device.taints
        if taint.time_added is not None
    }


def kept(devices: Iterable[Device], known: Times) -> tuple[Device, ...]:
    """The devices, taints without a time with the one that is known.

    A time that the vendor gives stands, in whole seconds as the server keeps it.
    """
    return tuple(_with_times(device, known) if device.taints else device for device in devices)


def _with_times(device: Device, known: Times) -> Device:
    taints = tuple(_with_time(device, taint, known) for taint in device.taints)
    return device if taints == device.taints else replace(device, taints=taints)


def _with_time(device: Device, taint: DeviceTaint, known: Times) -> DeviceTaint:
    if taint.time_added is None:
        return replace(taint, time_added=known.get(_identity(device, taint)))
    # metav1.Time is written as RFC 3339 without fractions: cut off, not rounded.
    return replace(taint, time_added=taint.time_added.astimezone(UTC).replace(microsecond=0))


def _identity(device: Device, taint: DeviceTaint) -> tuple[DeviceName, str, str, str]:
    return device.name, taint.key, taint.value, taint.effect

"""How the content of a pool is cut into slices.

A slice holds devices or counter sets, never both. Counter sets come first: their number seldom
changes, so slices of devices keep their index. A slice takes 128 devices, or 64 as soon as one of
them has taints, consumes counters or has a list attribute; devices stay in the vendor's order, so
it is cut early where the limit drops.
"""

from __future__ import annotations

from dataclasses import dataclass

from dra_core.model.devices import Device, is_advanced
from dra_core.model.slices import (
    MAX_ADVANCED_DEVICES,
    MAX_COUNTER_SETS,
    MAX_DEVICES,
    CounterSet,
)

Devices = tuple[Device, ...]
Counters = tuple[CounterSet, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What one slice holds."""

    devices: Devices = ()
    counters: Counters = ()


def parts(devices: Devices, counters: Counters = ()) -> list[Part]:
    """A pool cut into as few slices as there can be; an empty pool is one empty slice."""
    found = [Part(counters=c) for c in counter_chunks(counters)]
    found += [Part(devices=d) for d in chunks(devices)]
    return found or [Part()]


def counter_chunks(counters: Counters) -> list[Counters]:
    """Counter sets, eight to a slice."""
    return [counters[i : i + MAX_COUNTER_SETS] for i in range(0, len(counters), MAX_COUNTER_SETS)]


def chunks(devices: Devices) -> list[Devices]:
    """Devices, as many to a slice as it takes."""
    found: list[Devices] = []
    at = 0
    while at < len(devices):
        size = _room(devices, at)
        found.append(devices[at : at + size])
        at += size
    return found


def spread(devices: Devices, count: int) -> list[Devices] | None:
    """``devices`` over exactly ``count`` slices, none of them empty; None if that cannot be."""
    if len(devices) < count:
        return None
    found: list[Devices] = []
    at = 0
    for behind in reversed(range(count)):
        # As full as possible, one device at least left for each slice behind.
        size = min(_room(devices, at), len(devices) - at - behind)
        found.append(devices[at : at + size])
        at += size
    return found if at == len(devices) else None


def fits(devices: Devices) -> bool:
    """Whether one slice takes them."""
    return len(devices) <= (MAX_ADVANCED_DEVICES if _any_advanced(devices) else MAX_DEVICES)


def _room(devices: Devices, start: int) -> int:
    """How many of the devices from ``start`` on one slice takes."""
    limit = MAX_DEVICES
    for size, device in enumerate(devices[start : start + MAX_DEVICES]):
        if limit == MAX_DEVICES and is_advanced(device):
            if size >= MAX_ADVANCED_DEVICES:
                return size
            limit = MAX_ADVANCED_DEVICES
        if size == limit:
            return size
    return min(limit, len(devices) - start)


def _any_advanced(devices: Devices) -> bool:
    return any(is_advanced(device) for device in devices)

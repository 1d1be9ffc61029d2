"""Which slices count, and whether a pool can be used.

To the allocator only slices of the highest generation of a pool count, and the pool is complete
when their number is what the first of them says. Here all of them have to agree; where that is
stricter than the scheduler, the text says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dra_core.model.slices import ResourceSlice
from dra_core.names import DriverName, PoolName


@dataclass(frozen=True, slots=True)
class PoolState:
    """The newest generation of one pool. ``troubles`` are sentences; empty if it can be used."""

    driver: DriverName
    name: PoolName
    generation: int
    slices: tuple[ResourceSlice, ...]
    troubles: tuple[str, ...]


def pools(slices: Iterable[ResourceSlice]) -> list[PoolState]:
    """All pools, by driver and name; slices in the order of their names."""
    grouped: dict[tuple[DriverName, PoolName], list[ResourceSlice]] = {}
    for item in slices:
        grouped.setdefault((item.spec.driver, item.spec.pool.name), []).append(item)
    return [_state(driver, name, found) for (driver, name), found in sorted(grouped.items())]


def _state(driver: DriverName, name: PoolName, found: Sequence[ResourceSlice]) -> PoolState:
    newest = max(item.spec.pool.generation for item in found)
    current = sorted(
        (item for item in found if item.spec.pool.generation == newest),
        key=lambda item: item.metadata.name,
    )
    troubles = [*_completeness(current), *_duplicates(current), *_counters(current)]
    return PoolState(driver, name, newest, tuple(current), tuple(troubles))


def _completeness(current: Sequence[ResourceSlice]) -> Iterable[str]:
    counts = sorted({item.spec.pool.slice_count for item in current})
    if len(counts) > 1:
        yield (
            f"its slices disagree on resourceSliceCount ({', '.join(map(str, counts))}); the "
            "scheduler goes by the first slice and does not notice"
        )
    elif len(current) < counts[0]:
        yield f"incomplete: {len(current)} of {counts[0]} slices; nothing is allocated from it"
    elif len(current) > counts[0]:
        yield (
            f"has {len(current)} slices where resourceSliceCount says {counts[0]}; the scheduler "
            "takes it for incomplete"
        )


def _duplicates(current: Sequence[ResourceSlice]) -> Iterable[str]:
    devices = Counter(d.name for item in current for d in item.spec.devices)
    sets = Counter(s.name for item in current for s in item.spec.shared_counters)
    for what, found in (("device", devices), ("counter set", sets)):
        for name, count in found.items():
            if count > 1:
                yield f"invalid: {what} {name!r} is there {count} times"


def _counters(current: Sequence[ResourceSlice]) -> Iterable[str]:
    known = {s.name: s.counters for item in current for s in item.spec.shared_counters}
    for item in current:
        for device in item.spec.devices:
            for consumed in device.consumes_counters:
                counters = known.get(consumed.counter_set)
                if counters is None:
                    yield (
                        f"invalid: device {device.name!r} consumes from counter set "
                        f"{consumed.counter_set!r}, which no slice of the pool has"
                    )
                    continue
                for name in consumed.counters:
                    if name not in counters:
                        yield (
                            f"invalid: device {device.name!r} consumes counter {name!r}, which "
                            f"counter set {consumed.counter_set!r} does not have"
                        )

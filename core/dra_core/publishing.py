"""plan(pool, slices in the cluster) -> the writes that bring the one to the other.

A consumer looks at the slices of a pool's highest generation only and takes the pool as complete
when there are as many as each of them says. The plan keeps one promise at every moment between two
of its writes, and if they stop anywhere: **a pool that looks complete is what some driver wanted it
to be**. How:

* A change that fits in one slice is one update, atomic, and keeps the generation.
* Anything larger begins a new generation. Its first write makes the pool incomplete, its last one
  complete; slices are rewritten in place by index, missing ones created, and only then are those
  deleted that the new generation does not need.
* A generation that was begun and never finished (a crash, a slice deleted by hand) is continued if
  what is there still is what is wanted, and superseded otherwise.

Order is the vendor's: devices as listed, slices by index (the allocator sorts slices by name, so
names start with the index).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from dra_core.model.devices import Device
from dra_core.model.slices import MAX_DEVICES, MAX_GENERATION, Pool, PublishedSlice
from dra_core.names import slice_index

Devices = tuple[Device, ...]


@dataclass(frozen=True, slots=True)
class Create:
    """Create this slice."""

    slice: PublishedSlice


@dataclass(frozen=True, slots=True)
class Update:
    """Replace the spec of the slice with this name."""

    slice: PublishedSlice


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the slice with this name."""

    name: str


Write = Create | Update | Delete


@dataclass(frozen=True, slots=True)
class Plan:
    """Writes, to be made one after the other in this order."""

    generation: int
    writes: tuple[Write, ...]


def chunks(devices: Devices) -> list[Devices]:
    """The devices of a pool cut into slices; an empty pool is one empty slice."""
    return [devices[i : i + MAX_DEVICES] for i in range(0, len(devices), MAX_DEVICES)] or [()]


def plan(
    pool: Pool,
    actual: Iterable[PublishedSlice],
    name: Callable[[int], str],
    *,
    last_generation: int = 0,
) -> Plan:
    """What to write so that the cluster has ``pool``.

    ``actual`` holds the slices of this pool (others are left alone), ``name`` gives the name of the
    slice with an index. ``last_generation`` is the highest generation seen so far, for when the
    slices themselves are gone.
    """
    mine = sorted((s for s in actual if s.pool == pool.name), key=lambda s: s.name)
    generation = max((s.generation for s in mine), default=last_generation)
    current = [s for s in mine if s.generation == generation]
    layout = _changed_in_place(pool.devices, current) or _continued(pool.devices, current)
    if layout is None and not mine and 0 < generation <= MAX_GENERATION:
        layout = dict(enumerate(chunks(pool.devices)))  # all gone: the same again
    if layout is not None:
        return _writes(pool, mine, generation, layout, name)
    layout = dict(enumerate(chunks(pool.devices)))
    if generation < MAX_GENERATION:
        return _writes(pool, mine, generation + 1, layout, name)
    # No higher generation exists: a driver may start again once the old slices are gone.
    fresh = _writes(pool, [], 1, layout, name)
    return Plan(1, (*(Delete(s.name) for s in mine), *fresh.writes))


def _changed_in_place(
    wanted: Devices, current: Sequence[PublishedSlice]
) -> dict[int, Devices] | None:
    """Contents by index if the pool is complete and at most one of its slices has to change."""
    layout = _indexed(current)
    count = len(current)
    if not layout or list(layout) != list(range(count)):
        return None
    if any(s.slice_count != count for s in current):
        return None
    contents = list(layout.values())
    before, changed = 0, 0
    for devices in contents[:-1]:
        if wanted[before : before + len(devices)] != devices:
            break
        before += len(devices)
        changed += 1
    after = sum(len(devices) for devices in contents[changed + 1 :])
    middle = wanted[before : len(wanted) - after]
    proposal = [*contents[:changed], middle, *contents[changed + 1 :]]
    if not _fits(middle, count) or tuple(d for c in proposal for d in c) != wanted:
        return None
    return dict(enumerate(proposal))


def _continued(wanted: Devices, current: Sequence[PublishedSlice]) -> dict[int, Devices] | None:
    """Contents by index if the slices that exist are right and only some are missing.

    Each existing slice must appear in ``wanted`` as it is, in order; what lies between two of them
    must fit into the missing slices between their indexes.
    """
    present = _indexed(current)
    counts = {s.slice_count for s in current}
    if not present or len(counts) != 1 or not all(present.values()):
        return None
    count = counts.pop()
    if len(present) >= count or max(present) >= count:
        return None
    position = {device.name: at for at, device in enumerate(wanted)}
    layout: dict[int, Devices] = {}
    index, reached = 0, 0  # the next slice and the next device to place
    for there, devices in present.items():
        start = position.get(devices[0].name, -1)
        gap = _spread(wanted[reached:start], there - index) if start >= reached else None
        if gap is None or wanted[start : start + len(devices)] != devices:
            return None
        layout.update(enumerate([*gap, devices], index))
        index, reached = there + 1, start + len(devices)
    rest = _spread(wanted[reached:], count - index)
    return None if rest is None else layout | dict(enumerate(rest, index))


def _indexed(slices: Sequence[PublishedSlice]) -> dict[int, Devices] | None:
    """Contents by index, in order, or None if the names are not ours or an index comes twice."""
    layout: dict[int, Devices] = {}
    for published in slices:
        index = slice_index(published.name)
        if index is None or index in layout:
            return None
        layout[index] = published.devices
    return dict(sorted(layout.items()))


def _fits(devices: Devices, count: int) -> bool:
    """Whether these may be one of ``count`` slices: an empty one only if it is the only one."""
    return len(devices) <= MAX_DEVICES and bool(devices or count == 1)


def _spread(devices: Devices, count: int) -> list[Devices] | None:
    """``devices`` over exactly ``count`` slices, none of them empty, or None."""
    if not count <= len(devices) <= count * MAX_DEVICES:
        return None
    # As full as possible from the front, one device at least left for each slice behind.
    sizes: list[int] = []
    for behind in reversed(range(count)):
        sizes.append(min(MAX_DEVICES, len(devices) - sum(sizes) - behind))
    edges = [0, *accumulate(sizes)]
    return [devices[a:b] for a, b in pairwise(edges)]


def _writes(
    pool: Pool,
    mine: Sequence[PublishedSlice],
    generation: int,
    layout: Mapping[int, Devices],
    name: Callable[[int], str],
) -> Plan:
    by_index: dict[int | None, PublishedSlice] = {}
    for published in sorted(mine, key=lambda s: s.generation != generation):
        by_index.setdefault(slice_index(published.name), published)
    kept: set[str] = set()
    writes: list[Write] = []
    for index, devices in sorted(layout.items()):
        existing = by_index.get(index)
        wanted = PublishedSlice(
            name=existing.name if existing else name(index),
            pool=pool.name,
            generation=generation,
            slice_count=len(layout),
            devices=devices,
        )
        kept.add(wanted.name)
        if existing is None:
            writes.append(Create(wanted))
        elif existing != wanted:
            writes.append(Update(wanted))
    writes.extend(Delete(s.name) for s in mine if s.name not in kept)
    return Plan(generation, tuple(writes))

"""plan(pool, slices in the cluster) -> the writes that bring the one to the other.

A consumer looks at the slices of a pool's highest generation only and takes the pool as complete
when there are as many as each of them says. The plan keeps one promise at every moment between two
of its writes, and if they stop anywhere: **a pool that looks complete is what some driver wanted it
to be**. How:

* A change that fits in one slice is one update, atomic, and keeps the generation. With ``strict``
  it begins a new generation, as the API's text has it; see docs/adr/0003 and 0008.
* Anything larger begins a new generation. Its first write makes the pool incomplete, its last one
  complete; slices are rewritten in place by index, missing ones created, and only then are those
  deleted that the new generation does not need.
* A generation that was begun and never finished (a crash, a slice deleted by hand) is continued if
  what is there still is what is wanted, and superseded otherwise.
* ``nodeName`` of a slice cannot be changed. Where it has to, the old slice is deleted just before
  its successor is created.

Order is the vendor's: devices as listed, slices by index (the allocator sorts slices by name, so
names start with the index); slices with counter sets come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dra_core import layout, taint_times
from dra_core.layout import Devices, Part
from dra_core.model.slices import MAX_GENERATION, Nodes, Pool, PublishedSlice
from dra_core.names import slice_index
from dra_core.taint_times import Times

Layout = Mapping[int, Part]


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


def plan(
    pool: Pool,
    actual: Iterable[PublishedSlice],
    name: Callable[[int], str],
    *,
    last_generation: int = 0,
    strict: bool = False,
    taint_memory: Times | None = None,
) -> Plan:
    """What to write so that the cluster has ``pool``.

    ``actual`` holds the slices of this pool (others are left alone), ``name`` gives the name of the
    slice with an index. ``last_generation`` is the highest generation seen so far and
    ``taint_memory`` the times of taints, for when the slices themselves are gone.
    """
    mine = sorted((s for s in actual if s.pool == pool.name), key=lambda s: (s.generation, s.name))
    known = dict(taint_memory or {}) | taint_times.times(d for s in mine for d in s.devices)
    wanted = replace(pool, devices=taint_times.kept(pool.devices, known))
    generation = max((s.generation for s in mine), default=last_generation)
    same = _same_generation(wanted, mine, generation, name, strict=strict)
    if same is not None:
        return same
    fresh = dict(enumerate(layout.parts(wanted.devices, wanted.shared_counters)))
    following = max(generation, last_generation) + 1
    if following <= MAX_GENERATION:
        return _writes(wanted, mine, following, fresh, name)
    # No higher generation exists: a driver may start again once the old slices are gone.
    begun = _writes(wanted, [], 1, fresh, name)
    return Plan(1, (*(Delete(s.name) for s in mine), *begun.writes))


def _same_generation(
    pool: Pool,
    mine: Sequence[PublishedSlice],
    generation: int,
    name: Callable[[int], str],
    *,
    strict: bool,
) -> Plan | None:
    """The plan if the pool can keep its generation, or take up the one that was begun."""
    if not mine:
        if not 0 < generation <= MAX_GENERATION:
            return None
        again = dict(enumerate(layout.parts(pool.devices, pool.shared_counters)))
        return _writes(pool, mine, generation, again, name)  # all gone: the same again
    current = [s for s in mine if s.generation == generation]
    in_place = _changed_in_place(pool, current)
    if in_place is not None:
        found = _writes(pool, mine, generation, in_place, name)
        changed = [w for w in found.writes if not isinstance(w, Delete)]
        most = 0 if strict else 1
        if len(changed) <= most and all(isinstance(w, Update) for w in changed):
            return found
    begun = _continued(pool, current)
    if begun is not None:
        found = _writes(pool, mine, generation, begun, name)
        right = {s.name for s in current}
        # A change of what is there, while the rest is completed, would be seen half done.
        if right.isdisjoint(w.name for w in found.writes if isinstance(w, Delete)) and (
            right.isdisjoint(w.slice.name for w in found.writes if isinstance(w, Update))
        ):
            return found
    return None


def _changed_in_place(pool: Pool, current: Sequence[PublishedSlice]) -> Layout | None:
    """Parts by index if the pool is complete and its slices can hold what is wanted as they are."""
    present = _indexed(current)
    count = len(current)
    if not present or list(present) != list(range(count)):
        return None
    if any(s.slice_count != count for s in current):
        return None
    counters = layout.counter_chunks(pool.shared_counters)
    behind = list(present.values())[len(counters) :]
    if any(part.counters for part in behind):
        return None
    contents = [part.devices for part in behind]
    if not contents and not pool.devices:
        return dict(enumerate(Part(counters=c) for c in counters))
    devices = _one_replaced(pool.devices, contents, alone=count == 1)
    if devices is None:
        return None
    return dict(enumerate([*(Part(counters=c) for c in counters), *map(Part, devices)]))


def _one_replaced(
    wanted: Devices, contents: Sequence[Devices], *, alone: bool
) -> list[Devices] | None:
    """``contents`` with at most one of them other than it is, so that they are ``wanted``."""
    before, changed = 0, 0
    for devices in contents[:-1]:
        if wanted[before : before + len(devices)] != devices:
            break
        before += len(devices)
        changed += 1
    after = sum(len(devices) for devices in contents[changed + 1 :])
    middle = wanted[before : len(wanted) - after]
    proposal = [*contents[:changed], middle, *contents[changed + 1 :]]
    # An empty slice only if it is the only one.
    if not layout.fits(middle) or not (middle or alone):
        return None
    return proposal if tuple(d for c in proposal for d in c) == wanted else None


def _continued(pool: Pool, current: Sequence[PublishedSlice]) -> Layout | None:
    """Parts by index if the slices that exist are right and only some are missing.

    Each existing slice of devices must appear in the pool as it is, in order; what lies between two
    of them must fit into the missing slices between their indexes.
    """
    present = _indexed(current)
    counts = {s.slice_count for s in current}
    if not present or len(counts) != 1:
        return None
    count = counts.pop()
    if len(present) >= count or max(present) >= count:
        return None
    counters = layout.counter_chunks(pool.shared_counters)
    first = len(counters)
    held = {index - first: part.devices for index, part in present.items() if index >= first}
    if not all(held.values()):
        return None
    devices = _gaps_filled(pool.devices, held, count - first)
    if devices is None:
        return None
    return dict(enumerate([*(Part(counters=c) for c in counters), *map(Part, devices)]))


def _gaps_filled(wanted: Devices, held: Mapping[int, Devices], count: int) -> list[Devices] | None:
    """``wanted`` over ``count`` slices of which those in ``held`` are there already."""
    position = {device.name: at for at, device in enumerate(wanted)}
    found: list[Devices] = []
    reached = 0  # the next device to place
    for there, devices in sorted(held.items()):
        start = position.get(devices[0].name, -1)
        gap = layout.spread(wanted[reached:start], there - len(found)) if start >= reached else None
        if gap is None or wanted[start : start + len(devices)] != devices:
            return None
        found += [*gap, devices]
        reached = start + len(devices)
    rest = layout.spread(wanted[reached:], count - len(found)) if count >= len(found) else None
    return None if rest is None else [*found, *rest]


def _indexed(slices: Sequence[PublishedSlice]) -> dict[int, Part] | None:
    """Parts by index, in order, or None if the names are not ours or an index comes twice."""
    found: dict[int, Part] = {}
    for published in slices:
        index = slice_index(published.name)
        if index is None or index in found:
            return None
        found[index] = Part(published.devices, published.shared_counters)
    return dict(sorted(found.items()))


def _writes(
    pool: Pool,
    mine: Sequence[PublishedSlice],
    generation: int,
    parts: Layout,
    name: Callable[[int], str],
) -> Plan:
    by_index: dict[int | None, PublishedSlice] = {}
    for published in sorted(mine, key=lambda s: s.generation != generation):
        by_index.setdefault(slice_index(published.name), published)
    kept: set[str] = set()
    writes: list[Write] = []
    for index, part in sorted(parts.items()):
        existing = by_index.get(index)
        wanted = _slice(pool, part, generation, len(parts))
        if existing is None or not _same_node_name(existing, wanted):
            wanted = replace(wanted, name=name(index))
            if existing is not None:
                writes.append(Delete(existing.name))
                kept.add(existing.name)
            writes.append(Create(wanted))
        else:
            wanted = replace(wanted, name=existing.name)
            if existing != wanted:
                writes.append(Update(wanted))
        kept.add(wanted.name)
    writes.extend(Delete(s.name) for s in mine if s.name not in kept)
    return Plan(generation, tuple(writes))


def _slice(pool: Pool, part: Part, generation: int, count: int) -> PublishedSlice:
    """The slice without its name."""
    # The API wants partitionTypeAttribute only where a device of the slice consumes counters.
    partitions = any(device.consumes_counters for device in part.devices)
    return PublishedSlice(
        name="",
        pool=pool.name,
        generation=generation,
        slice_count=count,
        devices=part.devices,
        shared_counters=part.counters,
        nodes=pool.nodes,
        partition_type_attribute=pool.partition_type_attribute if partitions else None,
        skip_node_operations=pool.skip_node_operations,
    )


def _same_node_name(a: PublishedSlice, b: PublishedSlice) -> bool:
    return (a.nodes is Nodes.THIS) == (b.nodes is Nodes.THIS)

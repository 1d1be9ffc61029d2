"""What of a pool can be published: the API server's verdict on each device, asked beforehand.

A slice with one bad device is refused as a whole, and a pool with a device named twice, or with one
that consumes an unknown counter, is allocated from by nobody. So what is wrong is left out and
named, and the rest is published.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_core import names, wire
from dra_core.errors import InvalidValue
from dra_core.likeness import as_right_as
from dra_core.model.devices import Capacity, Device, RawAttribute, Version
from dra_core.model.slices import CounterSet, Nodes, Pool, PublishedSlice
from dra_core.names import DriverName, NodeName
from dra_core.validation import slices
from dra_core.validation.problems import Problem
from dra_core.validation.servers import GATES, Server

#: The newest server that is known, everything on: what it refuses no other one takes.
NEWEST: Final = Server(max(GATES), dict.fromkeys(GATES[max(GATES)], True))
#: Devices that others are compared with.
_MODELS: Final = 8


@dataclass(frozen=True, slots=True)
class Sound:
    """``pool`` without the devices in ``faults``, which has a sentence for each of them."""

    pool: Pool
    faults: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """On the devices of one pool, by name: the device, and what is wrong with it."""

    bare: Pool
    server: Server
    devices: Mapping[str, tuple[Device, str]]


@dataclass(slots=True)
class Soundness:
    """Checks pools of one driver on one node; remembers its verdict on devices that do not change.

    ``server`` may be replaced once it is known which one it is. Without a ``node`` every pool has
    to say where its devices are.
    """

    driver: DriverName
    node: NodeName | None
    server: Server = NEWEST
    _known: dict[str, _Verdicts] = field(default_factory=dict)

    def check(self, pool: Pool) -> Sound:
        """The pool as it can be published. Raises InvalidValue if the pool itself is wrong.

        A device that is as it was is the same object as before, which makes it quick to compare.
        """
        names.check_pool_name(pool.name)
        if self.node is None and pool.nodes is Nodes.THIS:
            raise InvalidValue(
                f"pool {pool.name!r} has nodes=Nodes.THIS (the default), but this publisher has no "
                "node; give the pool a NodeSelector, Nodes.ALL or Nodes.EACH_DEVICE, or publish it "
                "from an instance on its node"
            )
        bare = replace(pool, devices=(), shared_counters=(), fallbacks={})
        self._check_pool(pool, bare)
        verdicts = self._verdicts(pool, bare)
        self._known[pool.name] = _Verdicts(bare, self.server, verdicts)
        faults = {name: fault for name, (_, fault) in verdicts.items() if fault}
        devices = [device for device, fault in verdicts.values() if not fault]
        for device in devices:
            if device.consumes_counters and (
                trouble := _unknown_counter(device, pool.shared_counters)
            ):
                faults[device.name] = trouble
        kept = tuple(device for device in devices if device.name not in faults)
        return Sound(replace(pool, devices=kept), faults)

    def forget(self, pool: str) -> None:
        """There is no such pool any more."""
        self._known.pop(pool, None)

    def _verdicts(self, pool: Pool, bare: Pool) -> dict[str, tuple[Device, str]]:
        """In the order of the devices."""
        known = self._known.get(pool.name)
        if known is None or (known.bare, known.server) != (bare, self.server):
            known = _Verdicts(bare, self.server, {})
        found: dict[str, tuple[Device, str]] = {}
        fresh = []
        for device in pool.devices:
            name = str(device.name)
            before = known.devices.get(name)
            if before is None or before[0] != device:
                before = (device, "")
                fresh.append(device)
            found[name] = before
        for device, fault in self._faults(fresh, pool):
            found[str(device.name)] = (device, fault)
        return found

    def _faults(self, devices: Sequence[Device], pool: Pool) -> list[tuple[Device, str]]:
        found: list[tuple[Device, str]] = []
        right: list[Device] = []  # the last few, all different
        for device in devices:
            fault = ""
            if not any(as_right_as(device, other) for other in right):
                fault = self._fault(device, pool)
                if not fault:
                    right = [device, *right[: _MODELS - 1]]
            found.append((device, fault))
        return found

    def _check_pool(self, pool: Pool, bare: Pool) -> None:
        for what, listed in (
            ("devices", [str(d.name) for d in pool.devices]),
            ("counter sets", [s.name for s in pool.shared_counters]),
        ):
            twice = [name for name, n in Tally(listed).items() if n > 1]
            if twice:
                raise InvalidValue(
                    f"pool {pool.name!r} has two {what} named {twice[0]!r}; names must be unique"
                )
        # Its name, its nodes, its node operations.
        problems = self._problems(replace(bare, partition_type_attribute=None))
        for counter_set in pool.shared_counters:
            problems += self._problems(
                replace(bare, shared_counters=(counter_set,), partition_type_attribute=None)
            )
        if problems:
            raise InvalidValue(f"pool {pool.name!r}: {_sentences(problems)}")

    def _fault(self, device: Device, pool: Pool) -> str:
        """Why the device cannot be published; empty if it can."""
        try:
            if trouble := _wrong_type(device):
                return trouble
            attribute = pool.partition_type_attribute if device.consumes_counters else None
            alone = replace(
                pool, devices=(device,), shared_counters=(), partition_type_attribute=attribute
            )
            return _sentences(self._problems(alone))
        except InvalidValue as error:
            return str(error).replace("spec.devices[0].", "")
        except (AttributeError, KeyError, TypeError) as error:
            return f"cannot be written as JSON: {type(error).__name__}: {error}"

    def _problems(self, pool: Pool) -> list[Problem]:
        published = PublishedSlice(
            name="00000-check",
            pool=pool.name,
            generation=1,
            slice_count=1,
            devices=pool.devices,
            shared_counters=pool.shared_counters,
            nodes=pool.nodes,
            partition_type_attribute=pool.partition_type_attribute,
            skip_node_operations=pool.skip_node_operations,
        )
        data = wire.slice_to_json(published, self.driver, self.node, None)
        return slices.validate_create(data, self.server)


def _sentences(problems: Sequence[Problem]) -> str:
    """Paths as the vendor knows them: of the device, not of a slice that nobody has seen."""
    shown = []
    for problem in problems:
        path = problem.field.removeprefix("spec.").removeprefix("devices[0].")
        shown.append(f"{path}: {problem.detail}")
    return "; ".join(shown)


def _unknown_counter(device: Device, sets: Sequence[CounterSet]) -> str:
    known = {s.name: s.counters for s in sets}
    for consumed in device.consumes_counters:
        if consumed.counter_set not in known:
            listed = ", ".join(known) or "none"
            return (
                f"consumes from counter set {consumed.counter_set!r}, which the pool does not "
                f"have; it has: {listed}"
            )
        for name in consumed.counters:
            if name not in known[consumed.counter_set]:
                return (
                    f"consumes counter {name!r}, which counter set {consumed.counter_set!r} does "
                    "not have"
                )
    return ""


def _wrong_type(device: Device) -> str:
    """What Python lets through and JSON would not, or not as it was meant."""
    for name, value in device.attributes.items():
        items: tuple[Any, ...] = value if isinstance(value, tuple) else (value,)
        if any(not isinstance(v, bool | int | str | Version | RawAttribute) for v in items):
            return (
                f"attribute {name!r} is {value!r}; use str, int, bool or Version, or a tuple of "
                "one of these"
            )
        if len({type(v) for v in items}) != 1:
            return (
                f"attribute {name!r} is {value!r}; a list needs a value, and all of them of one "
                "type"
            )
    capacities: Mapping[str, object] = device.capacity
    for name, capacity in capacities.items():
        if not isinstance(capacity, Capacity):
            return f"capacity {name!r} is {capacity!r}; use Capacity.of('80Gi')"
    return ""

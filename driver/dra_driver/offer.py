"""What the driver has to offer, made fit for the cluster: from its pools to what is planned."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import structlog

from dra_core import features, node_allocatable
from dra_core.errors import ApiForbidden, ApiNotFound, InvalidValue
from dra_core.model.devices import Device
from dra_core.model.slices import Pool, PublishedSlice
from dra_core.model.taints import DeviceTaint, Effect
from dra_core.names import DriverName, NodeName, PoolName
from dra_core.soundness import NEWEST, Soundness
from dra_core.validation.servers import GATES, Server
from dra_driver.discovery import Found
from dra_driver.ports import Measures
from dra_driver.refusals import Refusals

_log = structlog.get_logger(__name__)

#: What has changed about a pool is said in so many notes.
_NOTES: Final = 20
_NOT_FOUND: Final = "the driver does not find it any more"
_LEFT_OUT: Final = "device left out"
_VANISHED: Final = "device vanished while it is in use; it stays, tainted"
#: Name part of the taint on a device that discovery no longer finds while a claim uses it.
VANISHED: Final = "vanished"


class Offer:
    """The driver's pools. Used by the publishing thread."""

    def __init__(
        self,
        driver: DriverName,
        node: NodeName | None,
        *,
        in_use: Callable[[], Collection[str]],
        measures: Measures,
        tell: Callable[[str, str, str], None] = lambda *_: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._driver = driver
        self._in_use = in_use
        self._measures = measures
        self._tell = tell
        self._soundness = Soundness(driver, node)
        self._pools: dict[PoolName, Pool] | None = None
        self.refusals = Refusals(clock)
        self._reported: dict[tuple[str, str], str] = {}  # by event and subject
        self._left_out: dict[tuple[PoolName, str], dict[str, str]] = {}
        self._vanished: frozenset[tuple[PoolName, str]] = frozenset()
        self._offered: frozenset[PoolName] = frozenset()
        self._troubled: frozenset[PoolName] = frozenset()
        self._notes: dict[PoolName, tuple[str, ...]] = {}
        self._lost: tuple[str, ...] = ()  # what the pool lost that was adapted last
        self._met = False
        self.minor: int | None = None
        #: Pools that the driver has, and never said in a way that can be published.
        self.unknown: frozenset[PoolName] = frozenset()
        #: Why not everything that the driver has is offered; empty if it is.
        self.trouble = ""

    @property
    def known(self) -> bool:
        """Whether the driver has said which pools there are."""
        return self._pools is not None

    def take(self, found: Found) -> None:
        """What a discovery gave; one that failed keeps what was known."""
        self.trouble = found.trouble
        self._measures.add("discoveries_total", result="failed" if found.trouble else "done")
        kept = f"{found.trouble}; what was published stays" if found.trouble else ""
        self._tell("DiscoveryFailed", "", kept)
        if found.trouble:
            return
        old = self._pools or {}
        pools: dict[PoolName, Pool] = {}
        troubles = {PoolName(name): trouble for name, trouble in found.odd.items()}
        for pool in found.pools:
            name, trouble = PoolName(str(pool.name)), ""
            try:
                if name in troubles:
                    pools.pop(name, None)
                    raise InvalidValue(f"there are two pools named {name!r}")  # noqa: TRY301
                pools[name] = self._sound(pool)
            except InvalidValue as error:
                trouble = str(error)
            except Exception as error:  # noqa: BLE001 - a vendor's pool must not end publishing
                trouble = f"pool {name!r} cannot be read: {type(error).__name__}: {error}"
            troubles[name] = troubles.get(name) or trouble
        pools |= {name: old[name] for name, t in troubles.items() if t and name in old}
        for name, trouble in (dict.fromkeys(self._troubled, "") | troubles).items():
            self.report(f"pool {name}", "pool not changed", trouble)
            self._tell("PoolNotChanged", name, trouble and f"{trouble}; the pool stays as it is")
        self.trouble = "; ".join(filter(None, troubles.values()))
        self.unknown = frozenset(troubles).difference(pools)
        self._troubled = frozenset(name for name, trouble in troubles.items() if trouble)
        self._pools = pools

    def report(self, subject: str, event: str, error: str) -> None:
        """Log an error about ``subject`` once, until it is another; "" says that there is none."""
        if not error:
            self._reported.pop((event, subject), None)
        elif self._reported.get((event, subject)) != error:
            self._reported[event, subject] = error
            _log.error(event, subject=subject, error=error)

    def _sound(self, pool: Pool) -> Pool:
        """The pool without the devices that the API server would refuse, or has refused."""
        sound = self._soundness.check(pool)
        self._leave_out(pool.name, sound.faults, "rules")
        return sound.pool

    def _leave_out(self, pool: PoolName, faults: Mapping[str, str], by: str) -> None:
        for name in self._left_out.get((pool, by), {}).keys() - faults.keys():
            self.report(_device(pool, name), _LEFT_OUT, "")
        for name, reason in faults.items():
            self.report(_device(pool, name), _LEFT_OUT, reason)
        self._left_out[pool, by] = dict(faults)
        self._tell("DevicesLeftOut", f"{pool} {by}", _summary(pool, "left out", faults))
        self._measures.set("devices_left_out", len(faults), pool=pool, by=by)

    def meet_again(self) -> None:
        """The server may be another one: find out again."""
        self._met = False

    def meet(self, minor_version: Callable[[], int]) -> None:
        """Find out, if that is due, which version the server has."""
        if not self._met:
            before = self.minor
            try:
                self.minor = minor_version()
            except (ApiForbidden, ApiNotFound):
                self.minor = NEWEST.minor  # what it does not keep is found out all the same
            known = min(max(self.minor, min(GATES)), max(GATES))
            self._soundness.server = Server(known, dict.fromkeys(GATES[known], True))
            self._met = True
            if self.minor != before:
                self.refusals.clear()
                _log.info("the API server is there", version=f"1.{self.minor}")

    def pools(self, published: Sequence[PublishedSlice]) -> list[Pool]:
        """All pools to publish, with devices that vanished while in use."""
        pools = dict(self._pools or {})
        in_use = set(self._in_use())
        vanished: set[tuple[PoolName, str]] = set()
        for name in {s.pool for s in published} - self.unknown if in_use else ():
            newest = max(s.generation for s in published if s.pool == name)
            current = [s for s in published if s.pool == name and s.generation == newest]
            wanted = pools.get(name)
            here = {d.name for d in wanted.devices} if wanted else set()
            used = {d.name: d for s in current for d in s.devices if d.name in in_use}
            gone = [device for device in used.values() if device.name not in here]
            if gone:
                base = wanted or Pool(
                    name,
                    (),
                    nodes=current[0].nodes,
                    skip_node_operations=current[0].skip_node_operations,
                )
                vanished |= {(name, d.name) for d in gone}
                pools[name] = self._with_vanished(base, gone, current)
        self._say_vanished(vanished)
        for name in self._offered - set(pools):
            self._forget(name)
        self._offered = frozenset(pools)
        return list(pools.values())

    def _say_vanished(self, vanished: Collection[tuple[PoolName, str]]) -> None:
        for about in self._vanished.difference(vanished):
            self.report(_device(*about), _VANISHED, "")
        for name in {pool for pool, _ in self._vanished.union(vanished)}:
            reasons = {d: _NOT_FOUND for pool, d in sorted(vanished) if pool == name}
            what = "vanished while in use, it stays, tainted"
            self._tell("DevicesVanished", name, _summary(name, what, reasons))
        self._vanished = frozenset(vanished)

    def _forget(self, pool: PoolName) -> None:
        """The pool is there no more."""
        for by in ("rules", "server"):
            self._leave_out(pool, {}, by)
            del self._left_out[pool, by]
        self._soundness.forget(pool)
        self._notes.pop(pool, None)
        self.refusals.forget(pool)
        self._measures.forget(pool=pool)

    def _with_vanished(
        self, pool: Pool, gone: Sequence[Device], current: Sequence[PublishedSlice]
    ) -> Pool:
        key = f"{self._driver}/{VANISHED}"
        taint = DeviceTaint(key, Effect.NO_SCHEDULE.value)
        kept = []
        for device in gone:
            others = tuple(t for t in device.taints if t.key != key)
            kept.append(replace(device, taints=(*others, taint)))
            self.report(_device(pool.name, device.name), _VANISHED, _NOT_FOUND)
        # Counter sets that only they consume went with them.
        sets = {s.name: s for published in current for s in published.shared_counters}
        consumed = {c.counter_set for device in gone for c in device.consumes_counters}
        missing = consumed - {s.name for s in pool.shared_counters}
        counters = tuple(s for name, s in sets.items() if name in missing)
        full = replace(
            pool,
            devices=(*pool.devices, *kept),
            shared_counters=(*pool.shared_counters, *counters),
        )
        # A counter of a set that is still there may be gone, too.
        return self._soundness.check(full).pool

    def adapted(self, pool: Pool, missing: Collection[str]) -> Pool | None:
        """The pool as this server can have it; None if it cannot have it at all."""
        minor = self.minor if self.minor is not None else NEWEST.minor
        shaped = node_allocatable.in_shape_of(pool, minor)
        found = features.adapt(shaped.pool, missing)
        notes = (
            *shaped.lost,
            *(f"device {name} withheld: needs {gate}" for name, gate in found.withheld.items()),
            *(
                f"{n} devices without {features.fields_of(g)}"
                for g, n in found.without.items()
                if n
            ),
        )
        if found.pool is None:
            notes = (*notes, f"the pool cannot be published: needs {features.PARTITIONS}")
        self._lost = notes
        self._measures.set("devices_withheld", len(found.withheld), pool=pool.name)
        return None if found.pool is None else self._not_refused(found.pool)

    def done(self, pool: PoolName) -> None:
        """It is published as it was adapted last: say so if that is news.

        What is tried again after a while, in vain, is none.
        """
        notes = self._lost
        if notes == self._notes.get(pool, ()):
            return
        self._notes[pool] = notes
        if notes:
            shown = list(notes[:_NOTES])
            _log.warning("pool is not published as it is", pool=pool, notes=shown)
        else:
            _log.info("pool is published as it is again", pool=pool)

    def _not_refused(self, pool: Pool) -> Pool:
        """Without the devices that the server has refused as they are."""
        faults = self.refusals.faults(pool)
        if not faults and not self._left_out.get((pool.name, "server")):
            return pool
        self._leave_out(pool.name, faults, "server")  # also what is due: it may be refused again
        out = {name for name in faults if not self.refusals.due(pool.name, name)}
        return replace(pool, devices=tuple(d for d in pool.devices if d.name not in out))

    def taken(self, wanted: PublishedSlice) -> None:
        """The server takes devices that it had refused."""
        self.refusals.taken(wanted)
        names = {device.name for device in wanted.devices}
        left = self._left_out.get((wanted.pool, "server"), {})
        still = {name: reason for name, reason in left.items() if name not in names}
        self._leave_out(wanted.pool, still, "server")


def _device(pool: str, name: str) -> str:
    return f"device {name} of pool {pool}"


def _summary(pool: str, what: str, reasons: Mapping[str, str]) -> str:
    """Empty without reasons. One Event for all devices of a pool: there can be thousands."""
    if not reasons:
        return ""
    name, reason = next(iter(reasons.items()))
    number = "a device" if len(reasons) == 1 else f"{len(reasons)} devices"
    return f"{number} of pool {pool!r} {what}; {name!r}: {reason}"

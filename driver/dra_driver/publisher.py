"""Keeps the ResourceSlices of this driver, on this node or of no node, as the driver wants them.

One thread owns what is published. It wakes when the driver's devices may have changed, when someone
else touched our slices (the watch), when a retry is due, and for a periodic rescan; it then
compares and writes what :mod:`dra_core.publishing` says, one write after the other.

Between the driver's pools and the plan stand, in this order: devices that the API would refuse are
left out and named; a device that vanished but is in use stays, tainted; node-allocatable resources
get the shape of the server's version; features that the server does not have are taken out
(:mod:`dra_driver.capabilities`).

Of several instances one at a time publishes; the others look from time to time whether it is their
turn, and know by their watches what is there.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from dra_core import features, node_allocatable, publishing, taint_times
from dra_core.errors import ApiInvalid, ApiUnavailable, DraError
from dra_core.model.slices import Nodes, Pool, PublishedSlice
from dra_core.names import DriverName, NodeName, PoolName
from dra_driver.capabilities import Capabilities, shown
from dra_driver.discovery import Found
from dra_driver.offer import Offer
from dra_driver.pacing import (
    ASKED_LONGEST,
    SETTLE,
    NotOurTurn,
    Pace,
    Patience,
    TooSoon,
    WriteLimit,
    backoff,
)
from dra_driver.pool_names import PoolNames
from dra_driver.ports import Changed, Measures, Notices, Scope, SliceApi
from dra_driver.slice_store import SliceStore
from dra_driver.slice_watch import Relisted
from dra_driver.slice_writer import SliceWriter

_log = structlog.get_logger(__name__)

_LONG: Final = 3600.0
#: Seconds between looks whether it is our turn.
_TURN: Final = 0.5
#: Plans for a pool in one go, and one more for each device: a feature that is found missing leads
#: to another one, and so does a slice with devices that the server refuses.
_PLANS: Final = 10
#: Work beside the pools; no pool has such a name.
_WITHDRAWING, _OTHERS = "<all>", "<others>"


class _Stop:
    """End."""


Message = Relisted | Changed | Found | _Stop


class Publisher:
    """Publishes the pools of one driver on one node, or without a ``node``.

    ``turn`` says, at any moment, whether this instance is the one that may write. ``shared`` is
    called when there are pools without a node's name.
    """

    def __init__(
        self,
        driver: DriverName,
        node: NodeName | None,
        api: SliceApi,
        offer: Offer,
        *,
        notices: Notices,
        measures: Measures,
        strict: bool = False,
        turn: Callable[[], bool] = lambda: True,
        shared: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._offer = offer
        self._notices = notices
        self._measures = measures
        self._strict = strict
        self._turn = turn
        self._shared = shared
        self._clock = clock
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        scopes = tuple(Scope) if node else (Scope.SHARED,)
        self._store = SliceStore(scopes)
        self._names = None if node else PoolNames(api.pools_of_nodes, offer.report, clock)
        self._generations: dict[PoolName, int] = {}
        self._times: dict[PoolName, taint_times.Times] = {}
        self._failures: dict[str, int] = {}  # by what failed, one after the other
        self._asked_until = -math.inf  # the server wants no requests before
        self._stopping = threading.Event()
        limit = WriteLimit(clock, self._stopping)
        self._pace = Pace(limit, clock)
        self._writer = SliceWriter(
            driver,
            node,
            api,
            self._store,
            scopes=scopes,
            turn=turn,
            limit=limit,
            measures=measures,
            unreadable=offer.report,
        )
        self._patience = Patience(clock)
        self._withdrawing = False
        self._trouble = "not published yet"
        self.capabilities = Capabilities(clock, self._warn)
        #: Whether nothing of ours is in the cluster any more, after :meth:`withdraw`.
        self.withdrawn = threading.Event()
        #: Whether another instance of the driver publishes.
        self.standby = False

    # -- from other threads ----------------------------------------------------------------------

    def take(self, message: Relisted | Changed | Found) -> None:
        """News from discovery or from a watch."""
        self._inbox.put(message)

    @property
    def trouble(self) -> str:
        """Why the pools are not published as they should be; empty if they are."""
        names = self._names.trouble if self._names else ""
        return "; ".join(part for part in (self._offer.trouble, names, self._trouble) if part)

    @property
    def missing(self) -> str:
        """What this cluster does not have of what the pools use."""
        return shown(self.capabilities.unavailable())

    @property
    def accounting(self) -> str:
        """Who counts node resources of devices here."""
        minor = self._offer.minor
        if minor is None:
            return "not known yet"
        off = self.capabilities.unavailable().get(features.NODE_ALLOCATABLE, "")
        return node_allocatable.accounting(minor, off)

    @property
    def version(self) -> str:
        """Which Kubernetes."""
        minor = self._offer.minor
        return "not known yet" if minor is None else f"Kubernetes 1.{minor}"

    def stop(self) -> None:
        """End :meth:`run` soon; the slices stay."""
        self._stopping.set()
        self._inbox.put(_Stop())

    def withdraw(self) -> None:
        """Remove all slices, for good: nothing of them is allocated any more."""
        self._withdrawing = True
        self._inbox.put(Found())

    # -- the publishing thread -------------------------------------------------------------------

    def run(self) -> None:
        """Publish until stopped."""
        while not self._stopping.is_set():
            self._gather(self._converge())

    def _gather(self, wait: float | None) -> None:
        """Take in messages until there is something to do, at most ``wait`` seconds."""
        until = math.inf if wait is None else self._clock() + wait
        while not self._stopping.is_set():
            left = until - self._clock()
            if left <= 0 and self._inbox.empty():
                return
            try:
                message = self._inbox.get(timeout=min(max(0.0, left), _LONG))
            except queue.Empty:
                continue
            pause = self._taken(message)
            if pause is not None:
                until = min(until, self._clock() + pause)

    def _taken(self, message: Message) -> float | None:
        """As :meth:`_take`; a message that is odd ends nothing."""
        try:
            return self._take(message)
        except Exception:  # noqa: BLE001 - claims must be served all the same
            _log.exception("a message was not understood", kind=type(message).__name__)
            return SETTLE

    def _take(self, message: Message) -> float | None:
        """Take in one message; in how many seconds to compare, None if nothing is new."""
        if isinstance(message, Found):
            if not self._withdrawing:
                self._offer.take(message)
            return 0.0
        if isinstance(message, _Stop):
            return 0.0
        if isinstance(message, Relisted):
            self._offer.meet_again()  # the server may have been upgraded
            return SETTLE if self._store.relist(message.scope, message.items) else None
        return self._patience.seconds if self._store.take(message) else None

    def _converge(self) -> float | None:
        """Write what is missing; in how many seconds to try again, None if it is done."""
        try:
            return self._round()
        except DraError as error:
            return self._failed({"": error})
        except Exception as error:  # noqa: BLE001 - claims must be served all the same
            _log.exception("publishing failed unexpectedly")
            return self._failed({"": error})

    def _round(self) -> float | None:
        if not self._is_our_turn():
            return _TURN
        if not self._store.complete:
            self._trouble = "the slices in the cluster have not been listed yet, see the log"
            return None  # the first list wakes us
        asked = self._asked_until - self._clock()
        if asked > 0.0 and not self._withdrawing:
            return asked
        self._writer.make_sure()
        if self._withdrawing:
            return self._attempt({_WITHDRAWING: self._withdraw_all})
        if not self._offer.known:
            self._trouble = "the driver has not said yet which devices there are"
            return None  # its answer wakes us
        self._writer.forget_owner()
        self.capabilities.look_again()
        self._offer.meet(self._api.minor_version)
        pools = self._offer.pools(self._published())
        if self._names:
            pools = self._names.free(pools)
        if any(scope is Scope.SHARED for scope in map(_scope, pools)):
            self._shared()
        pools.sort(key=lambda pool: pool.name != self._pace.first)
        work = {str(pool.name): self._publishing(pool) for pool in pools}
        return self._attempt(work | {_OTHERS: lambda: self._remove_others(pools)})

    def _is_our_turn(self) -> bool:
        waited, self.standby = self.standby, not self._turn()
        if self.standby:
            self._trouble = ""
            if not waited:
                _log.info("another instance publishes; this one takes over when it ends")
        elif waited:
            _log.info("this instance publishes now")
        return not self.standby

    def _attempt(self, work: Mapping[str, Callable[[], None]]) -> float | None:
        errors: dict[str, Exception] = {}
        later = math.inf
        for subject, part in work.items():
            if self._stopping.is_set():
                return None
            made = self._writer.made
            try:
                error = self._error_of(part)
            except TooSoon as pause:
                later = min(later, pause.seconds)
                if pause.others:
                    break
                continue
            except NotOurTurn:
                return 0.0  # which says so
            if error is None or self._writer.made > made:
                self._failures.pop(subject, None)  # it gets on: no long waiting in the middle
            if error is not None:
                errors[subject] = error
        self._failures = {s: n for s, n in self._failures.items() if s in work}
        self._measures.set("features_missing", len(self.capabilities.unavailable()))
        if errors:
            return self._failed(errors, later)
        if later < math.inf:
            return later
        self._trouble = ""
        return None

    def _error_of(self, part: Callable[[], None]) -> Exception | None:
        """Of a part of the work; raises TooSoon and NotOurTurn."""
        try:
            part()
        except (TooSoon, NotOurTurn):
            raise
        except DraError as error:
            return error
        except Exception as error:  # noqa: BLE001 - claims must be served all the same
            _log.exception("publishing failed unexpectedly")
            return error
        return None

    def _failed(self, errors: Mapping[str, Exception], later: float = math.inf) -> float:
        """Seconds to wait: each of them backs off for itself, ``later`` is due all the same."""
        texts = [
            str(e) if isinstance(e, DraError) else f"{type(e).__name__}, see the log"
            for e in errors.values()
        ]
        self._trouble = f"cannot publish: {'; '.join(texts)}"
        for subject in errors:
            self._failures[subject] = self._failures.get(subject, 0) + 1
        self._measures.add("failures_total")
        asked = max(
            (e.retry_after for e in errors.values() if isinstance(e, ApiUnavailable)), default=0.0
        )
        asked = min(asked, ASKED_LONGEST)
        if asked:
            self._asked_until = self._clock() + asked
        wait = max(asked, min(later, *(backoff(self._failures[subject]) for subject in errors)))
        _log.warning("cannot publish", errors=texts, retry_seconds=round(wait, 2))
        return wait

    def _published(self) -> list[PublishedSlice]:
        return [self._writer.read(item) for item in self._store.items()]

    def _publishing(self, pool: Pool) -> Callable[[], None]:
        return lambda: self._publish(pool)

    def _publish(self, pool: Pool) -> None:
        """Until the plan is empty of surprises: what is found missing changes the plan."""
        for _ in range(_PLANS + len(pool.devices)):
            adapted = self._offer.adapted(pool, self.capabilities.missing)
            if adapted is None:
                self._remove(pool.name)
                self._measures.set("pool_devices", 0, pool=pool.name)
                return
            if self._carry_out(adapted):
                return
        raise ApiInvalid(f"pool {pool.name!r}: each answer of the API server leads to another plan")

    def _carry_out(self, pool: Pool) -> bool:
        """Make the writes of a plan; False if another plan is needed."""
        known = [self._writer.as_sent(item) for item in self._store.items()]
        found = publishing.plan(
            pool,
            known,
            lambda index: self._writer.name(pool.name, index),
            last_generation=self._generations.get(pool.name, 0),
            strict=self._strict,
            taint_memory=self._times.get(pool.name),
        )
        self._pace.begin(pool.name, len(found.writes))
        for write in found.writes:
            if not isinstance(write, publishing.Delete) and self._surprising(write.slice):
                return False
        for write in found.writes:
            if not self._write(write):
                return False
        self._generations[pool.name] = found.generation
        mine = (s for s in self._published() if s.pool == pool.name)
        self._times[pool.name] = taint_times.times(d for s in mine for d in s.devices)
        self._measures.set("pool_devices", len(pool.devices), pool=pool.name)
        self._measures.set("pool_generation", found.generation, pool=pool.name)
        if found.writes:
            self._patience.written()
            self._pace.end(pool.name)
            _log.info(
                "pool published",
                pool=pool.name,
                devices=len(pool.devices),
                generation=found.generation,
                writes=len(found.writes),
            )
        return True

    def _surprising(self, wanted: PublishedSlice) -> bool:
        """Whether a dry run says that the server will not take it as it is."""
        if self._offer.refusals.doubtful(wanted):
            try:
                self._writer.try_out(wanted)
            except ApiInvalid as error:
                return self._offer.refusals.add(wanted, error.causes)
            self._offer.refusals.taken(wanted)
        return self.capabilities.explore(wanted, self._writer.try_out)

    def _write(self, write: publishing.Write) -> bool:
        """Make one write; False if its answer makes for another plan."""
        if isinstance(write, publishing.Delete):
            self._writer.delete(write.name)
            return True
        try:
            stored = self._writer.store(write)
        except ApiInvalid as error:
            if not self._offer.refusals.add(write.slice, error.causes):
                raise
            return False
        if self.capabilities.learn(write.slice, stored):
            return False
        unknown = self._writer.dropped(stored.name, write.slice)
        if unknown:  # no feature explains it: fields that the server does not know
            _log.warning("the API server dropped fields", fields=unknown)
            self._warn("FieldsDropped", f"the API server dropped {', '.join(unknown)}")
        return True

    def _remove_others(self, pools: Sequence[Pool]) -> None:
        wanted = {pool.name for pool in pools} | self._offer.unknown
        for name in {item["spec"]["pool"]["name"] for item in self._store.items()} - wanted:
            self._remove(PoolName(name))

    def _remove(self, pool: PoolName) -> None:
        self._times.pop(pool, None)
        for item in self._store.items():
            if item["spec"]["pool"]["name"] == pool:
                self._writer.delete(item["metadata"]["name"])

    def _withdraw_all(self) -> None:
        for name in {item["spec"]["pool"]["name"] for item in self._store.items()}:
            self._remove(PoolName(name))
        if not self.withdrawn.is_set():
            _log.info("all slices withdrawn")
        self.withdrawn.set()

    def _warn(self, reason: str, note: str) -> None:
        try:
            owner = self._writer.owner()
        except DraError:
            return  # said in the log; the Event is an extra
        self._notices.warn(owner, reason, note)


def _scope(pool: Pool) -> Scope:
    return Scope.NODE if pool.nodes is Nodes.THIS else Scope.SHARED

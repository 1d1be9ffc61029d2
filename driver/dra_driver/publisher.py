"""Keeps the ResourceSlices of this driver, on this node or of no node, as the driver wants them.

One thread owns what is published. It wakes when the driver's devices may have changed, when someone
else touched our slices (the watch), when a retry is due, and for a periodic rescan; it then
compares and writes what :mod:`dra_core.publishing` says, one write after the other.

Of the driver's pools devices that the API would refuse are left out and named, and a device that
vanished but is in use stays, tainted (:mod:`dra_driver.offer`); :mod:`dra_driver.pool_writer` has
what comes then.

Of several instances one at a time publishes; the others look from time to time whether it is their
turn, and know by their watches what is there.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from dra_core import features, node_allocatable
from dra_core.errors import DraError
from dra_core.model.slices import Nodes, Pool
from dra_core.names import DriverName, NodeName
from dra_driver.capabilities import Capabilities, shown
from dra_driver.discovery import Found
from dra_driver.news import News
from dra_driver.offer import Offer
from dra_driver.pacing import (
    SETTLE,
    Failures,
    NotOurTurn,
    Pace,
    Patience,
    TooSoon,
    WriteLimit,
)
from dra_driver.pool_names import PoolNames
from dra_driver.pool_writer import PoolWriter
from dra_driver.ports import Changed, Measures, Scope, SliceApi
from dra_driver.slice_store import SliceStore
from dra_driver.slice_watch import Relisted
from dra_driver.slice_writer import SliceWriter

_log = structlog.get_logger(__name__)

_LONG: Final = 3600.0
#: Seconds between looks whether it is our turn.
_TURN: Final = 0.5
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
        news: News,
        measures: Measures,
        strict: bool = False,
        turn: Callable[[], bool] = lambda: True,
        shared: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._offer = offer
        self._measures = measures
        self._news = news
        self._turn = turn
        self._shared = shared
        self._clock = clock
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        scopes = tuple(Scope) if node else (Scope.SHARED,)
        self._store = SliceStore(scopes)
        self._names = (
            None if node else PoolNames(api.pools_of_nodes, offer.report, news.tell, clock)
        )
        self._failures = Failures(clock)
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
        self.capabilities = Capabilities(clock, news.tell)
        self._pools = PoolWriter(
            self._store,
            self._writer,
            offer,
            self.capabilities,
            pace=self._pace,
            patience=self._patience,
            measures=measures,
            news=news,
            strict=strict,
        )
        self._withdrawing = False
        self._trouble = "not published yet"
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
            wait = self._round()
        except DraError as error:
            wait = self._failed({"": error})
        except Exception as error:  # noqa: BLE001 - claims must be served all the same
            _log.exception("publishing failed unexpectedly")
            wait = self._failed({"": error})
        if not self.standby:
            self._news.send()
        return wait

    def _round(self) -> float | None:
        if not self._is_our_turn():
            return _TURN
        if not self._store.complete:
            self._trouble = "the slices in the cluster have not been listed yet, see the log"
            return None  # the first list wakes us
        if self._failures.asked > 0.0 and not self._withdrawing:
            return self._failures.asked
        self._writer.make_sure()
        if self._withdrawing:
            return self._attempt({_WITHDRAWING: self._withdraw_all})
        if not self._offer.known:
            self._trouble = "the driver has not said yet which devices there are"
            return None  # its answer wakes us
        self._writer.forget_owner()
        self.capabilities.look_again()
        self._offer.meet(self._api.minor_version)
        pools = self._offer.pools(self._pools.published())
        if self._names:
            pools = self._names.free(pools)
        if any(scope is Scope.SHARED for scope in map(_scope, pools)):
            self._shared()
        pools.sort(key=lambda pool: pool.name != self._pace.first)
        work = {str(pool.name): self._publishing(pool) for pool in pools}
        names = {pool.name for pool in pools} | self._offer.unknown
        return self._attempt(work | {_OTHERS: lambda: self._pools.remove_others(names)})

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
                self._failures.over(subject)  # it gets on: no long waiting in the middle
            if error is not None:
                errors[subject] = error
        self._failures.keep(work)
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
        """Say so; in how many seconds to try again, or to do what is due ``later``."""
        texts = [
            str(e) if isinstance(e, DraError) else f"{type(e).__name__}, see the log"
            for e in errors.values()
        ]
        self._trouble = f"cannot publish: {'; '.join(texts)}"
        self._measures.add("failures_total")
        wait = self._failures.wait(errors, later)
        _log.warning("cannot publish", errors=texts, retry_seconds=round(wait, 2))
        return wait

    def _publishing(self, pool: Pool) -> Callable[[], None]:
        return lambda: self._pools.publish(pool)

    def _withdraw_all(self) -> None:
        self._pools.remove_others()
        if not self.withdrawn.is_set():
            _log.info("all slices withdrawn")
        self.withdrawn.set()


def _scope(pool: Pool) -> Scope:
    return Scope.NODE if pool.nodes is Nodes.THIS else Scope.SHARED

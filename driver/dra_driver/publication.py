"""Composition of publishing: discovery, watches and the publisher, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Final

import structlog

from dra_core.names import NodeName
from dra_driver.adapters import kube, kube_slices
from dra_driver.api import PoolSource
from dra_driver.config import Settings
from dra_driver.discovery import Discovery
from dra_driver.news import News
from dra_driver.offer import Offer
from dra_driver.ports import Scope
from dra_driver.publisher import Publisher
from dra_driver.slice_watch import SliceWatch
from dra_driver.turns import Turn
from dra_service import probes
from dra_service.metrics import Registry

_log = structlog.get_logger(__name__)

#: Seconds for the publishing thread to end, and for the slices to be withdrawn.
_GRACE: Final = 5.0
_WITHDRAW: Final = 10.0

Thread = Callable[[str, Callable[[], None]], threading.Thread]


class Publication:
    """Publishes what ``source`` has, once it is this instance's turn.

    Without a ``node`` what is published belongs to none; ``in_use`` names devices that claims on
    the node use.
    """

    def __init__(
        self,
        settings: Settings,
        node: NodeName | None,
        source: PoolSource,
        api: kube.KubeApi,
        *,
        turn: Turn,
        thread: Thread,
        events: kube_slices.KubeEvents,
        measures: Registry,
        in_use: Callable[[], Collection[str]] = tuple,
    ) -> None:
        s = settings
        self._thread = thread
        self._events = events
        self._turn = turn
        slices = kube_slices.KubeSlices(api, s.driver_name, node)
        news = News(events, slices.owner)
        offer = Offer(s.driver_name, node, in_use=in_use, measures=measures, tell=news.tell)
        self.publisher = Publisher(
            s.driver_name,
            node,
            slices,
            offer,
            news=news,
            measures=measures,
            strict=s.generations == "strict",
            turn=turn.mine,
            shared=self._watch_shared,
        )
        take = self.publisher.take
        self._discovery = Discovery(source.pools, take, rescan=s.rescan_interval)
        scopes = Scope if node else (Scope.SHARED,)
        self._watches = {scope: SliceWatch(slices, scope, take) for scope in scopes}
        if node is None:
            self._watch_shared()
        self._publishing: threading.Thread | None = None

    def start(self) -> None:
        """Begin; nothing here waits for the API server."""
        self._events.start()
        self._publishing = self._thread("publisher", self._publish)
        for scope, watch in self._watches.items():
            self._thread(f"slice-watch-{scope.value}", watch.run)
        self._thread("discovery", self._discovery.run)

    def _publish(self) -> None:
        self._turn.settle()
        self.publisher.run()

    def _watch_shared(self) -> None:
        self._watches[Scope.SHARED].want()

    def refresh(self) -> None:
        """The driver's devices may have changed."""
        self._discovery.refresh()

    @property
    def trouble(self) -> str:
        """Why the pools are not published as they should be; empty if they are."""
        return self._discovery.trouble or self.publisher.trouble

    def published(self) -> probes.Condition:
        """Whether all pools are published, by this instance or another one."""
        standby = self.publisher.standby
        trouble = "" if standby else self.trouble
        right = "another instance publishes" if standby else "all pools are published"
        return probes.Condition("Published", not trouble, trouble or right)

    def remarks(self) -> list[probes.Condition]:
        """For people: they never make an instance unready."""
        publisher = self.publisher
        return [
            probes.Condition("Cluster", True, publisher.version),
            probes.Condition("Features", True, publisher.missing),
            probes.Condition("NodeResources", True, publisher.accounting),
        ]

    def withdraw(self) -> bool:
        """Take the slices out of the cluster, so that nothing more of them is allocated.

        False if they are not ours to take away.
        """
        if self.publisher.standby:
            return False  # they are the other instance's
        _log.info("withdrawing all slices before the driver stops for good")
        self.publisher.withdraw()
        if not self.publisher.withdrawn.wait(_WITHDRAW):
            _log.error("the slices could not be withdrawn in time", seconds=_WITHDRAW)
        return True

    def stop(self) -> None:
        """End; the slices stay."""
        self._discovery.stop()
        for watch in self._watches.values():
            watch.stop()
        self.publisher.stop()
        self._turn.stop()
        if self._publishing is not None:
            self._publishing.join(_GRACE)
        self._turn.end()

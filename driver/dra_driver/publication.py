"""Composition of publishing: discovery, watches and the publisher, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from dra_driver.adapters import files, kube, kube_slices, metrics
from dra_driver.api import Driver
from dra_driver.config import Settings
from dra_driver.discovery import Discovery
from dra_driver.offer import Offer
from dra_driver.ports import Scope
from dra_driver.publisher import Publisher
from dra_driver.slice_watch import SliceWatch

_log = structlog.get_logger(__name__)

#: Seconds for the publishing thread to end, and for the slices to be withdrawn.
_GRACE: Final = 5.0
_WITHDRAW: Final = 10.0
#: Seconds between withdrawing and deregistering, for pods that were scheduled just before.
_AFTER_WITHDRAWING: Final = 3.0

Thread = Callable[[str, Callable[[], None]], threading.Thread]


class Publication:
    """Publishes what ``driver`` has, once it is this instance's turn."""

    def __init__(
        self,
        settings: Settings,
        driver: Driver,
        api: kube.KubeApi,
        cdi_files: files.CdiFolder,
        thread: Thread,
    ) -> None:
        s = settings
        self._thread = thread
        self.measures = metrics.registry()
        self._events = kube_slices.KubeEvents(api, s.driver_name, s.pod_uid or s.node_name)
        slices = kube_slices.KubeSlices(api, s.driver_name, s.node_name)
        offer = Offer(s.driver_name, s.node_name, in_use=cdi_files.devices, measures=self.measures)
        self.publisher = Publisher(
            s.driver_name,
            s.node_name,
            slices,
            offer,
            notices=self._events,
            measures=self.measures,
            strict=s.generations == "strict",
            shared=self._watch_shared,
        )
        take = self.publisher.take
        self._discovery = Discovery(driver.pools, take, rescan=s.rescan_interval)
        self._watches = {scope: SliceWatch(slices, scope, take) for scope in Scope}
        self._turn = _Turn(s.plugin_dir / "publisher.lock")
        self._publishing: threading.Thread | None = None

    def start(self) -> None:
        """Begin; nothing here waits for the API server."""
        self._events.start()
        self._publishing = self._thread("publisher", self._publish)
        for scope, watch in self._watches.items():
            self._thread(f"slice-watch-{scope.value}", watch.run)
        self._thread("discovery", self._discovery.run)

    def _publish(self) -> None:
        publisher = self.publisher
        publisher.standby = not self._turn.take(wait=False)
        if publisher.standby:
            _log.info("another instance publishes; this one takes over when it ends")
            self._turn.take(wait=True)
            publisher.standby = False
        publisher.run()

    def _watch_shared(self) -> None:
        self._watches[Scope.SHARED].want()

    def refresh(self) -> None:
        """The driver's devices may have changed."""
        self._discovery.refresh()

    @property
    def trouble(self) -> str:
        """Why the pools are not published as they should be; empty if they are."""
        return self._discovery.trouble or self.publisher.trouble

    def withdraw(self) -> None:
        """Take the slices out of the cluster, so that nothing more is allocated from this node."""
        if self.publisher.standby:
            return  # they are the other instance's
        _log.info("withdrawing all slices before the driver stops for good")
        self.publisher.withdraw()
        if not self.publisher.withdrawn.wait(_WITHDRAW):
            _log.error("the slices could not be withdrawn in time", seconds=_WITHDRAW)
        # Pods may have been scheduled a moment ago: the kubelet still finds a driver for them.
        threading.Event().wait(_AFTER_WITHDRAWING)

    def stop(self) -> None:
        """End; the slices stay."""
        self._discovery.stop()
        for watch in self._watches.values():
            watch.stop()
        self.publisher.stop()
        if self._publishing is not None:
            self._publishing.join(_GRACE)
        self._turn.end()


class _Turn:
    """Which of the instances on a node publishes: two that want different things would fight."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self, *, wait: bool) -> bool:
        """Whether it is our turn; with ``wait`` only once it is."""
        self._descriptor = files.lock(self._path, wait=wait)
        return self._descriptor is not None

    def end(self) -> None:
        """Let the next one publish."""
        if self._descriptor is not None:
            files.unlock(self._path, self._descriptor)

"""What kopf is told: low-level event handlers and a login, and nothing else.

No indexes (quadratic), no daemons, timers, annotations or finalizers: the objects belong to others,
and are never written by kopf. A handler reduces the object and hands it on; it returns nothing, as
kopf would write that into the object's status.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, Protocol

import kopf
import structlog

from dra_core.errors import InvalidObject
from dra_core.wire import lean
from dra_operator.cluster import CLAIMS, PODS, RULES, SLICES, Object

_log = structlog.get_logger(__name__)

#: Objects of a list that are in memory whole at a time, for each resource: see ADR 11.
CHUNK: Final = 200

_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Object]]] = {
    PODS: lean.pod,
    CLAIMS: lean.claim,
    SLICES: lean.resource_slice,
    RULES: lean.rule,
}


class Sink(Protocol):
    """Where objects go: :class:`dra_operator.evictions.Evictions`."""

    def apply(self, item: Object) -> None:
        """A new or changed object."""

    def forget(self, kind: str, uids: Collection[str]) -> None:
        """Objects that are gone."""


class View(Sink, Protocol):
    """A sink that knows what it holds."""

    def known(self, kind: str) -> frozenset[str]:
        """The UIDs of all objects of a kind."""


class Several:
    """One object for several views, each of which keeps of it what it needs."""

    def __init__(self, *views: View) -> None:
        self._views = views

    def apply(self, item: Object) -> None:
        """To each."""
        for view in self._views:
            view.apply(item)

    def forget(self, kind: str, uids: Collection[str]) -> None:
        """By each."""
        for view in self._views:
            view.forget(kind, uids)

    def known(self, kind: str) -> frozenset[str]:
        """By any."""
        return frozenset().union(*(view.known(kind) for view in self._views))


class Intake:
    """Takes events of one resource after the other; counts them, so that one can tell whether
    everything that there was has arrived.

    Pods that name no claim are dropped, and forgotten if they had any before.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._arrived: Counter[str] = Counter()
        self._newest: dict[str, int] = {}
        #: Resources of which a list was read again: what was deleted meanwhile went unseen.
        self.listed_again: set[str] = set()
        self._complete: set[str] = set()

    def take(self, plural: str, kind: str | None, data: Mapping[str, Any]) -> None:
        """One event; ``kind`` is None for an object of a list."""
        uid = str(data["metadata"]["uid"])
        version = int(data["metadata"].get("resourceVersion") or 0)
        with self._lock:
            self._newest[plural] = max(version, self._newest.get(plural, 0))
            self._arrived[plural] += {None: 1, "ADDED": 1, "DELETED": -1}.get(kind, 0)
            if kind is None and plural in self._complete:
                self.listed_again.add(plural)
        if kind == "DELETED" or (plural == PODS and not lean.has_claims(data)):
            self._sink.forget(plural, [uid])
            return
        try:
            item = _READERS[plural](data)
        except InvalidObject as error:
            _log.warning("an object is ignored", resource=plural, uid=uid, error=str(error))
            return
        self._sink.apply(item)

    def newest(self, plural: str) -> int:
        """The highest resourceVersion that has arrived (they are ordered numbers, KEP-5504)."""
        with self._lock:
            return self._newest.get(plural, 0)

    def complete(self, plural: str, count: int) -> bool:
        """Whether at least ``count`` objects have arrived; from then on it stays true."""
        with self._lock:
            if self._arrived[plural] >= count:
                self._complete.add(plural)
            return plural in self._complete


#: Makes a session that is logged in; kopf closes it when it has to log in anew.
Login = Callable[[], Awaitable[kopf.AiohttpSession]]


def registry(
    intake: Intake, resources: Collection[tuple[str, str, str]], login: Login
) -> kopf.OperatorRegistry:
    """Handlers for these resources, as (group, version, plural)."""
    made = kopf.OperatorRegistry()
    for group, version, plural in resources:
        kopf.on.event(group, version, plural, id=plural, registry=made)(_handler(intake, plural))

    @kopf.on.login(registry=made)
    async def log_in(**_: Any) -> kopf.AiohttpSession:
        return await login()

    return made


def _handler(intake: Intake, plural: str) -> Callable[..., Awaitable[None]]:
    async def handle(event: Mapping[str, Any], **_: Any) -> None:
        intake.take(plural, event["type"], event["object"])

    return handle


def settings() -> kopf.OperatorSettings:
    """Nothing of kopf's own in the cluster, no events, no scanning, no peering, and few tasks."""
    made = kopf.OperatorSettings()
    made.posting.enabled = False
    made.scanning.disabled = True
    made.peering.standalone = True
    made.persistence.diffbase_storage = _NoDiffBase()
    made.persistence.progress_storage = _NoProgress()
    made.watching.chunk_size = CHUNK
    made.queueing.idle_timeout = 1.0
    made.networking.connect_timeout = 5.0
    made.networking.request_timeout = 120.0
    made.networking.error_backoffs = (1, 1, 2, 3, 5)
    return made


class _NoDiffBase(kopf.DiffBaseStorage):
    """Remembers nothing, and spares kopf a copy of each object for each event."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Nothing."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """Nothing."""

    def store(self, **_: Any) -> None:
        """Nowhere."""


class _NoProgress(kopf.ProgressStorage):
    """Handlers are not tried again, so there is no progress."""

    def fetch(self, **_: Any) -> None:
        """Nothing."""

    def store(self, **_: Any) -> None:
        """Nowhere."""

    def purge(self, **_: Any) -> None:
        """Nothing to do."""

    def touch(self, **_: Any) -> None:
        """Nothing to do."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """As it is."""
        return essence

"""kopf, in a thread and an event loop of its own, watched and started again.

In its own loop, because kopf cancels every task that began after it when it stops. It is started
again when one of its watches ends for whatever reason (an error at list time, credentials that ran
out), when the API server serves something else, and when our rights change. What is in memory stays
meanwhile, so no deadline is forgotten.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import kopf
import structlog

from dra_core.errors import ApiError, ApiUnauthorized
from dra_operator import handlers
from dra_operator.adapters.inventory import Inventory, Survey
from dra_operator.adapters.kube import KubeApi
from dra_operator.cluster import RULES
from dra_operator.handlers import Intake
from dra_operator.ports import Measures

_log = structlog.get_logger(__name__)

#: Seconds between looks at kopf's tasks, between surveys, before a start after a failure, and for
#: kopf to stop.
_LOOK, _SURVEY, _AGAIN, _STOP = 1.0, 20.0, 2.0, 15.0
#: Seconds without a working watch of a resource after which something is wrong.
LIMIT: Final = 60.0


@dataclass(slots=True)
class Status:
    """For probes. ``up`` has the monotonic time at which each watch was last seen working.

    ``behind`` has a resourceVersion that the API server is known to have, and when that was seen;
    it is taken out once the watch has got as far.
    """

    survey: Survey | None = None
    up: dict[str, float] = field(default_factory=dict)
    behind: dict[str, tuple[int, float]] = field(default_factory=dict)
    complete: bool = False
    trouble: str = "nothing has been read yet"

    def path(self, plural: str) -> str | None:
        """Of a resource in the version that is served and readable."""
        found = None if self.survey is None else self.survey.readable.get(plural)
        return None if found is None else found.path()


class Watches:
    """See the module. ``changed`` is called when the view becomes complete."""

    def __init__(
        self,
        api: KubeApi,
        inventory: Inventory,
        intake: Intake,
        measures: Measures,
        namespaces: tuple[str, ...],
    ) -> None:
        self._api = api
        self._inventory = inventory
        self._intake = intake
        self._measures = measures
        self._namespaces = namespaces
        self._stop = threading.Event()
        self._logged_in_at = float("-inf")
        self._said: dict[str, str] = {}
        self._started_at = time.monotonic()
        self._refused_since: float | None = None
        self._transports: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()
        self.status = Status()

    def stop(self) -> None:
        """End soon."""
        self._stop.set()

    def run(self, changed: Callable[[], None]) -> None:
        """Until told to stop."""
        while not self._stop.is_set():
            try:
                survey = self._inventory.survey()
                self._say(survey)
                asyncio.run(self._session(survey, changed))
            except ApiError as error:
                self.status.trouble = str(error)
                _log.warning("the API server cannot be asked what it serves", error=str(error))
            self._stop.wait(_AGAIN)

    def alive(self) -> str:
        """Which watch has not worked for too long; empty if all is well."""
        now = time.monotonic()
        survey = self.status.survey
        if survey is None:
            stale = now - self._started_at > LIMIT
            return f"nothing can be read: {self.status.trouble}" if stale else ""
        refused = self._refused_since
        if refused is not None and now - refused > LIMIT:
            return f"the API server has refused our credentials for more than {LIMIT:g} s"
        dead = [
            plural
            for plural in survey.readable
            if now - self.status.up.get(plural, self._started_at) > LIMIT
        ]
        if dead:
            return f"not watched for more than {LIMIT:g} s: {', '.join(dead)}"
        late = [plural for plural in survey.readable if self._late(plural, now)]
        return f"watches are stalled for more than {LIMIT:g} s: {', '.join(late)}" if late else ""

    def _late(self, plural: str, now: float) -> bool:
        """Whether the watch has not brought what was there a while ago."""
        version, seen = self.status.behind.get(plural, (0, now))
        if self._intake.newest(plural) >= version:
            self.status.behind.pop(plural, None)
            return False
        return now - seen > LIMIT

    def _say(self, survey: Survey) -> None:
        """Once for each resource what we do without, and when that is over."""
        for plural, why in survey.missing.items():
            if self._said.get(plural) != why:
                consequence = (
                    "taints in slices still count" if plural == RULES else "evicts less or nobody"
                )
                _log.warning("a resource is left out", resource=plural, why=why, so=consequence)
            self._measures.set("unreadable", 1.0, resource=plural)
        for plural in survey.readable:
            if plural in self._said:
                _log.info("a resource can be read now", resource=plural)
            self._measures.set("unreadable", 0.0, resource=plural)
        self._said = dict(survey.missing)

    async def _session(self, survey: Survey, changed: Callable[[], None]) -> None:
        stop = asyncio.Event()
        self.status.survey = survey
        self._measures.add("watch_starts_total")
        resources = [(r.group, r.version, r.plural) for r in survey.readable.values()]
        scope: dict[str, Any] = (
            {"namespaces": list(self._namespaces)} if self._namespaces else {"clusterwide": True}
        )
        # Without peering it is told to nobody, but kopf would make one of the user's name, and a
        # container's user often has none.
        scope["identity"] = self._api.AGENT
        operator = asyncio.create_task(
            kopf.operator(
                registry=handlers.registry(self._intake, resources, self._log_in),
                settings=handlers.settings(),
                stop_flag=stop,
                **scope,
            )
        )
        try:
            await self._supervise(operator, survey, changed)
        finally:
            stop.set()
            await asyncio.wait({operator}, timeout=_STOP)
            operator.cancel()
            result = (await asyncio.gather(operator, return_exceptions=True))[0]
            if isinstance(result, Exception):
                self.status.trouble = f"the watches ended: {result}"
                _log.warning("the watches ended", error=f"{type(result).__name__}: {result}")
            await self._hang_up()

    async def _hang_up(self) -> None:
        """End the connections before their loop is closed: kopf only begins to."""
        for transport in list(self._transports):
            transport.abort()
        await asyncio.sleep(0)  # it takes a turn of the loop

    async def _supervise(
        self, operator: asyncio.Task[None], survey: Survey, changed: Callable[[], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        surveyed_at = began = time.monotonic()
        while not self._stop.is_set():
            await asyncio.wait({operator}, timeout=_LOOK)
            missing = self._look(survey)
            if operator.done():
                return
            if self.lost(missing, began):
                _log.warning("watches are missing", resources=missing)
                return
            try:
                if not self.status.complete:
                    await loop.run_in_executor(None, self._check_complete, survey, changed)
                if time.monotonic() - surveyed_at > _SURVEY:
                    surveyed_at = time.monotonic()
                    if await loop.run_in_executor(None, self._inventory.survey) != survey:
                        _log.info("what the API server serves, or what we may read, has changed")
                        return
                    self._refused_since = None
            except ApiError as error:
                self._failed(error)

    def _failed(self, error: ApiError) -> None:
        """Running watches outlive a token that is revoked: whether it is good shows here."""
        if not isinstance(error, ApiUnauthorized):
            _log.debug("the API server cannot be asked now", error=str(error))
        elif self._refused_since is None:
            self._refused_since = time.monotonic()
            _log.warning("the API server refuses our credentials", error=str(error))

    def _look(self, survey: Survey) -> list[str]:
        """The resources that no task of kopf's watches."""
        names = [task.get_name() for task in asyncio.all_tasks() if not task.done()]
        now, missing = time.monotonic(), []
        for plural in survey.readable:
            up = any(name.startswith(f"watcher for {plural}.") for name in names)
            self._measures.set("watch_up", float(up), resource=plural)
            if up:
                self.status.up[plural] = now
            else:
                missing.append(plural)
        return missing

    def lost(self, missing: Sequence[str], began: float) -> bool:
        """Whether what is ``missing`` will not come by itself: it was there, or had its time.

        ``began`` is the monotonic time at which the watches were started.
        """
        ended = any(self.status.up.get(plural, began) > began for plural in missing)
        return ended or (bool(missing) and time.monotonic() - began > LIMIT / 2)

    def _check_complete(self, survey: Survey, changed: Callable[[], None]) -> None:
        for plural, resource in survey.readable.items():
            count = self._inventory.count(resource)
            if not self._intake.complete(plural, count):
                self.status.trouble = f"not all {plural} have been read yet ({count} in all)"
                return
        self.status.complete, self.status.trouble = True, ""
        _log.info("everything has been read", resources=sorted(survey.readable))
        changed()

    async def _log_in(self) -> kopf.AiohttpSession:
        """A session that sends the token as it is at each request, so that none grows old."""
        since = time.monotonic() - self._logged_in_at
        await asyncio.sleep(max(0.0, _AGAIN - since))
        self._logged_in_at = time.monotonic()

        async def authorize(
            request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
        ) -> aiohttp.ClientResponse:
            try:
                token = self._api.authorization()
            except ApiError as error:
                raise aiohttp.ClientConnectionError(str(error)) from error
            if token:
                request.headers["Authorization"] = token
            return await handler(request)

        session = aiohttp.ClientSession(
            connector=_Connector(self._transports, limit=0, ssl=self._api.tls()),
            headers={"User-Agent": self._api.AGENT},
            middlewares=(authorize,),
        )
        return kopf.AiohttpSession(server=self._api.url, aiohttp_session=session)


class _Connector(aiohttp.TCPConnector):
    """Puts the transports of its connections into ``made``."""

    def __init__(self, made: weakref.WeakSet[asyncio.Transport], **options: Any) -> None:
        super().__init__(**options)
        self._made = made

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        """See the base class."""
        connection = await super().connect(req, traces, timeout)
        if connection.transport is not None:
            self._made.add(connection.transport)
        return connection

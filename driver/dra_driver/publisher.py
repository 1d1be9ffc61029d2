"""Keeps the ResourceSlices of this driver on this node as the driver wants them.

One thread owns what is published. It wakes when the driver's devices may have changed, when someone
else touched our slices (the watch), when a retry is due, and for a periodic rescan; it then
compares and writes what :mod:`dra_core.publishing` says, one write after the other. What the watch
tells is kept as a copy, so that nothing is read again for a change.

Two things are not taken at face value. The answer to a write may lack fields that the server has
switched off: what was sent and what came back are remembered together, so that the difference is
reported once and not written again. And the driver's discovery may fail: what was published last
then stays. A device that the API would refuse is left out and reported; the others are published.
"""

from __future__ import annotations

import math
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from dra_core import names, publishing, wire
from dra_core.errors import (
    ApiConflict,
    ApiError,
    ApiExpired,
    ApiNotFound,
    ApiUnavailable,
    DraError,
    InvalidObject,
    InvalidValue,
)
from dra_core.model.devices import check_device
from dra_core.model.slices import Pool, PublishedSlice, check_pool
from dra_core.names import DriverName, NodeName, PoolName
from dra_core.wire.dropped import dropped_fields
from dra_driver.ports import Changed, SliceApi

_log = structlog.get_logger(__name__)

#: Seconds to wait after someone else's change, so that a burst is answered once.
SETTLE: Final = 0.25
#: The longest such wait, for someone who changes our slices again and again.
SETTLE_LONGEST: Final = 4.0
#: Seconds after which a discovery that has not ended is said to hang.
DISCOVERY_LONG: Final = 30.0
_LONG: Final = 3600.0
#: Seconds between tries after a failure: the first, and the longest.
RETRY_FIRST, RETRY_LONGEST = 0.5, 30.0


@dataclass(frozen=True, slots=True)
class _Echo:
    """What was sent in the last write of a slice, and the spec that came back."""

    sent: PublishedSlice
    returned: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Relist:
    """The watch has begun (again) with this list."""

    items: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a discovery gave: pools, or why there are none."""

    pools: tuple[Pool, ...] = ()
    trouble: str = ""


class _Stop:
    """End."""


class Publisher:
    """Publishes the pools of one driver on one node."""

    def __init__(
        self,
        driver: DriverName,
        node: NodeName,
        discover: Callable[[], Sequence[Pool]],
        api: SliceApi,
        *,
        rescan: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._driver = driver
        self._node = node
        self._discover = discover
        self._api = api
        self._rescan_interval = rescan
        self._clock = clock
        self._inbox: queue.SimpleQueue[_Relist | Changed | _Found | _Stop] = queue.SimpleQueue()
        self._slices: dict[str, dict[str, Any]] | None = None  # by name; None until listed
        self._deleted: set[str] = set()  # UIDs we deleted and the watch has not confirmed
        self._echoes: dict[str, _Echo] = {}
        self._generations: dict[PoolName, int] = {}
        self._taken: dict[tuple[PoolName, int], int] = {}
        self._pools: dict[PoolName, Pool] | None = None
        self._owner: Mapping[str, Any] | None = None
        self._dropped: set[str] = set()
        self._failures = 0
        self._stopping = threading.Event()
        self._reported: dict[str, str] = {}
        self._settle = SETTLE
        self._repaired_at = -math.inf
        self._look = threading.Event()
        self._discovery_began: float | None = None
        self._discovery_trouble = ""
        self._trouble = "not published yet"
        #: Whether another instance of the driver publishes on this node.
        self.standby = False

    # -- from other threads ----------------------------------------------------------------------

    def refresh(self) -> None:
        """The driver's devices may have changed."""
        self._look.set()

    @property
    def trouble(self) -> str:
        """Why the pools are not published as they should be; empty if they are."""
        began = self._discovery_began
        if began is not None and self._clock() - began > DISCOVERY_LONG:
            return f"discovery has been running for {self._clock() - began:.0f} s"
        return "; ".join(part for part in (self._discovery_trouble, self._trouble) if part)

    def stop(self) -> None:
        """End :meth:`run` and :meth:`follow` soon; the slices stay."""
        self._stopping.set()
        self._look.set()
        self._inbox.put(_Stop())

    def discover(self) -> None:
        """Ask the driver for its devices until stopped; run this in a thread of its own.

        A driver that takes long, or hangs, then delays nothing but its own news.
        """
        failures = 0
        while not self._stopping.is_set():
            self._look.clear()
            self._discovery_began = self._clock()
            found = self._discovered()
            self._discovery_began = None
            failures = failures + 1 if found.trouble else 0
            self._inbox.put(found)
            wait = _backoff(failures) if failures else self._rescan_interval
            self._look.wait(min(wait, self._rescan_interval))

    def _discovered(self) -> _Found:
        try:
            return _Found(tuple(self._discover()))
        except DraError as error:
            _log.error("discovery failed, published pools stay", error=str(error))
            return _Found(trouble=f"discovery failed: {error}")
        except Exception as error:  # noqa: BLE001 - a vendor's code must not end publishing
            _log.exception("discovery failed, published pools stay")
            return _Found(trouble=f"discovery failed: {type(error).__name__}, see the log")

    def follow(self) -> None:
        """List and watch until stopped; run this in a thread of its own."""
        failures = 0
        while not self._stopping.is_set():
            try:
                listed = self._api.list()
                self._inbox.put(_Relist(listed.items))
                self._watch(listed.resource_version)
                failures = 0
            except ApiExpired:
                failures += 1
            except ApiError as error:
                failures += 1
                _log.warning("cannot watch slices", error=str(error), failures=failures)
            except Exception:  # noqa: BLE001 - claims must be served all the same
                failures += 1
                _log.exception("watching slices failed unexpectedly")
            if failures:
                self._stopping.wait(_backoff(failures))

    def _watch(self, version: str) -> None:
        """Until an error, or a stream that brings nothing and ends at once; list again then."""
        while not self._stopping.is_set():
            began, events = self._clock(), 0
            for event in self._api.watch(version):
                events += 1
                version = event.object.get("metadata", {}).get("resourceVersion", version)
                if event.kind != "BOOKMARK":
                    self._inbox.put(event)
                if self._stopping.is_set():
                    return
            if not events and self._clock() - began < 1.0:
                raise ApiUnavailable("the watch ends as soon as it begins")

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
            pause = self._take(message)
            if pause is not None:
                until = min(until, self._clock() + pause)

    def _take(self, message: _Relist | Changed | _Found | _Stop) -> float | None:
        """Take in one message; in how many seconds to compare, None if nothing is new."""
        if isinstance(message, _Found):
            self._take_found(message)
            return 0.0
        if isinstance(message, _Stop):
            return 0.0
        if isinstance(message, _Relist):
            fresh = {item["metadata"]["name"]: item for item in message.items}
            differs = self._slices is None or _versions(fresh) != _versions(self._slices)
            self._slices = fresh
            self._deleted.clear()
            return SETTLE if differs else None
        return self._settle if self._take_event(message) else None

    def _take_found(self, found: _Found) -> None:
        self._discovery_trouble = found.trouble
        if found.trouble:
            return
        old, pools, troubles = self._pools or {}, {}, []
        for pool in found.pools:
            try:
                if pool.name in pools:
                    raise InvalidValue(f"there are two pools named {pool.name!r}")  # noqa: TRY301
                pools[pool.name] = check_pool(self._sound(pool))
            except InvalidValue as error:
                troubles.append(str(error))
                self._report(f"pool {pool.name}", "pool not changed", str(error))
                if pool.name in old:
                    pools[pool.name] = old[pool.name]
        self._discovery_trouble = "; ".join(troubles)
        self._pools = pools

    def _report(self, subject: str, event: str, error: str) -> None:
        """Log an error about ``subject`` once, until it is another."""
        if self._reported.get(subject) != error:
            self._reported[subject] = error
            _log.error(event, subject=subject, error=error)

    def _take_event(self, event: Changed) -> bool:
        metadata = event.object["metadata"]
        name, uid = metadata["name"], metadata["uid"]
        slices = self._slices if self._slices is not None else {}
        known = slices.get(name)
        if event.kind == "DELETED":
            self._deleted.discard(uid)
            if known is None or known["metadata"]["uid"] != uid:
                return False
            del slices[name]
            return True
        if uid in self._deleted or (known is not None and not _newer(event.object, known)):
            return False
        slices[name] = event.object
        return known is None or known["spec"] != event.object["spec"]

    def _sound(self, pool: Pool) -> Pool:
        """The pool without the devices that the API server would refuse."""
        devices = []
        for device in pool.devices:
            try:
                devices.append(check_device(device))
            except InvalidValue as error:
                subject = f"device {device.name} of pool {pool.name}"
                self._report(subject, "device left out", str(error))
        return replace(pool, devices=tuple(devices))

    def _converge(self) -> float | None:
        """Write what is missing; in how many seconds to try again, None if it is done."""
        if self._slices is None:
            self._trouble = "the slices in the cluster have not been listed yet, see the log"
            return None  # the first list wakes us
        if self._pools is None:
            self._trouble = "the driver has not said yet which devices there are"
            return None  # its answer wakes us
        self._owner = None  # the Node may be another one under the same name
        troubles = []
        for work in [*map(self._publishing, self._pools.values()), self._withdraw]:
            if self._stopping.is_set():
                return None
            try:
                work()
            except DraError as error:
                troubles.append(str(error))
            except Exception as error:  # noqa: BLE001 - claims must be served all the same
                _log.exception("publishing failed unexpectedly")
                troubles.append(f"{type(error).__name__}, see the log")
        self._trouble = f"cannot publish: {'; '.join(troubles)}" if troubles else ""
        if troubles:
            self._failures += 1
            wait = _backoff(self._failures)
            _log.warning("cannot publish", errors=troubles, retry_seconds=round(wait, 2))
            return wait
        self._failures = 0
        return None

    def _publishing(self, pool: Pool) -> Callable[[], None]:
        return lambda: self._publish(pool)

    def _publish(self, pool: Pool) -> None:
        slices = self._slices or {}
        known = [self._as_sent(item) for item in slices.values()]
        plan = publishing.plan(
            pool,
            known,
            lambda index: self._name(pool.name, index),
            last_generation=self._generations.get(pool.name, 0),
        )
        for write in plan.writes:
            self._write(write)
        self._generations[pool.name] = plan.generation
        if plan.writes:
            self._slow_down()
            _log.info(
                "pool published",
                pool=pool.name,
                devices=len(pool.devices),
                generation=plan.generation,
                writes=len(plan.writes),
            )

    def _slow_down(self) -> None:
        """Someone who undoes what we write, again and again, gets an answer less and less often."""
        again = self._clock() - self._repaired_at < 2 * SETTLE_LONGEST
        self._settle = min(self._settle * 2, SETTLE_LONGEST) if again else SETTLE
        self._repaired_at = self._clock()

    def _withdraw(self) -> None:
        slices, wanted = self._slices or {}, self._pools or {}
        for name, item in list(slices.items()):
            if item["spec"]["pool"]["name"] not in wanted:
                self._write(publishing.Delete(name))

    def _name(self, pool: PoolName, index: int) -> str:
        attempt = self._taken.get((pool, index), 0)
        return names.slice_name(index, self._node, self._driver, pool, attempt)

    def _as_sent(self, item: Mapping[str, Any]) -> PublishedSlice:
        """The slice as the cluster has it; as we sent it, where all that differs was dropped."""
        try:
            published = wire.published_slice(item)
        except InvalidObject as error:
            name = item["metadata"]["name"]
            self._report(f"slice {name}", "slice cannot be read and is replaced", str(error))
            pool = item["spec"]["pool"]
            return PublishedSlice(
                name, pool["name"], pool["generation"], pool["resourceSliceCount"], ()
            )
        echo = self._echoes.get(published.name)
        return echo.sent if echo and echo.returned == item["spec"] else published

    def _write(self, write: publishing.Write) -> None:
        slices = self._slices if self._slices is not None else {}
        if isinstance(write, publishing.Delete):
            metadata = slices[write.name]["metadata"]
            self._api.delete(write.name, metadata["uid"])
            self._deleted.add(metadata["uid"])
            del slices[write.name]
            return
        if self._owner is None:
            self._owner = self._api.owner()
        body = wire.slice_to_json(write.slice, self._driver, self._node, self._owner)
        name = write.slice.name
        if isinstance(write, publishing.Create):
            stored = self._create(write.slice, body)
        else:
            old = slices[name]["metadata"]
            body["metadata"] |= {"resourceVersion": old["resourceVersion"], "uid": old["uid"]}
            stored = self._update(name, body)
        slices[name] = stored
        self._echoes[name] = _Echo(write.slice, stored["spec"])
        self._report_dropped(body["spec"], stored["spec"])

    def _create(self, wanted: PublishedSlice, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._api.create(body)
        except ApiConflict:
            # Ours, when the answer to an earlier create got lost. If the name is somebody else's,
            # another name is tried.
            self._relist()
            if wanted.name not in (self._slices or {}):
                at = (wanted.pool, names.slice_index(wanted.name) or 0)
                self._taken[at] = self._taken.get(at, 0) + 1
            raise

    def _update(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._api.update(body)
        except (ApiNotFound, ApiConflict):
            self._relist()  # deleted or changed a moment ago: do not wait for the watch
            raise ApiConflict(f"ResourceSlice {name!r} was changed by someone else") from None

    def _relist(self) -> None:
        self._slices = {item["metadata"]["name"]: item for item in self._api.list().items}

    def _report_dropped(self, sent: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
        dropped = set(dropped_fields(sent, stored)) - self._dropped
        if dropped:
            self._dropped |= dropped
            _log.warning("the API server dropped fields", fields=sorted(dropped))


def _versions(items: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {name: item["metadata"]["resourceVersion"] for name, item in items.items()}


def _newer(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether a has a higher resourceVersion (KEP-5504: comparable within one resource)."""
    first, second = a["metadata"]["resourceVersion"], b["metadata"]["resourceVersion"]
    return int(first) > int(second) if first.isdigit() and second.isdigit() else first != second


def _backoff(failures: int) -> float:
    """With jitter, so that many nodes do not come back in step."""
    longest = min(RETRY_LONGEST, RETRY_FIRST * 2 ** min(max(failures - 1, 0), 10))
    return float(longest * random.uniform(0.5, 1.0))  # noqa: S311 - no secret

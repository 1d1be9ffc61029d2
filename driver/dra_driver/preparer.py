"""Prepare and unprepare claims for the kubelet.

Every claim of a call is answered, each for itself. Order of effects in prepare: read and check the
claim, let the driver make the devices ready, write the CDI file, answer. In unprepare: let the
driver tear down, remove the CDI file, answer; a tear-down that fails leaves the file, so that the
devices do not look free. The one durable record of a prepared claim is its CDI file.

A claim is worked on by one attempt at a time. A second call for the same thing (the kubelet gave
up waiting and asks again) joins the running attempt.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog

from dra_core import cdi, names
from dra_core.errors import (
    ApiNotFound,
    ApiUnauthorized,
    ApiUnavailable,
    ClaimGone,
    ClaimNotAllocated,
    DraError,
    InvalidObject,
    PreparationFailed,
)
from dra_core.model.claims import AllocationResult, Claim, ClaimReference
from dra_core.names import ClaimUID, DriverName
from dra_driver.api import Driver
from dra_driver.ports import CdiFiles, ClaimReader

_log = structlog.get_logger(__name__)

T = TypeVar("T")

#: Claims worked on at the same time; more wait in a queue. One that waits for an earlier attempt of
#: the same claim holds no place.
_WORKERS = 256
#: Seconds that reading a claim is tried again for, where the API server has no answer just now: the
#: kubelet comes back after a minute or more.
_READ_AGAIN = 1.5


@dataclass(frozen=True, slots=True)
class PreparedDevice:
    """What the kubelet is told about one allocation result."""

    result: AllocationResult
    cdi_devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The answer for one claim: a value, or a sentence that says why not."""

    value: T | None = None
    error: str = ""


Prepared = tuple[PreparedDevice, ...]


class Preparer:
    """Serves the claims of one driver."""

    def __init__(
        self, name: DriverName, driver: Driver, claims: ClaimReader, files: CdiFiles
    ) -> None:
        self._name = name
        self._kind = cdi.kind_of(name)
        self._driver = driver
        self._claims = claims
        self._files = files
        self._attempts = _Attempts()
        self._active: set[Future[Any]] = set()
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="claim")

    def prepare(
        self, claims: Sequence[ClaimReference], timeout: float
    ) -> Mapping[ClaimUID, Outcome[Prepared]]:
        """Prepare each claim; answers by UID, one for each, within ``timeout`` seconds."""
        return self._each(claims, timeout, self._prepare_one, "prepare")

    def unprepare(
        self, claims: Sequence[ClaimReference], timeout: float
    ) -> Mapping[ClaimUID, Outcome[None]]:
        """Unprepare each claim, from its UID alone; one that is unknown is a success."""
        return self._each(claims, timeout, self._unprepare_one, "unprepare")

    def close(self, grace: float) -> bool:
        """Take nothing new and wait up to ``grace`` seconds; whether all attempts have ended."""
        self._workers.shutdown(wait=False, cancel_futures=True)
        return not wait(list(self._active), grace).not_done

    def _each(
        self,
        claims: Sequence[ClaimReference],
        timeout: float,
        work: Callable[[ClaimReference], T],
        verb: str,
    ) -> Mapping[ClaimUID, Outcome[T]]:
        deadline = time.monotonic() + timeout
        running = {
            claim.uid: (claim, self._attempts.join(claim.uid, verb, self._start(work, claim, verb)))
            for claim in claims
        }
        return {
            uid: _outcome(claim, future, deadline, verb, len(self._active))
            for uid, (claim, future) in running.items()
        }

    def _start(
        self, work: Callable[[ClaimReference], T], claim: ClaimReference, verb: str
    ) -> Callable[[Future[T]], None]:
        def run(future: Future[T]) -> None:
            future.set_running_or_notify_cancel()
            self._active.add(future)
            try:
                result = self._logged(work, claim, verb)
            except BaseException as error:  # noqa: BLE001 - a vendor's SystemExit too
                future.set_exception(error)
            else:
                future.set_result(result)
            finally:
                self._active.discard(future)

        def start(future: Future[T]) -> None:
            try:
                self._workers.submit(run, future)
            except RuntimeError:
                future.set_exception(PreparationFailed("the driver is stopping; ask again"))

        return start

    def _logged(self, work: Callable[[ClaimReference], T], claim: ClaimReference, verb: str) -> T:
        with structlog.contextvars.bound_contextvars(
            claim=f"{claim.namespace}/{claim.name}", uid=claim.uid, operation=verb
        ):
            started = time.monotonic()
            try:
                value = work(claim)
            except DraError as error:
                _log.warning(
                    "claim failed",
                    error=str(error),
                    retryable=error.retryable,
                    cause=_cause(error),
                )
                raise
            except BaseException:
                _log.exception("claim failed")
                raise
            _log.info("claim done", seconds=round(time.monotonic() - started, 3))
            return value

    def _prepare_one(self, reference: ClaimReference) -> Prepared:
        names.check_uid("claim UID", reference.uid)
        claim = self._read(reference)
        results = claim.results_of(self._name)
        edits = self._driver.prepare(claim, results) if results else ()
        if len(edits) != len(results):
            raise PreparationFailed(
                f"driver {self._name!r} answered {len(edits)} devices where {len(results)} "
                "were asked; this is an error in the driver"
            )
        devices = [
            (cdi.device_name(reference.uid, index, result), edit)
            for index, (result, edit) in enumerate(zip(results, edits, strict=True))
        ]
        if devices:
            self._files.write(reference.uid, cdi.document(self._kind, devices))
        return tuple(
            PreparedDevice(result, (f"{self._kind}={device}",))
            for result, (device, _) in zip(results, devices, strict=True)
        )

    def _read(self, reference: ClaimReference) -> Claim:
        try:
            claim = self._read_patiently(reference)
        except ApiNotFound as error:
            raise ClaimGone(f"claim {reference} does not exist (any more)") from error
        if claim.reference.uid != reference.uid:
            raise ClaimGone(
                f"claim {reference} is gone; another one of that name has the UID "
                f"{claim.reference.uid}"
            )
        if claim.results is None:
            raise ClaimNotAllocated(f"claim {reference} is not allocated")
        return claim

    def _read_patiently(self, reference: ClaimReference) -> Claim:
        give_up = time.monotonic() + _READ_AGAIN
        pause = 0.2
        while True:
            try:
                return self._claims.read(reference)
            except (ApiUnavailable, ApiUnauthorized):
                if time.monotonic() + pause > give_up:
                    raise
                time.sleep(pause)
                pause *= 2

    def _unprepare_one(self, reference: ClaimReference) -> None:
        names.check_uid("claim UID", reference.uid)
        self._driver.unprepare(reference)
        self._files.remove(reference.uid)


def _cause(error: BaseException) -> str | None:
    return repr(error.__cause__) if error.__cause__ else None


def _outcome(
    claim: ClaimReference, future: Future[T], deadline: float, verb: str, active: int
) -> Outcome[T]:
    try:
        return Outcome(value=future.result(max(0.0, deadline - time.monotonic())))
    except FutureTimeout:
        return Outcome(error=f"{verb} {claim} {_unfinished(future, active)}")
    except InvalidObject as error:
        return Outcome(error=str(error))
    except DraError as error:
        return Outcome(error=f"{verb} {claim}: {error}")
    except BaseException as error:  # noqa: BLE001 - one bad claim must not take the others down
        return Outcome(
            error=f"{verb} {claim}: the driver failed unexpectedly "
            f"({type(error).__name__}); its log has the details"
        )


def _unfinished(future: Future[Any], active: int) -> str:
    if future.running():
        return "is still running; ask again to join it"
    if future.done():
        return "ran into a time-out of its own"
    return (
        "has not begun: it waits for an earlier call for the claim, or for one of the "
        f"{active} claims that the driver works on; ask again"
    )


class _Attempts:
    """The newest attempt of each claim: a repeated call joins it, any other waits for it.

    Only the newest may be joined, for what a Prepare before a waiting Unprepare has done will be
    gone; and attempts of one claim run in the order of their calls.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[ClaimUID, tuple[str, Future[Any]]] = {}

    def join(self, uid: ClaimUID, verb: str, start: Callable[[Future[T]], None]) -> Future[T]:
        with self._lock:
            running, newest = self._newest.get(uid, ("", None))
            if newest is not None and running == verb and not newest.done():
                return newest
            fresh: Future[T] = Future()
            self._newest[uid] = (verb, fresh)
        fresh.add_done_callback(lambda done: self._forget(uid, done))
        if newest is None:
            start(fresh)
        else:
            newest.add_done_callback(lambda _: start(fresh))
        return fresh

    def _forget(self, uid: ClaimUID, future: Future[Any]) -> None:
        with self._lock:
            if uid in self._newest and self._newest[uid][1] is future:
                del self._newest[uid]

"""Composition root of the operator.

Threads: watches (kopf), leadership, mode, rule conditions, comparison, attempts (a pool and one for
each attacher), probes, and the main one, which runs what is due. Start: settings, credentials, then
all of them; nothing is evicted or attached before all objects have been read once and this instance
leads, and nothing is evicted before the mode is decided. Stop (SIGTERM, SIGINT): no new attempts,
the running ones end, the Lease is released, so that another instance takes over at once.
"""

from __future__ import annotations

import datetime as dt
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import FrameType
from typing import Final, cast

import structlog

from dra_core.errors import DraError, InvalidValue, StorageError
from dra_core.names import DriverName
from dra_core.taints import Reading
from dra_operator import attachers, binding, config, modes
from dra_operator.adapters import (
    comparison,
    inventory,
    kube,
    kube_claims,
    kube_events,
    kube_objects,
    kube_rules,
    metrics,
    watches,
)
from dra_operator.cluster import CLAIMS, PODS, RULES, Cluster
from dra_operator.config import Settings
from dra_operator.evictions import Evictions, Limits, World
from dra_operator.handlers import Intake, Several
from dra_operator.modes import Choice, Detection
from dra_operator.ports import Mode
from dra_operator.rule_reports import RuleReports
from dra_service import leases, logs, probes
from dra_service.leadership import Leadership

_log = structlog.get_logger(__name__)

_USAGE: Final = 2
#: Attempts that run side by side.
_ATTEMPTS: Final = 16
#: Seconds: the longest pause of the main loop, after which a look is due whatever happened; without
#: a turn of it the program counts as dead; and between comparisons that were asked for.
_TURN, _DEAD, _COMPARE = 2.0, 30.0, 5.0
#: Seconds between looks at what is looked at all the time.
_SECOND: Final = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator; the exit status.

    0 after a stop that was asked for, 1 if it had to give up, 2 if settings or surroundings do not
    allow it to start.
    """
    try:
        settings = config.parse(list(sys.argv[1:] if arguments is None else arguments))
        if not isinstance(settings, Settings):
            return settings
        logs.configure(settings.log_level, cast("logs.LogFormat", settings.log_format))
        logs.bridge("kopf", "asyncio", "aiohttp", "urllib3", "kubernetes")
        return _Instance(settings).run()
    except (InvalidValue, StorageError) as error:
        sentence = " ".join(str(error).split())
        print(f"{config.PROGRAM}: {sentence}", file=sys.stderr)  # noqa: T201 - to who starts it
        return _USAGE
    except DraError as error:
        _log.error("giving up", error=str(error))
        return 1


class _Clock:
    """See :class:`dra_operator.ports.Clock`."""

    def now(self) -> dt.datetime:
        """In UTC."""
        return dt.datetime.now(dt.UTC)

    def monotonic(self) -> float:
        """Seconds."""
        return time.monotonic()


class _Instance:
    """One run of the operator."""

    def __init__(self, settings: Settings) -> None:
        s = self._settings = settings
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._doubt = threading.Event()
        self._failed = self._asked = False
        self._turned_at = time.monotonic()
        self._measures = metrics.registry()
        self._pool = ThreadPoolExecutor(_ATTEMPTS, "attempt")
        self._pools: dict[DriverName, ThreadPoolExecutor] = {}
        api = kube.KubeApi.connect(s.kubeconfig)
        lease = leases.KubeLease(api, s.lease_namespace, s.lease_name)
        self._leadership = Leadership(
            lease, s.identity, self._measures, time.monotonic, self._wake.set
        )
        self._inventory = inventory.Inventory(api, s.namespaces)
        self._choice = Choice(
            s.mode,
            Detection(kube_rules.KubeProbes(api, self._path), time.monotonic, self._measures),
            self._term,
            self._wake.set,
        )
        self._evictions = Evictions(
            Cluster(_Clock().now, Reading(s.empty_effect == "matches-all")),
            World(
                pods=kube_objects.KubePods(api),
                taints=kube_objects.KubeTaints(api, self._path),
                notices=kube_events.KubeNotices(api, self._path, s.identity, "Evict"),
                measures=self._measures,
                clock=_Clock(),
                start=self._start,
                mode=lambda: self._choice.mode,
                allowed=self._allowed,
                wake=self._wake.set,
                doubt=self._doubt.set,
            ),
            Limits(
                s.pods_per_second, s.pool_share, s.hold_share, s.delete_after, s.report_unstarted
            ),
        )
        self._reports = RuleReports(
            self._evictions,
            kube_rules.KubeRuleStatus(api, self._path),
            _Clock(),
            self._measures,
            self._choice,
        )
        self._bindings = self._binding(api)
        self._view = Several(self._evictions, self._bindings)
        self._intake = Intake(self._view)
        self._watches = watches.Watches(
            api, self._inventory, self._intake, self._measures, s.namespaces
        )

    def _binding(self, api: kube.KubeApi) -> binding.Bindings:
        """Each driver has threads of its own, so that one that hangs delays no other."""
        s = self._settings
        chosen = attachers.load(s.attachers, s.attacher_options)
        self._pools = {d: ThreadPoolExecutor(_ATTEMPTS, f"attach {d}") for d in chosen}
        return binding.Bindings(
            chosen,
            binding.World(
                claims=kube_claims.KubeClaimStatus(api, self._path),
                holds=kube_claims.KubeHolds(api, self._path),
                notices=kube_events.KubeNotices(api, self._path, s.identity, "Attach"),
                measures=self._measures,
                clock=_Clock(),
                start=self._start_for,
                allowed=self._allowed,
                wake=self._wake.set,
            ),
            binding.Limits(deadline=s.attach_deadline),
            kube_claims.cluster_id(api) if chosen else "",
            s.namespaces,
        )

    def run(self) -> int:
        """Until a signal says stop."""
        s = self._settings
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stopped)
        with ExitStack() as stack:
            if s.http_address is not None:
                checks: dict[str, probes.Check] = {"/healthz": self._alive, "/readyz": self._ready}
                endpoint = probes.Endpoint(
                    s.http_address, checks, {"/metrics": self._measures.text}
                )
                endpoint.start()
                stack.callback(endpoint.stop)
            _log.info("starting", mode=s.mode.value, identity=s.identity, namespaces=s.namespaces)
            watching = self._thread("watches", lambda: self._watches.run(self._wake.set))
            if s.leader_election:
                self._thread("leadership", self._lead)
            self._thread("mode", self._choose)
            self._thread("rule conditions", self._report)
            self._thread("comparison", self._compare)
            self._turn()
            self._watches.stop()
            for pool in (self._pool, *self._pools.values()):
                pool.shutdown(wait=True, cancel_futures=True)
            self._leadership.release()
            watching.join(20.0)
        _log.info("stopped")
        return 1 if self._failed else 0

    def _turn(self) -> None:
        """What is due, until told to stop."""
        while not (self._asked or self._stop.is_set()):
            self._wake.clear()
            self._turned_at = time.monotonic()
            pause = _TURN
            if self._watches.status.complete:
                pause = min(self._evictions.run_due(), self._bindings.run_due())
            self._wake.wait(min(pause, _TURN))
        self._stop.set()

    def _path(self, plural: str) -> str | None:
        return self._watches.status.path(plural)

    def _term(self) -> int | None:
        return self._leadership.term if self._settings.leader_election else 0

    def _allowed(self) -> bool:
        if self._asked or self._stop.is_set():
            return False
        return not self._settings.leader_election or self._leadership.leading

    def _start(self, work: Callable[[], None]) -> None:
        if not self._stop.is_set():
            self._pool.submit(self._guarded, "attempt", work)

    def _start_for(self, driver: DriverName, work: Callable[[], None]) -> None:
        if not self._stop.is_set():
            self._pools[driver].submit(self._guarded, "attach", work)

    def _lead(self) -> None:
        while not self._stop.is_set():
            self._stop.wait(self._leadership.tick())

    def _choose(self) -> None:
        """In mode auto: as soon as it is known which rules are served, and whenever that is due."""
        while not self._pausing(_SECOND):
            survey = self._watches.status.survey
            if survey is not None:
                why = modes.unasked(survey.minor, survey.missing.get(RULES, ""))
                self._choice.tick(why, lambda seconds: not self._pausing(seconds))

    def _report(self) -> None:
        while not self._pausing(_SECOND):
            complete = self._watches.status.complete
            writing = complete and self._choice.mode is Mode.EVICT and self._allowed()
            self._reports.tick(writing)

    def _pausing(self, seconds: float) -> bool:
        """Whether it is to stop, after so many seconds at most."""
        return self._stop.wait(seconds)

    def _compare(self) -> None:
        """From time to time, and soon after something seemed to be out of date."""
        until = time.monotonic() + self._settings.compare_interval
        while not self._stop.is_set():
            self._stop.wait(_COMPARE)
            again = self._intake.listed_again
            if not (self._doubt.is_set() or again or time.monotonic() >= until):
                continue
            self._doubt.clear()
            again.clear()
            comparison.Comparison(
                self._inventory, self._view, self._watches.status, self._measures
            ).run()
            until = time.monotonic() + self._settings.compare_interval

    def _stopped(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signal's
        # A plain attribute: the main thread may be holding the lock of an Event right now.
        self._asked = True

    def _thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._guarded, args=(name, work), name=name, daemon=True)
        thread.start()
        return thread

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001 - a bug: stop in order, the pod is restarted
            _log.exception("a thread ended unexpectedly", thread=name)
            self._failed = True
            self._stop.set()
            self._wake.set()

    # -- probes

    def _alive(self) -> list[probes.Condition]:
        silent = time.monotonic() - self._turned_at
        trouble = self._watches.alive()
        return [
            probes.Condition(
                "Running",
                silent < _DEAD,
                f"the main loop turned {silent:.1f} s ago",
            ),
            probes.Condition("Watching", not trouble, trouble or "all watches work"),
        ]

    def _ready(self) -> list[probes.Condition]:
        status = self._watches.status
        survey = status.survey
        missing = dict(survey.missing) if survey else {}
        needed = [missing[plural] for plural in (PODS, CLAIMS) if plural in missing]
        leading = self._leadership.leading if self._settings.leader_election else True
        holder = self._leadership.holder or "nobody"
        return [
            probes.Condition(
                "Readable", not needed, "; ".join(needed) or "pods and claims may be read"
            ),
            probes.Condition(
                "Complete", status.complete, status.trouble or "everything has been read"
            ),
            # What follows is for people: it never makes the operator unready.
            probes.Condition("LeftOut", True, "; ".join(missing.values()) or "nothing"),
            probes.Condition("Mode", True, str(self._choice)),
            probes.Condition(
                "Leading", True, "this instance" if leading else f"another one: {holder}"
            ),
        ]

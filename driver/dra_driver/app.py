"""Composition root of the kubelet plugin.

Start: settings, folders, the lock on our sockets, stale sockets and files away; then the DRA
service, then publishing, and the registration socket last, so that the kubelet never meets a driver
that cannot answer. Nothing of this waits for the API server.

Stop (SIGTERM, SIGINT): the registration socket first, so that the kubelet sends nothing new, then
the DRA service once running calls have ended. Slices and CDI files stay: a restart or a rolling
update must not disturb anyone. With ``--on-stop=withdraw`` (to uninstall) the slices go before the
registration socket does, so that no pod is sent to a node whose driver is leaving.
"""

from __future__ import annotations

import datetime as dt
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Final, cast

import structlog

from dra_core.errors import DraError, InvalidValue, StorageError
from dra_driver import config
from dra_driver.adapters import files, kube, services, sockets
from dra_driver.api import Context, Driver, Profile
from dra_driver.config import Profiles, Settings
from dra_driver.confirmation import Confirmations
from dra_driver.preparer import Preparer
from dra_driver.publication import Publication
from dra_service import logs, probes

_log = structlog.get_logger(__name__)

#: Seconds that running calls get to end when the driver stops.
_REGISTRATION_GRACE, _SERVICE_GRACE, _CLAIM_GRACE = 1.0, 25.0, 3.0
#: Seconds between looks whether the registration socket is still there.
_LOOK: Final = 2.0
_USAGE: Final = 2


def main(
    arguments: Sequence[str] | None = None, profiles: Mapping[str, Profile] | None = None
) -> int:
    """Run the driver; the exit status.

    0 after a stop that was asked for, 1 if it had to give up, 2 if settings or surroundings do not
    allow it to start. ``profiles`` are those of a vendor's own program.
    """
    known = Profiles(profiles)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        settings = config.parse(given, known)
        if not isinstance(settings, Settings):
            return settings
        logs.configure(settings.log_level, cast("logs.LogFormat", settings.log_format))
        return _Instance(settings, known, given).run()
    except (InvalidValue, StorageError, sockets.SocketInUse) as error:
        sentence = " ".join(str(error).split())
        print(f"{config.PROGRAM}: {sentence}", file=sys.stderr)  # noqa: T201 - to who starts it
        return _USAGE
    except DraError as error:
        _log.error("giving up", error=str(error))
        return 1


class _Instance:
    """One run of the driver."""

    def __init__(self, settings: Settings, profiles: Profiles, arguments: Sequence[str]) -> None:
        self._settings = settings
        self._profiles = profiles
        self._arguments = arguments
        self._options = settings.options
        # Plain attributes: a signal handler runs between any two steps of the main thread, also
        # while that holds the lock of an Event.
        self._stop = False
        self._reload = False
        self._failed = False
        self._hung = False
        self._publication: Publication | None = None
        self._inbox, self._outbox = os.pipe()
        os.set_blocking(self._outbox, False)

    def run(self) -> int:
        """Until a signal says stop."""
        s = self._settings
        self._handle_signals()
        where = sockets.paths(s.plugin_dir, s.registry_dir, s.driver_name, s.pod_uid)
        api = kube.KubeApi.connect(s.kubeconfig)
        sockets.make_folders(where)
        cdi_files = files.CdiFolder(s.cdi_dir, s.driver_name)
        driver = self._make_driver(kube.KubeClaims(api))
        with ExitStack() as stack:
            stack.enter_context(sockets.owned(where))
            cdi_files.open()
            for path in (where.service, where.registration):
                if sockets.remove_dead(path):
                    _log.info("removed a socket that a crash left behind", socket=str(path))
            for path in sockets.remove_dead_of_others(where, s.driver_name):
                _log.info("removed a socket of an instance that is gone", socket=str(path))
            self._serve(stack, where, api, cdi_files, driver)
        status = 1 if self._failed else 0
        _log.info("stopped", driver=s.driver_name)
        if self._hung:
            # Threads of a vendor that does not return would keep the interpreter from ending.
            os._exit(status)
        return status

    def _make_driver(self, claims: kube.KubeClaims) -> Driver:
        s = self._settings
        confirmations = Confirmations(s.driver_name, claims, lambda: dt.datetime.now(dt.UTC))
        context = Context(
            s.driver_name,
            s.node_name,
            s.plugin_dir,
            lambda: self._options,
            self._refresh,
            confirmations.set,
        )
        return self._profiles.get(s.profile)(context)

    def _serve(
        self,
        stack: ExitStack,
        where: sockets.SocketPaths,
        api: kube.KubeApi,
        cdi_files: files.CdiFolder,
        driver: Driver,
    ) -> None:
        s = self._settings
        preparer = Preparer(s.driver_name, driver, kube.KubeClaims(api), cdi_files)
        stack.callback(self._end_claims, preparer)
        service = services.UnixServer(where.service, services.dra_services(preparer))
        service.start()
        stack.callback(service.stop, _SERVICE_GRACE)

        publication = Publication(s, driver, api, cdi_files, self._thread)
        stack.callback(publication.stop)
        self._publication = publication
        publication.start()

        registration = services.Registration(s.driver_name, where.service, services.VERSIONS)
        registry = _Registry(where.registration, registration)
        registry.start()
        stack.callback(registry.stop)
        if s.http_address is not None:
            health = _Health(s, service, publication, registration, cdi_files)
            checks: dict[str, probes.Check] = {"/healthz": health.alive, "/readyz": health.ready}
            texts = {"/metrics": publication.measures.text}
            endpoint = probes.Endpoint(s.http_address, checks, texts)
            endpoint.start()
            stack.callback(endpoint.stop)
        _log.info(
            "serving",
            driver=s.driver_name,
            node=s.node_name,
            profile=s.profile,
            socket=str(where.service),
            registration=str(where.registration),
        )
        self._wait(registry)
        if s.on_stop == "withdraw" and not self._failed:
            publication.withdraw()

    def _wait(self, registry: _Registry) -> None:
        while not self._stop:
            if select.select([self._inbox], [], [], _LOOK)[0]:
                os.read(self._inbox, 4096)
            if not self._stop:
                registry.repair()
            if self._reload:
                self._reload = False
                self._read_options()
                self._refresh()

    def _refresh(self) -> None:
        """Ask for the pools anew; before there is anybody to ask, they will be asked for anyway."""
        if self._publication is not None:
            self._publication.refresh()

    def _end_claims(self, preparer: Preparer) -> None:
        self._hung = not preparer.close(_CLAIM_GRACE)
        if self._hung:
            _log.warning("claims are still being worked on; their calls have been given up")

    def _read_options(self) -> None:
        try:
            fresh = config.parse(self._arguments, self._profiles)
        except InvalidValue as error:
            _log.error("settings were not read again, the old ones stay", error=str(error))
            return
        if not isinstance(fresh, Settings):
            return
        if fresh.fixed_part() != self._settings.fixed_part():
            _log.warning("a reload takes the profile's options only; restart for the others")
        if fresh.profile != self._settings.profile:
            return
        self._options = fresh.options
        _log.info("settings read again")

    def _handle_signals(self) -> None:
        def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's shape
            self._stop = True

        def reload(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's shape
            self._reload = True

        # Every signal also writes a byte into the pipe that the main thread waits for.
        signal.set_wakeup_fd(self._outbox, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGHUP, reload)

    def _thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except Exception:  # noqa: BLE001 - a bug: stop in order, the pod is restarted
                _log.exception("a thread ended unexpectedly", thread=name)
                self._failed = self._stop = True
                os.write(self._outbox, b"\0")

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread


class _Registry:
    """The registration socket, made again if somebody removes it."""

    def __init__(self, path: Path, registration: services.Registration) -> None:
        self._path = path
        self._registration = registration
        self._server = self._made()

    def _made(self) -> services.UnixServer:
        return services.UnixServer(self._path, [self._registration.register], threads=4)

    def start(self) -> None:
        """Serve."""
        self._server.start()

    def stop(self) -> None:
        """Let a running call end, and remove the socket."""
        self._server.stop(_REGISTRATION_GRACE)

    def repair(self) -> None:
        """The kubelet deregisters a driver whose socket is gone."""
        if self._server.intact() or self._path.exists():
            return
        self._registration.registered.clear()
        _log.warning("the registration socket was removed; making it again", path=str(self._path))
        self._server.stop(0.0)
        self._server = self._made()
        try:
            self._server.start()
        except StorageError as error:
            _log.error("the registration socket cannot be made", error=str(error))


class _Health:
    """What probes are told."""

    def __init__(
        self,
        settings: Settings,
        service: services.UnixServer,
        publication: Publication,
        registration: services.Registration,
        cdi_files: files.CdiFolder,
    ) -> None:
        self._settings = settings
        self._service = service
        self._cdi_files = cdi_files
        self._publication = publication
        self._registration = registration

    def alive(self) -> list[probes.Condition]:
        """Whether the DRA service answers on its socket."""
        gone = "" if self._service.intact() else f"{self._service.path} was removed or replaced"
        trouble = gone or services.ask(self._service.path)
        cdi = self._cdi_files.trouble()
        return [
            probes.Condition("Serving", not trouble, trouble or "the DRA socket answers"),
            probes.Condition("CdiFolder", not cdi, cdi or "CDI files can be written"),
        ]

    def ready(self) -> list[probes.Condition]:
        """Whether the kubelet knows us and the pools are published."""
        s = self._settings
        registered = self._registration.registered.is_set()
        publisher = self._publication.publisher
        standby = publisher.standby
        trouble = "" if standby else self._publication.trouble
        published = "another instance publishes" if standby else "all pools are published"
        return [
            probes.Condition(
                "Registered",
                registered,
                "the kubelet has registered this driver"
                if registered
                else f"the kubelet has not registered this driver: it must run and watch "
                f"{s.registry_dir}, so --kubelet-root must be its --root-dir",
            ),
            probes.Condition("Published", not trouble, trouble or published),
            # What follows is for people: it never makes the driver unready.
            probes.Condition("Cluster", True, publisher.version),
            probes.Condition("Features", True, publisher.missing),
            probes.Condition("NodeResources", True, publisher.accounting),
        ]

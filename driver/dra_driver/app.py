"""Composition root of the kubelet plugin; without a node it is :mod:`dra_driver.cluster_instance`.

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
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, cast

import structlog

from dra_core.errors import DraError, InvalidValue, StorageError
from dra_driver import config
from dra_driver.adapters import files, kube, kube_slices, metrics, services, sockets
from dra_driver.api import Context, Driver, Profile
from dra_driver.cluster_instance import ClusterInstance
from dra_driver.config import OnNode, Profiles, Replica, Settings
from dra_driver.confirmation import Confirmations
from dra_driver.lifetime import Lifetime
from dra_driver.preparer import Preparer
from dra_driver.publication import Publication
from dra_driver.turns import LockTurn
from dra_service import logs, probes

_log = structlog.get_logger(__name__)

#: Seconds that running calls get to end when the driver stops.
_REGISTRATION_GRACE, _SERVICE_GRACE, _CLAIM_GRACE = 1.0, 25.0, 3.0
#: Seconds between withdrawing and deregistering, for pods that were scheduled just before.
_AFTER_WITHDRAWING: Final = 3.0
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
        if isinstance(settings.place, Replica):
            return ClusterInstance(settings, settings.place, known, given).run()
        return _Instance(settings, settings.place, known, given).run()
    except (InvalidValue, StorageError, sockets.SocketInUse) as error:
        sentence = " ".join(str(error).split())
        print(f"{config.PROGRAM}: {sentence}", file=sys.stderr)  # noqa: T201 - to who starts it
        return _USAGE
    except DraError as error:
        _log.error("giving up", error=str(error))
        return 1


class _Instance:
    """One run of the driver on a node."""

    def __init__(
        self, settings: Settings, place: OnNode, profiles: Profiles, arguments: Sequence[str]
    ) -> None:
        self._settings = settings
        self._place = place
        self._profiles = profiles
        self._lifetime = Lifetime(settings, profiles, arguments)
        self._measures = metrics.registry()
        self._hung = False
        self._publication: Publication | None = None

    def run(self) -> int:
        """Until a signal says stop."""
        s, place = self._settings, self._place
        where = sockets.paths(place.plugin_dir, place.registry_dir, s.driver_name, s.pod_uid)
        api = kube.KubeApi.connect(s.kubeconfig)
        sockets.make_folders(where)
        cdi_files = files.CdiFolder(place.cdi_dir, s.driver_name)
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
        status = 1 if self._lifetime.failed else 0
        _log.info("stopped", driver=s.driver_name)
        if self._hung:
            # Threads of a vendor that does not return would keep the interpreter from ending.
            os._exit(status)
        return status

    def _make_driver(self, claims: kube.KubeClaims) -> Driver:
        s, place = self._settings, self._place
        confirmations = Confirmations(s.driver_name, claims, lambda: dt.datetime.now(dt.UTC))
        context = Context(
            s.driver_name,
            place.name,
            place.plugin_dir,
            self._lifetime.options,
            self._refresh,
            confirmations.set,
        )
        driver = self._profiles.get(s.profile)(context)
        if not isinstance(driver, Driver):
            raise InvalidValue(
                f"profile {s.profile!r} publishes only, it does not prepare claims; start it with "
                "--no-node"
            )
        return driver

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

        node = self._place.name
        publication = Publication(
            s,
            node,
            driver,
            api,
            turn=LockTurn(self._place.plugin_dir / "publisher.lock"),
            thread=self._lifetime.thread,
            events=kube_slices.KubeEvents(api, s.driver_name, s.pod_uid or node),
            measures=self._measures,
            in_use=cdi_files.devices,
        )
        stack.callback(publication.stop)
        self._publication = publication
        publication.start()

        registration = services.Registration(s.driver_name, where.service, services.VERSIONS)
        registry = _Registry(where.registration, registration)
        registry.start()
        stack.callback(registry.stop)
        if s.http_address is not None:
            health = _Health(self._place, service, publication, registration, cdi_files)
            checks: dict[str, probes.Check] = {"/healthz": health.alive, "/readyz": health.ready}
            texts = {"/metrics": self._measures.text}
            endpoint = probes.Endpoint(s.http_address, checks, texts)
            endpoint.start()
            stack.callback(endpoint.stop)
        _log.info(
            "serving",
            driver=s.driver_name,
            node=node,
            profile=s.profile,
            socket=str(where.service),
            registration=str(where.registration),
        )
        self._lifetime.wait(registry.repair, self._refresh)
        if s.on_stop == "withdraw" and not self._lifetime.failed and publication.withdraw():
            # Pods may have been scheduled a moment ago: the kubelet still finds a driver for them.
            time.sleep(_AFTER_WITHDRAWING)

    def _refresh(self) -> None:
        """Ask for the pools anew; before there is anybody to ask, they will be asked for anyway."""
        if self._publication is not None:
            self._publication.refresh()

    def _end_claims(self, preparer: Preparer) -> None:
        self._hung = not preparer.close(_CLAIM_GRACE)
        if self._hung:
            _log.warning("claims are still being worked on; their calls have been given up")


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
        place: OnNode,
        service: services.UnixServer,
        publication: Publication,
        registration: services.Registration,
        cdi_files: files.CdiFolder,
    ) -> None:
        self._place = place
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
        registered = self._registration.registered.is_set()
        return [
            probes.Condition(
                "Registered",
                registered,
                "the kubelet has registered this driver"
                if registered
                else f"the kubelet has not registered this driver: it must run and watch "
                f"{self._place.registry_dir}, so --kubelet-root must be its --root-dir",
            ),
            self._publication.published(),
            *self._publication.remarks(),
        ]

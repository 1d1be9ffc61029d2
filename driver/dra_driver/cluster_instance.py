"""An instance without a node: publishes, once for the whole cluster, and does nothing else.

Start: the Lease, publishing, probes; nothing of this waits for the API server. Stop: publishing,
then the Lease, so that another instance takes over at once. The slices stay, as on a node, unless
``--on-stop=withdraw`` says otherwise and this instance is the one that publishes.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import structlog

from dra_driver.adapters import kube, kube_slices, metrics
from dra_driver.api import Context
from dra_driver.config import Profiles, Replica, Settings
from dra_driver.lifetime import Lifetime
from dra_driver.publication import Publication
from dra_driver.turns import LeaseTurn, OnlyOne
from dra_service import leases, probes
from dra_service.leadership import Leadership

_log = structlog.get_logger(__name__)


class ClusterInstance:
    """One run."""

    def __init__(
        self, settings: Settings, place: Replica, profiles: Profiles, arguments: Sequence[str]
    ) -> None:
        self._settings = settings
        self._place = place
        self._profiles = profiles
        self._lifetime = Lifetime(settings, profiles, arguments)
        self._identity = place.identity or f"{socket.gethostname()}_{os.urandom(4).hex()}"
        self._publication: Publication | None = None
        self._measures = metrics.registry()

    def run(self) -> int:
        """Until a signal says stop."""
        s = self._settings
        api = kube.KubeApi.connect(s.kubeconfig)
        context = Context(s.driver_name, None, None, self._lifetime.options, self._refresh)
        source = self._profiles.get(s.profile)(context)
        turn = self._turn(api)
        publication = Publication(
            s,
            None,
            source,
            api,
            turn=turn,
            thread=self._lifetime.thread,
            events=kube_slices.KubeEvents(api, s.driver_name, self._identity, self._pod()),
            measures=self._measures,
        )
        with ExitStack() as stack:
            stack.callback(publication.stop)
            self._publication = publication
            if isinstance(turn, LeaseTurn):
                turn.start(self._lifetime.thread)
            publication.start()
            if s.http_address is not None:
                health = _Health(publication, turn)
                checks: dict[str, probes.Check] = {
                    "/healthz": health.alive,
                    "/readyz": health.ready,
                }
                texts = {"/metrics": self._measures.text}
                endpoint = probes.Endpoint(s.http_address, checks, texts)
                endpoint.start()
                stack.callback(endpoint.stop)
            _log.info(
                "publishing for the cluster",
                driver=s.driver_name,
                profile=s.profile,
                identity=self._identity,
                lease=self._place.lease_name,
            )
            self._lifetime.wait(lambda: None, self._refresh)
            if s.on_stop == "withdraw" and not self._lifetime.failed:
                publication.withdraw()
        _log.info("stopped", driver=s.driver_name)
        return 1 if self._lifetime.failed else 0

    def _turn(self, api: kube.KubeApi) -> LeaseTurn | OnlyOne:
        place = self._place
        if place.lease_name is None or place.namespace is None:
            return OnlyOne()
        lease = leases.KubeLease(api, place.namespace, place.lease_name)
        return LeaseTurn(
            Leadership(lease, self._identity, self._measures, time.monotonic, lambda: None)
        )

    def _pod(self) -> Mapping[str, str] | None:
        """The pod that Events are about: there is no object of the cluster that stands for us."""
        namespace, uid = self._place.namespace, self._settings.pod_uid
        if namespace is None or uid is None:
            return None
        name = self._identity
        return {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid}

    def _refresh(self) -> None:
        if self._publication is not None:
            self._publication.refresh()


class _Health:
    """What probes are told."""

    def __init__(self, publication: Publication, turn: LeaseTurn | OnlyOne) -> None:
        self._publication = publication
        self._turn = turn

    def alive(self) -> list[probes.Condition]:
        """That it answers: there is nothing else which a restart would mend."""
        return [probes.Condition("Running", True, "the process answers")]

    def ready(self) -> list[probes.Condition]:
        """Whether the pools are published, by this instance or another one."""
        conditions = [self._publication.published()]
        if isinstance(self._turn, LeaseTurn):
            known = self._turn.leadership.holder
            conditions.append(
                probes.Condition(
                    "Lease",
                    bool(known),
                    f"held by {known}"
                    if known
                    else "it has not been taken yet, see the log; this account needs the rights "
                    "get, create and update for it",
                )
            )
        return [*conditions, *self._publication.remarks()]

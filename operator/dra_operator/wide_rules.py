"""Rules that would evict most pods of the cluster: they wait until a person has confirmed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from dra_core.wire.lean import CONFIRMED
from dra_operator.agenda import Agenda, Plan
from dra_operator.cluster import Cluster
from dra_operator.ports import Measures, Notices, Start

_log = structlog.get_logger(__name__)

#: Reason of the Event.
HELD: Final = "DeviceTaintEvictionHeld"
#: Seconds for which the number of pods is good.
_FRESH: Final = 1.0


@dataclass(frozen=True, slots=True)
class Hold:
    """A rule that concerns more than this ``share`` of all pods with claims waits for a person.

    A selector that is too wide drains a cluster. Rules for up to ``few`` pods are never held.
    """

    share: float
    few: int = 10

    def holds(self, pods: int, users: int) -> bool:
        """Whether ``pods`` of the ``users`` are too many."""
        return pods > self.few and pods > self.share * users

    def why(self, pods: int, users: int, annotation: str) -> str:
        """A sentence for people."""
        return (
            f"{pods} of the {users} pods that use devices would be evicted, more than the share of "
            f"{self.share:g} (--hold-share): nothing is evicted until the rule has the annotation "
            f'{annotation}: "true" or concerns fewer pods'
        )


class Ports(Protocol):
    """The part of :class:`dra_operator.evictions.World` that is needed here."""

    @property
    def notices(self) -> Notices:
        """Events."""

    @property
    def measures(self) -> Measures:
        """Numbers."""

    @property
    def start(self) -> Start:
        """For what takes a request."""


class WideRules:
    """Which rules are held back. Used under the lock of whoever holds the cluster's."""

    def __init__(self, cluster: Cluster, agenda: Agenda, ports: Ports, share: float) -> None:
        self._cluster = cluster
        self._agenda = agenda
        self._ports = ports
        self._hold = Hold(share)
        self._held: set[str] = set()
        self._users = float("-inf"), 0

    def held(self, rule: str) -> bool:
        """Whether the rule of this UID was held when it was last looked at."""
        return rule in self._held

    def forget(self, rule: str) -> None:
        """The rule is gone."""
        self._held.discard(rule)

    def holds(self, plan: Plan, tick: float) -> bool:
        """Whether the plan's rule concerns too many pods to go on without a confirmation.

        Tells it once, in an Event on the rule. Taints of slices are never held.
        """
        source = plan.cause.placed.source
        rule = self._cluster.rule(source.uid)
        if rule is None or CONFIRMED in rule.metadata.annotations:
            self._held.discard(source.uid)
            return False
        if tick >= self._users[0] + _FRESH:
            self._users = tick, self._cluster.users()
        pods, users = self._agenda.count(source.uid), self._users[1]
        if not self._hold.holds(pods, users):
            self._held.discard(source.uid)
            return False
        if source.uid not in self._held:
            self._held.add(source.uid)
            note = self._hold.why(pods, users, CONFIRMED)
            _log.warning("evictions are held back", rule=source.name, reason=note)
            self._ports.measures.add("held_total")
            notices = self._ports.notices
            self._ports.start(lambda: notices.tell(source, "Warning", HELD, note))
        return True

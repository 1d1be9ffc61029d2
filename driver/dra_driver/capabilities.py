"""What the API server keeps of what we publish, found out from its answers.

Before a slice uses a feature for the first time it is tried out (a dry run, nothing is stored):
what does not come back is missing, and the pool is published in the way that its vendor, or
:mod:`dra_core.features`, has for that case. So no device stands in the cluster, even for a moment,
with another meaning than it has. Answers to real writes are compared as well.

A missing feature is named once: in the log, as an Event of the Node, as a metric. It is tried again
after a while (the cluster may have been upgraded), quietly.

Two servers refuse instead of dropping: an attribute whose list was dropped has no value left, and
node-allocatable resources are forbidden for Nodes that do not declare the feature (1.37, admission
plugin NodeDeclaredFeatureValidator). These features are then tried without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import structlog

from dra_core import features
from dra_core.errors import ApiForbidden, ApiInvalid
from dra_core.model.slices import PublishedSlice

_log = structlog.get_logger(__name__)

#: Seconds after which a feature that was dropped, or refused, is tried again.
DROPPED_AGAIN, REFUSED_AGAIN = 600.0, 60.0
#: Features that may make a server refuse; each is left out in turn, then both.
_REFUSABLE: Final = (
    (features.LISTS,),
    (features.NODE_ALLOCATABLE,),
    (features.LISTS, features.NODE_ALLOCATABLE),
)

_NOT_THERE: Final = "FeatureNotThere"

TryOut = Callable[[PublishedSlice], PublishedSlice]


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a feature is not there, and when to look again."""

    reason: str
    until: float


class Capabilities:
    """Of one API server, for one publisher. Used by one thread; ``missing`` may be read by any."""

    def __init__(self, clock: Callable[[], float], tell: Callable[[str, str, str], None]) -> None:
        self._clock = clock
        self._tell = tell
        self._confirmed: set[str] = set()
        self._named: dict[str, str] = {}
        self.missing: dict[str, Missing] = {}

    def look_again(self) -> None:
        """Forget what is due to be tried again."""
        now = self._clock()
        self.missing = {gate: m for gate, m in self.missing.items() if m.until > now}

    def explore(self, wanted: PublishedSlice, try_out: TryOut) -> bool:
        """Try out what is not known yet; whether something is missing, so that plans change."""
        unknown = features.used(wanted) - self._confirmed - set(self.missing)
        if not unknown:
            return False
        try:
            stored = try_out(wanted)
        except (ApiInvalid, ApiForbidden) as error:
            return self._explore_refusal(wanted, unknown, try_out, str(error))
        return self.learn(wanted, stored)

    def _explore_refusal(
        self, wanted: PublishedSlice, unknown: Iterable[str], try_out: TryOut, reason: str
    ) -> bool:
        for gates in _REFUSABLE:
            if not set(gates) <= set(unknown):
                continue
            stripped = _without(wanted, gates)
            try:
                stored = try_out(stripped)
            except (ApiInvalid, ApiForbidden):
                continue
            for gate in gates:
                self._miss(gate, f"refused: {reason}", REFUSED_AGAIN)
            self.learn(stripped, stored)
            return True
        return False  # it is refused for another reason, which the real write will tell

    def learn(self, sent: PublishedSlice, stored: PublishedSlice) -> bool:
        """Compare an answer with what was sent; whether something is missing that was not known."""
        used = features.used(sent)
        dropped = frozenset() if stored is sent else features.dropped(sent, stored)
        self._confirmed = (self._confirmed | used) - dropped
        for gate in sorted(dropped):
            fields = features.fields_of(gate)
            self._miss(gate, f"the API server dropped {fields}", DROPPED_AGAIN)
        for gate in used & set(self._named):
            if gate in self._confirmed:
                del self._named[gate]
                _log.info("feature is there now", feature=gate)
                self._tell(_NOT_THERE, gate, "")
        return bool(dropped)

    def _miss(self, gate: str, reason: str, seconds: float) -> None:
        self._confirmed.discard(gate)
        self.missing = self.missing | {gate: Missing(reason, self._clock() + seconds)}
        named, self._named[gate] = gate in self._named, reason
        if named:  # once, whatever words the server finds for it the next time
            return
        fields = features.fields_of(gate)
        _log.warning("feature is not there", feature=gate, fields=fields, reason=reason)
        note = f"{gate} is not on in this cluster or for this node: {reason}"
        self._tell(_NOT_THERE, gate, note)

    def unavailable(self) -> dict[str, str]:
        """Why, by gate, for all that is or was missing when it was last tried."""
        return dict(self._named)


def _without(published: PublishedSlice, gates: Iterable[str]) -> PublishedSlice:
    devices = published.devices
    for gate in gates:
        feature = features.FEATURES[gate]
        devices = tuple(feature.without(d) if feature.uses(d) else d for d in devices)
    return replace(published, devices=devices)


def shown(missing: dict[str, str]) -> str:
    """For ``/readyz``."""
    if not missing:
        return "every feature that the pools use is there"
    return "; ".join(f"{gate}: {reason}" for gate, reason in sorted(missing.items()))

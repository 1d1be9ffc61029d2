"""Whether this instance evicts: as it was told, or as it finds out by itself in mode ``auto``.

From 1.36 on kube-controller-manager evicts by itself, unless that is switched off, and two evictors
on one cluster are one too many. The API does not say whether it does. But where its evictor runs it
gives every DeviceTaintRule a condition, also one with effect None that selects nothing: such a rule
is the question, and the condition is the answer. Silence has to be heard twice, and says nothing
before 1.37, where the evictor may work for slices and take no notice of rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from dra_core.errors import ApiError, ApiForbidden, ApiNotFound
from dra_operator.ports import Measures, Mode, ProbeApi

_log = structlog.get_logger(__name__)

#: Minor version since which whoever evicts for slices answers rules, too.
ANSWERING: Final = 37
#: How one chooses by hand, for messages.
CHOOSE: Final = (
    "to choose by hand start the operator with --mode=observe, or switch the in-tree evictor off "
    "(kube-controller-manager --controllers=*,-device-taint-eviction-controller) and use "
    "--mode=evict"
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What mode ``auto`` has come to; ``asked`` if a rule of ours was asked for it."""

    mode: Mode
    reason: str
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds for an answer, between looks for it, and after a failure; the number of tries."""

    answer: float = 30.0
    look: float = 1.0
    failure: float = 10.0
    tries: int = 2


#: Waits so many seconds; False if there is no reason to go on (a stop, another leader).
Pause = Callable[[float], bool]


class Detection:
    """Asks whether the in-tree evictor works. :meth:`decide` blocks for a minute at most."""

    def __init__(
        self,
        probes: ProbeApi,
        monotonic: Callable[[], float],
        measures: Measures,
        times: Times | None = None,
    ) -> None:
        self._probes = probes
        self.monotonic = monotonic
        self.measures = measures
        self.times = times or Times()

    def decide(self, rules: str, pause: Pause) -> Decision | None:
        """None if it cannot be told now, or was interrupted.

        ``rules`` says why there are no rules to ask with, or nothing.
        """
        if rules:
            return Decision(Mode.OBSERVE, f"{rules}, so the in-tree evictor cannot be asked", False)
        try:
            return self._ask(pause)
        except ApiForbidden as error:
            why = f"a rule that asks the in-tree evictor may not be made: {error}"
            return Decision(Mode.OBSERVE, why, asked=False)
        except ApiError as error:
            _log.warning("whether the in-tree evictor works cannot be told now", error=str(error))
            return None

    def _ask(self, pause: Pause) -> Decision | None:
        self._tidy()
        for number in range(1, self.times.tries + 1):
            answer = self._try(pause)
            self.measures.add("probes_total", result=_RESULTS[answer])
            if answer is None:
                return None
            if answer:
                return Decision(Mode.OBSERVE, "the in-tree evictor works: it answered a rule")
            _log.info("the in-tree evictor did not answer", attempt=number)
        total = self.times.tries * self.times.answer
        why = f"the in-tree evictor answered none of {self.times.tries} rules within {total:g} s"
        return Decision(Mode.EVICT, why)

    def _try(self, pause: Pause) -> bool | None:
        """One rule of its own; None if interrupted."""
        name = self._probes.create()
        try:
            until = self.monotonic() + self.times.answer
            while True:
                if self._probes.answered(name):
                    return True
                left = until - self.monotonic()
                if left <= 0:
                    return False
                if not pause(min(self.times.look, left)):
                    return None
        finally:
            self._remove(name)

    def _tidy(self) -> None:
        """What an instance that was killed has left."""
        for name in self._probes.left_over():
            self._remove(name)

    def _remove(self, name: str) -> None:
        try:
            self._probes.delete(name)
        except ApiNotFound:
            pass
        except ApiError as error:
            # It has no effect and selects nothing; the next one to ask takes it away.
            _log.warning("a rule of ours is left behind", rule=name, error=str(error))


_RESULTS: Final = {True: "answered", False: "silent", None: "interrupted"}


def unasked(minor: int, missing: str) -> str:
    """Why the in-tree evictor of this minor version cannot be asked, or nothing.

    ``missing`` says why there are no rules. In 1.36 the gates of slice taints and of rules are
    apart: with the second one off the evictor works and answers no rule.
    """
    if missing:
        return missing
    if minor < ANSWERING:
        return f"before Kubernetes 1.{ANSWERING} it may evict without answering rules"
    return ""


class Choice:
    """The mode in force. Of several instances the one that leads asks, each time it begins to.

    :attr:`mode` is read by any thread; :meth:`tick` is called by one. ``term`` counts the times
    that this instance has begun to lead, and is None while it does not.
    """

    #: Seconds after which it is asked again: somebody may have switched the evictor on, or given us
    #: the right to ask.
    GOOD_FOR: Final = 3600.0
    UNASKED_FOR: Final = 60.0

    def __init__(
        self,
        wanted: Mode,
        detection: Detection,
        term: Callable[[], int | None],
        changed: Callable[[], None],
    ) -> None:
        self._wanted = wanted
        self._detection = detection
        self._term = term
        self._changed = changed
        self._decided: tuple[int, str, Decision] | None = None
        self._until = float("-inf")
        self._doubted = False
        self._said: Decision | None = None
        self._noted: Mode | None = None

    @property
    def mode(self) -> Mode | None:
        """Evict or observe; None as long as that is not known."""
        if self._wanted is not Mode.AUTO:
            return self._wanted
        decided = self._decided
        if decided is None or decided[0] != self._term() or self._doubted:
            return None
        return decided[2].mode

    @property
    def sure(self) -> bool:
        """Whether the in-tree evictor was asked and kept silent."""
        return self._wanted is Mode.AUTO and self.mode is Mode.EVICT

    def __str__(self) -> str:
        decided, mode = self._decided, self.mode
        if self._wanted is not Mode.AUTO:
            return str(self._wanted.value)
        if decided is None or mode is None:
            return "auto: not decided" + ("" if self._term() is not None else ", not leading")
        return f"auto: {mode.value}, since {decided[2].reason}"

    def doubt(self) -> None:
        """Something speaks against the last decision: evict nobody before it is asked again."""
        self._doubted = True

    def tick(self, rules: str, pause: Pause) -> None:
        """Decide if that is due. ``rules`` as for :meth:`Detection.decide`."""
        term = self._term()
        if self._wanted is Mode.AUTO and term is not None and self._due(term, rules):
            self._decide(term, rules, pause)
        mode = self.mode
        if mode is not self._noted:
            self._noted = mode
            for each in (Mode.EVICT, Mode.OBSERVE):
                self._detection.measures.set("mode", float(mode is each), mode=each.value)
            self._changed()

    def _due(self, term: int, rules: str) -> bool:
        if self._decided is None or self._decided[:2] != (term, rules):
            return True
        return self._doubted or self._detection.monotonic() >= self._until

    def _decide(self, term: int, rules: str, pause: Pause) -> None:
        def goes_on(seconds: float) -> bool:
            return pause(seconds) and self._term() == term

        decision = self._detection.decide(rules, goes_on)
        if decision is None:
            goes_on(self._detection.times.failure)
            return
        self._decided, self._doubted = (term, rules, decision), False
        self._until = self._detection.monotonic() + (
            self.GOOD_FOR if decision.asked else self.UNASKED_FOR
        )
        if decision != self._said:
            self._said = decision
            level = _log.info if decision.asked else _log.warning
            hint = {} if decision.asked else {"hint": CHOOSE}
            level("mode chosen", mode=decision.mode.value, reason=decision.reason, **hint)

"""Devices that could not be attached are held back for a while, longer each time.

By a DeviceTaintRule with effect NoSchedule on that one device, whose taint says until when: any
instance lifts it then. Where rules are not served, that is said once. If the device is allocated
all the same, the next attempt with it begins later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from dra_core import binding
from dra_core.binding import Hold
from dra_core.errors import ApiError
from dra_core.model.taints import DeviceTaintRule
from dra_core.taints import DeviceId
from dra_operator.binding_ports import HoldApi
from dra_operator.ports import Measures

_log = structlog.get_logger(__name__)

#: Seconds before a rule that could not be deleted is tried again.
_AGAIN: Final = 10.0


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds for which a device is held back: ``first``, doubling up to ``most``.

    ``delay`` is the most by which an attempt is put off where there are no rules: it must not use
    up the deadline of its claim.
    """

    first: float = 60.0
    most: float = 900.0
    delay: float = 120.0


class Holds:
    """See the module. Any thread may place; the rest is for the holder of the lock."""

    def __init__(
        self, api: HoldApi, measures: Measures, now: Callable[[], datetime], pause: Pause
    ) -> None:
        self._api = api
        self._measures = measures
        self._now = now
        self._pause = pause
        self._failures: dict[DeviceId, int] = {}
        self._delayed: dict[DeviceId, datetime] = {}
        self._rules: dict[str, tuple[Hold, str]] = {}
        self._lifting: dict[str, datetime] = {}
        self._said = False

    def put(self, rule: DeviceTaintRule) -> None:
        """A rule of whomever."""
        hold = binding.hold_of(rule)
        if hold is not None:
            self._rules[rule.metadata.uid] = hold, rule.metadata.name

    def remove(self, uid: str) -> None:
        """A rule that is gone."""
        self._rules.pop(uid, None)
        self._lifting.pop(uid, None)

    def known(self) -> frozenset[str]:
        """UIDs of our rules."""
        return frozenset(self._rules)

    def succeeded(self, device: DeviceId) -> None:
        """The device works."""
        self._failures.pop(device, None)
        self._delayed.pop(device, None)

    def delayed_until(self, device: DeviceId) -> datetime | None:
        """When the next attempt with the device may begin, should it be allocated all the same."""
        return self._delayed.get(device)

    def place(self, device: DeviceId, *, insist: bool) -> str:
        """Hold the device back; a sentence about it.

        Raises ApiError if that may work later, but only if we ``insist``: its claim is waiting.
        """
        failures = self._failures.get(device, 0) + 1
        seconds = binding.hold_seconds(failures, self._pause.first, self._pause.most)
        hold = Hold(device, self._now() + timedelta(seconds=seconds))
        why = "DeviceTaintRules are not served"
        try:
            placed = self._api.place(hold)
        except ApiError as error:
            if insist and error.retryable:
                raise
            placed, why = False, f"a DeviceTaintRule could not be created: {error}"
        self._failures[device] = failures
        self._measures.add("holds_total", result="placed" if placed else "no rule")
        # Also beside a rule: a claim may tolerate it, and a scheduler may not know of rules.
        delay = min(seconds, self._pause.delay)
        self._delayed[device] = self._now() + timedelta(seconds=delay)
        if placed:
            _log.info("device is held back", device=str(device), seconds=seconds, rule=hold.name)
            return f"the device is held back for {seconds:g} s by DeviceTaintRule {hold.name}"
        if not self._said:
            self._said = True
            _log.warning(
                "a device that cannot be attached may be picked again at once; attempts with it "
                "are delayed instead",
                why=why,
            )
        return f"the next attempt with the device begins in {delay:g} s"

    def due(self) -> list[tuple[str, str]]:
        """Names and UIDs of rules whose time is over; each is named again after a while."""
        now = self._now()
        found = []
        for uid, (hold, name) in self._rules.items():
            if now >= hold.until and now >= self._lifting.get(uid, now):
                self._lifting[uid] = now + timedelta(seconds=_AGAIN)
                found.append((name, uid))
        self._measures.set("holds", float(len(self._rules)))
        return found

    def lift(self, name: str, uid: str) -> None:
        """Delete a rule."""
        try:
            self._api.lift(name, uid)
        except ApiError as error:
            _log.warning("a device is still held back", rule=name, error=str(error))
            return
        _log.info("device is free again", rule=name)

"""Devices that the API server refused although the rules allow them: an admission policy, say."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dra_core.model.devices import Device
from dra_core.model.slices import Pool, PublishedSlice
from dra_core.names import PoolName

#: Seconds after which a device that was refused is tried again.
AGAIN: Final = 600.0
_DEVICE: Final = re.compile(r"spec\.devices\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class _Refused:
    """A device as the server refused it, why, and when to try it again."""

    device: Device
    reason: str
    until: float


class Refusals:
    """What one API server has refused of what one publisher sent."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._refused: dict[tuple[PoolName, str], _Refused] = {}

    def add(self, wanted: PublishedSlice, causes: Sequence[tuple[str, str]]) -> bool:
        """``wanted`` was refused; whether its devices were, as ``causes`` (ApiInvalid) say."""
        reasons: dict[int, list[str]] = {}
        for field, message in causes:
            found = _DEVICE.match(field)
            if found and int(found[1]) < len(wanted.devices):
                reasons.setdefault(int(found[1]), []).append(f"{field[found.end() :]}: {message}")
        now = self._clock()
        until = now + AGAIN
        # Nobody has offered those for a while that were due and not tried.
        self._refused = {k: r for k, r in self._refused.items() if now < r.until + AGAIN}
        for index, texts in reasons.items():
            device = wanted.devices[index]
            reason = f"the API server refused it: {'; '.join(texts).lstrip('.')}"
            self._refused[wanted.pool, device.name] = _Refused(_timeless(device), reason, until)
        return bool(reasons)

    def faults(self, pool: Pool) -> dict[str, str]:
        """Why, by name, for the devices that are refused as they are."""
        if not self._refused:
            return {}
        found = ((d.name, self._of(pool.name, d)) for d in pool.devices)
        return {name: refused.reason for name, refused in found if refused is not None}

    def due(self, pool: PoolName, device: str) -> bool:
        """Whether a device that was refused is to be tried again."""
        return self._clock() >= self._refused[pool, device].until

    def put_off(self, wanted: PublishedSlice) -> None:
        """``wanted`` was refused once more, in words that name no device."""
        until = self._clock() + AGAIN
        for device in wanted.devices:
            if refused := self._of(wanted.pool, device):
                self._refused[wanted.pool, device.name] = replace(refused, until=until)

    def doubtful(self, wanted: PublishedSlice) -> bool:
        """Whether a device is in it that was refused, and is due to be tried again."""
        return bool(self._refused) and any(self._of(wanted.pool, d) for d in wanted.devices)

    def clear(self) -> None:
        """The server is another one."""
        self._refused.clear()

    def forget(self, pool: PoolName) -> None:
        """There is no such pool any more."""
        self._refused = {k: refused for k, refused in self._refused.items() if k[0] != pool}

    def taken(self, wanted: PublishedSlice) -> None:
        """The server has taken it."""
        for device in wanted.devices if self._refused else ():
            self._refused.pop((wanted.pool, device.name), None)

    def _of(self, pool: PoolName, device: Device) -> _Refused | None:
        refused = self._refused.get((pool, device.name))
        return refused if refused is not None and refused.device == _timeless(device) else None


def _timeless(device: Device) -> Device:
    """Without what the server may have added."""
    return replace(device, taints=tuple(replace(t, time_added=None) for t in device.taints))

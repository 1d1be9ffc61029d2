"""What attaching needs from the world. Calls raise :class:`~dra_core.errors.ApiError`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dra_core.binding import Hold
from dra_core.errors import ApiError
from dra_core.model.claims import ClaimReference, DeviceStatus
from dra_core.model.usage import ClaimInUse
from dra_core.names import DriverName
from dra_core.taints import DeviceId


class Contested(ApiError):
    """Another writer has set one of our conditions to something else. It is left alone."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """A claim as the API server has it now, with its ``resourceVersion``."""

    claim: ClaimInUse
    version: str


class ClaimApi(Protocol):
    """Reads claims and writes our conditions into them."""

    def read(self, claim: ClaimReference) -> Fresh:
        """ApiNotFound if it is gone, also if another one has its name."""

    def report(self, device: DeviceId, fresh: Fresh, entries: Sequence[DeviceStatus]) -> Fresh:
        """Server-side apply of the entries of one device.

        ApiConflict if the claim has changed since it was read, Contested if a condition is
        somebody else's.
        """


class HoldApi(Protocol):
    """The rules that hold back devices."""

    def place(self, hold: Hold) -> bool:
        """Create the rule, one that is there already is fine; False if rules are not served."""

    def lift(self, name: str, uid: str) -> None:
        """Delete it; gone already is success."""


class ClaimNotices(Protocol):
    """Events about claims. Does not fail: an event that cannot be written is logged."""

    def tell(self, claim: ClaimReference, kind: str, reason: str, note: str) -> None:
        """``kind`` is Normal or Warning."""


#: Runs work of one driver in another thread, or at once in a test.
StartFor = Callable[[DriverName, Callable[[], None]], None]

"""What the use cases need from the world."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dra_core.model.claims import Claim, ClaimReference, DeviceStatus
from dra_core.names import ClaimUID


class ClaimReader(Protocol):
    """Reads claims from the API server."""

    def read(self, reference: ClaimReference) -> Claim:
        """The claim with this namespace and name; the caller compares the UID.

        Raises :class:`~dra_core.errors.ApiError`.
        """


class ClaimConditions(ClaimReader, Protocol):
    """Writes conditions of devices into claims."""

    def apply(self, claim: Claim, of: Sequence[str], entries: Sequence[DeviceStatus]) -> None:
        """Server-side apply, if the claim is as it was read; ApiConflict if not.

        ``of`` names what is applied for itself: a device and a condition.
        """


class CdiFiles(Protocol):
    """The CDI files of this driver's claims. Raises :class:`~dra_core.errors.StorageError`."""

    def write(self, claim: ClaimUID, document: bytes) -> bool:
        """Put the file there, atomically and durably; False if it already was just so."""

    def remove(self, claim: ClaimUID) -> bool:
        """Remove the file durably; False if there was none."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Objects of a list, and the resourceVersion to watch from."""

    items: tuple[dict[str, Any], ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A watch event. ``kind`` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    kind: str
    object: dict[str, Any]


class Scope(enum.Enum):
    """Which of the driver's slices: a publisher sees and touches no others."""

    #: Those with this node's name.
    NODE = "node"
    #: Those without a node's name that belong to this publisher: on a node those that its Node
    #: owns, without a node those that no Node owns.
    SHARED = "shared"


class SliceApi(Protocol):
    """The ResourceSlices of this publisher. Raises :class:`~dra_core.errors.ApiError`."""

    def owner(self) -> dict[str, Any] | None:
        """Owner reference to the Node, so that the slices go when it goes; None without a node."""

    def pools_of_nodes(self) -> Mapping[str, str]:
        """Pools of this driver that nodes publish, by name, with a slice of each."""

    def minor_version(self) -> int:
        """The server is Kubernetes 1.this."""

    def list(self, scope: Scope) -> Listed:
        """All of them."""

    def watch(self, scope: Scope, resource_version: str) -> Iterator[Changed]:
        """Changes from there on, until the server ends the stream."""

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        """The object as the server stored it."""

    def try_out(self, body: dict[str, Any]) -> dict[str, Any]:
        """The object as the server would store it under another name; nothing is stored."""

    def update(self, body: dict[str, Any]) -> dict[str, Any]:
        """Replace, on condition of ``metadata.resourceVersion``."""

    def delete(self, name: str, uid: str) -> None:
        """Delete the object with this UID; gone already is success, another one ApiConflict."""


class Notices(Protocol):
    """Tells people what they should know, beside the log."""

    def warn(self, owner: Mapping[str, Any] | None, reason: str, note: str) -> None:
        """A Warning about ``owner``, the Node; without one about the pod, if that is known.

        Does not wait, does not fail.
        """


class Measures(Protocol):
    """Numbers for monitoring."""

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Count up."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""

    def forget(self, **labels: str) -> None:
        """Drop the gauges with these labels: what they measured is gone."""

"""What a vendor imports to write an attacher.

An attacher speaks to whatever attaches devices to nodes: a fabric manager, a storage system. The
operator decides when, says in the claim what came of it, and tries again. An attacher is found by
an entry point in the group ``dragoman.attachers`` and chosen by ``--attacher DRIVER=NAME``::

    class MyAttacher:
        OTHERS = ()
        def __init__(self, context: Context) -> None: ...
        def attach(self, wish: Wish, timeout: float) -> Progress: ...
        def verify(self, wish: Wish, timeout: float) -> None: ...
        def detach(self, device: DeviceId, tag: Tag, timeout: float) -> Progress: ...
        def attachments(self, timeout: float) -> Sequence[Attachment]: ...

The fabric is the record of what is attached: the operator keeps none of its own. So an attacher
stores the :class:`Tag` with each attachment and gives it back in ``attachments``.

Every call may come again after a restart, an error or a change of leader, from any thread, though
never twice at a time for one claim and device by one operator. It has to return within ``timeout``
seconds. An exception that is not :class:`AttachFailed` means "not now", and the call comes again:
raise a :class:`~dra_core.errors.DraError` with a sentence for the claim's owner; the text of any
other exception goes to the log only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dra_core.errors import DraError, InvalidValue
from dra_core.model.claims import AllocationResult, ClaimReference
from dra_core.taints import DeviceId

__all__ = [
    "AllocationResult",
    "AttachFailed",
    "Attacher",
    "Attachment",
    "ClaimReference",
    "Context",
    "DeviceId",
    "DraError",
    "Factory",
    "InvalidValue",
    "NotNow",
    "Progress",
    "Tag",
    "Wish",
]


class AttachFailed(DraError):
    """This device cannot be attached for this claim; another device should be taken.

    ``reason`` is one word in CamelCase (``metav1.Condition.reason``), ``message`` a sentence.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NotNow(DraError):
    """The fabric could not be asked, or is busy; the same call comes again."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Tag:
    """For whom something is attached. ``cluster`` tells clusters that share a fabric apart."""

    cluster: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be attached where, for whom.

    ``node`` is empty where the allocation does not name a single node. ``results`` are the claim's
    allocation results for the device: one, or several shares.
    """

    device: DeviceId
    node: str
    tag: Tag
    results: tuple[AllocationResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something that is attached, or on its way there, or on its way out."""

    device: DeviceId
    node: str
    tag: Tag


@dataclass(frozen=True, slots=True)
class Progress:
    """``done``, or how far it is in a few words."""

    done: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """What an attacher gets to know: its driver, and the ``--attacher-option`` values for it."""

    driver: str
    options: Mapping[str, str]


class Attacher(Protocol):
    """Attaches the devices of one driver. See the module."""

    @property
    def OTHERS(self) -> Sequence[str]:  # noqa: N802 - a constant of the class
        """Binding and binding failure conditions that somebody else sets: a node agent, say."""

    def attach(self, wish: Wish, timeout: float) -> Progress:
        """Begin, go on, or find it done: attached exactly once, to that node, for that tag.

        What stands in the way and has the same tag (another node, a second attachment) is to be
        taken away; what has another tag is ``NotNow``, since it may be on its way out.
        """

    def verify(self, wish: Wish, timeout: float) -> None:
        """Return if it works from end to end; called after ``attach`` is done."""

    def detach(self, device: DeviceId, tag: Tag, timeout: float) -> Progress:
        """Take away all that is there for device and tag; done when nothing is left."""

    def attachments(self, timeout: float) -> Sequence[Attachment]:
        """All there are, of all clusters, complete: what is not listed counts as not there."""


class Factory(Protocol):
    """Makes an attacher; usually its class."""

    def __call__(self, context: Context) -> Attacher:
        """Raises InvalidValue with a sentence if an option is wrong. Does not connect."""

"""What a vendor imports to write a driver.

A driver says which devices a node has and what a container needs to use them. The framework does
the rest: it registers with the kubelet, publishes ResourceSlices, reads claims, writes CDI files,
answers every claim of a call, and starts again where it stopped.

::

    class MyDriver:
        def __init__(self, context: Context) -> None: ...
        def pools(self) -> Sequence[Pool]: ...
        def prepare(self, claim, results) -> Sequence[ContainerEdits]: ...
        def unprepare(self, claim) -> None: ...

and either an entry point in the group ``dragoman.profiles`` or a program of its own::

    from dra_driver.app import main
    raise SystemExit(main(profiles={"mine": MyDriver}))

Devices that belong to no node are published once for the cluster, by the same program with
``--no-node``: ``context.node`` is None then, and a class with ``pools`` alone is enough.

Threads: the framework calls ``pools`` from one thread, ``prepare`` and ``unprepare`` from many,
but never twice at a time for one claim. Work that needs an external program goes through
:func:`dra_driver.commands.run`; never fork a process that serves gRPC in any other way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from dra_core.cdi import ContainerEdits, DeviceNode, Mount
from dra_core.errors import DraError, InvalidValue, PreparationFailed, UnknownDevice
from dra_core.model.claims import AllocationResult, Claim, ClaimReference
from dra_core.model.devices import (
    AllocatableMapping,
    AllocatableOverhead,
    AttributeValue,
    Capacity,
    Counter,
    CounterConsumption,
    Device,
    NodeAllocatable,
    RequestPolicy,
    RequestRange,
    Version,
)
from dra_core.model.nodes import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_core.model.slices import CounterSet, Fallback, Nodes, Pool
from dra_core.model.taints import DeviceTaint
from dra_core.names import ClaimUID, DeviceName, DriverName, NodeName, PoolName
from dra_core.quantity import Quantity

__all__ = [
    "AllocatableMapping",
    "AllocatableOverhead",
    "AllocationResult",
    "AttributeValue",
    "Capacity",
    "Claim",
    "ClaimReference",
    "ClaimUID",
    "Confirmation",
    "ContainerEdits",
    "Context",
    "Counter",
    "CounterConsumption",
    "CounterSet",
    "Device",
    "DeviceName",
    "DeviceNode",
    "DeviceTaint",
    "DraError",
    "Driver",
    "DriverName",
    "Fallback",
    "InvalidValue",
    "Mount",
    "NodeAllocatable",
    "NodeName",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "Nodes",
    "Option",
    "Pool",
    "PoolName",
    "PoolSource",
    "PreparationFailed",
    "Profile",
    "Quantity",
    "RequestPolicy",
    "RequestRange",
    "UnknownDevice",
    "Version",
]


@dataclass(frozen=True, slots=True)
class Option:
    """One setting of a profile: ``--option NAME=VALUE``.

    ``check`` turns the text into what the profile works with and raises ``ValueError`` with a
    sentence that says what is allowed.
    """

    name: str
    default: str
    help: str
    check: Callable[[str], object] = str


def _nobody_listens() -> None:
    """A driver without the framework around it."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a node agent finds out about a device that is being attached for a claim.

    ``condition`` is a binding condition or binding failure condition of the device, ``reason`` one
    word in CamelCase.
    """

    claim: ClaimReference
    pool: PoolName
    device: DeviceName
    condition: str
    met: bool
    reason: str
    message: str = ""


def _nobody_is_told(confirmation: Confirmation) -> bool:  # noqa: ARG001 - as the framework's
    """A driver without the framework around it."""
    return False


@dataclass(frozen=True, slots=True)
class Context:
    """What a driver gets to know.

    ``node`` and ``folder`` are None in an instance without a node (``--no-node``); drivers that
    need a node say ``node_name`` and ``plugin_dir``. ``options`` gives the profile's options as
    they are now: a reload (SIGHUP) changes them, and the framework then asks for the pools anew.
    ``changed()`` says that the pools have changed, from any thread: they are asked for within a
    second instead of at the next rescan.

    ``confirm(Confirmation(…))`` sets a condition of a device in a claim beside those of others, and
    says whether it had to be written. From any thread; takes as long as the API server does. Raises
    ClaimGone, InvalidValue if the claim does not wait for such a condition, and ApiError.
    """

    driver_name: DriverName
    node: NodeName | None
    folder: Path | None
    options: Callable[[], Mapping[str, str]]
    changed: Callable[[], None] = _nobody_listens
    confirm: Callable[[Confirmation], bool] = _nobody_is_told

    @property
    def node_name(self) -> NodeName:
        """``node``; raises InvalidValue, which ends an instance that is starting, without one."""
        if self.node is None:
            raise self._no_node("a node's name")
        return self.node

    @property
    def plugin_dir(self) -> Path:
        """The driver's own folder on the host, the same path in a container; raises as above."""
        if self.folder is None:
            raise self._no_node("a folder on the node")
        return self.folder

    def _no_node(self, needed: str) -> InvalidValue:
        return InvalidValue(
            f"driver {self.driver_name!r} needs {needed}, and this instance runs without a node; "
            "leave --no-node out, or choose a profile that publishes for the whole cluster"
        )


class PoolSource(Protocol):
    """What an instance without a node needs of a driver: it publishes, and prepares nothing."""

    def pools(self) -> Sequence[Pool]:
        """All pools of this node, complete, in the order in which devices are to be handed out.

        An instance without a node gives those of the whole cluster, none of them ``Nodes.THIS``.
        An empty pool says that there are no devices. Raise any exception if the devices cannot be
        found out now: what was published last then stays, and the call comes again.
        """


@runtime_checkable
class Driver(PoolSource, Protocol):
    """A driver of one kind of device on one node."""

    def prepare(
        self, claim: Claim, results: Sequence[AllocationResult]
    ) -> Sequence[ContainerEdits]:
        """Make the devices ready; one answer for each of ``results``, in the same order.

        ``results`` are those of this driver only. The same claim may come again (the kubelet keeps
        no record over its restarts): do what is missing and answer the same. Raise a
        :class:`~dra_core.errors.DraError` with a sentence for the pod's owner; the text of any
        other exception goes to the log only.
        """

    def unprepare(self, claim: ClaimReference) -> None:
        """Undo ``prepare``. Must succeed for a claim that was never prepared."""


class Profile(Protocol):
    """Makes a driver; usually the driver's class itself, with three constants."""

    @property
    def OPTIONS(self) -> Sequence[Option]:  # noqa: N802 - a constant of the class
        """What ``--option`` takes."""

    @property
    def SUMMARY(self) -> str:  # noqa: N802 - a constant of the class
        """A few words for ``--help``."""

    @property
    def DRIVER_NAME(self) -> str:  # noqa: N802 - a constant of the class
        """Driver name unless ``--driver-name`` gives another."""

    def __call__(self, context: Context) -> PoolSource:
        """A driver for ``context``: a :class:`Driver` where ``context.node`` is one."""

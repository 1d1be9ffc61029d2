"""Profile ``fabric``: devices of a simulated fabric, attached while pods wait (:mod:`dra_fabric`).

One instance publishes the pool of the fabric, for all nodes (``publish=yes``). Once a device is
attached to this node, the node sees it among its own; it stays in the pool of the fabric alone, so
that no device is offered twice. With ``confirm=yes`` the node has a say, too: the pod is bound only
once this instance has found the device on its node.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import structlog

from dra_driver import api
from dra_fabric.client import Attachment, Client, Refused, Unreachable

_log = structlog.get_logger(__name__)

ATTACHED: Final = "fabric.example.com/Attached"
ATTACH_FAILED: Final = "fabric.example.com/AttachFailed"
#: Set here; the attacher leaves it to us.
NODE_READY: Final = "fabric.example.com/NodeReady"
#: Seconds for an answer of the manager, between looks at what has been attached, and before what
#: was confirmed is confirmed again: the claim may have been allocated anew.
_ANSWER, _LOOK, _AGAIN = 5.0, 0.5, 15.0
#: See the profile gpu.
_MAJOR: Final = 120


def _url(text: str) -> Client:
    return Client(text)


def _yes(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError("expected yes or no")
    return text == "yes"


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 128):
        raise ValueError("expected a whole number from 0 to 128")
    return int(text)


class FabricProfile:
    """Pool ``fabric``, and a pool named after the node with the devices that are its own."""

    SUMMARY: ClassVar[str] = "devices of a simulated fabric"
    DRIVER_NAME: ClassVar[str] = "fabric.example.com"
    OPTIONS: ClassVar[Sequence[api.Option]] = (
        api.Option("url", "http://127.0.0.1:8600", "of the fabric manager", _url),
        api.Option("pool", "fabric", "name of the fabric's pool"),
        api.Option("publish", "no", "yes on one node: publish the fabric's pool", _yes),
        api.Option("confirm", "no", "yes: pods also wait for this node to see the device", _yes),
        api.Option("local", "0", "number of devices that the node has without the fabric", _count),
    )

    def __init__(self, context: api.Context) -> None:
        self._context = context
        if self._says("confirm"):
            agent = Agent(self._attached, self._confirm)
            threading.Thread(target=agent.run, name="fabric-agent", daemon=True).start()

    def pools(self) -> Sequence[api.Pool]:
        """The fabric's pool, if it is ours to publish, and the node's."""
        try:
            inventory = self._client().devices(_ANSWER)
            attached = self._client().attachments(_ANSWER)
        except (Unreachable, Refused) as error:
            raise api.PreparationFailed(str(error)) from error
        pools = [api.Pool(self._node_pool(), self._local(inventory, attached))]
        if self._says("publish"):
            devices = tuple(self._device(name) for name in inventory)
            pool = api.PoolName(self._options()["pool"])
            pools.append(api.Pool(pool, devices, nodes=api.Nodes.ALL))
        return pools

    def _local(
        self, inventory: Sequence[str], attached: Sequence[Attachment]
    ) -> tuple[api.Device, ...]:
        """What the node sees, without what came through the fabric."""
        fabric = {*inventory, *(item.device for item in attached)}
        return tuple(
            api.Device(api.DeviceName(name)) for name in self._seen(attached) if name not in fabric
        )

    def _seen(self, attached: Sequence[Attachment]) -> list[str]:
        """As a scan of the node's buses would find them: nothing tells where one came from."""
        own = [f"local-{index}" for index in range(_count(self._options()["local"]))]
        node = self._context.node_name
        return own + [i.device for i in attached if i.node == node and i.state == "attached"]

    def _device(self, name: str) -> api.Device:
        conditions = (ATTACHED, NODE_READY) if self._says("confirm") else (ATTACHED,)
        return api.Device(
            name=api.DeviceName(name),
            attributes={"model": "SIM-FABRIC"},
            binds_to_node=True,
            binding_conditions=conditions,
            binding_failure_conditions=(ATTACH_FAILED,),
        )

    def prepare(
        self, claim: api.Claim, results: Sequence[api.AllocationResult]
    ) -> Sequence[api.ContainerEdits]:
        """Only what is attached to this node, for this claim."""
        try:
            attached = {
                item.device: item
                for item in self._attached()
                if item.tag.get("uid") == claim.reference.uid and item.state == "attached"
            }
        except (Unreachable, Refused) as error:
            raise api.PreparationFailed(str(error)) from error
        for result in results:
            if result.pool != self._node_pool() and result.device not in attached:
                raise api.PreparationFailed(
                    f"device {result.device!r} is not attached to node "
                    f"{self._context.node_name!r} for this claim"
                )
        return [self._edits(result.device) for result in results]

    def unprepare(self, claim: api.ClaimReference) -> None:
        """The operator detaches once the claim is deallocated."""

    def _edits(self, device: str) -> api.ContainerEdits:
        kind, _, index = device.rpartition("-")
        path = f"/dev/sim-{kind}{index}"
        minor = int(index) + (0 if kind == "local" else 128)
        return api.ContainerEdits(
            env={f"FABRIC_DEVICE_{index}": device},
            device_nodes=(api.DeviceNode(path, "c", _MAJOR, minor),),
        )

    def _attached(self) -> list[Attachment]:
        return self._client().attachments(_ANSWER, self._context.node_name)

    def _confirm(self, item: Attachment) -> None:
        claim = api.ClaimReference(
            item.tag["namespace"], item.tag["name"], api.ClaimUID(item.tag["uid"])
        )
        pool, device = api.PoolName(self._options()["pool"]), api.DeviceName(item.device)
        found = f"found on node {self._context.node_name}"
        self._context.confirm(
            api.Confirmation(claim, pool, device, NODE_READY, True, "DeviceFound", found)
        )

    def _node_pool(self) -> api.PoolName:
        return api.PoolName(self._context.node_name)

    def _says(self, option: str) -> bool:
        return _yes(self._options()[option])

    def _client(self) -> Client:
        return _url(self._options()["url"])

    def _options(self) -> dict[str, str]:
        return dict(self._context.options())


class Agent:
    """Looks what has come to the node, and confirms each attachment, again from time to time."""

    def __init__(
        self,
        attached: Callable[[], list[Attachment]],
        confirm: Callable[[Attachment], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._attached = attached
        self._confirm = confirm
        self._monotonic = monotonic
        self._next: dict[int, float] = {}

    def run(self) -> None:
        """For ever; the process ends it."""
        pause = threading.Event()
        while True:
            self.look()
            pause.wait(_LOOK)

    def look(self) -> None:
        """Once. What could not be confirmed comes again, soon if that may be of use."""
        try:
            items = {item.id: item for item in self._attached() if item.state == "attached"}
        except (Unreachable, Refused) as error:
            _log.debug("the fabric manager cannot be asked", error=str(error))
            return
        now = self._monotonic()
        self._next = {number: at for number, at in self._next.items() if number in items}
        for number, item in items.items():
            if now < self._next.get(number, now):
                continue
            self._next[number] = now + _AGAIN
            try:
                self._confirm(item)
            except api.DraError as error:
                _log.warning("device not confirmed", device=item.device, error=str(error))
                self._next[number] = now if error.retryable else now + _AGAIN

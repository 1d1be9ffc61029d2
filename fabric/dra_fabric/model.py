"""What the fabric has, and what is attached to what. Moments are arguments, in seconds."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

JSON = dict[str, Any]

#: Faults of a request: it gets lost; its answer does; it is done and answered after ``seconds``; it
#: is done twice; it is refused.
FAULTS: Final = ("lose", "lose-answer", "late", "twice", "refuse")
OPERATIONS: Final = ("attach", "detach")


class Refused(Exception):
    """``status`` is that of HTTP, ``reason`` one word."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong once; ``device`` empty means whichever comes next."""

    operation: str
    kind: str
    seconds: float = 0.0
    device: str = ""


@dataclass(slots=True)
class Item:
    """One attachment. Attached from ``ready_at`` on, gone from ``gone_at`` on."""

    number: int
    device: str
    node: str
    tag: Mapping[str, str]
    ready_at: float
    gone_at: float | None = None

    def state(self, now: float) -> str:
        """Of its three."""
        if self.gone_at is not None:
            return "detaching"
        return "attached" if now >= self.ready_at else "attaching"


@dataclass(slots=True)
class Fabric:
    """``latency`` in seconds is that of each attach and detach; ``slots`` are per node.

    Devices that are ``stuck`` begin to be attached and never are.
    """

    devices: int = 8
    slots: int = 16
    latency: float = 1.0
    links_down: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    faults: deque[Fault] = field(default_factory=deque)
    _items: dict[int, Item] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def names(self) -> list[str]:
        """All devices."""
        return [f"fab-{index}" for index in range(self.devices)]

    def items(self, now: float) -> list[Item]:
        """All attachments that are not gone."""
        for item in list(self._items.values()):
            if item.gone_at is not None and now >= item.gone_at:
                del self._items[item.number]
        return list(self._items.values())

    def fault(self, operation: str, device: str) -> Fault | None:
        """The next one for a request, which uses it up."""
        for fault in self.faults:
            if fault.operation == operation and fault.device in ("", device):
                self.faults.remove(fault)
                return fault
        return None

    def attach(
        self, device: str, node: str, tag: Mapping[str, str], now: float, *, twice: bool = False
    ) -> Item:
        """Begin to attach; the same request again finds what it began."""
        if device not in self.names():
            raise Refused(404, "UnknownDevice", f"the fabric has no device {device!r}")
        items = self.items(now)
        for item in items:
            if item.device == device and (item.tag != tag or item.node != node):
                raise Refused(409, "Busy", f"{device} is attached to {item.node} for another tag")
            if item.device == device and item.gone_at is not None:
                raise Refused(409, "Busy", f"{device} is on its way out")
            if item.device == device:
                return item
        if sum(item.node == node for item in items) >= self.slots:
            raise Refused(507, "NoSlot", f"node {node} has {self.slots} slots, all in use")
        ready_at = math.inf if device in self.stuck else now + self.latency
        made = [
            Item(next(self._numbers), device, node, dict(tag), ready_at)
            for _ in range(2 if twice else 1)
        ]
        self._items |= {item.number: item for item in made}
        return made[0]

    def detach(self, number: int, now: float) -> None:
        """Begin to take an attachment away; what is not there is no matter."""
        item = self._items.get(number)
        if item is not None and item.gone_at is None:
            item.gone_at = now + self.latency

    def shown(self, item: Item, now: float) -> JSON:
        """As the API tells it."""
        return {
            "id": item.number,
            "device": item.device,
            "node": item.node,
            "tag": dict(item.tag),
            "state": item.state(now),
            "link": "down" if item.device in self.links_down else "up",
        }

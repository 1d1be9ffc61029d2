"""Attacher ``fabric``: the simulated fabric manager of :mod:`dra_fabric`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import ClassVar, Final

from dra_core.names import DeviceName, DriverName, PoolName
from dra_fabric import client
from dra_fabric.client import Client, Refused, Unreachable
from dra_operator.api import (
    AttachFailed,
    Attachment,
    Context,
    DeviceId,
    InvalidValue,
    NotNow,
    Progress,
    Tag,
    Wish,
)

#: Answers that another try may change: busy, no slot free on the node, the manager's own trouble.
_NOT_NOW: Final = (409, 507)


class FabricAttacher:
    """One fabric is one pool. Options: ``url`` of the manager, ``pool``."""

    #: Set by the node agent of the profile ``fabric``.
    OTHERS: ClassVar[Sequence[str]] = (
        "fabric.example.com/NodeReady",
        "fabric.example.com/NodeFailed",
    )

    def __init__(self, context: Context) -> None:
        options = dict(context.options)
        url, pool = options.pop("url", "http://127.0.0.1:8600"), options.pop("pool", "fabric")
        if options:
            raise InvalidValue(
                f"attacher fabric has no option {next(iter(options))!r}; there are: url, pool"
            )
        try:
            self._client = Client(url)
        except ValueError as error:
            raise InvalidValue(f"attacher fabric, option url: {error}") from error
        self._driver, self._pool = DriverName(context.driver), PoolName(pool)

    def attach(self, wish: Wish, timeout: float) -> Progress:
        """Take away what is wrong, then ask for what is missing."""
        if wish.device.pool != self._pool:
            raise AttachFailed("UnknownPool", f"the fabric is pool {self._pool!r}")
        if not wish.node:
            raise AttachFailed("NoNode", "the allocation names no single node; set bindsToNode")
        mine = self._mine(wish.device, wish.tag, timeout)
        good = [item for item in mine if item.node == wish.node and item.state != "detaching"]
        surplus = [item for item in mine if item not in good[:1] and item.state != "detaching"]
        try:
            for item in surplus:
                self._client.detach(item.id, timeout)
            if not good and not mine:
                tag = asdict(wish.tag)
                good = [self._client.attach(wish.device.device, wish.node, tag, timeout)]
        except Unreachable as error:
            raise NotNow(str(error)) from error
        except Refused as error:
            if error.status in _NOT_NOW or error.status >= 500:
                raise NotNow(str(error)) from error
            raise AttachFailed(error.reason, str(error)) from error
        if not good or len(mine) > 1:
            return Progress(False, "waiting until an earlier attachment is gone")
        return Progress(good[0].state == "attached", f"the fabric is {good[0].state} it")

    def verify(self, wish: Wish, timeout: float) -> None:
        """The manager's own word that the link is up."""
        for item in self._mine(wish.device, wish.tag, timeout):
            if item.node == wish.node and item.state == "attached" and item.link == "up":
                return
        raise NotNow(f"the link of {wish.device.device} on node {wish.node} is not up")

    def detach(self, device: DeviceId, tag: Tag, timeout: float) -> Progress:
        """All attachments of the device with the tag."""
        mine = self._mine(device, tag, timeout)
        try:
            for item in mine:
                if item.state != "detaching":
                    self._client.detach(item.id, timeout)
        except (Unreachable, Refused) as error:
            raise NotNow(str(error)) from error
        return Progress(not mine, "the fabric is detaching it")

    def attachments(self, timeout: float) -> Sequence[Attachment]:
        """What the manager lists; what has a tag of somebody else's making is not ours."""
        found = []
        for item in self._listed(timeout):
            try:
                tag = Tag(**item.tag)
            except TypeError:
                continue
            device = DeviceId(self._driver, self._pool, DeviceName(item.device))
            found.append(Attachment(device, item.node, tag))
        return found

    def _mine(self, device: DeviceId, tag: Tag, timeout: float) -> list[client.Attachment]:
        wanted = asdict(tag)
        return [
            item
            for item in self._listed(timeout)
            if item.device == device.device and item.tag == wanted
        ]

    def _listed(self, timeout: float) -> list[client.Attachment]:
        try:
            return self._client.attachments(timeout)
        except (Unreachable, Refused) as error:
            raise NotNow(str(error)) from error

"""Profile ``ports``: simulated ports of a network, which belong to no node.

An instance without a node (``--no-node``) publishes them, for all nodes or zone by zone. Instances
on nodes publish nothing; they prepare the ports that pods on their node were given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from dra_core import names
from dra_core.errors import UnknownDevice
from dra_driver import api

_MOST: Final = 10_000
_ZONE: Final = "topology.kubernetes.io/zone"


def _count(text: str) -> int:
    count = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= count <= _MOST:
        raise ValueError(f"expected a whole number from 0 to {_MOST}")
    return count


def _zones(text: str) -> tuple[str, ...]:
    zones = tuple(text.split(",")) if text else ()
    for zone in zones:
        names.check_dns_label("zone", zone)
    if len(set(zones)) != len(zones):
        raise ValueError("expected zones that are all different")
    return zones


class PortsProfile:
    """Ports ``port-<index>``, in a pool ``network`` or in one pool ``network-<zone>`` each."""

    SUMMARY: ClassVar[str] = "simulated ports of a network, of no node: see --no-node"
    DRIVER_NAME: ClassVar[str] = "ports.example.com"
    OPTIONS: ClassVar[Sequence[api.Option]] = (
        api.Option("count", "8", f"number of ports in each pool, 0 to {_MOST}", _count),
        api.Option("zones", "", f"values of {_ZONE}, joined by ','; none: all nodes", _zones),
    )

    def __init__(self, context: api.Context) -> None:
        self._context = context

    def pools(self) -> Sequence[api.Pool]:
        if self._context.node is not None:
            return []
        options = self._context.options()
        ports = tuple(
            api.Device(api.DeviceName(f"port-{n}"), {"index": n})
            for n in range(_count(options["count"]))
        )
        zones = _zones(options["zones"])
        if not zones:
            return [api.Pool(api.PoolName("network"), ports, nodes=api.Nodes.ALL)]
        return [
            api.Pool(api.PoolName(f"network-{zone}"), ports, nodes=_nodes_of(zone))
            for zone in zones
        ]

    def prepare(
        self, claim: api.Claim, results: Sequence[api.AllocationResult]
    ) -> Sequence[api.ContainerEdits]:
        return [self._edits(result) for result in results]

    def unprepare(self, claim: api.ClaimReference) -> None:
        """A simulated port keeps nothing of a claim."""

    def _edits(self, result: api.AllocationResult) -> api.ContainerEdits:
        prefix, _, digits = result.device.partition("-")
        if prefix != "port" or not (digits.isascii() and digits.isdigit()):
            raise UnknownDevice(
                f"device {result.device!r} in pool {result.pool!r} is no port of the network "
                "(port-<index>); delete the pod to have the claim allocated anew"
            )
        return api.ContainerEdits(env={f"NETWORK_PORT_{digits}": f"{result.pool}/{result.device}"})


def _nodes_of(zone: str) -> api.NodeSelector:
    term = api.NodeSelectorTerm((api.NodeSelectorRequirement(_ZONE, "In", (zone,)),))
    return api.NodeSelector((term,))

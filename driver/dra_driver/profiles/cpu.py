"""Profile ``cpu``: the CPUs of each NUMA node as one device that many claims share.

A claim asks for a capacity of ``cpus`` of one device, so all its CPUs are on one NUMA node. What it
gets counts as cpu of the node (``nodeAllocatableResources``; Kubernetes 1.36 has another name for
it, see :mod:`dra_core.node_allocatable`): pods do not ask for the same CPUs as a request for cpu.

The topology is that of sysfs, or a simulated one: ``topology=2x8`` is two nodes of eight CPUs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from dra_core.errors import PreparationFailed, UnknownDevice
from dra_core.quantity import Quantity
from dra_driver import api
from dra_driver.sysfs import NumaNode, Sysfs

#: The capacity that claims ask for.
CPUS: Final = "cpus"
_TOPOLOGY: Final = re.compile(r"([1-9]\d{0,2})x([1-9]\d{0,3})")
_ONE: Final = Quantity.parse("1")


def _topology(text: str) -> list[NumaNode]:
    if not text:
        return []
    match = _TOPOLOGY.fullmatch(text)
    if not match:
        raise ValueError("expected NODESxCPUS such as 2x8, or nothing for the machine's own")
    nodes, cpus = int(match[1]), int(match[2])
    return [NumaNode(n, tuple(range(n * cpus, (n + 1) * cpus)), n) for n in range(nodes)]


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        raise ValueError("expected an absolute path")
    return path


class CpuProfile:
    """Devices ``numa-<node>`` in one pool named after the node."""

    SUMMARY: ClassVar[str] = "CPUs of each NUMA node, shared"
    DRIVER_NAME: ClassVar[str] = "cpu.example.com"
    OPTIONS: ClassVar[Sequence[api.Option]] = (
        api.Option("topology", "", "simulated NUMA nodes and CPUs of each, e.g. 2x8", _topology),
        api.Option("sysfs", "/sys", "where sysfs is mounted", _folder),
    )

    def __init__(self, context: api.Context) -> None:
        self._context = context
        self._node = context.node_name

    def pools(self) -> Sequence[api.Pool]:
        nodes = self._nodes()
        if not nodes:
            where = self._context.options()["sysfs"]
            raise PreparationFailed(f"no CPU is listed in {where}; is sysfs mounted there?")
        devices = tuple(self._device(node) for node in nodes)
        return [api.Pool(api.PoolName(self._node), devices)]

    def _nodes(self) -> list[NumaNode]:
        options = self._context.options()
        simulated = _topology(options["topology"])
        return simulated or Sysfs(Path(options["sysfs"])).numa_nodes()

    def _device(self, node: NumaNode) -> api.Device:
        count = Quantity.parse(str(len(node.cpus)))
        attributes: dict[str, api.AttributeValue] = dict(Sysfs().numa_attribute(node.number))
        if node.socket is not None:
            attributes["socket"] = node.socket
        if len(node.cpus) > 1:
            whole_cpus = api.RequestRange(minimum=_ONE, maximum=count, step=_ONE)
            policy = api.RequestPolicy(default=_ONE, valid_range=whole_cpus)
        else:  # the API wants a step that stays within the capacity
            policy = api.RequestPolicy(default=_ONE, valid_values=(_ONE,))
        mapping = api.AllocatableMapping(capacity_key=CPUS, capacity_multiplier=_ONE)
        return api.Device(
            name=api.DeviceName(f"numa-{node.number}"),
            attributes=attributes,
            capacity={CPUS: api.Capacity(count, policy)},
            allow_multiple_allocations=True,
            node_allocatable={"cpu": api.NodeAllocatable(mapping)},
        )

    def prepare(
        self, claim: api.Claim, results: Sequence[api.AllocationResult]
    ) -> Sequence[api.ContainerEdits]:
        """Containers learn how many CPUs of which node they have; the kubelet sets the cgroup."""
        known = {f"numa-{node.number}": node for node in self._nodes()}
        edits = []
        for result in results:
            node = known.get(result.device)
            if node is None:
                raise UnknownDevice(
                    f"device {result.device!r} in pool {result.pool!r} is not on node "
                    f"{self._node!r}, which has: {', '.join(known)}"
                )
            count = result.consumed_capacity.get(CPUS, Quantity.parse(str(len(node.cpus))))
            edits.append(api.ContainerEdits(env={f"DRA_CPUS_NUMA_{node.number}": str(count)}))
        return edits

    def unprepare(self, claim: api.ClaimReference) -> None:
        """Nothing was made."""

"""What Linux says about devices and CPUs in sysfs, as standard attributes of devices.

Standard attributes let a claim ask that devices of different drivers stand close together:
``resource.kubernetes.io/pcieRoot``, ``…/pciBusID`` and ``…/numaNode`` (names and values as in
k8s.io/dynamic-resource-allocation/deviceattribute). ``root`` is where sysfs is mounted: another
path in a container, or a folder that a test has made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_core.errors import InvalidValue, PreparationFailed
from dra_core.model.devices import AttributeValue

STANDARD: Final = "resource.kubernetes.io/"
PCIE_ROOT: Final = f"{STANDARD}pcieRoot"
PCI_BUS_ID: Final = f"{STANDARD}pciBusID"
NUMA_NODE: Final = f"{STANDARD}numaNode"
#: Linux has at most this many NUMA nodes on any architecture (CONFIG_NODES_SHIFT is 10 at most).
_NODES_MAX: Final = 1024
_BUS_ID: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node with CPUs. ``socket`` is the physical package, None if it is not known."""

    number: int
    cpus: tuple[int, ...]
    socket: int | None = None


class Sysfs:
    """Reads below ``root``."""

    def __init__(self, root: Path = Path("/sys")) -> None:
        self._root = root

    def pci_attributes(self, bus_id: str, *, lists: bool = False) -> dict[str, AttributeValue]:
        """The standard attributes of a PCI device, e.g. of ``0000:04:1f.0``.

        A device without NUMA affinity (the kernel says -1) has no ``numaNode``: with -1 it would
        match all others without one. ``lists`` gives ``numaNode`` as a list, see
        :meth:`numa_attribute`.
        """
        if not _BUS_ID.fullmatch(bus_id):
            raise InvalidValue(f"PCI bus id {bus_id!r} is not like 0000:04:1f.0, in lower case")
        found: dict[str, AttributeValue] = {
            PCI_BUS_ID: bus_id,
            PCIE_ROOT: self._pcie_root(bus_id),
        }
        node = self._number(f"bus/pci/devices/{bus_id}/numa_node")
        if node is not None and node >= 0:
            found |= self.numa_attribute(node, lists=lists)
        return found

    def _pcie_root(self, bus_id: str) -> str:
        """The first part of where the device's link in ``/sys/bus`` leads to below devices."""
        link = self._root / "bus" / "pci" / "devices" / bus_id
        try:
            target = os.path.normpath(link.parent / link.readlink())
        except OSError as error:
            raise PreparationFailed(
                f"there is no PCI device {bus_id} in {self._root}: {error.strerror}"
            ) from error
        below = os.path.relpath(target, self._root / "devices")
        root = next(iter(Path(below).parts), "")
        if not root.startswith("pci") or Path(target).name != bus_id:
            raise PreparationFailed(f"{link} leads to {target}, not to a device of a PCIe root")
        return root

    def numa_attribute(self, node: int, *, lists: bool = False) -> dict[str, AttributeValue]:
        """``numaNode``: the node, or with ``lists`` the node and then those that are as near.

        As near are the nodes of the same socket at the smallest distance. Lists need the feature
        gate DRAListTypeAttributes; where it is off, a list of one node is published as a number and
        a longer one is left out.
        """
        if not 0 <= node < _NODES_MAX:
            raise InvalidValue(f"NUMA node {node} is not from 0 to {_NODES_MAX - 1}")
        if not lists:
            return {NUMA_NODE: node}
        return {NUMA_NODE: (node, *self._near(node))}

    def _near(self, node: int) -> list[int]:
        distances = self._text(f"devices/system/node/node{node}/distance").split()
        if node >= len(distances) or not all(d.isdecimal() for d in distances):
            return []
        others = {n: int(d) for n, d in enumerate(distances) if n != node}
        socket = self._socket_of_node(node)
        found = []
        for other, distance in others.items():
            theirs = self._socket_of_node(other)
            # A node of memory alone has no socket of its own: it counts as near.
            elsewhere = None not in (socket, theirs) and socket != theirs
            if distance == min(others.values()) and not elsewhere:
                found.append(other)
        return found

    def numa_nodes(self) -> list[NumaNode]:
        """All NUMA nodes with CPUs; a machine without NUMA is one node."""
        found = []
        for number in parse_ranges(self._text("devices/system/node/online")):
            cpus = self._cpus_of_node(number)
            if cpus:
                found.append(NumaNode(number, cpus, self._socket(cpus[0])))
        if found:
            return found
        cpus = tuple(parse_ranges(self._text("devices/system/cpu/online")))
        return [NumaNode(0, cpus, self._socket(cpus[0]))] if cpus else []

    def _cpus_of_node(self, node: int) -> tuple[int, ...]:
        return tuple(parse_ranges(self._text(f"devices/system/node/node{node}/cpulist")))

    def _socket_of_node(self, node: int) -> int | None:
        cpus = self._cpus_of_node(node)
        return self._socket(cpus[0]) if cpus else None

    def _socket(self, cpu: int) -> int | None:
        found = self._number(f"devices/system/cpu/cpu{cpu}/topology/physical_package_id")
        return found if found is not None and found >= 0 else None

    def _number(self, path: str) -> int | None:
        text = self._text(path)
        try:
            return int(text)
        except ValueError:
            return None

    def _text(self, path: str) -> str:
        """The content of a file, empty if there is none."""
        try:
            return (self._root / path).read_text().strip()
        except (OSError, UnicodeError):
            return ""


def parse_ranges(text: str) -> Sequence[int]:
    """``0-3,8`` as the kernel writes lists of CPUs and nodes; empty if it is no such list."""
    found: list[int] = []
    for part in text.split(",") if text else []:
        match = _RANGE.fullmatch(part.strip())
        if not match:
            return []
        first, last = int(match[1]), int(match[2] or match[1])
        found += range(first, last + 1)
    return found

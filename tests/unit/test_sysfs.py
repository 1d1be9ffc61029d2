"""Standard attributes and NUMA nodes, from a tree that looks like sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_core.errors import InvalidValue, PreparationFailed
from dra_driver.sysfs import NumaNode, Sysfs, parse_ranges

BUS_ID = "0000:04:1f.0"


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


def cpus(root: Path, node: int, cpulist: str, socket: int, distance: str) -> None:
    write(root, f"devices/system/node/node{node}/cpulist", cpulist)
    write(root, f"devices/system/node/node{node}/distance", distance)
    for cpu in parse_ranges(cpulist):
        write(root, f"devices/system/cpu/cpu{cpu}/topology/physical_package_id", str(socket))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two sockets with two nodes each, and a fifth node of memory alone."""
    write(tmp_path, "devices/system/node/online", "0-4")
    cpus(tmp_path, 0, "0-1,8-9", 0, "10 12 32 32 12")
    cpus(tmp_path, 1, "2-3", 0, "12 10 32 32 32")
    cpus(tmp_path, 2, "4-5", 1, "32 32 10 12 32")
    cpus(tmp_path, 3, "6-7", 1, "32 32 12 10 32")
    cpus(tmp_path, 4, "", 0, "12 32 32 32 10")
    device = f"devices/pci0000:00/0000:00:01.0/{BUS_ID}"
    write(tmp_path, f"{device}/numa_node", "1")
    links = tmp_path / "bus" / "pci" / "devices"
    links.mkdir(parents=True)
    (links / BUS_ID).symlink_to(f"../../../{device}")
    return tmp_path


def test_a_pci_device_has_the_standard_attributes(root: Path) -> None:
    assert Sysfs(root).pci_attributes(BUS_ID) == {
        "resource.kubernetes.io/pciBusID": BUS_ID,
        "resource.kubernetes.io/pcieRoot": "pci0000:00",
        "resource.kubernetes.io/numaNode": 1,
    }


@pytest.mark.parametrize("text", ["-1", "", "x"])
def test_without_affinity_there_is_no_numa_node(root: Path, text: str) -> None:
    write(root, f"devices/pci0000:00/0000:00:01.0/{BUS_ID}/numa_node", text)
    assert "resource.kubernetes.io/numaNode" not in Sysfs(root).pci_attributes(BUS_ID)


def test_a_list_has_the_nodes_that_are_as_near(root: Path) -> None:
    found = {
        node: Sysfs(root).numa_attribute(node, lists=True)["resource.kubernetes.io/numaNode"]
        for node in range(5)
    }
    assert found == {0: (0, 1, 4), 1: (1, 0), 2: (2, 3), 3: (3, 2), 4: (4, 0)}
    listed = Sysfs(root).pci_attributes(BUS_ID, lists=True)
    assert listed["resource.kubernetes.io/numaNode"] == (1, 0)


def test_the_nearest_node_of_another_socket_is_not_near(root: Path) -> None:
    write(root, "devices/system/node/node1/distance", "32 10 12 32 32")
    found = Sysfs(root).numa_attribute(1, lists=True)
    assert found == {"resource.kubernetes.io/numaNode": (1,)}


@pytest.mark.parametrize("text", ["", "10", "ten twelve"])
def test_without_distances_a_list_is_the_node_itself(root: Path, text: str) -> None:
    write(root, "devices/system/node/node1/distance", text)
    found = Sysfs(root).numa_attribute(1, lists=True)
    assert found == {"resource.kubernetes.io/numaNode": (1,)}


@pytest.mark.parametrize("bus_id", ["", "04:1f.0", "0000:04:1F.0", "../../../etc"])
def test_a_bus_id_that_is_none_is_refused(root: Path, bus_id: str) -> None:
    with pytest.raises(InvalidValue, match="PCI bus id"):
        Sysfs(root).pci_attributes(bus_id)


def test_a_device_that_is_not_there_is_named(root: Path) -> None:
    with pytest.raises(PreparationFailed, match=r"no PCI device 0000:05:00\.0"):
        Sysfs(root).pci_attributes("0000:05:00.0")


def test_a_link_to_elsewhere_is_not_followed(root: Path) -> None:
    (root / "bus/pci/devices/0000:05:00.0").symlink_to("../../../devices/virtual/0000:05:00.0")
    with pytest.raises(PreparationFailed, match="not to a device of a PCIe root"):
        Sysfs(root).pci_attributes("0000:05:00.0")


@pytest.mark.parametrize("node", [-1, 1024])
def test_a_node_out_of_range_is_refused(root: Path, node: int) -> None:
    with pytest.raises(InvalidValue, match="NUMA node"):
        Sysfs(root).numa_attribute(node)


def test_numa_nodes_with_cpus(root: Path) -> None:
    assert Sysfs(root).numa_nodes() == [
        NumaNode(0, (0, 1, 8, 9), 0),
        NumaNode(1, (2, 3), 0),
        NumaNode(2, (4, 5), 1),
        NumaNode(3, (6, 7), 1),
    ]


def test_a_machine_without_numa_is_one_node(tmp_path: Path) -> None:
    assert Sysfs(tmp_path).numa_nodes() == []
    write(tmp_path, "devices/system/cpu/online", "0-2")
    assert Sysfs(tmp_path).numa_nodes() == [NumaNode(0, (0, 1, 2))]


def test_the_machine_itself_has_cpus() -> None:
    assert Sysfs().numa_nodes()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", []), ("0", [0]), ("0-2", [0, 1, 2]), ("0-1,4,6-7", [0, 1, 4, 6, 7]), ("a", [])],
)
def test_lists_of_the_kernel(text: str, numbers: list[int]) -> None:
    assert list(parse_ranges(text)) == numbers


@pytest.mark.parametrize(
    "target", ["../../../devices", "../../..", "/", BUS_ID, "../../../devices/pci0000:00"]
)
def test_a_link_that_leads_to_no_pci_device_is_named(root: Path, target: str) -> None:
    link = root / "bus" / "pci" / "devices" / BUS_ID
    link.unlink()
    link.symlink_to(target)
    with pytest.raises(PreparationFailed, match=BUS_ID):
        Sysfs(root).pci_attributes(BUS_ID)

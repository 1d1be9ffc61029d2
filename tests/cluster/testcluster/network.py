"""Ports, addresses and the network of a node.

Nothing listens beyond loopback and our own link. Ports come from below the range that the kernel
hands out to clients, so that only another test cluster can be faster, and then the start is tried
again with other ones.

A node has a network namespace of its own, like a machine: its pods' bridge, the rules of kube-proxy
and the service network stay in there, several nodes do not meet, and all of it goes with the last
process. One link joins it to the machine: the API server listens on the machine's end, the kubelet
on the node's.
"""

from __future__ import annotations

import hashlib
import ipaddress
import itertools
import json
import random
import socket
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import packages
from .errors import ClusterError

LOOPBACK = "127.0.0.1"
NOWHERE = "198.51.100.1"
"""What a control plane without nodes gives as its address (TEST-NET-2): it may not be loopback, and
nobody dials it."""

SERVICES = "10.96.0.0/16"
FIRST_SERVICE = "10.96.0.1"

_NAMESPACES = Path("/run/netns")
_PORTS = range(20000, 30000)  # node ports begin at 30000, client ports at 32768
# The kubelet sets these; they are put back when the last node goes.
_KERNEL_SETTINGS = (
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)


@dataclass(frozen=True)
class NodeNetwork:
    """The machine's end of the link, the node's end, and the network of its pods."""

    machine: str
    node: str
    pods: str


def free_ports(count: int, taken: Iterable[int] = ()) -> list[int]:
    """``count`` different ports on which nobody listens now, none of them in ``taken``."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            break
        if port not in taken and _is_free(port):
            found.append(port)
    if len(found) < count:
        raise ClusterError(f"no {count} free ports between {_PORTS[0]} and {_PORTS[-1]}")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # Any address: a listener on one address is enough for us to go elsewhere.
            probe.bind(("", port))
        except OSError:
            return False
    return True


def namespace(name: str) -> str:
    """The network namespace of the node of the cluster ``name``."""
    return f"drg-{name}"


def inside(name: str) -> list[str]:
    """What to put before a command line so that it runs in the node's network namespace."""
    return [packages.program("nsenter") or "nsenter", f"--net={_NAMESPACES / namespace(name)}"]


def link_name(name: str) -> str:
    """The machine's end of the link to the node: at most 15 characters, the kernel's limit."""
    return f"drg{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def add_node(name: str) -> NodeNetwork:
    """Make the network namespace of a node and join it to the machine."""
    link, pods = _free_networks()
    machine, node = (str(address) for address in itertools.islice(link.hosts(), 2))
    space = namespace(name)
    _ip("netns", "add", space)
    _ip("link", "add", link_name(name), "type", "veth", "peer", "name", "eth0", "netns", space)
    _ip("addr", "add", f"{machine}/{link.prefixlen}", "dev", link_name(name))
    _ip("link", "set", link_name(name), "up")
    for words in (
        ("link", "set", "lo", "up"),
        ("addr", "add", f"{node}/{link.prefixlen}", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("route", "add", "default", "via", machine),
    ):
        _ip("-netns", space, *words)
    # The way back for answers to pods; it goes with the link.
    _ip("route", "add", str(pods), "via", node)
    return NodeNetwork(machine, node, str(pods))


def _free_networks() -> tuple[ipaddress.IPv4Network, ipaddress.IPv4Network]:
    """A network for the link (/24) and one for the pods (/16) that no route covers."""
    used = [ipaddress.IPv4Network(SERVICES)]
    used += [
        ipaddress.IPv4Network(route["dst"])
        for route in _ip_json("-4", "route", "show", "table", "all")
        if route.get("type", "unicast") == "unicast" and "/" in route["dst"]
    ]
    wide = [ipaddress.IPv4Network(f"10.{n}.0.0/16") for n in range(97, 250)]
    free = [network for network in wide if not any(network.overlaps(other) for other in used)]
    if len(free) < 2:
        raise ClusterError("no two free networks among 10.97.0.0/16 to 10.249.0.0/16")
    return next(free[0].subnets(new_prefix=24)), free[1]


def node_traces(name: str) -> list[str]:
    """What there is of the network of a node."""
    paths = (_NAMESPACES / namespace(name), Path("/sys/class/net") / link_name(name))
    return [str(path) for path in paths if path.exists()]


def remove_node(name: str) -> list[str]:
    """Remove the network of a node, whose processes must be gone; returns what stays."""
    if node_traces(name):
        _ip("link", "delete", link_name(name), check=False)
        _ip("netns", "delete", namespace(name), check=False)
    return node_traces(name)


def kernel_settings() -> dict[str, str]:
    """The present values of the settings that a node changes."""
    values = {}
    for name in _KERNEL_SETTINGS:
        path = Path("/proc/sys") / name
        if path.exists():
            values[name] = path.read_text().strip()
    return values


def restore_kernel_settings(values: dict[str, str]) -> None:
    """Put back what :func:`kernel_settings` told."""
    for name, value in values.items():
        path = Path("/proc/sys") / name
        if name in _KERNEL_SETTINGS and path.exists() and path.read_text().strip() != value:
            path.write_text(value)


def _ip(*arguments: str, check: bool = True) -> str:
    program = packages.program("ip")
    if not program:
        raise ClusterError("needs ip (Debian: iproute2)")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise ClusterError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _ip_json(*arguments: str) -> list[dict[str, Any]]:
    text = _ip("-json", *arguments)
    answer = json.loads(text) if text.strip() else []
    return [entry for entry in answer if entry]

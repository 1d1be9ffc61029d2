"""What the kernel grants a pod and its containers, read from cgroup files (v1 and v2)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path("/sys/fs/cgroup")
#: An unlimited memory.limit_in_bytes is a number near 2^63.
_UNLIMITED = 2**62


@dataclass(frozen=True)
class Granted:
    """Limits, None where there is none, and the weight that follows from requests, as written."""

    cpu: int | None  # microseconds in 100 ms
    memory: int | None  # bytes
    weight: str


def of_pod(pod: dict[str, Any]) -> Granted:
    """The pod's own cgroup."""
    return _granted(f"pod{pod['metadata']['uid']}")


def of_container(pod: dict[str, Any], name: str) -> Granted:
    """The cgroup of one container."""
    (status,) = (s for s in pod["status"]["containerStatuses"] if s["name"] == name)
    identity = status["containerID"].removeprefix("containerd://")
    return _granted(f"pod{pod['metadata']['uid']}/{identity}")


def _granted(folder: str) -> Granted:
    cpu = _read(folder, "cpu.max", "cpu.cfs_quota_us").split()[0]
    memory = _read(folder, "memory.max", "memory.limit_in_bytes")
    return Granted(
        None if cpu in ("max", "-1") else int(cpu),
        None if memory == "max" or int(memory) > _UNLIMITED else int(memory),
        _read(folder, "cpu.weight", "cpu.shares"),
    )


def files(folder: str, name: str) -> Iterator[Path]:
    """Files of this name in the folder, in every hierarchy, and in the folders below it.

    Cgroups of other pods that vanish meanwhile do not matter.
    """
    for place, _, names in os.walk(_ROOT):
        if name in names and f"/{folder}/" in f"{place}/":
            yield Path(place, name)


def _read(folder: str, *names: str) -> str:
    """The one of these files that there is."""
    found = [p for name in names for p in files(folder, name) if str(p.parent).endswith(folder)]
    assert len(found) == 1, found
    return found[0].read_text().strip()

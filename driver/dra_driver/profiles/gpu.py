"""Profile ``gpu``: simulated GPUs.

Each has a device node of a character device that no driver claims, so opening it asks the kernel:
where the container may, the answer is ENXIO (or success, should something register the number), and
EPERM where it may not. Nothing is made on the host.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from dra_core import semver
from dra_core.errors import UnknownDevice
from dra_core.model.slices import Pool
from dra_driver import api

#: Linux reserves character major 120 for local and experimental use (admin-guide/devices.txt) and
#: never gives it out dynamically; container runtimes do not allow it by default.
_MAJOR: Final = 120
_MOST: Final = 10_000
_RUNTIME_DIR: Final = "gpu-runtime"


def _count(text: str) -> int:
    count = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= count <= _MOST:
        raise ValueError(f"expected a whole number from 0 to {_MOST}")
    return count


def _short(text: str) -> str:
    if not 0 < len(text.encode()) <= 64:
        raise ValueError("expected 1 to 64 bytes of text")
    return text


def _version(text: str) -> str:
    if not semver.has_syntax(_short(text)):
        raise ValueError("expected a semantic version such as 1.2.3")
    return text


class GpuProfile:
    """N simulated GPUs named ``gpu-<index>`` in one pool named after the node."""

    SUMMARY: ClassVar[str] = "simulated GPUs"
    DRIVER_NAME: ClassVar[str] = "gpu.example.com"
    OPTIONS: ClassVar[Sequence[api.Option]] = (
        api.Option("count", "8", f"number of GPUs, 0 to {_MOST}", _count),
        api.Option("model", "SIM-100", "attribute 'model'", _short),
        api.Option(
            "driver-version", "1.0.0", "attribute 'driverVersion', a semantic version", _version
        ),
        api.Option("memory", "80Gi", "capacity 'memory', a quantity", api.Quantity.parse),
    )

    def __init__(self, context: api.Context) -> None:
        self._context = context
        self._node = context.node_name

    def pools(self) -> Sequence[Pool]:
        options = self._context.options()
        devices = tuple(self._device(i, options) for i in range(_count(options["count"])))
        return [Pool(api.PoolName(self._node), devices)]

    def _device(self, index: int, options: Mapping[str, str]) -> api.Device:
        return api.Device(
            name=api.DeviceName(f"gpu-{index}"),
            attributes={
                "uuid": f"GPU-{self._uuid(index)}",
                "model": options["model"],
                "driverVersion": api.Version(options["driver-version"]),
                "index": index,
            },
            capacity={"memory": api.Capacity.of(options["memory"])},
        )

    def _uuid(self, index: int) -> uuid.UUID:
        return uuid.uuid5(uuid.NAMESPACE_DNS, f"gpu-{index}.{self._node}")

    def prepare(
        self, claim: api.Claim, results: Sequence[api.AllocationResult]
    ) -> Sequence[api.ContainerEdits]:
        return [self._edits(self._index(result)) for result in results]

    def unprepare(self, claim: api.ClaimReference) -> None:
        """A simulated GPU keeps nothing of a claim."""

    def _index(self, result: api.AllocationResult) -> int:
        prefix, _, digits = result.device.partition("-")
        count = _count(self._context.options()["count"])
        known = prefix == "gpu" and digits.isascii() and digits.isdigit() and int(digits) < count
        if not known or str(result.pool) != self._node:
            raise UnknownDevice(
                f"device {result.device!r} in pool {result.pool!r} is not on node "
                f"{self._node!r}, which has {count} GPUs in pool "
                f"{self._node!r}; delete the pod to have the claim allocated anew"
            )
        return int(digits)

    def _edits(self, index: int) -> api.ContainerEdits:
        description = self._describe(index)
        return api.ContainerEdits(
            env={f"GPU_DEVICE_{index}": f"gpu-{index}"},
            device_nodes=(api.DeviceNode(f"/dev/sim-gpu{index}", "c", _MAJOR, index),),
            mounts=(api.Mount(str(description), f"/run/sim-gpu/gpu-{index}.json"),),
        )

    def _describe(self, index: int) -> Path:
        """The file that is mounted into containers; shared by all claims, never removed."""
        path = self._context.plugin_dir / _RUNTIME_DIR / f"gpu-{index}.json"
        text = json.dumps({"index": index, "uuid": f"GPU-{self._uuid(index)}"}) + "\n"
        try:
            path.parent.mkdir(mode=0o755, exist_ok=True)
            if not path.exists():
                temporary = path.with_suffix(f".{uuid.uuid4().hex}.tmp")
                temporary.write_text(text)
                temporary.replace(path)
        except OSError as error:
            raise api.PreparationFailed(f"cannot write {path}: {error.strerror}") from error
        return path

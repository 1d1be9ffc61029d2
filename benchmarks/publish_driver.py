"""A vendor's driver for ``make bench NAME=publish``: devices that change as it is told to.

Commands on standard input and answers on standard output are those of ``publish_reference``.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from typing import ClassVar

from dra_driver import api
from dra_driver.app import main

MEMORY = api.Capacity.of("80Gi")


def device(index: int, serial: int = 0) -> api.Device:
    """The same as in ``publish_reference/devices.go``."""
    return api.Device(
        name=api.DeviceName(f"gpu-{index}"),
        attributes={
            "model": "A100-SXM4",
            "uuid": f"GPU-{index:06x}",
            "driverVersion": api.Version("550.54.1"),
            "index": index,
            "numa": index % 2,
            "ecc": True,
            "serial": serial,
        },
        capacity={"memory": MEMORY},
    )


class Fleet:
    """What the driver has."""

    SUMMARY: ClassVar[str] = "for benchmarks"
    DRIVER_NAME: ClassVar[str] = "bench.example.com"
    OPTIONS: ClassVar[Sequence[api.Option]] = ()

    def __init__(self, context: api.Context) -> None:
        self._context = context
        self._devices: list[api.Device] = []
        threading.Thread(target=self._obey, daemon=True).start()

    def pools(self) -> Sequence[api.Pool]:
        return [api.Pool(api.PoolName(self._context.node_name), tuple(self._devices))]

    def _obey(self) -> None:
        for line in sys.stdin:
            begun = time.time()
            word, *rest = line.split()
            numbers = [int(text) for text in rest]
            if word == "publish":
                self._devices = [device(index) for index in range(*numbers)]
                self._context.changed()
            elif word == "change":
                self._change(*numbers)
            else:
                self._storm(*numbers)
            sys.stdout.write(json.dumps({"begun": begun, "ended": time.time()}) + "\n")
            sys.stdout.flush()

    def _change(self, index: int, serial: int) -> None:
        self._devices[index] = device(index, serial)
        self._context.changed()

    def _storm(self, rate: int, seconds: int, stride: int) -> None:
        """So many changes a second, each at its time, on devices that are ``stride`` apart."""
        begun = time.monotonic()
        for i in range(rate * seconds):
            time.sleep(max(0.0, begun + i / rate - time.monotonic()))
            self._change(i * stride % len(self._devices), i + 1)

    def prepare(
        self,
        claim: api.Claim,  # noqa: ARG002 - a Driver
        results: Sequence[api.AllocationResult],
    ) -> Sequence[api.ContainerEdits]:
        return [api.ContainerEdits() for _ in results]

    def unprepare(self, claim: api.ClaimReference) -> None:
        """Nothing to undo."""


if __name__ == "__main__":
    sys.exit(main(profiles={"fleet": Fleet}))

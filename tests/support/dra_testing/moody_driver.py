"""A vendor's program whose discovery does what a file says: for tests of the framework.

The file holds one of: a number of devices; ``hang``; ``raise``; ``bad`` (a good device and several
that the API would refuse); ``twice`` (two devices of one name in a second pool).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from dra_driver import api
from dra_driver.app import main


class MoodyDriver:
    SUMMARY: ClassVar[str] = "for tests"
    DRIVER_NAME: ClassVar[str] = "moody.example.com"
    OPTIONS: ClassVar[Sequence[api.Option]] = (api.Option("mood", "", "file that says what to do"),)

    def __init__(self, context: api.Context) -> None:
        self._context = context

    def pools(self) -> Sequence[api.Pool]:
        mood = Path(self._context.options()["mood"]).read_text().strip()
        if mood == "hang":
            threading.Event().wait()
        if mood == "raise":
            raise RuntimeError("the tool is not there")
        node = api.PoolName(self._context.node_name)
        if mood == "bad":
            return [api.Pool(node, (_device("good"), *_bad_devices()))]
        if mood == "twice":
            second = api.Pool(api.PoolName(f"{node}/second"), (_device("x"), _device("x")))
            return [second, api.Pool(node, (_device("good"),))]
        return [api.Pool(node, tuple(_device(f"d-{i}") for i in range(int(mood))))]

    def prepare(
        self,
        claim: api.Claim,  # noqa: ARG002 - a Driver
        results: Sequence[api.AllocationResult],
    ) -> Sequence[api.ContainerEdits]:
        return [api.ContainerEdits() for _ in results]

    def unprepare(self, claim: api.ClaimReference) -> None:
        """Nothing to undo."""


def _device(name: str, **attributes: api.AttributeValue) -> api.Device:
    return api.Device(api.DeviceName(name), attributes)


def _bad_devices() -> list[api.Device]:
    return [
        _device("bytes", model=b"x\n"),  # type: ignore[arg-type]
        _device("float", speed=1.5),  # type: ignore[arg-type]
        _device("nothing", model=None),  # type: ignore[arg-type]
        _device("loose-version", version=api.Version("535.104")),
        _device("long", model="x" * 65),
        _device("Capital_"),
        api.Device(api.DeviceName("text"), {}, {"memory": "80Gi"}),  # type: ignore[dict-item]
    ]


if __name__ == "__main__":
    sys.exit(main(profiles={"moody": MoodyDriver}))

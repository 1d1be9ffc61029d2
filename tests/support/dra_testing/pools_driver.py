"""A vendor's program whose pools stand in a file: for tests of publishing.

The file holds ``{"pools": [...]}``, each ``{"name", "nodes", "devices", "sharedCounters",
"partitionTypeAttribute", "skipNodeOperations", "fallbacks"}`` with the shapes of the API (``name``
"" is the node's), or ``{"fail": "why"}``. ``nodes`` is ``this``, ``all``, ``each`` or a selector.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from dra_core import wire
from dra_core.wire import tables
from dra_driver import api
from dra_driver.app import main

_NODES = {"this": api.Nodes.THIS, "all": api.Nodes.ALL, "each": api.Nodes.EACH_DEVICE}


class PoolsDriver:
    SUMMARY: ClassVar[str] = "for tests"
    DRIVER_NAME: ClassVar[str] = "pools.example.com"
    OPTIONS: ClassVar[Sequence[api.Option]] = (api.Option("pools", "", "file with the pools"),)

    def __init__(self, context: api.Context) -> None:
        self._context = context

    def pools(self) -> Sequence[api.Pool]:
        content = json.loads(Path(self._context.options()["pools"]).read_text())
        if "fail" in content:
            raise RuntimeError(content["fail"])
        return [self._pool(data) for data in content["pools"]]

    def _pool(self, data: dict[str, Any]) -> api.Pool:
        nodes = data.get("nodes", "this")
        fallbacks = {k: api.Fallback(v) for k, v in data.get("fallbacks", {}).items()}
        spec = {
            "driver": "d",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "sharedCounters": data.get("sharedCounters", []),
        }
        sets = tables.OBJECTS["ResourceSlice"].read({"metadata": {}, "spec": spec}, "").spec
        return api.Pool(
            api.PoolName(data.get("name") or self._context.node_name),
            tuple(wire.device_from_json(d) for d in data["devices"]),
            sets.shared_counters,
            _NODES[nodes] if isinstance(nodes, str) else tables.NODE_SELECTOR.read(nodes, "nodes"),
            data.get("partitionTypeAttribute"),
            tuple(data.get("skipNodeOperations", ())),
            fallbacks,
        )

    def prepare(
        self,
        claim: api.Claim,  # noqa: ARG002 - a Driver
        results: Sequence[api.AllocationResult],
    ) -> Sequence[api.ContainerEdits]:
        return [api.ContainerEdits() for _ in results]

    def unprepare(self, claim: api.ClaimReference) -> None:
        """Nothing to undo."""


if __name__ == "__main__":
    sys.exit(main(profiles={"pools": PoolsDriver}))

"""A publisher with a cluster in memory and virtual time: what it writes, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dra_core.errors import ApiConflict, ApiError, ApiNotFound
from dra_core.model.slices import Pool
from dra_core.names import DriverName, NodeName
from dra_driver.adapters import metrics
from dra_driver.discovery import Found
from dra_driver.news import News
from dra_driver.offer import Offer
from dra_driver.ports import Changed, Listed, Scope
from dra_driver.publisher import Publisher
from dra_driver.slice_watch import Relisted

DRIVER, NODE = DriverName("memory.example.com"), NodeName("n1")
JSON = dict[str, Any]


def copied(body: Any) -> Any:
    """A deep copy, as by a server."""
    return json.loads(json.dumps(body))


class MemorySlices:
    """A SliceApi over a dictionary with the conflicts of an API server.

    ``faults`` are raised instead of the next writes of a pool, the last one for ever.
    """

    def __init__(self) -> None:
        self.items: dict[str, JSON] = {}
        self.writes: list[str] = []
        self.faults: dict[str, list[ApiError | None]] = {}
        #: Of each body that is sent; may raise.
        self.check: Callable[[JSON], None] = lambda _: None
        self.tries = 0
        self.no_owner: ApiError | None = None
        self.minor = 37
        self._version = 0

    def devices(self, pool: str) -> list[str]:
        """Of a pool that is complete."""
        items = [i for _, i in sorted(self.items.items()) if i["spec"]["pool"]["name"] == pool]
        pools = [item["spec"]["pool"] for item in items]
        assert len({p["generation"] for p in pools}) == 1
        assert {p["resourceSliceCount"] for p in pools} == {len(items)}
        return [device["name"] for item in items for device in item["spec"].get("devices", ())]

    def owner(self) -> JSON:
        if self.no_owner:
            raise self.no_owner
        return {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "u"}

    def pools_of_nodes(self) -> Mapping[str, str]:
        return {}

    def minor_version(self) -> int:
        return self.minor

    def list(self, scope: Scope) -> Listed:
        shared = scope is Scope.SHARED
        items = [i for i in self.items.values() if ("nodeName" not in i["spec"]) is shared]
        return Listed(tuple(copied(items)), str(self._version))

    def watch(
        self,
        scope: Scope,  # noqa: ARG002 - a SliceApi
        resource_version: str,  # noqa: ARG002
    ) -> Iterator[Changed]:
        yield from ()

    def create(self, body: JSON) -> JSON:
        if body["metadata"]["name"] in self.items:
            raise ApiConflict("it exists")
        return self._store("create", body)

    def update(self, body: JSON) -> JSON:
        there = self.items.get(body["metadata"]["name"])
        if there is None:
            raise ApiNotFound("it is gone")
        if any(body["metadata"][k] != there["metadata"][k] for k in ("uid", "resourceVersion")):
            raise ApiConflict("it was changed")
        return self._store("update", body)

    def try_out(self, body: JSON) -> JSON:
        self.tries += 1
        self.check(body)
        return body

    def delete(self, name: str, uid: str) -> None:
        self.writes.append(f"delete {name}")
        if self.items[name]["metadata"]["uid"] == uid:
            del self.items[name]

    def _store(self, verb: str, body: JSON) -> JSON:
        self.check(body)
        faults = self.faults.get(body["spec"]["pool"]["name"], [])
        if faults and (fault := faults[0] if len(faults) == 1 else faults.pop(0)):
            raise fault
        stored: JSON = copied(body)
        name = stored["metadata"]["name"]
        self.writes.append(f"{verb} {name}")
        self._version += 1
        stored["metadata"] = {"uid": f"u{self._version}"} | stored["metadata"]
        stored["metadata"]["resourceVersion"] = str(self._version)
        self.items[name] = stored
        found: JSON = copied(stored)
        return found


class Said:
    """Notices."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def warn(
        self,
        owner: Mapping[str, Any] | None,  # noqa: ARG002 - Notices
        reason: str,
        note: str,
    ) -> None:
        self.notes.append(f"{reason}: {note}")


class MemoryStand:
    """A publisher on a node; ``start`` is a restart of the driver."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.api = MemorySlices()
        self.said = Said()
        self.in_use: set[str] = set()
        self.start()

    def start(self) -> None:
        self.measures = metrics.registry()
        news = News(self.said, self.api.owner, lambda: self.now)
        self.offer = Offer(
            DRIVER,
            NODE,
            in_use=lambda: self.in_use,
            measures=self.measures,
            tell=news.tell,
            clock=lambda: self.now,
        )
        self.publisher = Publisher(
            DRIVER,
            NODE,
            self.api,
            self.offer,
            news=news,
            measures=self.measures,
            clock=lambda: self.now,
        )
        self.relist()

    def relist(self) -> None:
        for scope in Scope:
            self.publisher._take(Relisted(scope, self.api.list(scope).items))

    def publish(self, *pools: Pool) -> float | None:
        """One round; in how many seconds there must be another one."""
        self.publisher._take(Found(pools))
        return self.publisher._converge()

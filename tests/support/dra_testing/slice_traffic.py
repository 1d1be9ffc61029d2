"""What an API server has seen of ResourceSlices: moments of writes, their number, their bytes."""

from __future__ import annotations

import http.client
import re
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from testcluster.cluster import Cluster

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
#: Objects come without their spec: whoever observes takes little time from those observed.
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITES = ("POST", "PUT", "PATCH", "DELETE", "APPLY")


@dataclass(frozen=True)
class Traffic:
    """Requests that write slices (refused ones and dry runs too) and the bytes of their bodies."""

    writes: int = 0
    bodies: int = 0

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(self.writes - other.writes, self.bodies - other.bodies)


def traffic(cluster: Cluster) -> Traffic:
    """So far, as the API server counts."""
    text: str = cluster.api("GET", "/metrics")
    writes = bodies = 0
    for line in text.splitlines():
        name, _, rest = line.partition("{")
        labels, _, value = rest.rpartition("} ")
        found = dict(_LABEL.findall(labels))
        if found.get("resource") != "resourceslices":
            continue
        if name == "apiserver_request_total" and found["verb"] in _WRITES:
            writes += int(float(value))
        if name == "apiserver_request_body_size_bytes_sum":
            bodies += int(float(value))
    return Traffic(writes, bodies)


@dataclass
class Observer:
    """Follows all slices; ``last`` is the Unix time of the last event."""

    cluster: Cluster
    last: float = 0.0
    events: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        pki = self.cluster.layout.pki
        tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        parts = urllib.parse.urlsplit(self.cluster.url)
        self._connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port or 443, context=tls, timeout=3600
        )
        self._connection.request("GET", f"{SLICES}?watch=1", None, {"Accept": _METADATA})
        self._stream = self._connection.getresponse()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while self._stream.readline():
            self.last = time.time()
            self.events += 1

    def quiet(self, since: float, seconds: float, right: Callable[[], bool]) -> float:
        """The time of the last event after ``since``, once nothing more comes and all is right."""
        deadline = time.time() + 120
        while time.time() < deadline:
            time.sleep(0.05)
            last = self.last
            if last > since and time.time() - last > seconds:
                if right() and self.last == last:
                    return last
                time.sleep(seconds)
        raise SystemExit("what should be published is not, two minutes later")


def serials(cluster: Cluster) -> Mapping[str, int] | None:
    """The attribute ``serial`` of each device; None while the pool is not complete."""
    items: list[Any] = cluster.api("GET", f"{SLICES}?resourceVersion=0")["items"]
    pools = [item["spec"]["pool"] for item in items]
    if any(p["generation"] != pools[0]["generation"] for p in pools) or any(
        p["resourceSliceCount"] != len(pools) for p in pools
    ):
        return None
    devices = [device for item in items for device in item["spec"].get("devices", ())]
    return {device["name"]: device["attributes"]["serial"]["int"] for device in devices}

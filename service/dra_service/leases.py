"""The Lease of a program whose instances take turns."""

from __future__ import annotations

from typing import Any

from dra_core.errors import ApiNotFound
from dra_service.api_server import JSON, ApiServer
from dra_service.events import micro_time
from dra_service.leadership import LeaseRecord


class KubeLease:
    """See :class:`dra_service.leadership.LeaseApi`."""

    def __init__(self, api: ApiServer, namespace: str, name: str) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    def read(self) -> LeaseRecord | None:
        """GET."""
        try:
            return _record(self._api.request("GET", f"{self._folder}/{self._name}"))
        except ApiNotFound:
            return None

    def write(self, holder: str, last: LeaseRecord | None, seconds: int) -> LeaseRecord:
        """POST, or PUT on condition of the resourceVersion."""
        now = micro_time()
        changed = last is None or last.holder != holder
        spec: dict[str, Any] = {
            "holderIdentity": holder,
            "leaseDurationSeconds": seconds,
            "renewTime": now,
            "acquireTime": now if changed or last is None else last.acquired or now,
            "leaseTransitions": 0 if last is None else last.transitions + changed,
        }
        metadata = {"name": self._name, "namespace": self._namespace}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
        if last is None:
            return _record(
                self._api.request("POST", self._folder, None, {**body, "metadata": metadata})
            )
        body["metadata"] = {**metadata, "resourceVersion": last.version}
        return _record(self._api.request("PUT", f"{self._folder}/{self._name}", None, body))


def _record(data: JSON) -> LeaseRecord:
    spec = data.get("spec") or {}
    return LeaseRecord(
        holder=spec.get("holderIdentity") or "",
        renewed=spec.get("renewTime") or "",
        version=data["metadata"]["resourceVersion"],
        transitions=spec.get("leaseTransitions") or 0,
        acquired=spec.get("acquireTime") or "",
    )

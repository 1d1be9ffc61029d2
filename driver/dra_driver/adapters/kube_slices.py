"""The ResourceSlices of one driver on one node, and Events about what is wrong with them."""

from __future__ import annotations

import datetime as dt
import queue
import threading
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import structlog

from dra_core import wire
from dra_core.errors import ApiConflict, ApiError, ApiNotFound, ApiUnavailable
from dra_core.names import DriverName, NodeName
from dra_driver.adapters.kube import KubeApi
from dra_driver.ports import Changed, Listed, Scope
from dra_service.api_server import JSON

_log = structlog.get_logger(__name__)

_PATH: Final = f"/apis/{wire.API_VERSION}/resourceslices"
#: Events about objects without a namespace, such as Nodes, stand in this one.
_EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
#: ``note`` of an Event.
_NOTE: Final = 1024
_WAITING: Final = 32


class KubeSlices:
    """See :class:`dra_driver.ports.SliceApi`."""

    def __init__(self, api: KubeApi, driver: DriverName, node: NodeName) -> None:
        self._api = api
        self._node = node
        self._queries = {
            # An empty value selects what has no nodeName.
            Scope.NODE: {"fieldSelector": f"spec.driver={driver},spec.nodeName={node}"},
            Scope.SHARED: {"fieldSelector": f"spec.driver={driver},spec.nodeName="},
        }

    def owner(self) -> JSON:
        """Owner reference to the Node."""
        try:
            found = self._api.request("GET", f"/api/v1/nodes/{quote(self._node, safe='')}")
        except ApiNotFound as error:
            raise ApiNotFound(
                f"there is no Node {self._node!r} (yet); is --node-name right?"
            ) from error
        metadata = found.get("metadata") or {}
        if not metadata.get("uid"):
            raise ApiUnavailable(f"the answer for Node {self._node!r} is no Node")
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }

    def minor_version(self) -> int:
        """From ``/version``, which any service account may read (role system:discovery)."""
        found = self._api.request("GET", "/version")
        digits = "".join(c for c in str(found.get("minor")) if c.isascii() and c.isdigit())
        if not digits:
            raise ApiUnavailable(f"/version gives no minor version: {str(found)[:80]}")
        return int(digits)

    def list(self, scope: Scope) -> Listed:
        """Selected by the server: spec.driver and spec.nodeName."""
        found = self._api.list_all(_PATH, self._queries[scope])
        items = tuple(item for item in found.items if self._is_ours(scope, item))
        return Listed(items, found.resource_version)

    def watch(self, scope: Scope, resource_version: str) -> Iterator[Changed]:
        """Selected by the server, as :meth:`list`."""
        for event in self._api.watch(_PATH, self._queries[scope], resource_version):
            if event.kind == "BOOKMARK" or self._is_ours(scope, event.object):
                yield event

    def _is_ours(self, scope: Scope, item: Mapping[str, Any]) -> bool:
        """Whoever publishes for several nodes owns what names its Node as the owner."""
        if scope is Scope.NODE:
            return True
        owners = item.get("metadata", {}).get("ownerReferences") or []
        return any(o.get("kind") == "Node" and o.get("name") == self._node for o in owners)

    def create(self, body: JSON) -> JSON:
        """POST."""
        return self._api.request("POST", _PATH, None, body)

    def try_out(self, body: JSON) -> JSON:
        """POST with ``dryRun=All``, under a name that nobody has."""
        metadata = {k: v for k, v in body["metadata"].items() if k == "ownerReferences"}
        named = body | {"metadata": metadata | {"name": f"try-out-{uuid.uuid4().hex}"}}
        return self._api.request("POST", _PATH, {"dryRun": "All"}, named)

    def update(self, body: JSON) -> JSON:
        """PUT."""
        return self._api.request("PUT", f"{_PATH}/{body['metadata']['name']}", None, body)

    def delete(self, name: str, uid: str) -> None:
        """DELETE with a precondition on the UID."""
        try:
            options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
            self._api.request("DELETE", f"{_PATH}/{name}", None, options)
        except (ApiNotFound, ApiConflict):
            _log.debug("slice was gone", slice=name)


class KubeEvents:
    """See :class:`dra_driver.ports.Notices`; Events are sent by a thread of their own."""

    def __init__(self, api: KubeApi, driver: DriverName, instance: str) -> None:
        self._api = api
        self._driver = driver
        self._instance = instance
        self._waiting: queue.Queue[JSON] = queue.Queue(_WAITING)

    def start(self) -> None:
        """Send from now on."""
        threading.Thread(target=self._send, name="events", daemon=True).start()

    def warn(self, owner: Mapping[str, Any], reason: str, note: str) -> None:
        """Queue an Event about the Node; one too many is not sent."""
        try:
            self._waiting.put_nowait(self._event(owner, reason, note))
        except queue.Full:
            _log.debug("event not sent, too many are waiting", reason=reason)

    def _event(self, owner: Mapping[str, Any], reason: str, note: str) -> JSON:
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        text = note.encode()[:_NOTE].decode(errors="ignore")
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"generateName": f"{self._driver}-", "namespace": "default"},
            "eventTime": now,
            "reportingController": self._driver,
            "reportingInstance": self._instance[:128],
            "action": "Publish",
            "reason": reason,
            "type": "Warning",
            "note": text,
            "regarding": {k: owner[k] for k in ("apiVersion", "kind", "name", "uid")},
        }

    def _send(self) -> None:
        while True:
            event = self._waiting.get()
            try:
                self._api.request("POST", _EVENTS, None, event)
            except ApiError as error:
                _log.debug("event not sent", reason=event["reason"], error=str(error))

"""The ResourceSlices of one publisher, and Events about what is wrong with them."""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import structlog

from dra_core import wire
from dra_core.errors import ApiError, ApiNotFound, ApiUnavailable
from dra_core.names import DriverName, NodeName
from dra_driver.adapters.kube import KubeApi
from dra_driver.pacing import backoff
from dra_driver.ports import Changed, Listed, Scope
from dra_driver.slice_store import owners
from dra_service.api_server import JSON
from dra_service.events import Reporter, send

_log = structlog.get_logger(__name__)

_PATH: Final = f"/apis/{wire.API_VERSION}/resourceslices"
#: Names of slices and of their pools, without the devices: a cluster can have many slices.
_TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
#: Events that wait to be sent, and tries to send one: about a minute.
_WAITING, _TRIES = 32, 8
#: What an Event says of the object that it regards.
_REFERENCE: Final = ("apiVersion", "kind", "namespace", "name", "uid")


class KubeSlices:
    """See :class:`dra_driver.ports.SliceApi`."""

    def __init__(self, api: KubeApi, driver: DriverName, node: NodeName | None) -> None:
        self._api = api
        self._node = node
        self._driver = driver
        # An empty value selects what has no nodeName.
        self._queries = {Scope.SHARED: {"fieldSelector": f"spec.driver={driver},spec.nodeName="}}
        if node:
            mine = f"spec.driver={driver},spec.nodeName={node}"
            self._queries[Scope.NODE] = {"fieldSelector": mine}

    def owner(self) -> JSON | None:
        """Owner reference to the Node."""
        if self._node is None:
            return None
        try:
            found = self._api.request("GET", f"/api/v1/nodes/{quote(self._node, safe='')}")
        except ApiNotFound as error:
            raise ApiNotFound(
                f"there is no Node {self._node!r} (yet); is --node-name right?"
            ) from error
        metadata = found.get("metadata") or {}
        if not metadata.get("uid") or not metadata.get("name"):
            raise ApiUnavailable(f"the answer for Node {self._node!r} is no Node")
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }

    def minor_version(self) -> int:
        """See :meth:`dra_service.api_server.ApiServer.minor_version`."""
        return self._api.minor_version()

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
            else:  # perhaps it was until now
                yield Changed("DELETED", event.object)

    def pools_of_nodes(self) -> Mapping[str, str]:
        """From a table of all slices of the driver, as ``kubectl get`` prints it."""
        found: dict[str, str] = {}
        query = {"fieldSelector": f"spec.driver={self._driver}"}
        for page in self._api.pages(_PATH, query, accept=_TABLE):
            columns = [column.get("name") for column in page.get("columnDefinitions") or []]
            if "Node" not in columns or "Pool" not in columns:
                raise ApiUnavailable(f"the table of {_PATH} has no columns Node and Pool")
            for row in page.get("rows") or []:
                cells = dict(zip(columns, row["cells"], strict=True))
                item = row["object"]
                nodes = owners(item)
                if cells["Node"] or nodes:
                    node = cells["Node"] or nodes[0]
                    found[cells["Pool"]] = f"slice {item['metadata']['name']!r} of node {node!r}"
        return found

    def _is_ours(self, scope: Scope, item: Mapping[str, Any]) -> bool:
        """On a node what names its Node as the owner, without a node what names none."""
        if scope is Scope.NODE:
            return True
        nodes = owners(item)
        return self._node in nodes if self._node else not nodes

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
        except ApiNotFound:
            _log.debug("slice was gone", slice=name)


class KubeEvents:
    """See :class:`dra_driver.ports.Notices`; Events are sent by a thread of their own.

    ``about`` is the pod, for warnings about no Node; without it these are not sent.
    """

    def __init__(
        self,
        api: KubeApi,
        driver: DriverName,
        instance: str,
        about: Mapping[str, str] | None = None,
        *,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api = api
        self._reporter = Reporter(driver, instance, "Publish")
        self._about = about
        self._pause = pause
        self._waiting: queue.Queue[JSON] = queue.Queue(_WAITING)

    def start(self) -> None:
        """Send from now on."""
        threading.Thread(target=self._send, name="events", daemon=True).start()

    def warn(self, owner: Mapping[str, Any] | None, reason: str, note: str) -> None:
        """Queue an Event; one too many is not sent."""
        regarding = self._about if owner is None else owner
        if regarding is None:
            return
        try:
            reference = {k: v for k, v in regarding.items() if k in _REFERENCE}
            name = self._reporter.controller
            event = self._reporter.event(reference, "Warning", reason, note, name=name)
            self._waiting.put_nowait(event)
        except queue.Full:
            _log.debug("event not sent, too many are waiting", reason=reason)

    def _send(self) -> None:
        while True:
            self._deliver(self._waiting.get())

    def _deliver(self, event: JSON) -> None:
        for failures in range(1, _TRIES + 1):
            try:
                send(self._api, event)
            except ApiError as error:
                _log.debug("event not sent", reason=event["reason"], error=str(error))
                if not error.retryable:
                    return
                self._pause(backoff(failures))
            else:
                return

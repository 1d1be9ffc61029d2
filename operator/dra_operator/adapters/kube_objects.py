"""Pods and taints. See :mod:`dra_operator.ports`."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from dra_core import taints
from dra_core.errors import ApiBusy, ApiConflict, ApiForbidden, ApiNotFound, ApiUnavailable
from dra_core.eviction import Cause
from dra_core.model.taints import DeviceTaintRule
from dra_core.model.usage import Pod, SliceTaints
from dra_core.wire import lean
from dra_operator.adapters.kube import STRATEGIC, KubeApi, PathOf, api_version
from dra_operator.adapters.recent import Recent
from dra_operator.cluster import RULES, SLICES
from dra_operator.ports import EvictionRefused
from dra_service.api_server import JSON
from dra_service.events import cut

#: Seconds for which a rule or slice that was read is good: one with many pods is asked for once.
_FRESH: Final = 1.0
#: What the API server says of a namespace in which nothing new may be made, an Eviction included.
_TERMINATING: Final = "because it is being terminated"
#: What it says if the pod has another UID; other conflicts are about its resourceVersion.
_OTHER_UID: Final = "UID in the precondition"


class KubePods:
    """See :class:`dra_operator.ports.PodApi`."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    def evict(self, pod: Pod) -> None:
        """POST of an Eviction."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": pod.namespace, "name": pod.name},
            "deleteOptions": _on_condition_of(pod),
        }
        try:
            self._api.request("POST", f"{_path(pod)}/eviction", None, body)
        except ApiBusy as error:
            raise EvictionRefused(str(error), error.retry_after) from error
        except ApiConflict as error:
            if _OTHER_UID not in str(error):
                # Somebody has changed the pod while the server was at it: it is still there.
                raise ApiUnavailable(str(error)) from error
            raise
        except ApiForbidden as error:
            if _TERMINATING in str(error):
                # The pod goes with its namespace: as good as gone.
                raise ApiConflict(str(error)) from error
            raise

    def mark(self, pod: Pod, message: str) -> None:
        """PATCH of the status."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByDragomanOperator",
            "message": cut(message),
            "lastTransitionTime": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        self._api.request("PATCH", f"{_path(pod)}/status", None, body, content=STRATEGIC)

    def delete(self, pod: Pod) -> None:
        """DELETE with the pod's own grace period."""
        self._api.request("DELETE", _path(pod), None, _on_condition_of(pod))


def _on_condition_of(pod: Pod) -> JSON:
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"


class KubeTaints:
    """See :class:`dra_operator.ports.TaintApi`."""

    def __init__(
        self, api: KubeApi, path: PathOf, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._path = path
        self._rules: Recent[DeviceTaintRule | None] = Recent(_FRESH, monotonic)
        self._slices: Recent[SliceTaints | None] = Recent(_FRESH, monotonic)
        self._pools: Recent[list[SliceTaints]] = Recent(_FRESH, monotonic)

    def confirm(self, cause: Cause) -> bool:
        """One GET, or what one said a moment ago: whichever pods and devices it was for."""
        rule = cause.placed.source.kind == "DeviceTaintRule"
        return self._by_rule(cause) if rule else self._by_slice(cause)

    def _get(self, plural: str, name: str) -> JSON | None:
        path = self._path(plural)
        if path is None:
            return None
        try:
            return self._api.request("GET", f"{path}/{quote(name, safe='')}")
        except ApiNotFound:
            return None

    def _by_rule(self, cause: Cause) -> bool:
        source = cause.placed.source
        rule = self._rules.get(source.name, lambda: self._rule(source.name))
        return (
            rule is not None
            and rule.metadata.uid == source.uid
            and taints.rule_taint(rule, cause.placed.since).taint == cause.placed.taint
            and taints.selects(rule.spec.selector, cause.device)
        )

    def _rule(self, name: str) -> DeviceTaintRule | None:
        data = self._get(RULES, name)
        return None if data is None else lean.rule(data)

    def _by_slice(self, cause: Cause) -> bool:
        source = cause.placed.source
        found = self._slices.get(source.name, lambda: self._slice(source.name))
        if found is None or found.uid != source.uid:
            return self._unfinished(cause)
        return cause.placed.taint in found.taints.get(cause.device.device, ())

    def _slice(self, name: str) -> SliceTaints | None:
        data = self._get(SLICES, name)
        return None if data is None else lean.resource_slice(data)

    def _unfinished(self, cause: Cause) -> bool:
        """Whether the device is missing from a generation that is: it keeps its last taints."""
        device = cause.device
        pool = self._pools.get((device.driver, device.pool), lambda: self._pool(device))
        newest = max((item.generation for item in pool), default=0)
        current = [item for item in pool if item.generation == newest]
        return (
            bool(current)
            and len(current) < max(item.slice_count for item in current)
            and not any(device.device in item.devices for item in current)
        )

    def _pool(self, device: taints.DeviceId) -> list[SliceTaints]:
        path = self._path(SLICES)
        if path is None:
            return []
        query = {"fieldSelector": f"spec.driver={device.driver}"}
        kind = {"apiVersion": api_version(path)}
        slices = [
            lean.resource_slice({**item, **kind, "kind": "ResourceSlice"})
            for page in self._api.pages(path, query)
            for item in page.get("items") or []
        ]
        return [item for item in slices if item.pool == device.pool]

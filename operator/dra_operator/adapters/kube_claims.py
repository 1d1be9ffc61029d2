"""Conditions in claims, and rules that hold devices back.

See :mod:`dra_operator.binding_ports`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from urllib.parse import quote

import structlog

from dra_core import wire
from dra_core.binding import Hold, hold_rule
from dra_core.errors import ApiConflict, ApiError, ApiForbidden, ApiInvalid, ApiNotFound
from dra_core.model.claims import ClaimReference, DeviceStatus
from dra_core.taints import DeviceId
from dra_core.wire import lean
from dra_operator.adapters.kube import APPLY, KubeApi, PathOf, api_version
from dra_operator.binding_ports import Contested, Fresh
from dra_operator.cluster import CLAIMS, RULES
from dra_service.api_server import JSON

_log = structlog.get_logger(__name__)


def manager_of(device: DeviceId) -> str:
    """The field manager for one device: each is applied without a word about the others."""
    return f"dragoman-binding-{hashlib.sha256('/'.join(device).encode()).hexdigest()[:16]}"


class KubeClaimStatus:
    """See :class:`dra_operator.binding_ports.ClaimApi`."""

    def __init__(self, api: KubeApi, path: PathOf) -> None:
        self._api = api
        self._path = path

    def read(self, claim: ClaimReference) -> Fresh:
        """One GET."""
        path, version = self._of(claim)
        fresh = _fresh(self._api.request("GET", path), version)
        if fresh.claim.uid != claim.uid:
            raise ApiNotFound(f"claim {claim} is gone; another one has its name")
        return fresh

    def report(self, device: DeviceId, fresh: Fresh, entries: Sequence[DeviceStatus]) -> Fresh:
        """Server-side apply, never by force."""
        claim = ClaimReference(fresh.claim.namespace, fresh.claim.name, fresh.claim.uid)
        path, version = self._of(claim)
        body = wire.device_conditions_patch(claim, fresh.version, entries, version)
        query = {"fieldManager": manager_of(device), "force": "false"}
        try:
            answer = self._api.request("PATCH", f"{path}/status", query, body, content=APPLY)
        except ApiConflict as error:
            # Of the two kinds of conflict only that about fields speaks of an apply.
            if "Apply failed" in str(error):
                raise Contested(str(error)) from error
            raise
        except ApiInvalid as error:
            # The check of the rights to a driver's conditions answers 422, with this in it.
            if "is forbidden" in str(error).lower() or "forbidden:" in str(error).lower():
                raise ApiForbidden(str(error)) from error
            raise
        return _fresh(answer, version)

    def _of(self, claim: ClaimReference) -> tuple[str, str]:
        folder = self._path(CLAIMS)
        if folder is None:
            raise ApiError("resourceclaims are not served, or may not be read")
        root, _, plural = folder.rpartition("/")
        namespace, name = quote(claim.namespace, safe=""), quote(claim.name, safe="")
        return f"{root}/namespaces/{namespace}/{plural}/{name}", root.rpartition("/")[2]


def _fresh(data: JSON, version: str) -> Fresh:
    kind = {"apiVersion": f"{wire.GROUP}/{version}", "kind": "ResourceClaim"}
    return Fresh(lean.claim({**data, **kind}), str(data["metadata"]["resourceVersion"]))


class KubeHolds:
    """See :class:`dra_operator.binding_ports.HoldApi`."""

    def __init__(self, api: KubeApi, path: PathOf) -> None:
        self._api = api
        self._path = path

    def place(self, hold: Hold) -> bool:
        """POST of a DeviceTaintRule."""
        path = self._path(RULES)
        if path is None:
            return False
        version = api_version(path).rpartition("/")[2]
        try:
            self._api.request(
                "POST", path, None, wire.from_v1(wire.write(hold_rule(hold)), version)
            )
        except ApiConflict:
            _log.debug("device is held back already", rule=hold.name)
        except ApiNotFound:
            return False
        return True

    def lift(self, name: str, uid: str) -> None:
        """DELETE with the UID."""
        path = self._path(RULES)
        if path is None:
            return
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        try:
            self._api.request("DELETE", f"{path}/{quote(name, safe='')}", None, options)
        except (ApiNotFound, ApiConflict):
            _log.debug("rule is gone already", rule=name)


def cluster_id(api: KubeApi) -> str:
    """The UID of the namespace kube-system, which no two clusters share; raises ApiError."""
    return str(api.request("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"])

"""ResourceClaims, lists and watches of the Kubernetes API."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final
from urllib.parse import quote

import urllib3

from dra_core import wire
from dra_core.errors import ApiExpired, ApiUnavailable
from dra_core.model.claims import Claim, ClaimReference, DeviceStatus
from dra_driver.ports import Changed, Listed
from dra_service.api_server import JSON, ApiServer, error_kind, json_object

#: Seconds that one watch takes. The server sends a bookmark about every minute, so a watch that is
#: silent for longer than it lasts is dead.
_WATCH: Final = 120
_GROUP: Final = f"/apis/{wire.API_VERSION}"

#: Server-side apply; JSON is YAML.
_APPLY: Final = "application/apply-patch+yaml"

_EVENTS: Final = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")


class KubeApi(ApiServer):
    """Lists and watches beside the requests."""

    AGENT: ClassVar[str] = "dragoman-driver"

    def list_all(self, path: str, query: Mapping[str, str]) -> Listed:
        """All pages of a list."""
        try:
            pages = list(self.pages(path, query))
        except ApiExpired:
            # The list has aged while we read it (410 for the continue token): once more from the
            # start, in one piece, which cannot age.
            pages = [self.request("GET", path, query)]
        versions = [str((p.get("metadata") or {}).get("resourceVersion", "")) for p in pages]
        if not all(versions):  # an empty list would say that everything is gone
            raise ApiUnavailable(f"GET {path}: the answer is no list")
        items = tuple(item for page in pages for item in page.get("items") or [])
        return Listed(items, versions[-1])

    def watch(
        self, path: str, query: Mapping[str, str], resource_version: str
    ) -> Iterator[Changed]:
        """Events until the server ends the stream, which it does about every two minutes."""
        full = dict(query) | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(_WATCH),
        }
        with self.opened("GET", path, full, silence=_WATCH + 10.0) as response:
            try:
                for line in _lines(response):
                    yield _event(path, json_object(f"watch of {path}", line))
            except (urllib3.exceptions.HTTPError, OSError) as error:
                raise ApiUnavailable(f"watch of {path} broke off: {error}") from error


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(2**16):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())


def _event(path: str, data: JSON) -> Changed:
    kind_of_event, status = data.get("type"), data.get("object")
    if not isinstance(status, dict) or kind_of_event not in _EVENTS:
        raise ApiUnavailable(f"watch of {path}: {str(data)[:80]} is no event")
    if kind_of_event == "ERROR":
        kind = error_kind(int(status.get("code", 500)), ApiUnavailable)
        raise kind(f"watch of {path}: {status.get('message', 'ended by the server')}")
    return Changed(kind_of_event, status)


class KubeClaims:
    """See :class:`dra_driver.ports.ClaimConditions`."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    def read(self, reference: ClaimReference) -> Claim:
        """One GET."""
        return wire.claim_from_json(self._api.request("GET", _path(reference)))

    def apply(self, claim: Claim, of: Sequence[str], entries: Sequence[DeviceStatus]) -> None:
        """One PATCH of the status, never by force, by a field manager for just that."""
        reference, version = claim.reference, claim.metadata.resource_version
        body = wire.device_conditions_patch(reference, version, entries, "v1")
        digest = hashlib.sha256("/".join(of).encode()).hexdigest()[:16]
        query = {"fieldManager": f"dragoman-driver-{digest}", "force": "false"}
        path = f"{_path(reference)}/status"
        self._api.request("PATCH", path, query, body, content=_APPLY)


def _path(claim: ClaimReference) -> str:
    namespace, name = quote(claim.namespace, safe=""), quote(claim.name, safe="")
    return f"{_GROUP}/namespaces/{namespace}/resourceclaims/{name}"

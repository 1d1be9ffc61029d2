"""The Kubernetes API, as JSON data.

Credentials come from the ``kubernetes`` package (kubeconfig with everything it may hold, or the
service account of the pod, read again when the token is rotated). Objects stay plain data: its
models would drop fields that are newer than the package.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import kubernetes.client
import kubernetes.client.rest
import kubernetes.config
import structlog
import urllib3
import yaml

from dra_core import wire
from dra_core.errors import (
    ApiConflict,
    ApiError,
    ApiExpired,
    ApiForbidden,
    ApiInvalid,
    ApiNotFound,
    ApiUnauthorized,
    ApiUnavailable,
    InvalidValue,
)
from dra_core.model.claims import Claim, ClaimReference
from dra_driver.ports import Changed, Listed

_log = structlog.get_logger(__name__)

JSON = dict[str, Any]

#: Seconds: to connect, to wait for an ordinary answer, and the length of one watch. The server
#: sends a bookmark about every minute, so a watch that is silent for longer than it lasts is dead.
_CONNECT, _ANSWER, _WATCH = 5.0, 20.0, 120
_PAGE: Final = 500
#: Characters of an error that are kept.
_MESSAGE: Final = 4096
_GROUP: Final = f"/apis/{wire.API_VERSION}"

_EVENTS: Final = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    400: ApiInvalid,
    401: ApiUnauthorized,
    403: ApiForbidden,
    404: ApiNotFound,
    409: ApiConflict,
    410: ApiExpired,
    422: ApiInvalid,
    429: ApiUnavailable,
}


class KubeApi:
    """JSON requests to one API server."""

    def __init__(self, configuration: kubernetes.client.Configuration) -> None:
        configuration.socket_options = [
            *urllib3.connection.HTTPConnection.default_socket_options,
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
        ]
        configuration.connection_pool_maxsize = 16
        self._configuration = configuration
        self._http: urllib3.PoolManager = kubernetes.client.rest.RESTClientObject(
            configuration
        ).pool_manager

    @classmethod
    def connect(cls, kubeconfig: Path | None) -> KubeApi:
        """Use ``kubeconfig``, else ``$KUBECONFIG``, else the pod's service account, else ~/.kube.

        Raises InvalidValue with one sentence if the credentials cannot be read; does not connect.
        """
        configuration = kubernetes.client.Configuration()
        _check_readable(kubeconfig)
        try:
            in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
            if kubeconfig is None and "KUBECONFIG" not in os.environ and in_pod:
                kubernetes.config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
            else:
                kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]
                    config_file=None if kubeconfig is None else str(kubeconfig),
                    client_configuration=configuration,
                    persist_config=False,
                )
            return cls(configuration)
        except Exception as error:  # the package raises OSError, YAML, SSL and errors of its own
            where = kubeconfig or os.environ.get("KUBECONFIG") or "the default place"
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise _unusable(where, lines[0]) from error

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> JSON:
        """The answer as JSON; raises the :class:`ApiError` of its status."""
        with self._open(method, path, query, body, _ANSWER) as response:
            content = _content(f"{method} {path}", response)
        for warning in response.headers.getlist("Warning"):
            _log.warning("the API server warns", path=path, warning=warning)
        return _object(f"{method} {path}", content)

    def list_all(self, path: str, query: Mapping[str, str]) -> Listed:
        """All pages of a list."""
        items: list[JSON] = []
        position = ""
        limit = {"limit": str(_PAGE)}
        while True:
            page_query = dict(query) | limit
            if position:
                page_query["continue"] = position
            try:
                page = self.request("GET", path, page_query)
            except ApiExpired:
                if not position:
                    raise
                # The list has aged while we read it (410 for the continue token): once more from
                # the start, in one piece, which cannot age.
                items, position, limit = [], "", {}
                continue
            items += page.get("items") or []
            metadata = page.get("metadata") or {}
            position = metadata.get("continue", "")
            if not position:
                return Listed(tuple(items), metadata.get("resourceVersion", ""))

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
        with self._open("GET", path, full, None, _WATCH + 10.0) as response:
            try:
                for line in _lines(response):
                    yield _event(path, _object(f"watch of {path}", line))
            except (urllib3.exceptions.HTTPError, OSError) as error:
                raise ApiUnavailable(f"watch of {path} broke off: {error}") from error

    def _token(self) -> str | None:
        try:
            token: str | None = self._configuration.get_api_key_with_prefix(
                "BearerToken", "authorization"
            )
        except Exception as error:  # the package raises what its sources of tokens raise
            raise ApiUnauthorized(f"the credentials cannot be read: {error}") from error
        return token

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        timeout: float,
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": "dragoman-driver"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if token := self._token():
            headers["Authorization"] = token
        url = self._configuration.host + path + ("?" + urlencode(query) if query else "")
        try:
            response = self._http.request(
                method,
                url,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=_CONNECT, read=timeout),
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ApiUnavailable(f"{method} {path}: no answer: {error}") from error
        if response.status >= 300:
            with response:
                raise _error(method, path, response)
        return response


def _content(what: str, response: urllib3.BaseHTTPResponse) -> bytes:
    """All of the answer, which must not take longer than one may."""
    until = time.monotonic() + _ANSWER
    parts = []
    try:
        for part in response.stream(2**16):
            parts.append(part)
            if time.monotonic() > until:
                raise ApiUnavailable(f"{what}: the answer took longer than {_ANSWER:g} s")
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ApiUnavailable(f"{what}: the answer broke off: {error}") from error
    return b"".join(parts)


def _object(what: str, content: bytes) -> JSON:
    """A JSON object; anything else is no answer of an API server (a proxy's page, say)."""
    try:
        data = json.loads(content)
    except ValueError as error:
        raise ApiUnavailable(f"{what}: the answer is not JSON: {content[:40]!r}") from error
    if not isinstance(data, dict):
        raise ApiUnavailable(f"{what}: the answer is no object: {content[:40]!r}")
    return data


def _unusable(where: object, why: str | None) -> InvalidValue:
    return InvalidValue(
        f"cannot use the kubeconfig {where}: {why}; give a readable one with --kubeconfig"
    )


def _check_readable(kubeconfig: Path | None) -> None:
    """Name the trouble with a file that was asked for; the package would call it all invalid."""
    listed = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    paths = [kubeconfig] if kubeconfig else [Path(p) for p in listed if p]
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise _unusable(path, error.strerror) from error
        with contextlib.suppress(yaml.YAMLError, RecursionError, UnicodeError):
            if not isinstance(yaml.safe_load(content) or {}, dict):
                raise _unusable(path, "it is not a YAML mapping")


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
        kind = _BY_STATUS.get(int(status.get("code", 500)), ApiUnavailable)
        raise kind(f"watch of {path}: {status.get('message', 'ended by the server')}")
    return Changed(kind_of_event, status)


def _error(method: str, path: str, response: urllib3.BaseHTTPResponse) -> ApiError:
    status: JSON = {}
    with contextlib.suppress(urllib3.exceptions.HTTPError, OSError, ApiUnavailable):
        # Messages can be long: 64 devices with a few problems each.
        status = _object("", response.read(2**20))
    kind = _BY_STATUS.get(response.status, ApiUnavailable if response.status >= 500 else ApiError)
    text = str(status.get("message") or response.reason or "no reason given")
    message = f"{method} {path}: {response.status}: {text[:_MESSAGE]}"
    if kind is ApiInvalid:
        return ApiInvalid(message, _causes(status))
    if kind is ApiUnavailable:
        return ApiUnavailable(message, _seconds(response.headers.get("Retry-After", "")))
    return kind(message)


def _causes(status: JSON) -> tuple[tuple[str, str], ...]:
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return tuple(
        (str(cause.get("field", "")), str(cause.get("message", "")))
        for cause in causes or []
        if isinstance(cause, dict)
    )


def _seconds(text: str) -> float:
    return float(text) if text.isdecimal() and len(text) < 6 else 0.0


class KubeClaims:
    """See :class:`dra_driver.ports.ClaimReader`."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    def read(self, reference: ClaimReference) -> Claim:
        """One GET."""
        namespace, name = quote(reference.namespace, safe=""), quote(reference.name, safe="")
        path = f"{_GROUP}/namespaces/{namespace}/resourceclaims/{name}"
        return wire.claim_from_json(self._api.request("GET", path))

"""The Kubernetes API, as JSON data.

Credentials come from the ``kubernetes`` package (a kubeconfig with everything it may hold, or the
service account of the pod, read again when the token is rotated). Objects stay plain data: its
models would drop fields that are newer than the package.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self
from urllib.parse import urlencode

import kubernetes.client
import kubernetes.client.rest
import structlog
import urllib3

from dra_core.errors import (
    ApiBusy,
    ApiConflict,
    ApiError,
    ApiExpired,
    ApiForbidden,
    ApiInvalid,
    ApiNotFound,
    ApiUnauthorized,
    ApiUnavailable,
)
from dra_service import credentials

_log = structlog.get_logger(__name__)

JSON = dict[str, Any]

_JSON: Final = "application/json"
#: Seconds to connect, and for the whole answer.
_CONNECT, _ANSWER = 5.0, 20.0
#: Connections that are kept: requests run side by side.
_CONNECTIONS: Final = 16
_PAGE: Final = 500
#: Characters of an error that are kept.
_MESSAGE: Final = 4096
_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    400: ApiInvalid,
    401: ApiUnauthorized,
    403: ApiForbidden,
    404: ApiNotFound,
    409: ApiConflict,
    410: ApiExpired,
    422: ApiInvalid,
    429: ApiBusy,
}


class ApiServer:
    """JSON requests to one API server; any thread may use it."""

    #: How a program calls itself, ``User-Agent``.
    AGENT: ClassVar[str] = "dragoman"

    def __init__(self, configuration: kubernetes.client.Configuration) -> None:
        configuration.socket_options = [
            *urllib3.connection.HTTPConnection.default_socket_options,
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
        ]
        configuration.connection_pool_maxsize = _CONNECTIONS
        self._configuration = configuration
        self._http: urllib3.PoolManager = kubernetes.client.rest.RESTClientObject(
            configuration
        ).pool_manager

    @classmethod
    def connect(cls, kubeconfig: Path | None) -> Self:
        """Use ``kubeconfig``, else ``$KUBECONFIG``, else the pod's service account, else ~/.kube.

        Raises InvalidValue with one sentence if the credentials cannot be read; does not connect.
        """
        configuration = credentials.configuration(kubeconfig)
        try:
            return cls(configuration)
        except Exception as error:  # certificates, say, that are none
            raise credentials.unusable(kubeconfig, error) from error

    @property
    def url(self) -> str:
        """Of the API server."""
        host: str = self._configuration.host
        return host

    def authorization(self) -> str | None:
        """The header of that name, with the token as it is now."""
        try:
            token: str | None = self._configuration.get_api_key_with_prefix(
                "BearerToken", "authorization"
            )
        except Exception as error:  # the package raises what its sources of tokens raise
            raise ApiUnauthorized(f"the credentials cannot be read: {error}") from error
        return token

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        content: str = _JSON,
        accept: str = _JSON,
    ) -> JSON:
        """The answer as JSON; raises the :class:`ApiError` of its status."""
        what = f"{method} {path}"
        with self.opened(
            method, path, query, body, content=content, accept=accept, silence=_ANSWER
        ) as response:
            whole = _content(what, response)
        for warning in response.headers.getlist("Warning"):
            _log.warning("the API server warns", path=path, warning=warning)
        return json_object(what, whole)

    def minor_version(self) -> int:
        """From ``/version``, which any service account may read (role system:discovery)."""
        found = self.request("GET", "/version")
        digits = "".join(c for c in str(found.get("minor")) if c.isascii() and c.isdigit())
        if not digits:
            raise ApiUnavailable(f"/version gives no minor version: {str(found)[:80]}")
        return int(digits)

    def pages(
        self, path: str, query: Mapping[str, str] | None = None, accept: str = _JSON
    ) -> Iterator[JSON]:
        """All pages of a list; ApiExpired if it has aged while we read it."""
        position = {"continue": ""}
        while True:
            asked = {**(query or {}), "limit": str(_PAGE)}
            asked |= position if position["continue"] else {}
            page = self.request("GET", path, asked, accept=accept)
            yield page
            position = {"continue": (page.get("metadata") or {}).get("continue") or ""}
            if not position["continue"]:
                return

    def opened(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        content: str = _JSON,
        accept: str = _JSON,
        silence: float,
    ) -> urllib3.BaseHTTPResponse:
        """An answer to be read; raises the :class:`ApiError` of its status.

        ``silence`` is how many seconds may pass without a byte.
        """
        headers = {"Accept": accept, "User-Agent": self.AGENT}
        if body is not None:
            headers["Content-Type"] = content
        if token := self.authorization():
            headers["Authorization"] = token
        what = f"{method} {path}"
        try:
            response = self._http.request(
                method,
                self.url + path + ("?" + urlencode(query) if query else ""),
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=_CONNECT, read=silence),
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ApiUnavailable(f"{what}: no answer: {error}") from error
        if response.status >= 300:
            with response:
                raise _error(what, response)
        return response


def error_kind(status: int, other: type[ApiError] = ApiError) -> type[ApiError]:
    """The error of an HTTP status, or of the code of a ``Status``; ``other`` of those below 500."""
    return _BY_STATUS.get(status, ApiUnavailable if status >= 500 else other)


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


def json_object(what: str, content: bytes) -> JSON:
    """A JSON object; anything else is no answer of an API server (a proxy's page, say)."""
    try:
        data = json.loads(content)
    except ValueError as error:
        raise ApiUnavailable(f"{what}: the answer is not JSON: {content[:40]!r}") from error
    if not isinstance(data, dict):
        raise ApiUnavailable(f"{what}: the answer is no object: {content[:40]!r}")
    return data


def _error(what: str, response: urllib3.BaseHTTPResponse) -> ApiError:
    status: JSON = {}
    with contextlib.suppress(urllib3.exceptions.HTTPError, OSError, ApiUnavailable):
        # Messages can be long: 64 devices with a few problems each.
        status = json_object("", response.read(2**20))
    kind = error_kind(response.status)
    text = str(status.get("message") or response.reason or "no reason given")
    message = f"{what}: {response.status}: {text[:_MESSAGE]}"
    if kind is ApiInvalid:
        return ApiInvalid(message, _causes(status))
    if issubclass(kind, ApiUnavailable):
        return kind(message, _seconds(response.headers.get("Retry-After", "")))
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

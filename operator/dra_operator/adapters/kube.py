"""The Kubernetes API, as JSON data, for everything but the watches (those are kopf's).

Credentials come from the ``kubernetes`` package (a kubeconfig with everything it may hold, or the
service account of the pod, whose token it reads again every minute).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import kubernetes.client
import kubernetes.client.rest
import kubernetes.config
import structlog
import urllib3

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

_log = structlog.get_logger(__name__)

JSON = dict[str, Any]

#: Seconds to connect, and for the whole answer.
_CONNECT, _ANSWER = 5.0, 20.0
#: Connections that are kept: attempts run side by side.
_CONNECTIONS: Final = 16
_PAGE: Final = 500
#: Characters of an error that are kept.
_MESSAGE: Final = 4096
USER_AGENT: Final = "dragoman-operator"
#: Metadata of objects without the rest.
METADATA_ONLY: Final = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)
STRATEGIC: Final = "application/strategic-merge-patch+json"
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
    """JSON requests to one API server; any thread may use it."""

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
    def connect(cls, kubeconfig: Path | None) -> KubeApi:
        """Use ``kubeconfig``, else ``$KUBECONFIG``, else the pod's service account, else ~/.kube.

        Raises InvalidValue with one sentence if the credentials cannot be read; does not connect.
        """
        configuration = kubernetes.client.Configuration()
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
            raise InvalidValue(
                f"cannot use the kubeconfig {where}: {lines[0]}; "
                "give a readable one with --kubeconfig"
            ) from error

    @property
    def server(self) -> str:
        """The URL of the API server."""
        host: str = self._configuration.host
        return host

    def tls(self) -> ssl.SSLContext:
        """How to trust the server, and the client certificate if there is one."""
        c = self._configuration
        context = ssl.create_default_context(cafile=c.ssl_ca_cert)
        if c.cert_file:
            context.load_cert_chain(c.cert_file, c.key_file)
        if not c.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

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
        content: str = "application/json",
        accept: str = "application/json",
    ) -> JSON:
        """The answer as JSON; raises the :class:`ApiError` of its status."""
        headers = {"Accept": accept, "User-Agent": USER_AGENT}
        if body is not None:
            headers["Content-Type"] = content
        if token := self.authorization():
            headers["Authorization"] = token
        what = f"{method} {path}"
        try:
            response = self._http.request(
                method,
                self.server + path + ("?" + urlencode(query) if query else ""),
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=_CONNECT, read=_ANSWER),
            )
            with response:
                content_ = _whole(what, response)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ApiUnavailable(f"{what}: no answer: {error}") from error
        if response.status >= 300:
            raise _error(what, response, content_)
        for warning in response.headers.getlist("Warning"):
            _log.warning("the API server warns", path=path, warning=warning)
        return _object(what, content_)

    def pages(
        self, path: str, query: Mapping[str, str] | None = None, accept: str = "application/json"
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


def _whole(what: str, response: urllib3.BaseHTTPResponse) -> bytes:
    """All of the answer, which must not take longer than one may."""
    until = time.monotonic() + _ANSWER
    parts = []
    for part in response.stream(2**16):
        parts.append(part)
        if time.monotonic() > until:
            raise ApiUnavailable(f"{what}: the answer took longer than {_ANSWER:g} s")
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


def _error(what: str, response: urllib3.BaseHTTPResponse, content: bytes) -> ApiError:
    status: JSON = {}
    with contextlib.suppress(ApiUnavailable):
        status = _object("", content)
    kind = _BY_STATUS.get(response.status, ApiUnavailable if response.status >= 500 else ApiError)
    text = str(status.get("message") or response.reason or "no reason given")
    message = f"{what}: {response.status}: {text[:_MESSAGE]}"
    if kind is ApiUnavailable:
        wish = response.headers.get("Retry-After", "")
        seconds = float(wish) if wish.isdecimal() and len(wish) < 6 else 0.0
        return ApiUnavailable(message, seconds)
    return kind(message)

"""JSON calls to an API server, for checks that need no client library."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse
from pathlib import Path
from typing import Any

from .errors import ApiError

_PATCH = {
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


class Client:
    """Speaks to the server at ``url`` with a client certificate.

    A connection per call: the caller may be forked, threaded or paused for an hour in between.
    """

    def __init__(self, url: str, authority: Path, certificate: Path, key: Path) -> None:
        parts = urllib.parse.urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._tls.load_cert_chain(certificate, key)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        patch: str = "merge",
        timeout: float = 30,
    ) -> Any:
        """The decoded answer: JSON as a value, anything else as text.

        ``path`` begins with a slash and may have a query. ``patch`` is the kind of body of a PATCH:
        merge, json, strategic or apply. ``timeout`` is in seconds and for one read. Raises
        :class:`ApiError` for a status of 400 or more, :class:`OSError` if nobody answers.
        """
        headers = {"Accept": "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = _PATCH[patch] if method == "PATCH" else "application/json"
        connection = http.client.HTTPSConnection(
            self._host, self._port, context=self._tls, timeout=timeout
        )
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = "json" in (answer.getheader("Content-Type") or "")
            value = json.loads(text) if is_json and text else text
            if answer.status >= 400:
                raise ApiError(method, path, answer.status, value)
            return value
        finally:
            connection.close()


def plain_status(host: str, port: int, path: str) -> int:
    """The HTTP status of an unencrypted GET; for health checks on loopback."""
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()

"""What a vendor would ship to speak to the fabric manager."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

JSON = dict[str, Any]

_ANSWER_MAX: Final = 2**24


class Unreachable(Exception):
    """No answer, or none that makes sense: it may or may not have been done."""


class Refused(Exception):
    """The manager said no; ``status`` is that of HTTP, ``reason`` one word."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Attachment:
    """``state`` is attaching, attached or detaching; ``link`` up or down."""

    id: int
    device: str
    node: str
    tag: Mapping[str, str]
    state: str
    link: str


class Client:
    """One fabric manager; any thread may use it. Raises ValueError if the URL is none of HTTP."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/"):
            raise ValueError(f"{url!r} is not like http://HOST:PORT")
        self._host, self._port = parts.hostname, parts.port or 80

    def devices(self, timeout: float) -> list[str]:
        """Names of all devices of the fabric."""
        return [str(name) for name in self._call("GET", "/v1/devices", timeout)["devices"]]

    def attachments(self, timeout: float, node: str = "") -> list[Attachment]:
        """All of them, or those of one node."""
        query = f"?node={quote(node, safe='')}" if node else ""
        found = self._call("GET", f"/v1/attachments{query}", timeout)["attachments"]
        return [Attachment(**item) for item in found]

    def attach(self, device: str, node: str, tag: Mapping[str, str], timeout: float) -> Attachment:
        """Begin to attach, or find it begun."""
        body = {"device": device, "node": node, "tag": dict(tag)}
        return Attachment(**self._call("POST", "/v1/attachments", timeout, body))

    def detach(self, number: int, timeout: float) -> None:
        """Begin to take it away."""
        self._call("DELETE", f"/v1/attachments/{number}", timeout)

    def fault(self, **fault: Any) -> None:
        """See :mod:`dra_fabric.server`."""
        self._call("POST", "/v1/faults", 10.0, fault)

    def set(self, **settings: Any) -> None:
        """See :mod:`dra_fabric.server`."""
        self._call("PUT", "/v1/settings", 10.0, settings)

    def _call(self, method: str, path: str, timeout: float, body: JSON | None = None) -> JSON:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            data = json.loads(response.read(_ANSWER_MAX))
        except (OSError, http.client.HTTPException, ValueError) as error:
            where = f"{self._host}:{self._port}"
            why = str(error) or type(error).__name__
            raise Unreachable(f"{method} {path} at {where}: no answer: {why}") from error
        finally:
            connection.close()
        if response.status >= 300:
            raise Refused(response.status, str(data.get("reason")), str(data.get("message")))
        found: JSON = data
        return found

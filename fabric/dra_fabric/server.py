"""The fabric manager's HTTP API.

::

    GET    /v1/devices                 {"devices": ["fab-0", …]}
    GET    /v1/attachments[?node=N]    {"attachments": [{id, device, node, tag, state, link}, …]}
    POST   /v1/attachments             {device, node, tag} -> 202 and the attachment
    DELETE /v1/attachments/ID          202
    POST   /v1/faults                  {operation, kind, seconds, device, count}: the next requests
    PUT    /v1/settings                {latency, devices, slots, linksDown, stuck}: any of them

Errors are ``{reason, message}``.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from dra_fabric.model import FAULTS, JSON, OPERATIONS, Fabric, Fault, Refused

_BODY_MAX: Final = 2**16


class _NoAnswer(Exception):
    """The connection is to break off."""


class Service:
    """Requests to one fabric, one after the other, except for those that are late."""

    def __init__(self, fabric: Fabric, now: Callable[[], float] = time.monotonic) -> None:
        self._fabric = fabric
        self._now = now
        self._lock = threading.Lock()

    def call(self, method: str, path: str, query: dict[str, list[str]], body: JSON) -> JSON:
        """The answer; raises Refused, or _NoAnswer if there is none."""
        if (method, path) == ("GET", "/v1/devices"):
            return {"devices": self._fabric.names()}
        if (method, path) == ("GET", "/v1/attachments"):
            return self._list(query.get("node", [""])[0])
        if (method, path) == ("POST", "/v1/attachments"):
            return self._attach(body)
        if method == "DELETE" and path.startswith("/v1/attachments/"):
            return self._detach(path.rpartition("/")[2])
        if (method, path) == ("POST", "/v1/faults"):
            return self._add_faults(body)
        if (method, path) == ("PUT", "/v1/settings"):
            return self._set(body)
        raise Refused(404, "NotFound", f"there is no {method} {path}")

    def _list(self, node: str) -> JSON:
        with self._lock:
            now = self._now()
            items = [i for i in self._fabric.items(now) if node in ("", i.node)]
            return {"attachments": [self._fabric.shown(item, now) for item in items]}

    def _attach(self, body: JSON) -> JSON:
        device, node, tag = body.get("device"), body.get("node"), body.get("tag")
        if not (isinstance(device, str) and isinstance(node, str) and isinstance(tag, dict)):
            raise Refused(400, "Invalid", "device and node must be text, tag an object of texts")
        fault = self._before("attach", device)
        with self._lock:
            now = self._now()
            twice = fault == "twice"
            item = self._fabric.attach(device, node, tag, now, twice=twice)
            answer = self._fabric.shown(item, now)
        if fault == "lose-answer":
            raise _NoAnswer
        return answer

    def _detach(self, number: str) -> JSON:
        if not number.isdecimal():
            raise Refused(404, "NotFound", f"there is no attachment {number!r}")
        with self._lock:
            found = [i for i in self._fabric.items(self._now()) if i.number == int(number)]
        fault = self._before("detach", found[0].device if found else "")
        with self._lock:
            self._fabric.detach(int(number), self._now())
        if fault == "lose-answer":
            raise _NoAnswer
        return {}

    def _before(self, operation: str, device: str) -> str:
        """What goes wrong with a request; some of it happens here."""
        with self._lock:
            fault = self._fabric.fault(operation, device)
        if fault is None:
            return ""
        if fault.kind == "lose":
            raise _NoAnswer
        if fault.kind == "refuse":
            raise Refused(422, "PortDown", f"the port of {device} is down")
        if fault.kind == "late":
            threading.Event().wait(fault.seconds)
        return fault.kind

    def _add_faults(self, body: JSON) -> JSON:
        fault = Fault(
            str(body.get("operation", "attach")),
            str(body.get("kind")),
            float(body.get("seconds", 0.0)),
            str(body.get("device", "")),
        )
        if fault.kind not in FAULTS or fault.operation not in OPERATIONS:
            raise Refused(400, "Invalid", f"kind must be one of {FAULTS}, operation {OPERATIONS}")
        with self._lock:
            self._fabric.faults.extend([fault] * int(body.get("count", 1)))
        return {}

    def _set(self, body: JSON) -> JSON:
        with self._lock:
            self._fabric.latency = float(body.get("latency", self._fabric.latency))
            self._fabric.devices = int(body.get("devices", self._fabric.devices))
            self._fabric.slots = int(body.get("slots", self._fabric.slots))
            if "linksDown" in body:
                self._fabric.links_down = set(map(str, body["linksDown"]))
            if "stuck" in body:
                self._fabric.stuck = set(map(str, body["stuck"]))
        return {}


class Server(ThreadingHTTPServer):
    """Serves until ``shutdown``."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], service: Service) -> None:
        super().__init__(address, _Handler)
        self.service = service


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 60

    def _serve(self) -> None:
        try:
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            answer = self.server.service.call(self.command, url.path, query, self._body())
        except _NoAnswer:
            self.close_connection = True
        except Refused as error:
            self._answer(error.status, {"reason": error.reason, "message": str(error)})
        except ValueError as error:
            self._answer(400, {"reason": "Invalid", "message": str(error)})
        else:
            self._answer(200 if self.command == "GET" else 202, answer)

    def _body(self) -> JSON:
        length = int(self.headers.get("Content-Length") or 0)
        if length > _BODY_MAX:
            raise Refused(413, "TooLarge", f"at most {_BODY_MAX} bytes")
        body = json.loads(self.rfile.read(length) or b"{}")
        if not isinstance(body, dict):
            raise Refused(400, "Invalid", "the body must be an object")
        return body

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - names of the base class

    def _answer(self, status: int, body: JSON) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's
        """Nothing: the operator logs what it does."""

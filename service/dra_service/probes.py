"""``/healthz``, ``/readyz`` and ``/metrics``, on an address of their own if one is given."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import structlog

from dra_core.errors import StorageError

_log = structlog.get_logger(__name__)

#: Seconds after which a connection that says nothing is closed.
_IDLE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that has to be so; ``message`` says what is the case and, if not ok, the fix."""

    name: str
    ok: bool
    message: str


Check = Callable[[], Sequence[Condition]]


class Endpoint:
    """Answers GET of the paths of ``checks``: 200 if all conditions hold, else 503, with JSON.

    ``texts`` are paths with plain text.
    """

    def __init__(
        self,
        address: tuple[str, int],
        checks: dict[str, Check],
        texts: dict[str, Callable[[], str]] | None = None,
    ) -> None:
        cached = {path: _Cached(check) for path, check in checks.items()}
        handler = type("_Handler", (_Handler,), {"checks": cached, "texts": texts or {}})
        try:
            self._server = _Server(address, handler)
        except OSError as error:
            raise StorageError(
                f"cannot listen on {address[0]}:{address[1]} for probes: {error.strerror}"
            ) from error
        self.port: int = self._server.server_address[1]

    def start(self) -> None:
        """Serve in a thread of its own."""
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()
        _log.debug("answering probes", port=self.port)

    def stop(self) -> None:
        """End at once."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is nobody's concern."""


class _Cached:
    """An answer that is good for a second, however many ask."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._lock = threading.Lock()
        self._until = 0.0
        self._answer: Sequence[Condition] = ()

    def __call__(self) -> Sequence[Condition]:
        with self._lock:
            if time.monotonic() >= self._until:
                self._answer = self._check()
                self._until = time.monotonic() + 1.0
            return self._answer


class _Handler(BaseHTTPRequestHandler):
    checks: dict[str, Check]
    texts: dict[str, Callable[[], str]]
    timeout = _IDLE
    server_version = "dragoman"
    sys_version = ""

    def do_GET(self) -> None:
        """One of the checks or texts, or 404."""
        path = self.path.partition("?")[0]
        if path in self.texts:
            self._send(200, self.texts[path]().encode(), "text/plain; version=0.0.4")
            return
        check = self.checks.get(path)
        if check is None:
            known = ", ".join(sorted([*self.checks, *self.texts]))
            self._answer(404, {"error": f"use one of {known}"})
            return
        conditions = check()
        ok = all(condition.ok for condition in conditions)
        self._answer(200 if ok else 503, {"ok": ok, "conditions": [asdict(c) for c in conditions]})

    def _answer(self, status: int, body: object) -> None:
        self._send(status, (json.dumps(body, indent=2) + "\n").encode(), "application/json")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its names
        """Probes come every few seconds: nothing to say."""

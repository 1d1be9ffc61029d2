"""A TLS proxy in front of an API server, with faults: codes, delays, silence, cuts, lost fields.

It hands requests on with the caller's own credentials (a bearer token), so rights stay what they
are. Rules are asked in order; the first that matches and is not used up acts.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import http.server
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from testcluster.pki import Authority

WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")
#: Headers that concern one connection only.
_HOP: Final = {"connection", "keep-alive", "transfer-encoding", "host", "content-length"}


@dataclass
class Call:
    """A request that has arrived, ``at`` a moment of the monotonic clock.

    ``sent`` is its body as an object, if it has one; ``took`` are the seconds until its status.
    """

    method: str
    path: str
    query: str
    sent: Any = None
    status: int | None = None
    at: float = field(default_factory=time.monotonic)
    took: float | None = None

    def __str__(self) -> str:
        answer = "no answer" if self.took is None else f"{self.status} after {self.took:.2f} s"
        dry = " (dry run)" if self.dry_run else ""
        return f"{self.at:.2f} {self.method} {self.path}{dry}: {answer}"

    def answered(self, status: int) -> None:
        """By the server, or in its place."""
        self.status, self.took = status, time.monotonic() - self.at

    @property
    def watch(self) -> bool:
        return bool({"watch=1", "watch=true"} & set(self.query.split("&")))

    @property
    def dry_run(self) -> bool:
        return "dryRun=All" in self.query

    @property
    def write(self) -> bool:
        """Whether it changes something."""
        return self.method in WRITES and not self.dry_run

    @property
    def about_slices(self) -> bool:
        return "/resourceslices" in self.path


@dataclass
class Rule:
    """What to do to the calls that ``match``, ``times`` of them (None: all).

    ``status`` answers so without asking the server. ``seconds`` waits first. ``silent`` never
    answers. ``cut`` hands the request on and hangs up instead of answering. ``strip`` takes fields
    of these names out of what is sent, as a server does whose gate is off. ``act`` is called first.
    """

    match: Callable[[Call], bool]
    times: int | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    silent: bool = False
    cut: bool = False
    strip: tuple[str, ...] = ()
    act: Callable[[Call], None] = lambda _: None
    used: int = 0


class FaultProxy:
    """Listens on loopback; ``kubeconfig`` leads clients here instead of to the server."""

    def __init__(self, original: Path, folder: Path) -> None:
        data = yaml.safe_load(original.read_text())
        cluster = data["clusters"][0]["cluster"]
        self.upstream = urlsplit(cluster["server"])
        authority = Authority(folder / "proxy-pki")
        authority.create()
        certificate, key = authority.issue("proxy", user="proxy", addresses=["127.0.0.1"])
        self._trust = _trust(cluster)
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._streams: set[socket.socket] = set()
        self.calls: list[Call] = []
        self.closed = threading.Event()
        handler = type("_Handler", (_Handler,), {"proxy": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server.context.load_cert_chain(certificate, key)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        cluster["server"] = f"https://127.0.0.1:{self._server.server_address[1]}"
        cluster.pop("certificate-authority-data")
        cluster["certificate-authority"] = str(authority.certificate)
        self.kubeconfig = folder / f"{original.name}-proxied"
        self.kubeconfig.write_text(json.dumps(data))

    def add(self, match: Callable[[Call], bool], **action: Any) -> Rule:
        """Do something to calls from now on."""
        rule = Rule(match, **action)
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """No faults from now on; what hangs goes on hanging."""
        with self._lock:
            self._rules.clear()

    def cut_watches(self) -> int:
        """Break every open watch off; how many there were."""
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            _hang_up(stream)
        return len(streams)

    def watches(self) -> int:
        """How many watches are open."""
        with self._lock:
            return len(self._streams)

    def writes(self) -> list[Call]:
        """Calls that change slices, as they arrived."""
        return [c for c in list(self.calls) if c.write and c.about_slices]

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()
        self.cut_watches()

    # -- for the handler

    def rule_for(self, call: Call) -> Rule | None:
        with self._lock:
            self.calls.append(call)
            for rule in self._rules:
                if (rule.times is None or rule.used < rule.times) and rule.match(call):
                    rule.used += 1
                    return rule
        return None

    def connect(self) -> http.client.HTTPSConnection:
        host, port = self.upstream.hostname, self.upstream.port
        assert host is not None
        return http.client.HTTPSConnection(host, port, timeout=180, context=self._trust)

    def streaming(self, connection: socket.socket, *, on: bool) -> None:
        with self._lock:
            (self._streams.add if on else self._streams.discard)(connection)


def _trust(cluster: dict[str, Any]) -> ssl.SSLContext:
    text = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return ssl.create_default_context(cadata=text)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    context: ssl.SSLContext

    def finish_request(self, request: Any, client_address: Any) -> None:
        """TLS in the connection's own thread: a client that says nothing delays nobody."""
        request.settimeout(180)
        try:
            wrapped = self.context.wrap_socket(request, server_side=True)
        except (OSError, ssl.SSLError):
            return
        try:
            super().finish_request(wrapped, client_address)
        finally:
            _hang_up(wrapped)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients are killed on purpose."""


class _Handler(http.server.BaseHTTPRequestHandler):
    proxy: FaultProxy
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        call = Call(self.command, path, query, json.loads(body) if body else None)
        rule = self.proxy.rule_for(call)
        if rule is not None:
            rule.act(call)
            self.proxy.closed.wait(rule.seconds)
            if rule.silent:
                self.proxy.closed.wait(600)
                self.close_connection = True
                return
            if rule.status is not None:
                self._refuse(call, rule)
                return
            if rule.strip and call.sent is not None:
                body = json.dumps(_stripped(call.sent, rule.strip)).encode()
        self._forward(call, body, cut=rule is not None and rule.cut)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815 - http.server's names

    def _refuse(self, call: Call, rule: Rule) -> None:
        assert rule.status is not None
        call.answered(rule.status)
        status = {"kind": "Status", "code": rule.status, "message": "by the fault proxy"}
        content = json.dumps(status).encode()
        self.send_response(rule.status)
        for name, value in rule.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _forward(self, call: Call, body: bytes, *, cut: bool) -> None:
        connection = self.proxy.connect()
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
        try:
            connection.request(call.method, self.path, body or None, headers)
            answer = connection.getresponse()
            call.answered(answer.status)
            if cut:
                if not call.watch:
                    answer.read()
                self.close_connection = True
                return
            self._hand_back(call, answer)
        finally:
            connection.close()

    def _hand_back(self, call: Call, answer: http.client.HTTPResponse) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP | {"date", "server"}:
                self.send_header(name, value)
        if not call.watch:
            content = answer.read()
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.proxy.streaming(self.connection, on=True)
        try:
            for part in _parts(answer):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            self.proxy.streaming(self.connection, on=False)
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its names
        """Quiet: see ``calls``."""


def _parts(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    while part := answer.read1(2**16):
        yield part


def _stripped(data: Any, names: tuple[str, ...]) -> Any:
    if isinstance(data, dict):
        return {k: _stripped(v, names) for k, v in data.items() if k not in names}
    return [_stripped(item, names) for item in data] if isinstance(data, list) else data


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()

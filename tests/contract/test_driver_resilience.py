"""The driver when its surroundings misbehave: discovery, sockets, folders, the API server."""

from __future__ import annotations

import http.server
import json
import signal
import sys
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_core.names import ClaimUID, DriverName
from dra_driver.adapters.files import CdiFolder
from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess
from dra_testing.places import HAND_PROGRAM, Place, kubeconfig
from dra_testing.polling import until
from dra_testing.slices import Cluster, Watcher, make_node

Start = Callable[..., DriverProcess]
MOODY = HAND_PROGRAM | {"program": (sys.executable, "-m", "dra_testing.moody_driver")}


class Moody:
    """A driver whose discovery does what it is told."""

    def __init__(self, cluster: Cluster, folder: Path, start: Start) -> None:
        self.place = Place(folder, cluster.kubeconfig, driver="moody.example.com")
        self.cluster = cluster
        self.file = folder / "mood"
        make_node(cluster, self.place.node)
        self.watcher = Watcher(cluster, self.place.node)
        self._start = start
        self.port = 0

    def start(self, mood: str) -> DriverProcess:
        self.file.write_text(mood)
        arguments = (f"--option=mood={self.file}", "--http-address=127.0.0.1:0")
        self.driver = self._start(*self.place.arguments(*arguments, "--log-level=debug"), **MOODY)
        self.port = self.driver.wait_for("answering probes")["port"]
        return self.driver

    def becomes(self, mood: str) -> None:
        self.file.write_text(mood)
        self.driver.signal(signal.SIGHUP)

    def ready(self) -> dict[str, str]:
        """What /readyz finds wrong, by condition."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as found:
                answer = json.load(found)
        except urllib.error.HTTPError as refused:
            answer = json.load(refused)
        return {c["name"]: c["message"] for c in answer["conditions"] if not c["ok"]}

    def names(self) -> list[str]:
        return [name for name, _ in self.watcher.now.slices] if self.watcher.moments else []

    def close(self) -> None:
        self.watcher.stop()
        self.driver.finish()
        for name in self.names():
            self.cluster.api("DELETE", f"/apis/resource.k8s.io/v1/resourceslices/{name}")
        self.cluster.api("DELETE", f"/api/v1/nodes/{self.place.node}")


@pytest.fixture
def moody(control_plane: Cluster, short_path: Path, start_driver: Start) -> Iterator[Moody]:
    made = Moody(control_plane, short_path, start_driver)
    yield made
    made.close()


def devices(count: int) -> tuple[str, ...]:
    return tuple(f"d-{i}" for i in range(count))


@case("PUB-01")
@pytest.mark.control_plane
def test_a_discovery_that_hangs_delays_no_repair(moody: Moody) -> None:
    moody.start("2")
    moody.watcher.wait_for(devices(2))
    moody.becomes("hang")
    moody.driver.wait_for("settings read again")
    (name,) = moody.names()
    at = len(moody.watcher.moments)
    moody.cluster.api("DELETE", f"/apis/resource.k8s.io/v1/resourceslices/{name}")
    moody.watcher.saw(None, at)
    moody.watcher.wait_for(devices(2), timeout=5.0)


@case("PUB-04")
@pytest.mark.control_plane
def test_a_discovery_that_fails_keeps_the_pool_and_says_so(moody: Moody) -> None:
    moody.start("raise")
    until("readiness has the reason", lambda: "RuntimeError" in moody.ready().get("Published", ""))
    assert moody.watcher.moments == [], "nothing was published, not even an empty pool"
    moody.becomes("2")
    moody.watcher.wait_for(devices(2))
    until("the reason is gone", lambda: "Published" not in moody.ready())
    at = len(moody.watcher.moments)
    moody.becomes("raise")
    until("readiness has the reason", lambda: "RuntimeError" in moody.ready().get("Published", ""))
    assert moody.watcher.moments[at:] == []
    moody.becomes("0")
    moody.watcher.wait_for(())


@case("PUB-09")
@pytest.mark.control_plane
def test_bad_devices_are_left_out_and_named_once(moody: Moody) -> None:
    moody.start("bad")
    moody.watcher.wait_for(("good",))
    moody.becomes("bad")
    moody.driver.wait_for("settings read again")
    moody.becomes("1")
    moody.watcher.wait_for(devices(1))
    left_out = moody.driver.events("device left out")
    assert len(left_out) == 7
    assert len({record["subject"] for record in left_out}) == 7


@pytest.mark.control_plane
def test_a_bad_pool_does_not_hold_back_the_others(moody: Moody) -> None:
    moody.start("twice")
    moody.watcher.wait_for(("good",))
    assert "named 'x'" in moody.ready()["Published"]


@case("PUB-01")
@pytest.mark.control_plane
def test_a_node_made_anew_gets_slices_that_stay(moody: Moody) -> None:
    """The garbage collector removes what belongs to the old Node."""
    moody.start("2")
    moody.watcher.wait_for(devices(2))
    path = f"/api/v1/nodes/{moody.place.node}"
    moody.cluster.api("DELETE", path)
    make_node(moody.cluster, moody.place.node)
    node_uid = moody.cluster.api("GET", path)["metadata"]["uid"]

    def owned() -> bool:
        listed = moody.cluster.api("GET", "/apis/resource.k8s.io/v1/resourceslices")["items"]
        owners = [
            i["metadata"]["ownerReferences"][0]["uid"]
            for i in listed
            if i["spec"].get("nodeName") == moody.place.node
        ]
        return owners == [node_uid]

    until("the slice belongs to the new Node", owned, timeout=60.0)
    moody.watcher.wait_for(devices(2))


def test_a_registration_socket_that_is_removed_comes_back(
    short_path: Path, start_driver: Start
) -> None:
    place = Place(short_path)
    driver = start_driver(*place.arguments())
    driver.wait_for("serving")
    place.kubelet().notify(True)
    place.registration().unlink()
    until("the socket is back", lambda: place.registration().is_socket(), timeout=5.0)
    assert place.kubelet().info().name == place.driver
    assert driver.stop() == 0
    assert not place.registration().exists()


def test_a_cdi_folder_that_is_removed_is_made_again(tmp_path: Path) -> None:
    folder = CdiFolder(tmp_path / "cdi", DriverName("gpu.example.com"))
    folder.open()
    (tmp_path / "cdi").rmdir()
    assert folder.write(ClaimUID("u1"), b"{}")
    assert len(list((tmp_path / "cdi").iterdir())) == 1


class _NoApiServer(http.server.BaseHTTPRequestHandler):
    """A proxy's page where an API server should be."""

    answers: list[tuple[int, bytes]]

    def do_GET(self) -> None:
        status, content = self.answers[0]
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - http.server's names

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.mark.parametrize(
    ("status", "content"),
    [(200, b"<html>log in</html>"), (302, b""), (200, b"[]"), (200, b"{}"), (410, b"{}")],
)
def test_a_server_that_is_no_api_server_does_not_end_the_driver(
    short_path: Path, start_driver: Start, status: int, content: bytes
) -> None:
    handler = type("_Answers", (_NoApiServer,), {"answers": [(status, content)]})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    place = Place(short_path, kubeconfig(short_path / "kubeconfig", url))
    driver = start_driver(*place.arguments())
    driver.wait_for("serving")
    claim = ("default", "c", str(uuid.uuid4()))
    assert place.kubelet().prepare(claim)[claim[2]].error
    assert place.kubelet().unprepare(claim)[claim[2]].error == ""
    assert driver.stop() == 0
    assert driver.events("a thread ended unexpectedly") == []
    server.shutdown()
    server.server_close()

"""What the driver tells the kubelet about itself; what it does when asked for something else."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from dra_protos import (
    dra_health_v1_pb2,
    dra_health_v1_pb2_grpc,
    dra_health_v1alpha1_pb2,
    dra_health_v1alpha1_pb2_grpc,
)
from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess, running
from dra_testing.kubelet import channel
from dra_testing.places import MuteServer, Place, kubeconfig
from dra_testing.polling import until

HANGING = 64
HEALTH: dict[str, tuple[Any, Any]] = {
    "v1": (dra_health_v1_pb2, dra_health_v1_pb2_grpc),
    "v1alpha1": (dra_health_v1alpha1_pb2, dra_health_v1alpha1_pb2_grpc),
}


@pytest.fixture
def server() -> Iterator[MuteServer]:
    """An API server that says nothing, and so gives no reason to log anything."""
    mute = MuteServer()
    yield mute
    mute.close()


@pytest.fixture
def place(short_path: Path, server: MuteServer) -> Place:
    return Place(short_path, kubeconfig(short_path / "kubeconfig", server.url))


@pytest.fixture
def driver(place: Place, server: MuteServer, tmp_path: Path) -> Iterator[DriverProcess]:
    with running(place.arguments("--log-level=debug"), tmp_path / "driver.log") as process:
        until("it serves", lambda: [r for r in process.events("serving") if r["level"] == "info"])
        yield process
        server.close()  # who waits for an answer ends now, and the driver with them


def loud(driver: DriverProcess) -> list[dict[str, Any]]:
    """What it has logged above debug; text that is no record counts."""
    return [record for record in driver.records() if record.get("level") != "debug"]


@case("REG-04")
def test_the_kubelet_is_told_exactly_what_is_served_the_newest_first(
    place: Place, driver: DriverProcess
) -> None:
    info = place.kubelet().info()

    assert info.type == "DRAPlugin"
    assert info.name == "gpu.example.com"
    assert info.endpoint == str(place.service())
    assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]


@case("REG-04")
def test_every_version_that_the_kubelet_is_told_of_answers(
    place: Place, driver: DriverProcess
) -> None:
    kubelet = place.kubelet()
    for name in kubelet.info().supported_versions:
        version, _, service = name.partition(".")
        assert service == "DRAPlugin"
        answers = kubelet.unprepare(("default", "claim", "some-uid"), version=version)
        assert {uid: answer.error for uid, answer in answers.items()} == {"some-uid": ""}
        # No answer from the API server within the time that the kubelet gives.
        answers = kubelet.prepare(("default", "claim", version), version=version, timeout=2.0)
        assert list(answers) == [version]
        assert answers[version].error.endswith("is still running; ask again to join it")


@case("REG-04")
@pytest.mark.parametrize("version", HEALTH)
def test_a_kubelet_that_asks_for_health_anyway_is_refused_quietly(
    place: Place, driver: DriverProcess, version: str
) -> None:
    messages, stubs = HEALTH[version]
    before = len(loud(driver))
    with channel(place.service()) as opened:
        watch = stubs.DRAResourceHealthStub(opened).NodeWatchResources
        codes = []
        for _ in range(100):
            with pytest.raises(grpc.RpcError) as raised:
                next(watch(messages.NodeWatchResourcesRequest(), timeout=5.0))
            codes.append(raised.value.code())

    assert codes == [grpc.StatusCode.UNIMPLEMENTED] * 100
    # What comes after it shows that everything before it is in the log.
    place.kubelet().notify(registered=True)
    driver.wait_for("registered with the kubelet")
    assert len(loud(driver)) - before - 1 <= 1


@case("REG-04")
def test_the_kubelet_hears_who_we_are_within_a_second_while_prepares_hang(
    place: Place, driver: DriverProcess, server: MuteServer
) -> None:
    kubelet = place.kubelet()
    uids = [f"uid-{number}" for number in range(HANGING)]
    before = server.connections
    with concurrent.futures.ThreadPoolExecutor(HANGING) as pool:
        calls = [pool.submit(kubelet.prepare, ("default", u, u), timeout=6.0) for u in uids]
        until("all wait for the API server", lambda: server.connections - before >= HANGING)
        for _ in range(5):
            started = time.monotonic()
            assert kubelet.info(timeout=1.0).name == place.driver
            assert time.monotonic() - started < 1.0
        assert not any(call.done() for call in calls)
        # Each is answered before the kubelet stops waiting.
        answers = {uid: call.result(10) for uid, call in zip(uids, calls, strict=True)}

    for uid, answer in answers.items():
        assert list(answer) == [uid]
        assert answer[uid].error.endswith("is still running; ask again to join it")


@case("REG-04")
def test_a_refused_registration_is_an_error_in_the_log_and_the_driver_goes_on(
    place: Place, driver: DriverProcess
) -> None:
    kubelet = place.kubelet()
    reason = "plugin gpu.example.com is registered twice"

    kubelet.notify(registered=False, error=reason)

    record = driver.wait_for("the kubelet refused the registration and will try again")
    assert record["level"] == "error"
    assert record["error"] == reason
    assert kubelet.info().name == place.driver
    assert kubelet.unprepare(("default", "claim", "some-uid"))["some-uid"].error == ""
    kubelet.notify(registered=True)
    assert driver.wait_for("registered with the kubelet")["level"] == "info"
    assert driver.stop() == 0

"""The sockets that the kubelet dials: whose they are, when they appear and when they go."""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import os
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest

from dra_testing.cases import case
from dra_testing.places import (
    HAND,
    HAND_PROGRAM,
    PROGRAM,
    Claims,
    Place,
    Result,
    open_gate,
    run_to_end,
)
from dra_testing.polling import until

if TYPE_CHECKING:
    from dra_testing.driver_process import DriverProcess
    from testcluster.cluster import Cluster

Start = Callable[..., "DriverProcess"]

POD_1, POD_2 = "0b1d5f0a-8f2f-4c39-9d0c-7a1e5c2b9f01", "f3a7c6de-1c55-4f7e-8a39-2c1f0e4d5b02"
#: Too long for a socket path together with the UID of a pod.
LONG_DRIVER = "accelerators.infrastructure.example.com"


@pytest.fixture
def place(short_path: Path) -> Place:
    return Place(short_path)


@pytest.fixture
def hand(short_path: Path, control_plane: Cluster) -> Place:
    """A place for the vendor's program."""
    return Place(short_path, control_plane.kubeconfig, HAND)


@pytest.fixture
def slow_claim(hand: Place, control_plane: Cluster) -> Iterator[tuple[str, str, str]]:
    """A claim whose device waits for the gate 'a'."""
    claims = Claims(control_plane, hand.node)
    yield claims.make([Result("slow-a", HAND)])
    claims.delete_all()


def serving(driver: DriverProcess) -> DriverProcess:
    driver.wait_for("serving")
    return driver


def stopped(pid: int) -> bool:
    """Whether no thread of a process runs until it gets SIGCONT."""
    states = [
        (task / "stat").read_text().rpartition(")")[2].split()[0]
        for task in Path(f"/proc/{pid}/task").iterdir()
    ]
    return set(states) <= {"T", "t"}


def sockets_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_socket())


@case("REG-01")
def test_after_a_kill_it_comes_up_with_one_socket_of_each_kind(
    place: Place, start_driver: Start
) -> None:
    serving(start_driver(*place.arguments())).kill()
    assert place.service().is_socket()
    assert place.registration().is_socket()

    serving(start_driver(*place.arguments()))

    assert place.kubelet().info().endpoint == str(place.service())
    assert sockets_in(place.plugin_dir) == ["dra.sock"]
    assert sockets_in(place.registry) == ["gpu.example.com-reg.sock"]


@case("REG-01")
def test_a_second_process_is_refused_and_the_first_serves_on(
    place: Place, start_driver: Start
) -> None:
    first = serving(start_driver(*place.arguments()))
    paths = (place.service(), place.registration())
    before = [path.stat().st_ino for path in paths]

    second = run_to_end(place.arguments())

    assert second.returncode == 2
    assert second.stdout == ""
    assert second.stderr.count("\n") == 1
    assert second.stderr.startswith("dra-driver: another instance of this driver holds ")
    assert [path.stat().st_ino for path in paths] == before
    assert first.process.poll() is None
    assert place.kubelet().info().name == place.driver
    assert place.kubelet().unprepare(("default", "claim", "some-uid"))["some-uid"].error == ""


@case("REG-01")
@pytest.mark.parametrize("pod_uid", ["", POD_2], ids=["refused", "side-by-side"])
def test_a_second_process_leaves_the_half_written_files_of_the_first_alone(
    short_path: Path, control_plane: Cluster, start_driver: Start, pod_uid: str
) -> None:
    place = Place(short_path, control_plane.kubeconfig)
    claims = Claims(control_plane, place.node)
    claim = claims.make([Result("gpu-0")])
    slow_disk = "inject=fsync:signal=STOP:when=1"  # it goes on when it is told to
    program = ("strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", slow_disk, *PROGRAM)
    first = serving(start_driver(*place.arguments(), program=program))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(place.kubelet().prepare, claim)
        try:
            until("a file is half written", lambda: list(place.cdi.iterdir()))
            until("the disk is slow", lambda: stopped(first.pid))

            if pod_uid:
                serving(start_driver(*place.arguments(f"--pod-uid={pod_uid}")))
            else:
                assert run_to_end(place.arguments()).returncode == 2

            assert not place.cdi_file(claim[2]).exists()
        finally:
            first.signal(signal.SIGCONT)
        assert running.result(20)[claim[2]].error == ""
    assert [path.name for path in place.cdi.iterdir()] == [place.cdi_file(claim[2]).name]
    claims.delete_all()


@case("REG-01")
def test_a_file_that_a_killed_process_had_half_written_is_removed(
    short_path: Path, control_plane: Cluster, start_driver: Start
) -> None:
    place = Place(short_path, control_plane.kubeconfig)
    claims = Claims(control_plane, place.node)
    claim = claims.make([Result("gpu-0")])
    power_cut = "inject=fsync:signal=KILL:when=1"
    program = ("strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", power_cut, *PROGRAM)
    first = serving(start_driver(*place.arguments(), program=program))
    with pytest.raises(grpc.RpcError):
        place.kubelet().prepare(claim, timeout=10)
    assert first.process.wait(10) == -signal.SIGKILL
    assert len(list(place.cdi.iterdir())) == 1
    assert not place.cdi_file(claim[2]).exists()

    serving(start_driver(*place.arguments()))

    assert list(place.cdi.iterdir()) == []
    claims.delete_all()


@case("REG-01")
def test_of_two_processes_started_at_one_moment_exactly_one_serves(
    place: Place, start_driver: Start, tmp_path: Path
) -> None:
    for attempt in range(10):
        # Both read their settings from a FIFO, and so leave it at the same moment.
        gates = [tmp_path / f"gate-{attempt}-{i}" for i in range(2)]
        both = []
        for gate in gates:
            os.mkfifo(gate)
            both.append(start_driver(*place.arguments(f"--config={gate}")))
        with gates[0].open("wb"), gates[1].open("wb"):
            pass

        def ended(both: list[DriverProcess] = both) -> list[DriverProcess]:
            return [driver for driver in both if driver.process.poll() is not None]

        (loser,) = until("one of them ends", ended)
        (winner,) = (driver for driver in both if driver is not loser)
        serving(winner)
        assert loser.process.returncode == 2
        (line,) = loser.records()
        assert "another instance of this driver holds" in line["event"], f"attempt {attempt}"
        assert place.kubelet().info().name == place.driver
        assert winner.stop() == 0


@case("REG-01")
def test_sigterm_lets_a_running_prepare_finish_and_leaves_no_file(
    hand: Place, start_driver: Start, slow_claim: tuple[str, str, str]
) -> None:
    gate = hand.gate("a")
    driver = serving(start_driver(*hand.hand(), **HAND_PROGRAM))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(hand.kubelet().prepare, slow_claim)
        until("the driver prepares", hand.diary)
        driver.signal(signal.SIGTERM)
        until("the registration socket is gone", lambda: not hand.registration().exists())
        assert driver.process.poll() is None
        assert not running.done()
        open_gate(gate)
        answer = running.result(20)[slow_claim[2]]

    assert answer.error == ""
    assert len(answer.devices) == 1
    assert hand.cdi_file(slow_claim[2]).exists()
    assert driver.process.wait(20) == 0
    assert list(hand.plugin_dir.iterdir()) == []
    assert list(hand.registry.iterdir()) == []


@case("REG-01")
def test_sigterm_again_and_again_does_not_get_in_the_way_of_the_first(
    hand: Place, start_driver: Start, slow_claim: tuple[str, str, str]
) -> None:
    gate = hand.gate("a")
    driver = serving(start_driver(*hand.hand(), **HAND_PROGRAM))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(hand.kubelet().prepare, slow_claim)
        until("the driver prepares", hand.diary)
        for _ in range(20_000):
            driver.signal(signal.SIGTERM)
        open_gate(gate)
        assert running.result(20)[slow_claim[2]].error == ""

    assert driver.process.wait(20) == 0
    assert list(hand.plugin_dir.iterdir()) == []


@case("REG-01")
def test_the_registration_socket_goes_before_the_service_socket(
    place: Place, start_driver: Start
) -> None:
    driver = serving(start_driver(*place.arguments()))
    with deletions_in(place.registry, place.plugin_dir) as deleted:
        assert driver.stop() == 0
        names = [name for name in deleted() if name != "publisher.lock"]

    assert names == [place.registration().name, place.service().name, "dra.lock"]


@case("REG-01")
def test_what_an_older_pod_left_behind_is_removed(place: Place, start_driver: Start) -> None:
    serving(start_driver(*place.arguments(f"--pod-uid={POD_1}"))).kill()
    serving(start_driver(*place.arguments())).kill()

    serving(start_driver(*place.arguments(f"--pod-uid={POD_2}")))

    assert sockets_in(place.registry) == [place.registration(POD_2).name]
    assert sockets_in(place.plugin_dir) == [place.service(POD_2).name]
    locks = [path.name for path in place.plugin_dir.glob("dra*.lock")]
    assert locks == [f"dra-{POD_2}.lock"]


@case("REG-01")
def test_two_pods_serve_side_by_side_and_leave_each_other_alone(
    place: Place, start_driver: Start
) -> None:
    old = serving(start_driver(*place.arguments(f"--pod-uid={POD_1}")))
    before = [place.service(POD_1).stat().st_ino, place.registration(POD_1).stat().st_ino]

    new = serving(start_driver(*place.arguments(f"--pod-uid={POD_2}")))

    after = [place.service(POD_1).stat().st_ino, place.registration(POD_1).stat().st_ino]
    assert after == before
    for pod in (POD_1, POD_2):
        kubelet = place.kubelet(pod)
        assert kubelet.info().endpoint == str(place.service(pod))
        assert kubelet.unprepare(("default", "claim", "some-uid"))["some-uid"].error == ""

    assert old.stop() == 0
    assert new.process.poll() is None
    assert place.kubelet(POD_2).info().endpoint == str(place.service(POD_2))
    assert sockets_in(place.registry) == [place.registration(POD_2).name]


@case("REG-01")
def test_sockets_that_others_serve_stay(place: Place, start_driver: Start) -> None:
    """Also those of a process that holds no lock of ours, and those of other drivers."""
    place.registry.mkdir(parents=True)
    place.plugin_dir.mkdir(parents=True)
    foreign = place.registry / "other.example.com-reg.sock"
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as dead:
        dead.bind(str(foreign))
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as live:
        live.bind(str(place.service(POD_1)))
        live.listen()

        serving(start_driver(*place.arguments()))

        assert place.service(POD_1).is_socket()
    assert foreign.is_socket()


@case("REG-01")
@pytest.mark.parametrize("which", ["service", "registration"])
def test_a_socket_that_a_process_without_our_lock_serves_is_not_taken(
    place: Place, which: str
) -> None:
    path = place.service() if which == "service" else place.registration()
    path.parent.mkdir(parents=True)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as live:
        live.bind(str(path))
        live.listen()

        result = run_to_end(place.arguments())

        assert result.returncode == 2
        assert result.stderr.startswith(f"dra-driver: {path} is served by another process")
        assert result.stderr.count("\n") == 1
        assert path.is_socket()


@case("REG-01")
@pytest.mark.parametrize("which", ["service", "registration"])
def test_a_file_in_place_of_a_socket_is_not_deleted(place: Place, which: str) -> None:
    path = place.service() if which == "service" else place.registration()
    path.parent.mkdir(parents=True)
    path.write_text("precious")

    result = run_to_end(place.arguments())

    assert result.returncode == 2
    assert result.stderr == f"dra-driver: {path} exists and is no socket; move it away\n"
    assert path.read_text() == "precious"


@case("REG-01")
def test_a_pod_uid_that_is_too_long_for_the_path_is_hashed(
    short_path: Path, start_driver: Start
) -> None:
    place = Place(short_path, driver=LONG_DRIVER)
    endpoints = set()
    for number, pod in enumerate((POD_1, POD_2), start=1):
        serving(start_driver(*place.arguments(f"--driver-name={LONG_DRIVER}", f"--pod-uid={pod}")))
        names = sockets_in(place.registry)
        assert len(names) == number
        for name in names:
            registration = place.registry / name
            assert len(os.fsencode(registration)) <= 107
            info = place.kubelet()
            info.registration = registration
            endpoints.add(info.info().endpoint)
        assert len(endpoints) == number

    for endpoint in endpoints:
        assert len(os.fsencode(endpoint)) <= 107
        assert Path(endpoint).is_socket()


@case("REG-01")
def test_the_sockets_are_for_root_only(place: Place, start_driver: Start) -> None:
    serving(start_driver(*place.arguments()))
    for path in (place.service(), place.registration()):
        assert path.stat().st_mode & 0o777 == 0o600


@contextlib.contextmanager
def deletions_in(*folders: Path) -> Iterator[Callable[[], list[str]]]:
    """Names that were deleted from these folders so far, in order; hidden ones left out."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert descriptor >= 0, os.strerror(ctypes.get_errno())
    deleted_entry = 0x200
    try:
        for folder in folders:
            assert libc.inotify_add_watch(descriptor, os.fsencode(folder), deleted_entry) >= 0
        yield lambda: [name for name in _inotify_names(descriptor) if not name.startswith(".")]
    finally:
        os.close(descriptor)


def _inotify_names(descriptor: int) -> Iterator[str]:
    data = os.read(descriptor, 2**16)
    while data:
        _, _, _, length = struct.unpack_from("iIII", data)
        yield data[16 : 16 + length].rstrip(b"\0").decode()
        data = data[16 + length :]

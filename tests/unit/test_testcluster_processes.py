"""A process is known by more than its pid."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testcluster import paths, processes
from testcluster.deadline import DeadlineExceeded, wait_until
from testcluster.errors import ClusterError
from testcluster.processes import Identity

_STAT = "4711 (a b) c) S 1 4711 4711 0 -1 4194560 1 0 0 0 2 1 0 0 20 0 8 0 123456 999 77"


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Identity]:
    identity = processes.spawn(
        ["sleep", "60"],
        run=tmp_path,
        pid_file=tmp_path / "pid",
        log=tmp_path / "log",
        path=os.environ["PATH"],
    )
    yield identity
    processes.stop([identity], grace=0)


def test_a_name_with_spaces_and_parentheses_is_read() -> None:
    assert processes.parse_stat(_STAT) == (Identity(4711, 123456), "S", 1)


def test_a_started_process_is_recorded_marked_and_alive(sleeper: Identity, tmp_path: Path) -> None:
    assert processes.read_pid_file(tmp_path / "pid") == sleeper
    assert processes.alive(sleeper)
    assert processes.marked(tmp_path) == [sleeper]


def test_it_runs_in_a_session_of_its_own(sleeper: Identity) -> None:
    assert os.getsid(sleeper.pid) == sleeper.pid


def test_a_recycled_pid_is_not_ours(sleeper: Identity) -> None:
    earlier = Identity(sleeper.pid, sleeper.started - 1)

    assert not processes.alive(earlier)
    assert not processes.send(earlier, signal.SIGKILL)
    assert processes.stop([earlier], grace=1) == []
    assert processes.alive(sleeper)


def test_a_pid_file_from_before_the_last_boot_names_nobody(
    sleeper: Identity, tmp_path: Path
) -> None:
    _, _, stat = (tmp_path / "pid").read_text().partition("\n")
    (tmp_path / "old").write_text("another-boot\n" + stat)

    assert processes.read_pid_file(tmp_path / "old") is None
    assert processes.alive(sleeper)


@pytest.mark.parametrize("content", ["", "half", "boot\n12 (x"])
def test_a_broken_pid_file_names_nobody(tmp_path: Path, content: str) -> None:
    (tmp_path / "pid").write_text(content)

    assert processes.read_pid_file(tmp_path / "pid") is None


def test_stopping_leaves_nothing(sleeper: Identity, tmp_path: Path) -> None:
    assert processes.stop([sleeper], grace=5) == []
    assert not processes.alive(sleeper)
    assert processes.marked(tmp_path) == []


def test_who_does_not_listen_is_killed(tmp_path: Path) -> None:
    deaf = processes.spawn(
        ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"],
        run=tmp_path,
        pid_file=tmp_path / "pid",
        log=tmp_path / "log",
        path=os.environ["PATH"],
    )
    wait_until(lambda: "deaf" in (tmp_path / "log").read_text(), seconds=5, what="the trap is set")

    assert processes.stop([deaf], grace=0.1) == []
    assert not processes.alive(deaf)
    processes.stop(processes.marked(tmp_path), grace=0)


def test_a_missing_program_is_in_the_log(tmp_path: Path) -> None:
    identity = processes.spawn(
        ["no-such-program"],
        run=tmp_path,
        pid_file=tmp_path / "pid",
        log=tmp_path / "log",
        path=os.environ["PATH"],
    )
    wait_until(lambda: not processes.alive(identity), seconds=5, what="the shell ends")

    assert "no-such-program" in (tmp_path / "log").read_text()


def test_waiting_ends_with_what_was_waited_for_and_the_last_error() -> None:
    def probe() -> bool:
        raise OSError("refused")

    with pytest.raises(DeadlineExceeded, match=r"not within 0\.05 s: the door \(last: refused\)"):
        wait_until(probe, seconds=0.05, what="the door", ignore=(OSError,))


def test_a_run_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(paths, "_ROOM_FOR_SOCKETS", 0)
    paths.run_folder("open").mkdir(mode=0o755)
    (tmp_path / "elsewhere").mkdir()
    paths.run_folder("link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ClusterError, match="open to other users"):
        paths.make_run_folder("open")
    with pytest.raises((ClusterError, FileExistsError)):
        paths.make_run_folder("link")
    assert paths.make_run_folder("fine").stat().st_mode & 0o777 == 0o700
    assert paths.names() == ["fine", "open"]


def test_a_temporary_folder_too_deep_for_sockets_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp/" + "deep/" * 8)

    with pytest.raises(ClusterError, match="set TMPDIR to a shorter folder"):
        paths.run_folder("x")

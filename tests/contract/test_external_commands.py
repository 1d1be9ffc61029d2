"""External programs that a vendor's driver runs beside the gRPC server."""

from __future__ import annotations

import ast
import concurrent.futures
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess, running
from dra_testing.hand_driver import SECRET
from dra_testing.places import HAND, HAND_PROGRAM, Claims, Place, Result
from dra_testing.polling import until

if TYPE_CHECKING:
    from testcluster.cluster import Cluster

Claim = tuple[str, str, str]

ROOT = Path(__file__).resolve().parents[2]
AT_A_TIME = 16
CALLS = 2_000
#: Calls for each claim before the resources are counted.
WARM = 5


@pytest.fixture(scope="module")
def place(control_plane: Cluster) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="drv") as folder:
        yield Place(Path(folder), control_plane.kubeconfig, HAND)


@pytest.fixture(scope="module")
def claims(place: Place, control_plane: Cluster) -> Iterator[Claims]:
    made = Claims(control_plane, place.node)
    yield made
    made.delete_all()


@pytest.fixture(scope="module")
def driver(place: Place) -> Iterator[DriverProcess]:
    arguments = place.hand("--log-level=warning")
    with running(arguments, place.folder / "log", **HAND_PROGRAM) as process:
        until("it serves", place.registration().exists)
        yield process


@case("REG-06")
def test_many_commands_at_a_time_all_return_and_leave_nothing_behind(
    place: Place, claims: Claims, driver: DriverProcess
) -> None:
    ours = [claims.make([Result(f"cat-{n}", HAND)]) for n in range(AT_A_TIME)]

    def prepare_often(claim: Claim, times: int) -> list[tuple[str, int]]:
        answers = [place.kubelet().prepare(claim)[claim[2]] for _ in range(times)]
        return [(answer.error, len(answer.devices)) for answer in answers]

    def all_at_a_time(times: int) -> list[tuple[str, int]]:
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            calls = [pool.submit(prepare_often, claim, times) for claim in ours]
            return [answer for call in calls for answer in call.result(120)]

    answers = all_at_a_time(WARM)
    before = resources(driver.pid)
    answers += all_at_a_time(CALLS // AT_A_TIME - WARM)

    assert answers == [("", 1)] * CALLS
    assert len(place.diary()) == CALLS
    assert children(driver.pid) == []

    def settled() -> bool:
        after = resources(driver.pid)
        # Pools of threads and of connections to the API server may still grow a bit.
        allowed = {"files": 0, "sockets": AT_A_TIME, "threads": AT_A_TIME}
        for kind, more in allowed.items():
            assert after[kind] <= before[kind] + more, f"{kind}: {before} became {after}"
        return True

    until("files and threads are as before", settled)


@case("REG-06")
def test_a_command_that_does_not_end_is_killed_with_its_child(
    place: Place, claims: Claims, driver: DriverProcess
) -> None:
    claim = claims.make([Result("endless-0", HAND)])
    started = time.monotonic()

    answer = place.kubelet().prepare(claim)[claim[2]]

    assert 1.0 <= time.monotonic() - started < 10.0
    assert answer.error.endswith(": 'sh' did not end within 1 s and was killed")
    assert list(answer.devices) == []
    assert not place.cdi_file(claim[2]).exists()
    pids = (place.folder / "pids").read_text().split()
    assert len(pids) == 2
    until("both are gone", lambda: not any(alive(int(pid)) for pid in pids))
    assert children(driver.pid) == []
    fine = claims.make([Result("cat-0", HAND)])
    assert place.kubelet().prepare(fine)[fine[2]].error == ""


@case("REG-06")
def test_a_program_that_does_not_exist_is_named(
    place: Place, claims: Claims, driver: DriverProcess
) -> None:
    claim = claims.make([Result("absent-0", HAND)])
    error = place.kubelet().prepare(claim)[claim[2]].error
    assert error.endswith(": cannot run 'no-such-program': No such file or directory")
    assert_untold(driver, error)


@case("REG-06")
def test_a_command_that_fails_is_named_with_its_last_words(
    place: Place, claims: Claims, driver: DriverProcess
) -> None:
    claim = claims.make([Result("failing-0", HAND)])
    error = place.kubelet().prepare(claim)[claim[2]].error
    assert error.endswith(": 'sh' ended with status 3: the disk is full")
    assert_untold(driver, error)


@case("REG-06")
def test_a_command_may_write_more_than_a_pipe_holds(
    place: Place, claims: Claims, driver: DriverProcess
) -> None:
    claim = claims.make([Result("noisy-0", HAND)])
    assert place.kubelet().prepare(claim, timeout=20)[claim[2]].error == ""


@case("REG-06")
def test_grpc_does_not_meddle_with_forks() -> None:
    """Its fork handlers are off before it is imported, whoever imports the driver."""
    program = (
        "import sys, dra_driver.commands, os\n"
        "assert 'grpc' not in sys.modules\n"
        "print(os.environ['GRPC_ENABLE_FORK_SUPPORT'])"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GRPC_")}
    command = [sys.executable, "-c", program]
    assert subprocess.check_output(command, env=environment, text=True, timeout=20) == "0\n"


@case("REG-06")
def test_the_code_forks_in_no_other_way() -> None:
    sources = [p for part in ("core", "driver") for p in (ROOT / part).rglob("*.py")]
    assert len(sources) > 10
    assert [f for path in sources for f in forks(ast.parse(path.read_text()), path)] == []


@case("REG-06")
@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.fork()",
        "from os import forkpty as f",
        "import multiprocessing.pool",
        "from multiprocessing import Process",
        "from concurrent.futures import ProcessPoolExecutor",
        "import concurrent.futures as c\nc.ProcessPoolExecutor()",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "import subprocess\nsubprocess.Popen(['ls'], preexec_fn=print)",
        "import subprocess\nsubprocess.Popen(['ls'], close_fds=False)",
        "import os\nos.system('ls')",
    ],
)
def test_the_check_of_the_code_finds_what_it_looks_for(code: str) -> None:
    assert forks(ast.parse(code), Path("some.py"))


_NAMES = {"fork", "forkpty", "system", "popen", "ProcessPoolExecutor"}
_MODULES = {"multiprocessing", "pty"}
_KEYWORDS = {"preexec_fn", "shell", "close_fds", "pass_fds"}


def forks(tree: ast.AST, path: Path) -> list[str]:
    """Places that start processes otherwise than by subprocess with its safe settings."""
    found = []
    for node in ast.walk(tree):
        names: set[str] = set()
        if isinstance(node, ast.Import):
            names = {alias.name.partition(".")[0] for alias in node.names} & _MODULES
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names} & _NAMES
            names |= {(node.module or "").partition(".")[0]} & _MODULES
        elif isinstance(node, ast.Attribute):
            names = {node.attr} & _NAMES
        elif isinstance(node, ast.keyword):
            names = {node.arg or ""} & _KEYWORDS
        if names:
            found.append(f"{path}:{getattr(node, 'lineno', 0)}: {', '.join(sorted(names))}")
    return found


def resources(pid: int) -> dict[str, int]:
    """Open files (pipes among them), sockets, threads."""
    process = Path(f"/proc/{pid}")
    targets = []
    for entry in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            targets.append(str(entry.readlink()))
    sockets = sum(target.startswith("socket:") for target in targets)
    threads = len([*(process / "task").iterdir()])
    return {"files": len(targets) - sockets, "sockets": sockets, "threads": threads}


def children(pid: int) -> list[str]:
    """Its children, zombies included."""
    found: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            found += (task / "children").read_text().split()
    return found


def alive(pid: int) -> bool:
    """Whether it runs; one that is dead and waits for its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def assert_untold(driver: DriverProcess, error: str) -> None:
    """Arguments of commands are in neither the answer nor the log."""
    until("it is logged", lambda: error.rpartition(": ")[2] in str(driver.records()))
    assert SECRET not in error
    assert SECRET not in str(driver.records())

"""Processes that outlive whoever started them, and can be told from all others.

Each component runs in a session of its own, so that neither a closed terminal nor Ctrl-C reaches
it. It is known by two marks. A *pid file* is written by the process itself before it becomes the
component: pid, start time and boot, so that a recycled pid is never taken for ours, and there is no
moment in which it runs unrecorded. And an *environment variable* names the run folder: the children
that a component starts by itself (containerd's shims, runc, plugins) inherit it.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .deadline import wait_until

MARK = "TESTCLUSTER_RUN"
"""The environment variable that marks our processes with their run folder."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")
# The shell records itself, then becomes the component: pid and start time stay the same.
_LAUNCH = """
read -r stat < /proc/$$/stat; read -r boot < /proc/sys/kernel/random/boot_id
printf '%s\\n%s\\n' "$boot" "$stat" > "$1.new" && mv "$1.new" "$1" || exit 126
cd "$2" || exit 126; shift 2; exec "$@"
"""


@dataclass(frozen=True)
class Identity:
    """A process, not just a pid: ``started`` is in clock ticks since boot (``/proc/PID/stat``)."""

    pid: int
    started: int


def parse_stat(text: str) -> tuple[Identity, str, int]:
    """Identity, state letter and parent pid from a line of ``/proc/PID/stat``.

    The second field is the program's name in parentheses and may hold spaces and parentheses.
    """
    before, _, after = text.rpartition(")")
    fields = after.split()
    return Identity(int(before.split(" ", 1)[0]), int(fields[19])), fields[0], int(fields[1])


def of_pid(pid: int) -> Identity | None:
    """The identity of the process that has ``pid`` now; None if none has, or it is a zombie."""
    try:
        identity, state, _ = parse_stat(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else identity


def read_pid_file(path: Path) -> Identity | None:
    """Who the pid file names; None if there is none or it is from before the last boot."""
    try:
        boot, _, stat = path.read_text().partition("\n")
        identity, _, _ = parse_stat(stat)
    except (FileNotFoundError, ValueError, IndexError):
        return None
    return identity if boot.strip() == _BOOT.read_text().strip() else None


def alive(identity: Identity | None) -> bool:
    """Whether exactly this process still runs. Reaps it if it is a dead child of ours."""
    if identity is None:
        return False
    if of_pid(identity.pid) == identity:
        return True
    with suppress(OSError):
        os.waitpid(identity.pid, os.WNOHANG)
    return False


@contextmanager
def signals_held() -> Iterator[None]:
    """Keep SIGINT, SIGTERM and SIGHUP waiting, so that no exception comes in between.

    They come when the block ends: a second Ctrl-C must not stop the cleaning up after the first.
    """
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    )
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def spawn(
    command: list[str],
    *,
    run: Path,
    pid_file: Path,
    log: Path,
    path: str,
    extra: dict[str, str] | None = None,
    marked: bool = True,
) -> Identity:
    """Start ``command`` in the folder ``run`` and return once its pid file is there.

    Output goes to ``log``, ``path`` is its ``PATH`` and ``extra`` more of its environment.
    """
    keep = ("HOME", "LANG", "TMPDIR", "DRAGOMAN_CACHE", "XDG_CACHE_HOME")
    environment = {name: os.environ[name] for name in keep if name in os.environ}
    environment |= {"PATH": path, **(extra or {})}
    if marked:
        environment[MARK] = str(run)
    pid_file.unlink(missing_ok=True)
    with signals_held():
        pid = os.posix_spawn(
            "/bin/sh",
            ["/bin/sh", "-c", _LAUNCH, "sh", str(pid_file), str(run), *command],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE],
        )

        def recorded() -> Identity | None:
            found = read_pid_file(pid_file)
            return found if found and found.pid == pid else None

        return wait_until(recorded, seconds=10, what=f"{pid_file} of {command[0]}", pause=0.02)


def send(identity: Identity, number: int) -> bool:
    """Send signal ``number`` to this very process; False if it is gone.

    The pid is pinned by a descriptor before its start time is compared, so that it cannot be
    recycled in between.
    """
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    try:
        if of_pid(identity.pid) != identity:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def stop(identities: Iterable[Identity], *, grace: float) -> list[Identity]:
    """Ask all to end, then, after ``grace`` seconds, kill them; returns who lives on."""
    left = [identity for identity in identities if alive(identity)]
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        if number == signal.SIGTERM and grace <= 0:
            continue
        for identity in left:
            send(identity, number)
        end = time.monotonic() + seconds
        while left and time.monotonic() < end:
            _pause_until_one_ends(left, min(0.1, max(0.0, end - time.monotonic())))
            left = [identity for identity in left if alive(identity)]
    return left


def _pause_until_one_ends(identities: list[Identity], seconds: float) -> None:
    descriptors = []
    try:
        for identity in identities:
            try:
                descriptors.append(os.pidfd_open(identity.pid))
            except ProcessLookupError:
                return
        select.select(descriptors, [], [], seconds)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def marked(run: Path) -> list[Identity]:
    """Every process whose environment carries the mark of the run folder ``run``."""
    wanted = f"{MARK}={run}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and (identity := of_pid(int(folder.name))):
            found.append(identity)
    return found


def wait_for_end(identity: Identity) -> None:
    """Return when the process is gone; it need not be a child of ours."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return
    try:
        if of_pid(identity.pid) == identity:
            select.select([descriptor], [], [])
    finally:
        os.close(descriptor)

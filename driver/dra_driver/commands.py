"""External programs, run safely beside a gRPC server.

A process that serves gRPC must not be forked by hand (``os.fork``, ``multiprocessing`` with fork,
``preexec_fn``): the child may hang before it starts the program. ``subprocess`` without
``preexec_fn`` forks and executes in C, and gRPC's own fork handlers are switched off by the program
(``GRPC_ENABLE_FORK_SUPPORT=0``).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence

from dra_core.errors import PreparationFailed

_LAST_WORDS = 200


def run(argv: Sequence[str], *, timeout: float, stdin: bytes = b"") -> bytes:
    """Standard output of ``argv[0]`` run with the rest as arguments; ``timeout`` in seconds.

    The program gets a session of its own; at its time-out that whole process group is killed.
    Raises :class:`PreparationFailed` naming the program (not its arguments, which may be secret)
    when it cannot be started, ends with a status other than 0, or takes too long.
    """
    program = argv[0]
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise PreparationFailed(f"cannot run {program!r}: {error.strerror}") from error
    with process:
        try:
            output, errors = process.communicate(stdin, timeout)
        except subprocess.TimeoutExpired as error:
            _kill_group(process)
            raise PreparationFailed(
                f"{program!r} did not end within {timeout:g} s and was killed"
            ) from error
        except BaseException:
            _kill_group(process)
            raise
    if process.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-1:] or [""]
        raise PreparationFailed(
            f"{program!r} ended with status {process.returncode}: {last[0][:_LAST_WORDS]}"
        )
    return output


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

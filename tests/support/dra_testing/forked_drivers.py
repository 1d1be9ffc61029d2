"""Drivers that end at once, started in a row without importing everything each time.

The helper process (``python -m dra_testing.forked_drivers``) imports the driver and starts nothing;
each run is a fork of it with arguments, output and an end of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Seconds after which a run is killed.
LIMIT = 8


class ForkedDrivers:
    """The helper process; close it in the end."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dra_testing.forked_drivers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def close(self) -> None:
        """End the helper process."""
        self._process.communicate(timeout=LIMIT)

    def run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """One run to its end; it has 8 seconds."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(list(arguments)) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return subprocess.CompletedProcess(list(arguments), **answer)


def _serve() -> None:
    from dra_driver.__main__ import main  # noqa: PLC0415 - only in the helper process
    from dra_driver.app import main as _  # noqa: F401, PLC0415 - what takes long

    for line in sys.stdin:
        with tempfile.TemporaryDirectory(prefix="run") as folder:
            pid = os.fork()
            if pid == 0:
                _child(main, json.loads(line), Path(folder))
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            answer: dict[str, Any] = {"returncode": status}
            answer |= {name: (Path(folder) / name).read_text() for name in ("stdout", "stderr")}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _child(main: Any, arguments: list[str], folder: Path) -> None:
    """Run the driver with the streams in files; does not return."""
    signal.alarm(LIMIT)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), number)
    sys.argv[1:] = arguments
    try:
        status = main()
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve()

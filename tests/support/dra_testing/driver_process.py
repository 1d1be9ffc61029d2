"""The driver as a process of its own, as a DaemonSet or an admin would start it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dra_testing.polling import until

#: Environment of the test run that must not leak into the driver.
_STRIPPED = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "DRA_DRIVER_")


class DriverProcess:
    """A running ``dra-driver``. Its log is JSON, one object a line."""

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = (sys.executable, "-m", "dra_driver"),
    ) -> None:
        self._log = log
        base = {k: v for k, v in os.environ.items() if not k.startswith(_STRIPPED)}
        # Of a process that is killed, what it keeps in temporary files stays there.
        own = {"PYTHONWARNINGS": "error", "TMPDIR": str(log.parent)}
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [*program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=base | own | dict(environment or {}),
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def records(self) -> list[dict[str, Any]]:
        """What it has logged; a line that is no JSON becomes {"event": line, "raw": True}.

        The last line of a process that runs counts once it is there as a whole.
        """
        found = []
        runs = self.process.poll() is None
        text = self._log.read_bytes()
        if runs:
            text = text[: text.rfind(b"\n") + 1]
        for line in text.decode().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append({"event": line, "raw": True})
        return found

    def events(self, event: str) -> list[dict[str, Any]]:
        """The records with this message."""
        return [r for r in self.records() if r["event"] == event]

    def wait_for(self, event: str, count: int = 1, timeout: float = 20.0) -> dict[str, Any]:
        """The ``count``-th record with this message, once it is there."""

        def probe() -> list[dict[str, Any]]:
            found = self.events(event)
            if self.process.poll() is not None and len(found) < count:
                raise RuntimeError(f"the driver ended: {self._log.read_text()[-2000:]}")
            return found[count - 1 :]

        return until(f"driver logs {event!r}", probe, timeout)[0]

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self, timeout: float = 40.0) -> int:
        """SIGTERM, and the exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout)

    def kill(self) -> None:
        """SIGKILL, as a crash."""
        self.process.kill()
        self.process.wait(10)

    def finish(self) -> None:
        """Whatever happened: no process stays."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.stop(10)
        if self.process.poll() is None:
            self.kill()


@contextlib.contextmanager
def running(arguments: Sequence[str], log: Path, **options: Any) -> Iterator[DriverProcess]:
    """A driver for the length of a ``with`` block."""
    process = DriverProcess(arguments, log, **options)
    try:
        yield process
    finally:
        process.finish()

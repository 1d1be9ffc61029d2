"""What the kernel counts of a process."""

from __future__ import annotations

import os
from pathlib import Path


def peak(pid: int) -> float:
    """The most memory it has had resident so far, MB."""
    return _status(pid, "VmHWM")


def memory(pid: int) -> float:
    """The memory that it has resident now, MB."""
    return _status(pid, "VmRSS")


def processor(pid: int) -> float:
    """Seconds of processor time so far, all of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status(pid: int, name: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024

"""Fixtures for tests of the driver."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_testing.driver_process import DriverProcess

_numbers = itertools.count(1)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder with a short path: unix socket paths are limited to 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="drv") as folder:
        yield Path(folder)


@pytest.fixture
def start_driver(tmp_path: Path) -> Iterator[Callable[..., DriverProcess]]:
    """Start driver processes; all are gone when the test ends."""
    started: list[DriverProcess] = []

    def start(*arguments: str, log: Path | None = None, **options: Any) -> DriverProcess:
        file = log or tmp_path / f"driver-{next(_numbers)}.log"
        process = DriverProcess(arguments, file, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.finish()

"""Run tests in this process, on a product that was changed in this process."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable

import pytest

from dra_testing.api_page import ROOT


class _Failed:
    """A pytest plugin that keeps the ids of the tests that failed."""

    def __init__(self) -> None:
        self.ids: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.ids.add(report.nodeid)


def failing(tests: Iterable[str]) -> set[str]:
    """Ids, relative to the repository, of those tests that fail; SystemExit if one cannot run."""
    failed = _Failed()
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        status = pytest.main([*options, *(f"{ROOT}/{test}" for test in tests)], [failed])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(said.getvalue()[-2000:])
    return failed.ids

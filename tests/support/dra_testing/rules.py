"""Rules for a run of the tests, as a pytest plugin.

``--whole`` says: this is the whole suite. On a machine that can run everything (Linux, root, Go) a
test that is skipped, deselected or expected to fail then fails the run, and so does a test of
``tests/required.txt`` that did not pass. Elsewhere skipped tests are listed with their reasons.
Every run reports which failure cases have tests and where the time went.
"""

from __future__ import annotations

import collections
import os
import shutil
import sys
from pathlib import Path

import pytest

_WHOLE = pytest.StashKey["_Run"]()


class _Run:
    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.not_run: dict[str, str] = {}
        self.cases: dict[str, list[str]] = collections.defaultdict(list)
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self.problems: list[str] = []


def full_machine() -> bool:
    """Whether everything can run here."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("go") is not None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="this is the whole suite: see rules.py")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_WHOLE] = _Run()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cheap tests first, those on the node last."""
    order = ["unit", "contract", "e2e"]

    def rank(item: pytest.Item) -> tuple[int, bool]:
        parts = item.path.parts
        folder = next((i for i, name in enumerate(order) if name in parts), len(order))
        return folder, item.get_closest_marker("node") is not None

    items.sort(key=rank)
    run = config.stash[_WHOLE]
    for item in items:
        for marker in item.iter_markers("case"):
            run.cases[marker.args[0]].append(item.nodeid)


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        item.config.stash[_WHOLE].not_run[item.nodeid] = "deselected"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item):  # type: ignore[no-untyped-def]
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    run = item.config.stash[_WHOLE]
    run.seconds[str(item.path.relative_to(item.config.rootpath))] += report.duration
    if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
        run.passed.add(item.nodeid)
    if report.skipped or hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "expected to fail"
        run.not_run[item.nodeid] = reason


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    run = session.config.stash[_WHOLE]
    if not session.config.getoption("--whole") or not full_machine():
        return
    run.problems += [f"{name} did not run: {why}" for name, why in sorted(run.not_run.items())]
    required = (session.config.rootpath / "tests" / "required.txt").read_text().split()
    run.problems += [f"{name} is required and did not pass" for name in _missing(run, required)]
    if run.problems and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _missing(run: _Run, required: list[str]) -> list[str]:
    """Required ids (a parametrised test by its name without brackets) of which none passed."""
    passed = run.passed | {name.partition("[")[0] for name in run.passed}
    return [name for name in required if name not in passed]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    config = terminalreporter.config
    run = config.stash[_WHOLE]
    if run.not_run:
        terminalreporter.section(f"not run: {len(run.not_run)}")
        for name, why in sorted(run.not_run.items()):
            terminalreporter.line(f"{name}: {why}")
    if not config.getoption("--whole"):
        return
    terminalreporter.section("seconds by file")
    for name, seconds in sorted(run.seconds.items(), key=lambda entry: -entry[1]):
        if seconds >= 0.5:
            terminalreporter.line(f"{seconds:7.1f}  {name}")
    terminalreporter.section("failure cases")
    known = (Path(str(config.rootpath)) / "tests" / "data" / "failure-cases.txt").read_text()
    for name in known.split():
        terminalreporter.line(f"{name}: {len(run.cases.get(name, ())) or 'no test yet'}")
    if run.problems:
        terminalreporter.section(f"rules broken: {len(run.problems)}", red=True)
        for problem in run.problems:
            terminalreporter.line(problem, red=True)

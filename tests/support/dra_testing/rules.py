"""Rules for a run of the tests, as a pytest plugin.

``--whole`` says: this is the whole suite. On a machine that can run everything (Linux, root, Go) a
test that is skipped, deselected or expected to fail then fails the run, and so does a test of
``tests/required.txt`` that did not pass. Elsewhere skipped tests are listed with their reasons.
Every run reports which failure cases have tests and where the time went.

With several workers (pytest-xdist) a file stays with one of them, and so do all tests on the node.
Reports of tests carry what is needed to where the results are put together.
"""

from __future__ import annotations

import collections
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

_WHOLE = pytest.StashKey["_Run"]()
_NAME = pytest.StashKey[str]()


class _Run:
    """The results. Also a plugin of its own, as reports come without the configuration."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.not_run: dict[str, str] = {}
        self.cases: dict[str, set[str]] = collections.defaultdict(set)
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self.problems: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        about = getattr(report, "about", None)
        if about is None:  # a worker broke down
            return
        name, file, cases = about
        self.seconds[file] += report.duration
        for case in cases:
            self.cases[case].add(name)
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self.passed.add(name)
        if report.skipped or hasattr(report, "wasxfail"):
            reason = (
                report.longrepr[2] if isinstance(report.longrepr, tuple) else "expected to fail"
            )
            self.not_run[name] = reason


def full_machine() -> bool:
    """Whether everything can run here."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("go") is not None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="this is the whole suite: see rules.py")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_WHOLE] = run = _Run()
    config.pluginmanager.register(run, "run")
    # Seeds stand in names of tests, which have to be the same for all workers.
    seed = str(random.SystemRandom().randrange(10**6))
    os.environ.setdefault("DRAGOMAN_SEED", seed)


def pytest_report_header() -> str:
    return f"seed: {os.environ['DRAGOMAN_SEED']}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cheap tests first, those on the node last; the other way round with several workers."""
    order = ["unit", "contract", "e2e"]
    shared = hasattr(config, "workerinput")

    # Of several workers one gets the tests on the node, which are long and not to be shared.
    def rank(item: pytest.Item) -> tuple[int, bool]:
        parts = item.path.parts
        folder = next((i for i, name in enumerate(order) if name in parts), len(order))
        on_node = item.get_closest_marker("node") is not None
        return -folder if shared else folder, on_node is not shared

    items.sort(key=rank)
    for item in items:
        item.stash[_NAME] = item.nodeid
        on_node = item.get_closest_marker("node") is not None
        item.add_marker(pytest.mark.xdist_group("node" if on_node else item.path.name))


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        item.config.stash[_WHOLE].not_run[item.nodeid] = "deselected"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item):  # type: ignore[no-untyped-def]
    outcome = yield
    file = str(item.path.relative_to(item.config.rootpath))
    cases = [marker.args[0] for marker in item.iter_markers("case")]
    # The node id ends in the group if there are several workers.
    outcome.get_result().about = item.stash[_NAME], file, cases


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker has ended: what it left out."""
    node.config.stash[_WHOLE].not_run.update(getattr(node, "workeroutput", {}).get("not_run", {}))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    run = session.config.stash[_WHOLE]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["not_run"] = run.not_run
        return
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
    terminalreporter.section("seconds by file (of one worker)")
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

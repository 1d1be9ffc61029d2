"""pytest fixtures: real clusters for tests.

Load them with ``pytest_plugins = ["testcluster.fixtures"]``. Builds that are missing are made
first, with progress on the terminal. Where the machine cannot have a cluster (not Linux, no Go, no
root for a node) the test is skipped and says what it needs.

Clusters belong to the pytest process: they go with their fixture's scope and, should pytest be
killed, a watching process takes them down.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from . import control_plane as control_plane_parts
from . import node_setup, start, versions
from .build import result
from .cluster import Cluster
from .errors import Unavailable
from .progress import Progress
from .record import Options

_numbers = itertools.count(1)

Factory = Callable[..., Cluster]
"""``make_control_plane(**options)``: options of :class:`record.Options` except ``name``."""


def unique_name(prefix: str = "t") -> str:
    """A cluster name that no other pytest process and no other call uses."""
    return f"{prefix}{os.getpid()}-{next(_numbers)}"


def _need(options: Options) -> None:
    if sys.platform != "linux":
        pytest.skip("needs Linux: components are started and found through /proc")
    if options.node and (reason := node_setup.unavailable()):
        pytest.skip(reason)


@contextlib.contextmanager
def _on_terminal(config: pytest.Config) -> Iterator[None]:
    """Output goes to the terminal, not into a test's captured output."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        yield


def _started(config: pytest.Config, options: Options) -> Cluster:
    _need(options)
    try:
        modules = control_plane_parts.modules(versions.find(options.version))
        if not all(result(module).exists() for module in modules):
            with _on_terminal(config):
                sys.stderr.write("\n")
                start.provide(options, Progress())
        return start.up(options, Progress(), owner=os.getpid())
    except Unavailable as reason:
        pytest.skip(str(reason))


@contextlib.contextmanager
def _running(config: pytest.Config, **wanted: Any) -> Iterator[Cluster]:
    cluster = _started(config, Options(name=unique_name(), **wanted))
    try:
        yield cluster
    finally:
        start.down(cluster.name, Progress())


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A control plane of the newest version with all our feature gates."""
    with _running(pytestconfig) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def control_plane_136(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A 1.36 control plane with all the gates that it knows of ours."""
    with _running(pytestconfig, version="1.36.3") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster_node(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A control plane of the newest version with one real node."""
    with _running(pytestconfig, node=True) as cluster:
        yield cluster


@pytest.fixture
def make_control_plane(pytestconfig: pytest.Config) -> Iterator[Factory]:
    """Make control planes as a test needs them; they go when the test ends."""
    with contextlib.ExitStack() as stack:

        def make(**options: Any) -> Cluster:
            return stack.enter_context(_running(pytestconfig, **options))

        yield make

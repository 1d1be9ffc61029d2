"""``make bench NAME=scale``: our operator on a large cluster.

A real API server of Kubernetes 1.37.2 has 10,000 pods as kubelets leave them, each with a claim and
a device, and 5,000 slices of 8 devices: once in as many pools, as drivers of nodes publish them,
once in a single pool, as a driver of devices in the network does. The operator starts, with the
rights of the shipped service account; then pods, claims and slices change in turn, 100 a second for
30 seconds. No controller runs, nor a scheduler: their load would only add to that of the machine.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "support")]

from dra_testing import operator_stand, process_figures  # noqa: E402
from dra_testing.crowd import DEVICES, Crowd, Requests  # noqa: E402
from dra_testing.operator_stand import Operator  # noqa: E402
from dra_testing.polling import until  # noqa: E402
from dra_testing.printed_table import table  # noqa: E402
from testcluster import start  # noqa: E402
from testcluster.cluster import Cluster  # noqa: E402
from testcluster.progress import Progress  # noqa: E402
from testcluster.record import Options  # noqa: E402

PODS, SLICES = 10_000, 5_000
RATE, SECONDS, STRIDE = 100, 30, 7919
STARTS = 2
#: What is asked for: seconds until ready, MB at the peak, part of a core; and how many changes a
#: second the API server must have taken for the latter to count.
MOST_TIME, MOST_MEMORY, MOST_CORE, LEAST_RATE = 90.0, 600.0, 0.40, 0.95 * RATE


@dataclass
class Figures:
    """Of one start of the operator and of the changes after it."""

    ready: float
    started: float
    changed: float
    peak: float
    core: float
    rate: float


def crowd_of(requests: Requests, pools: int) -> Crowd:
    """The crowd of the benchmark."""
    names = [f"crowd-{n}" for n in range(10)]
    return Crowd(requests, names, pools=pools, whole=True)


def populate(crowd: Crowd, progress: Progress) -> None:
    """All objects."""
    crowd.make_namespaces()
    with progress.step(f"{PODS:,} pods and claims, {SLICES:,} slices"):
        crowd.make(PODS)
        crowd.make_slices(SLICES)


def run(cluster: Cluster, crowd: Crowd, folder: Path, number: int) -> Figures:
    """Start the operator, and let things change."""
    begun = time.monotonic()
    with operator_stand.running(cluster, folder / f"log-{number}", "--mode=evict") as operator:
        pid = operator.process.pid
        until("the operator is ready", lambda: _ready(operator), 300, 0.1)
        ready = time.monotonic() - begun
        started = process_figures.processor(pid)
        time.sleep(5)  # what the start leaves to do is not the cost of changes
        used, begun = process_figures.processor(pid), time.monotonic()
        done = changes(crowd)
        seconds = time.monotonic() - begun
        changed = process_figures.processor(pid) - used
        if failed := [r for r in operator.process.records() if r.get("level") == "error"]:
            raise SystemExit(f"the operator has failed: {failed[0]}")
        return Figures(
            ready, started, changed, process_figures.peak(pid), changed / seconds, done / seconds
        )


def _ready(operator: Operator) -> bool:
    return operator.get("/readyz")[0] == 200


def changes(crowd: Crowd) -> int:
    """Pods, claims and slices in turn, at a steady rate; how many there were."""
    kinds: Sequence[tuple[Callable[[int, int], None], int]] = (
        (crowd.change_pod, PODS),
        (crowd.change_claim, PODS),
        (crowd.change_slice, SLICES),
    )
    begun, pause = time.monotonic(), threading.Event()
    # What is written must differ from what is there, or there is no event.
    first = time.time_ns() // 1_000_000

    def change(number: int) -> None:
        pause.wait(max(0.0, begun + number / RATE - time.monotonic()))
        kind, count = kinds[number % len(kinds)]
        kind(number * STRIDE % count, first + number)

    crowd.requests.each(change, range(RATE * SECONDS))
    return RATE * SECONDS


def measure(pools: int, folder: Path, progress: Progress) -> list[Figures]:
    """A cluster with so many pools, and some starts of the operator on it."""
    options = Options(f"scale{os.getpid()}", without=("kube-controller-manager", "kube-scheduler"))
    cluster = start.up(options, progress, owner=os.getpid())
    try:
        operator_stand.install(cluster)
        requests = Requests(cluster)
        crowd = crowd_of(requests, pools)
        populate(crowd, progress)
        found = [run(cluster, crowd, folder, number) for number in range(STARTS)]
        requests.close()
    finally:
        start.down(options.name, progress)
    return found


def rows(name: str, found: Sequence[Figures]) -> list[list[str]]:
    """The worst of all starts, beside the best; the last column says whether a bar is kept."""
    return [
        _row(f"{name}: ready after, s", [f.ready for f in found], MOST_TIME),
        _row("  peak memory, MB", [f.peak for f in found], MOST_MEMORY),
        _row("  part of a core", [f.core for f in found], MOST_CORE),
        _row("  changes a second", [f.rate for f in found], least=LEAST_RATE),
        _row("  processor seconds until ready", [f.started for f in found]),
    ]


def _row(
    text: str, values: Sequence[float], most: float | None = None, least: float | None = None
) -> list[str]:
    bar, kept = "", ""
    if most is not None:
        bar, kept = f"<= {most:g}", "yes" if max(values) <= most else "NO"
    if least is not None:
        bar, kept = f">= {least:g}", "yes" if min(values) >= least else "NO"
    return [text, f"{min(values):,.2f}", f"{max(values):,.2f}", bar, kept]


HEAD = ["", "least", "most", "bar", "kept"]


def main() -> int:
    """The whole benchmark."""
    progress, lines = Progress(), []
    with tempfile.TemporaryDirectory() as name:
        for pools in (SLICES, 1):
            folder = Path(name) / str(pools)
            folder.mkdir()
            title = f"{pools:,} pool" + ("s" if pools > 1 else "")
            lines += rows(title, measure(pools, folder, progress))
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {platform.machine()}, load "
        f"{os.getloadavg()[0]:.1f}"
    )
    table(
        f"{PODS:,} pods, {PODS:,} claims, {SLICES:,} slices of {DEVICES} devices; {RATE} changes/s "
        f"for {SECONDS} s; {STARTS} starts",
        HEAD,
        lines,
    )
    missed = [line[0].strip() for line in lines if line[-1] == "NO"]
    if missed:
        print(f"\nbars missed: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Offline verdicts on ResourceSlices equal those of API servers 1.37.2, 1.36.3, gates on and off.

Each run takes fresh seeds; a failure prints the seed and the change that made the object, and
``DRAGOMAN_SEED=…`` runs the same objects again. ``DRAGOMAN_SOAK=1000`` sets how many creates there
are per server (and 40 % as many updates).
"""

from __future__ import annotations

import collections
import copy
import json
import math
import os
import re
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dra_core.errors import InvalidObject
from dra_core.validation.problems import Problem
from dra_core.validation.servers import Server
from dra_core.validation.slice_gates import drop_disabled
from dra_core.validation.slices import validate_create, validate_update
from dra_testing import slice_objects
from dra_testing.verdicts import (
    PANIC,
    Judge,
    Verdict,
    difference,
    nodes,
    path_of,
    update_verdict,
)
from testcluster import start
from testcluster.cluster import Cluster
from testcluster.fixtures import unique_name
from testcluster.progress import Progress
from testcluster.record import Options

pytestmark = pytest.mark.control_plane

JSON = dict[str, Any]
SERVERS = tuple(f"{v}-{g}" for v in ("1.37.2", "1.36.3") for g in ("on", "off", "less"))
#: ``off`` is the server as it comes, ``less`` is without what it comes with.
GATES = {
    "off": "none",
    "less": "none,DRADeviceTaints=false,DRADeviceTaintRules=false,DRAPartitionableDevices=false,"
    "DRAConsumableCapacity=false,DRADeviceBindingConditions=false",
}
CREATES = int(os.environ.get("DRAGOMAN_SOAK", "150"))
UPDATES = CREATES * 2 // 5
SEED = os.environ.get("DRAGOMAN_SEED") or secrets.token_hex(4)
PARTITIONS = "DRAPartitionableDevices"
NO_CONTROLLERS = ("kube-scheduler", "kube-controller-manager")
#: Said by admission, which comes after validation: the object itself is fine. It refuses devices
#: with nodeAllocatableResources for nodes that are unknown or do not declare the feature.
ADMISSION = re.compile(r"is forbidden: (node|device) \"|failed to create node selector")


@pytest.fixture(scope="module", params=SERVERS)
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    version, gates = request.param.split("-")
    if gates == "on":
        name = {"1.37.2": "control_plane", "1.36.3": "control_plane_136"}[version]
        with (
            Judge(request.getfixturevalue(name)) as judge,
            nodes(judge.cluster, *slice_objects.NODES),
        ):
            yield judge
        return
    cluster = _without_gates(version, GATES[gates])
    try:
        with Judge(cluster) as judge:
            yield judge
    finally:
        start.down(cluster.name, Progress())


def _without_gates(version: str, gates: str) -> Cluster:
    options = Options(name=unique_name("v"), version=version, gates=gates, without=NO_CONTROLLERS)
    return start.up(options, Progress(), owner=os.getpid())


@dataclass(frozen=True)
class Ours:
    """The offline verdict: problems and the stored spec, or that the JSON itself is refused."""

    problems: list[Problem]
    spec: JSON | None = None
    refused: str = ""


def offline(new: JSON, old: JSON | None, server: Server) -> Ours:
    try:
        problems = validate_update(new, old, server) if old else validate_create(new, server)
        if problems:
            return Ours(problems)
        return Ours([], drop_disabled(new, old, server)["spec"])
    except InvalidObject as error:
        return Ours([], refused=str(error))


def compared(ours: Ours, verdict: Verdict) -> str:
    """Empty, or in what the two differ."""
    if verdict.status in {400, 403} and ADMISSION.search(verdict.message):
        return "\n".join(map(str, ours.problems))
    if ours.refused or verdict.status == 400:
        equal = bool(ours.refused) and verdict.status == 400
        return "" if equal else f"{ours.refused or 'not refused'}; server: {verdict.message}"
    if verdict.status == PANIC:  # 1.36, for a step of 0 or of more than 64 bits
        return "" if ours.problems else "the server panicked, offline is content"
    text = difference(ours.problems, verdict)
    if text or verdict.stored is None:
        return text
    assert ours.spec is not None
    stored = _undated(verdict.stored["spec"], ours.spec)
    if stored == ours.spec:
        return ""
    return f"stored  {json.dumps(stored)}\noffline {json.dumps(ours.spec)}"


def _undated(stored: JSON, ours: JSON) -> JSON:
    """Without the times that the server's own clock gave to taints."""
    result = copy.deepcopy(stored)
    for device, mine in zip(result.get("devices", []), ours.get("devices", []), strict=False):
        for taint, own in zip(device.get("taints", []), mine.get("taints", []), strict=False):
            if "timeAdded" not in own:
                assert taint.pop("timeAdded").endswith("Z")
    return result


class Tally:
    """Counts outcomes and keeps differences, with what one needs to see them again."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.changes: collections.Counter[str] = collections.Counter()
        self.differences: list[str] = []

    def add(self, seed: str, change: str, verdict: Verdict, text: str, *objects: JSON) -> None:
        self.outcomes[
            {200: "accepted", 201: "accepted"}.get(verdict.status, str(verdict.status))
        ] += 1
        self.changes[change.rpartition("; then ")[2].partition(":")[0]] += 1
        if text:
            shown = "\n".join(json.dumps(obj) for obj in objects)
            self.differences.append(f"{self.what} {seed}, {change}\n{text}\n{shown}")

    def check(self, capsys: pytest.CaptureFixture[str]) -> None:
        """No difference, and a mix that is worth something; both are printed."""
        total = sum(self.outcomes.values())
        mix = (
            f"{self.what}, seed {SEED}: {dict(self.outcomes)}, {len(self.changes)} kinds of change"
        )
        with capsys.disabled():
            sys.stdout.write(f"\n{mix}, {len(self.differences)} differences ")
        shown = "\n\n".join(self.differences[:5])
        assert not self.differences, f"{len(self.differences)} of {total} differ\n{shown}"
        chance = 0 if total >= 400 else 1.5 * math.sqrt(total)
        assert self.outcomes["accepted"] >= 0.4 * total - chance
        assert self.outcomes["422"] >= 0.2 * total - chance / 2
        assert len(self.changes) >= min(25, total // 4)


def test_creates(judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(f"create on {judge.cluster.version} {judge.cluster.record.options.gates[:40]}")
    for i in range(CREATES):
        seed = f"{SEED}-c{i}"
        made = slice_objects.random_create(seed, judge.server.minor)
        verdict = judge.create(path_of(made.obj, collection=True), made.obj)
        text = compared(offline(made.obj, None, judge.server), verdict)
        tally.add(seed, made.change, verdict, text, made.obj)
    tally.check(capsys)


def test_updates(judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(f"update on {judge.cluster.version} {judge.cluster.record.options.gates[:40]}")
    for i in range(UPDATES):
        seed = f"{SEED}-u{i}"
        made = slice_objects.random_update(seed, judge.server.minor)
        verdict = update_verdict(judge, made.old, made.new)
        text = compared(offline(made.new, made.old, judge.server), verdict)
        tally.add(seed, made.change, verdict, text, made.old, made.new)
    tally.check(capsys)


def test_corners(judge: Judge) -> None:
    """What needs several things at once, or a size, and so is rarely met by chance."""
    differences: dict[str, str] = {}
    for name, new in slice_objects.corner_creates(judge.server.minor).items():
        verdict = judge.create(path_of(new, collection=True), new)
        differences[f"create: {name}"] = compared(offline(new, None, judge.server), verdict)
    for name, (old, new) in slice_objects.corner_updates().items():
        verdict = update_verdict(judge, old, new)
        differences[f"update: {name}"] = compared(offline(new, old, judge.server), verdict)
    assert len(differences) >= 60
    assert {name: text for name, text in differences.items() if text} == {}


def test_differences_would_be_noticed(judge: Judge) -> None:
    """Negative control: with another server's rules the same comparison finds differences."""
    here = judge.server
    others = {
        "other version": Server(73 - here.minor),
        "other gates": Server(here.minor, {} if here.gates else {"DRAListTypeAttributes": True}),
        "another gate": replace(here, gates={**here.gates, PARTITIONS: not here.has(PARTITIONS)}),
    }
    found: collections.Counter[str] = collections.Counter()
    for i in range(60):
        made = slice_objects.random_create(f"control-{i}", here.minor)
        verdict = judge.create(path_of(made.obj, collection=True), made.obj)
        for name, other in others.items():
            found[name] += bool(compared(offline(made.obj, None, other), verdict))
    assert set(found) == set(others)
    assert all(found.values()), found

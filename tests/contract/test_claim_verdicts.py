"""Claims, templates, classes and rules: our verdicts are those of real API servers.

Random objects, each one change away from a valid one, go to the server as dry runs and through the
offline rules: accepted or not, the set of (field, reason), and what would be stored are the same.

``DRAGOMAN_SOAK=1000`` asks for that many creates per server (a third each of updates and updates
of the status come on top), ``DRAGOMAN_SEED`` for the objects of an earlier run.
"""

from __future__ import annotations

import collections
import copy
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dra_core.validation import claim_gates, claim_status, claims, classes, taint_rules
from dra_core.validation.problems import ErrorType, Problem
from dra_core.validation.servers import Server
from dra_testing.claim_mutations import mutated
from dra_testing.claim_objects import ADMIN_NAMESPACE, Maker
from dra_testing.verdicts import Judge, Verdict, path_of
from testcluster import versions
from testcluster.cluster import Cluster

pytestmark = pytest.mark.control_plane

JSON = dict[str, Any]
Factory = Callable[..., Cluster]

CREATES = int(os.environ.get("DRAGOMAN_SOAK") or 150)
#: They would write to the objects that are being judged (rule status, reservations).
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
SEED = int(os.environ.get("DRAGOMAN_SEED") or random.SystemRandom().randrange(10**6))
#: Updates cannot rename, and the server could not even read a stored object with a wrong type.
KEPT = ("metadata.name", "metadata.generateName", "spec")
#: All that a version lets us turn off.
GATES_OFF = {
    "1.37.2": "none,DRAConsumableCapacity=false,DRADeviceBindingConditions=false,"
    "DRADeviceTaints=false,DRADeviceTaintRules=false,DRAPartitionableDevices=false",
    "1.36.3": "none,DRAConsumableCapacity=false,DRADeviceBindingConditions=false,"
    "DRADeviceTaints=false,DRADeviceTaintRules=false,DRAPartitionableDevices=false,"
    "DRAExtendedResource=false,DRAPrioritizedList=false,DRAResourceClaimDeviceStatus=false,"
    "DRAResourceClaimGranularStatusAuthorization=false",
}


@dataclass(frozen=True)
class Round:
    """One question and the server's answer; ``number`` makes it again with the seed."""

    number: str
    change: str
    new: JSON
    old: JSON | None
    subresource: str
    verdict: Verdict


def problems_of(asked: Round, server: Server) -> list[Problem]:
    new, old = asked.new, asked.old
    kind = new["kind"]
    admin = {"admin_namespace": new["metadata"].get("namespace") == ADMIN_NAMESPACE}
    if asked.subresource and old is not None:
        if kind == "ResourceClaim":
            return claim_status.validate_status_update(new, old, server, **admin)
        return taint_rules.validate_status_update(new, old, server)
    if old is None:
        return {
            "ResourceClaim": lambda: claims.validate_create(new, server, **admin),
            "ResourceClaimTemplate": lambda: claims.validate_template_create(new, server, **admin),
            "DeviceClass": lambda: classes.validate_create(new, server),
            "DeviceTaintRule": lambda: taint_rules.validate_create(new, server),
        }[kind]()
    return {
        "ResourceClaim": claims.validate_update,
        "ResourceClaimTemplate": claims.validate_template_update,
        "DeviceClass": classes.validate_update,
        "DeviceTaintRule": taint_rules.validate_update,
    }[kind](new, old, server)


def bare(value: Any) -> Any:
    """Without the difference between no list, null and an empty one."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if v not in (None, [])}
    return [bare(item) for item in value] if isinstance(value, list) else value


def difference(asked: Round, server: Server) -> str:
    """What differs between the server's answer and ours; empty if nothing does."""
    verdict = asked.verdict
    ours = {(p.field, p.type.value): p.detail for p in problems_of(asked, server)}
    if verdict.status == 400:
        wrong = ErrorType.TYPE_INVALID.value
        return "" if ours and all(t == wrong for _, t in ours) else f"400 {verdict.message} {ours}"
    if verdict.status not in {200, 201, 422}:
        return f"{verdict.status}: {verdict.message}"
    if ours.keys() != verdict.causes or verdict.accepted == bool(ours):
        return (
            f"missing {sorted(verdict.causes - ours.keys())}, "
            f"too much {sorted(ours.keys() - verdict.causes)}; {verdict.message[:1000]}"
        )
    return stored_difference(asked, server) if verdict.stored is not None else ""


def stored_difference(asked: Round, server: Server) -> str:
    assert asked.verdict.stored is not None
    kept = claim_gates.drop_disabled(
        asked.new["kind"], asked.new, asked.old, server, subresource=asked.subresource
    )
    ours, theirs = (
        copy.deepcopy({n: bare(obj.get(n) or {}) for n in ("spec", "status")})
        for obj in (kept, asked.verdict.stored)
    )
    taint = ours["spec"].get("taint", {})
    if asked.new["kind"] == "DeviceTaintRule":
        if "timeAdded" not in taint:
            theirs["spec"]["taint"].pop("timeAdded")  # the server's clock
        if not asked.subresource:
            theirs["status"] = ours["status"]  # a controller may have been there
    return "" if ours == theirs else f"we store {json.dumps(ours)}\nthe server {json.dumps(theirs)}"


class Asker:
    """Asks a server about random objects."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def creates(self, count: int) -> Iterator[Round]:
        for number in range(count):
            rng = random.Random(f"{SEED} create {number}")
            obj, change = mutated(rng, self._made(rng))
            verdict = self.judge.create(path_of(obj, collection=True), obj)
            yield Round(f"create {number}", change, obj, None, "", verdict)

    def updates(self, count: int) -> Iterator[Round]:
        for number in range(count):
            rng = random.Random(f"{SEED} update {number}")
            base = self._made(rng)
            if base["kind"] == "ResourceClaim" and rng.random() < 0.3:
                base["status"] = Maker(rng).status(base)
            changed, change = mutated(rng, base, without=KEPT)
            style = rng.choice(["new", "new", "new", "old", "both"])
            old, new = {"new": (base, changed), "old": (changed, base), "both": (changed, changed)}[
                style
            ]
            if style == "both":
                new = {**new, "metadata": {**new["metadata"], "labels": {"more": "yes"}}}
            yield self._update(f"update {number}", f"{style}: {change}", old, new)

    def status_updates(self, count: int) -> Iterator[Round]:
        for number in range(count):
            rng = random.Random(f"{SEED} status {number}")
            maker = Maker(rng)
            if rng.random() < 0.15:
                rule = {**self._versioned(maker.rule()), "status": {"conditions": []}}
                rule["status"]["conditions"] = maker.conditions()
                new, change = mutated(rng, rule, "status")
                yield self._update(f"status {number}", change, rule, new, "status")
                continue
            claim = maker.claim()
            status, other = maker.status(claim), maker.status(claim)
            old = {**claim, "status": rng.choice([{}, status, status, other])}
            if rng.random() < 0.15:
                deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]}
                old["metadata"] = {**claim["metadata"], **deleted}
            new = {**old, "status": rng.choice([status] * 8 + [{}, {**status, "allocation": None}])}
            change = "none"
            if rng.random() < 0.8 and new["status"].get("allocation"):
                new, change = mutated(rng, new, "status")
            yield self._update(f"status {number}", change, old, new, "status")

    def _made(self, rng: random.Random) -> JSON:
        maker = Maker(rng)
        weighted = [maker.claim] * 4 + [maker.template] * 2 + [maker.device_class, maker.rule] * 2
        return self._versioned(rng.choice(weighted)())

    def _versioned(self, obj: JSON) -> JSON:
        if obj["kind"] == "DeviceTaintRule" and self.judge.server.minor == 36:
            return {**obj, "apiVersion": "resource.k8s.io/v1beta2"}
        return obj

    def _update(
        self, number: str, change: str, old: JSON, new: JSON, subresource: str = ""
    ) -> Round:
        # Not the name of the object before: the server's cache may still have that one.
        name = {"name": f"{old['metadata']['name']}-{number.replace(' ', '-')}"}
        old, new = ({**obj, "metadata": {**obj["metadata"], **name}} for obj in (old, new))
        for attempt in range(10):
            planted = self.judge.plant(old)
            try:
                new, verdict = self._ask(planted, new, subresource, versioned=len(change) % 2 == 1)
            finally:
                self.judge.uproot(old)
            if verdict.status != 409 or attempt == 9:
                return Round(number, change, new, planted, subresource, verdict)
        raise AssertionError

    def _ask(
        self, planted: JSON, new: JSON, subresource: str, *, versioned: bool
    ) -> tuple[JSON, Verdict]:
        """May be too late (409): the controller that evicts pods looks at rules as well."""
        path = path_of(planted)
        metadata = {**new["metadata"], "uid": planted["metadata"]["uid"]}
        if new["kind"] == "DeviceTaintRule" and versioned:
            found = self.judge.ask("GET", path, None).stored or {}
            metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
        new = {**new, "metadata": metadata}
        return new, self.judge.update(f"{path}/{subresource}".rstrip("/"), new)


def described(cluster: Cluster) -> Server:
    """The server with every gate that was set, also those that are not about this API."""
    version = versions.find(cluster.version)
    return Server(version.minor, versions.gates(version, cluster.record.options.gates))


def ask_all(cluster: Cluster) -> list[Round]:
    with Judge(cluster) as judge:
        label = {claims.ADMIN_LABEL: "true"}
        namespace = {"metadata": {"name": ADMIN_NAMESPACE, "labels": label}}
        made = judge.create("/api/v1/namespaces", namespace, dry_run=False)
        assert made.status in {201, 409}, made.message
        asker = Asker(judge)
        rest = max(CREATES // 3, 1)
        return [*asker.creates(CREATES), *asker.updates(rest), *asker.status_updates(rest)]


def check(cluster: Cluster, record: Callable[[str, object], None]) -> list[Round]:
    rounds = ask_all(cluster)
    server = described(cluster)
    mix = collections.Counter(
        (r.number.split()[0], r.new["kind"], "valid" if r.verdict.accepted else "invalid")
        for r in rounds
    )
    for key, count in sorted(mix.items()):
        record(" ".join(key), count)
    words = ", ".join(f"{' '.join(k)} {n}" for k, n in sorted(mix.items()))
    sys.stdout.write(f"seed {SEED}: {words}\n")
    found = [(r, d) for r in rounds if (d := difference(r, server))]
    report = "\n".join(
        f"--- DRAGOMAN_SEED={SEED} {r.number}: {r.new['kind']} {r.change}\n{d}\n"
        f"old: {json.dumps(r.old)[:3000]}\nnew: {json.dumps(r.new)[:3000]}"
        for r, d in found[:5]
    )
    assert not found, f"{len(found)} of {len(rounds)} differ\n{report}"
    valid = sum(r.verdict.accepted for r in rounds)
    # Fewer in a short run, which may be an unlucky one.
    assert valid >= (0.4 if len(rounds) >= 1000 else 0.2) * len(rounds), f"{valid} are valid"
    return rounds


@pytest.mark.parametrize("seed", [SEED], ids=[f"seed-{SEED}"])
def test_verdicts_of_137_with_all_gates(
    make_control_plane: Factory, seed: int, record_property: Callable[[str, object], None]
) -> None:
    cluster = make_control_plane(version="1.37.2", without=CONTROLLERS)
    rounds = check(cluster, record_property)
    right = described(cluster)
    # Negative control: with the wrong version or gates the comparison above would have failed.
    wrong = [Server(36, right.gates)] + [
        Server(37, {**right.gates, gate: False})
        for gate in ("DRADerivedAttributes", "DRAConsumableCapacity", "DRADeviceTaints")
    ]
    for server in wrong:
        assert any(difference(r, server) for r in rounds), server


@pytest.mark.parametrize("seed", [SEED], ids=[f"seed-{SEED}"])
def test_verdicts_of_136_with_all_gates(
    make_control_plane: Factory, seed: int, record_property: Callable[[str, object], None]
) -> None:
    cluster = make_control_plane(version="1.36.3", without=CONTROLLERS)
    rounds = check(cluster, record_property)
    assert any(difference(r, Server(37, described(cluster).gates)) for r in rounds)


@pytest.mark.parametrize("version", GATES_OFF)
@pytest.mark.parametrize("seed", [SEED], ids=[f"seed-{SEED}"])
def test_verdicts_without_gates(
    make_control_plane: Factory,
    version: str,
    seed: int,
    record_property: Callable[[str, object], None],
) -> None:
    cluster = make_control_plane(
        version=version,
        gates=GATES_OFF[version],
        without=CONTROLLERS,
    )
    rounds = check(cluster, record_property)
    on = Server(described(cluster).minor, {})
    assert any(difference(r, on) for r in rounds)

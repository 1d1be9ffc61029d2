"""CEL in classes, claims and templates: our verdicts are those of real API servers.

Objects with expressions of every library, good and bad, near the limit of costs and over it, with
what is there only in some versions and with some gates. New objects go to the server as dry runs;
classes are also updated, with expressions that were stored before the rules knew them.

``DRAGOMAN_SOAK`` asks for 500 objects on each server, ``DRAGOMAN_SEED`` for those of an earlier
run.
"""

from __future__ import annotations

import collections
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from dra_core.validation import claims, classes
from dra_core.validation.problems import Problem
from dra_core.validation.servers import Server
from dra_testing import cel_costly, cel_devices, cel_expressions
from dra_testing.cel_oracle import Oracle
from dra_testing.verdicts import PANIC, Judge, Verdict, difference, path_of
from testcluster import versions
from testcluster.cluster import Cluster

pytestmark = pytest.mark.control_plane

JSON = dict[str, Any]
Factory = Callable[..., Cluster]

LONG: Final = 500
COUNT: Final = LONG if os.environ.get("DRAGOMAN_SOAK") else 60
SEED: Final = int(os.environ.get("DRAGOMAN_SEED") or random.SystemRandom().randrange(10**6))
CONTROLLERS: Final = ("kube-controller-manager", "kube-scheduler")
#: Where versions and gates decide.
SPECIAL: Final = (
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
    'device.attributes["a.io"].x.exists(x, x == "a")',
    'device.attributes["a.io"].x.all(x, x > 1)',
    'device.attributes["a.io"].x.includes("a")',
    '["a"].includes("a")',
    '[1, 2].includes(device.attributes["a.io"].x)',
    'device.attributes["a.io"].`x-y`',
    "duration(1) == duration('1s')",
    'device.attributes["a.io"].x',
    'device.attributes["a.io"]',
    'device.capacity["a.io"].x.isInteger()',
    "[1, 2].sum() == 3",
    'matches(device.driver, "(a|b)*c") && device.driver.matches("(a|b)*c")',
    'device.attributes["a.io"].x.matches("^(([a-z])+.)+[A-Z]([a-z])+$")',
    "device.attributes.all(d, v, v.all(k, w, w != d + k))",
)


@dataclass(frozen=True)
class Asked:
    """One object, what the server said of it and what it replaces."""

    number: int
    new: JSON
    old: JSON | None
    verdict: Verdict


class Objects:
    """Random objects around expressions."""

    def __init__(self, oracle: Oracle, rng: random.Random, count: int) -> None:
        self._rng = rng
        devices = [cel_devices.a_device(rng) for _ in range(10)]
        samples = cel_expressions.selectors(rng, devices, 2 * count)
        texts = [sample.question["expression"] for sample in samples]
        texts += [text for _, text, _ in cel_costly.near_limit(oracle, rng, count // 3)]
        # An expression of wrong length or text that is no JSON is another test's.
        self._selectors = [text for text in texts if 0 < len(text.encode()) <= 10 * 1024]
        derived = cel_expressions.derived(rng, devices, count)
        self._derived = [sample.question["expression"] for sample in derived]

    def make(self, number: int) -> tuple[JSON | None, JSON]:
        """An object, and the one that it replaces if it is an update."""
        kind = self._rng.choice(["class", "class", "claim", "claim", "template", "update"])
        if kind == "claim":
            return None, self._claim(f"c{number}")
        if kind == "template":
            claim = self._claim(f"t{number}")
            return None, {
                **claim,
                "kind": "ResourceClaimTemplate",
                "spec": {"spec": claim["spec"]},
            }
        if kind == "class":
            return None, a_class(f"d{number}", self._some())
        return self._update(f"u{number}")

    def _update(self, name: str) -> tuple[JSON, JSON]:
        before = self._some()
        after = self._rng.choice([before, before, before[:-1], [*before, self._selector()]])
        old, new = a_class(name, before), a_class(name, after)
        new["metadata"]["labels"] = {"more": "yes"}
        return old, new

    def _claim(self, name: str) -> JSON:
        asked: JSON = {"deviceClassName": "a", "selectors": self._some()}
        constraints = []
        if self._rng.random() < 0.5:
            derived = self._derived_attributes()
            asked["derivedAttributes"] = derived
            constraints = [{"matchAttribute": one["name"]} for one in derived]
        request: JSON = {"name": "r", "exactly": asked}
        if self._rng.random() < 0.2:
            request = {"name": "r", "firstAvailable": [{"name": "s", **asked}]}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [request], "constraints": constraints}},
        }

    def _derived_attributes(self) -> list[JSON]:
        rng = self._rng
        texts = [rng.choice(self._derived) for _ in range(rng.choice([1, 1, 2, 4]))]
        if rng.random() < 0.3:  # each below the limit, together perhaps above
            text = 'device.attributes["a.io"].x.lowerAscii().matches("a*b") ? "x" : "y"'
            loops = "[1, 2, 3, 4, 5, 6].all(a, [1, 2, 3, 4, 5, 6, 7].all(b, [1, 2, 3].all(c, {})))"
            texts = [loops.format(f"({text}) == string(a + b + c)")] * rng.choice([2, 20, 30])
        return [
            {"name": f"example.com/d{place}", "expression": text}
            for place, text in enumerate(texts)
        ]

    def _some(self) -> list[JSON]:
        return [self._selector() for _ in range(self._rng.choice([1, 1, 1, 2, 3]))]

    def _selector(self) -> JSON:
        texts = SPECIAL if self._rng.random() < 0.25 else self._selectors
        return {"cel": {"expression": self._rng.choice(texts)}}


def a_class(name: str, selectors: list[JSON]) -> JSON:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors},
    }


def problems_of(asked: Asked, server: Server) -> list[Problem]:
    new, old = asked.new, asked.old
    if old is not None:
        return classes.validate_update(new, old, server)
    if new["kind"] == "ResourceClaim":
        return claims.validate_create(new, server)
    if new["kind"] == "ResourceClaimTemplate":
        return claims.validate_template_create(new, server)
    return classes.validate_create(new, server)


def ask(judge: Judge, objects: Objects) -> Iterator[Asked]:
    for number in range(COUNT):
        old, new = objects.make(number)
        if old is None:
            yield Asked(number, new, None, judge.create(path_of(new, collection=True), new))
            continue
        planted = judge.plant(old)
        new["metadata"]["uid"] = planted["metadata"]["uid"]
        try:
            yield Asked(number, new, planted, judge.update(path_of(planted), new))
        finally:
            judge.uproot(old)
    # By chance a short run has too few of these for its negative control.
    for number, text in enumerate(SPECIAL, start=COUNT):
        new = a_class(f"s{number}", [{"cel": {"expression": text}}])
        yield Asked(number, new, None, judge.create(path_of(new, collection=True), new))


def described(cluster: Cluster) -> Server:
    version = versions.find(cluster.version)
    return Server(version.minor, versions.gates(version, cluster.record.options.gates))


def check(cluster: Cluster, oracle: Oracle, record: Callable[[str, object], None]) -> list[Asked]:
    objects = Objects(oracle, random.Random(SEED), COUNT)
    with Judge(cluster) as judge:
        rounds = list(ask(judge, objects))
    mix = collections.Counter(
        (asked.new["kind"], "update" if asked.old else "create", _said(asked)) for asked in rounds
    )
    for key, count in sorted(mix.items()):
        record(" ".join(key), count)
    words = ", ".join(f"{' '.join(key)} {count}" for key, count in sorted(mix.items()))
    sys.stdout.write(f"seed {SEED}: {words}\n")
    server = described(cluster)
    found = [(a, d) for a in rounds if (d := disagreement(a, server))]
    report = "\n".join(
        f"--- DRAGOMAN_SEED={SEED} {asked.number}\n{different}\nold: {json.dumps(asked.old)[:3000]}"
        f"\nnew: {json.dumps(asked.new)[:3000]}"
        for asked, different in found[:5]
    )
    assert not found, f"{len(found)} of {len(rounds)} differ\n{report}"
    said = collections.Counter(map(_said, rounds))
    # A short run has these shares only if it is lucky.
    for outcome, share in (("accepted", 0.15), ("does not compile", 0.15), ("too costly", 0.03)):
        least = share * COUNT if COUNT >= LONG else 1
        assert said[outcome] >= least, said
    return rounds


def disagreement(asked: Asked, server: Server) -> str:
    """What differs; the server panics over some expressions, of which we only have to be wary."""
    problems = problems_of(asked, server)
    if asked.verdict.status == PANIC:
        return "" if problems else "the server panicked"
    return difference(problems, asked.verdict)


def _said(asked: Asked) -> str:
    if asked.verdict.accepted:
        return "accepted"
    reasons = {reason for _, reason in asked.verdict.causes}
    return "does not compile" if "FieldValueInvalid" in reasons else "too costly"


@pytest.mark.parametrize("seed", [SEED], ids=[f"seed-{SEED}"])
@pytest.mark.parametrize("gates", ["all", "none"])
@pytest.mark.parametrize("version", ["1.37.2", "1.36.3"])
def test_expressions_are_judged_as_by_the_server(
    make_control_plane: Factory,
    oracle: Oracle,
    record_property: Callable[[str, object], None],
    *,
    version: str,
    gates: str,
    seed: int,
) -> None:
    chosen = {"all": {}, "none": {"gates": "none,DRAConsumableCapacity=false"}}[gates]
    cluster = make_control_plane(version=version, without=CONTROLLERS, **chosen)
    rounds = check(cluster, oracle, record_property)
    right = described(cluster)
    # Negative control: with the other version or the other gates the comparison would have failed.
    flipped = {
        **right.gates,
        **{
            gate: not right.has(gate) for gate in ("DRAConsumableCapacity", "DRAListTypeAttributes")
        },
    }
    for server in (Server(73 - right.minor, right.gates), Server(right.minor, flipped)):
        assert any(disagreement(a, server) for a in rounds), server

"""CEL: values, errors, types and costs are those of Kubernetes, expression by expression.

The reference is ``k8s.io/dynamic-resource-allocation/cel`` v0.37.2 in the Go program of
``tests/oracle``. Expressions are new on each run; ``DRAGOMAN_SEED`` brings back those of an earlier
one, ``DRAGOMAN_SOAK=10000`` asks for that many selectors and half as many derived attributes.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

from dra_core.cel.environment import Environment
from dra_core.cel.program import MAX_BYTES
from dra_core.cel.tracker import LIMIT
from dra_testing import cel_costly, cel_devices, cel_expressions, cel_hostile
from dra_testing.cel_compare import Comparison, fast_answer, other_error, our_answer, verdict
from dra_testing.cel_known import KNOWN
from dra_testing.cel_oracle import Oracle

pytestmark = pytest.mark.go

JSON = dict[str, Any]
Record = Callable[[str, object], None]

COUNT: Final = int(os.environ.get("DRAGOMAN_SOAK") or 1000)
NEAR: Final = 500 if os.environ.get("DRAGOMAN_SOAK") else 60
SEED: Final = int(os.environ.get("DRAGOMAN_SEED") or random.SystemRandom().randrange(10**6))
#: Questions that the reference is asked at once.
BATCH: Final = 2000


def compared(oracle: Oracle, questions: Iterable[JSON], record: Record) -> Comparison:
    """Both answers to every question.

    The reference visits maps in random order: any of the answers that it gave in 30 tries will do.
    Where it panics it has no answer, which is counted.
    """
    found = Comparison()
    panics = 0
    asked = list(questions)
    for start in range(0, len(asked), BATCH):
        batch = asked[start : start + BATCH]
        for question, theirs in zip(batch, oracle.ask(batch, repeat=30), strict=True):
            if "panic" in theirs:
                panics += 1
                continue
            assert "error" not in theirs, (question, theirs)
            ours = our_answer(question)
            found.add(question, _nearest(theirs, ours), ours)
            fast = fast_answer(question)
            assert verdict(fast) == verdict(ours), (question, ours, fast)
    for kind, count in sorted(found.kinds.items()):
        record(kind, count)
    record("panics of the reference", panics)
    sys.stdout.write(f"seed {SEED}, {panics} panics of the reference\n{found.report()}\n")
    assert panics <= len(asked) // 200, "the reference panicked too often"
    return found


def _nearest(theirs: JSON, ours: JSON) -> JSON:
    """Of the answers of the reference the one that is ours, else the first.

    Where the order of a map shows in them the cost has no one value, and is left out.
    """
    first = dict(theirs)
    others = first.pop("others", [])
    if not others:
        return first
    facts = {key: first[key] for key in ("outputType", "maxCost") if key in first}
    answers = [first, *({**facts, **other} for other in others)]
    nearest = next((one for one in answers if verdict(one) == verdict(ours)), first)
    return {key: value for key, value in nearest.items() if key != "cost"}


def check(found: Comparison) -> None:
    """What is asked for: equal answers, costs equal in 95 of 100 and never off by a fifth."""
    report = f"DRAGOMAN_SEED={SEED}\n{found.report()}"
    assert not found.different, report
    assert not found.other_type, report
    assert not found.other_estimate, report
    assert len(found.other_cost) <= 0.05 * found.costs, report
    assert found.worst_cost <= 0.2, report


def some_devices(rng: random.Random) -> list[JSON]:
    return [cel_devices.a_device(rng) for _ in range(40)]


@pytest.mark.parametrize("seed", [SEED], ids=[f"seed-{SEED}"])
def test_selectors(oracle: Oracle, seed: int, record_property: Record) -> None:
    rng = random.Random(seed)
    samples = cel_expressions.selectors(rng, some_devices(rng), COUNT)
    found = compared(oracle, (sample.question for sample in samples), record_property)
    check(found)
    assert found.kinds["match"] >= 0.5 * found.asked
    assert found.kinds["compileError"] >= 0.1 * found.asked
    assert found.kinds["evalError"] >= 0.1 * found.asked


@pytest.mark.parametrize("seed", [SEED], ids=[f"seed-{SEED}"])
def test_derived_attributes(oracle: Oracle, seed: int, record_property: Record) -> None:
    rng = random.Random(seed + 1)
    samples = cel_expressions.derived(rng, some_devices(rng), COUNT // 2)
    found = compared(oracle, (sample.question for sample in samples), record_property)
    check(found)
    assert found.kinds["attribute"] >= 0.5 * found.asked


@pytest.mark.parametrize("seed", [SEED], ids=[f"seed-{SEED}"])
def test_near_the_limit_of_costs(oracle: Oracle, seed: int) -> None:
    near = list(cel_costly.near_limit(oracle, random.Random(seed + 2), NEAR))
    over = 0
    for shape, text, estimate in near:
        ours = our_answer({"expression": text, "device": {"driver": "a.io"}})
        assert ours["maxCost"] == estimate, (shape, text)
        over += estimate > LIMIT
    assert 0.4 * len(near) <= over <= 0.6 * len(near)


def test_hostile_expressions(oracle: Oracle) -> None:
    """Deep, long and costly ones: the same outcome, and no trouble."""
    questions: list[JSON] = [
        {"kind": "selector", "expression": text, "device": {"driver": "a.io"}}
        for _, text in cel_hostile.hostile()
    ]
    answers = oracle.ask(questions, deadline=60, repeat=30)
    different = []
    for question, answer in zip(questions, answers, strict=True):
        ours = our_answer(question)
        theirs = answer if "panic" in answer else _nearest(answer, ours)
        if len(question["expression"].encode()) > MAX_BYTES:  # an API server takes none of these
            assert "compileError" in ours
        elif "panic" in theirs or "exceeded: a" in ours.get("evalError", ""):
            continue  # known, see cel_known
        elif verdict(theirs) != verdict(ours):
            different.append((question["expression"][:200], theirs, ours))
    assert not different, different[:5]


def test_known_differences(oracle: Oracle) -> None:
    """The list of what we do otherwise is short and true."""
    assert len(KNOWN) <= 15
    questions: list[JSON] = [
        {"kind": "selector", "expression": known.expression, "device": {"driver": "a.io"}}
        for known in KNOWN
    ]
    for known, question, theirs in zip(KNOWN, questions, oracle.ask(questions), strict=True):
        assert (_outcome(theirs), _outcome(our_answer(question))) == (known.theirs, known.ours)


def _outcome(answer: JSON) -> str:
    if "panic" in answer:
        return "panic"
    kind, value = verdict(answer)
    return f"match {value}".lower() if kind == "match" else kind


@pytest.mark.parametrize("consumable", [True, False])
@pytest.mark.parametrize("lists", [True, False])
def test_new_expressions_by_gate(oracle: Oracle, consumable: bool, lists: bool) -> None:
    """What an API server takes depends on its gates, for what is new."""
    env = {"type": "new", "consumableCapacity": consumable, "listTypeAttributes": lists}
    ours = Environment((1, 37), False, consumable, lists)
    rng = random.Random(SEED + 3)
    samples = cel_expressions.selectors(rng, some_devices(rng), COUNT // 4)
    texts = [sample.question["expression"] for sample in samples]
    texts += [
        "device.allowMultipleAllocations",
        'device.attributes["a.io"].x.exists(x, x == 1)',
        'device.attributes["a.io"].x.includes("a")',
        '["a"].includes("a")',
    ]
    questions = [{"kind": "selector", "expression": text, "env": env} for text in texts]
    for question, theirs in zip(questions, oracle.estimates(questions), strict=True):
        if "panic" in theirs:
            continue
        answer = our_answer(question, ours)
        assert ("compileError" in theirs) == ("compileError" in answer), (question, theirs, answer)
        assert not other_error(theirs, answer), (question, theirs, answer)
        if "maxCost" in theirs:
            assert int(theirs["maxCost"]) == answer["maxCost"], question

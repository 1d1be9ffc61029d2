"""Our parser and the reference's make the same trees, and find faults in the same places.

``DRAGOMAN_SOAK`` compares ten times as many texts, ``DRAGOMAN_SEED`` those of an earlier run.
"""

from __future__ import annotations

import json
import os
import random
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from dra_testing import cel_syntax
from dra_testing.cel_devices import a_device
from dra_testing.cel_expressions import selectors
from dra_testing.cel_hostile import edges, pairs
from dra_testing.cel_oracle import JSON, Oracle
from dra_testing.cel_trees import agree, parsed, reference
from dra_testing.cel_wrong import damaged

pytestmark = pytest.mark.go

CASES: Final = Path(__file__).resolve().parents[1] / "data" / "cel" / "cases.json"
COUNT: Final = 10_000 if os.environ.get("DRAGOMAN_SOAK") else 1_000
SEED: Final = os.environ.get("DRAGOMAN_SEED") or secrets.token_hex(4)


def compare(oracle: Oracle, expressions: Sequence[str]) -> None:
    wrong = []
    for expression, theirs in zip(expressions, reference(oracle, expressions), strict=True):
        ours = parsed(expression)
        if not agree(ours, theirs):
            wrong.append(f"{expression!r}\n  ours   {ours}\n  theirs {theirs}")
    assert not wrong, f"DRAGOMAN_SEED={SEED}: {len(wrong)} differ\n" + "\n".join(wrong[:5])


def test_cases(oracle: Oracle) -> None:
    cases = json.loads(CASES.read_text("utf-8"))["cases"]
    compare(oracle, [case["expression"] for case in cases])


def test_every_overload_and_every_pair_of_operators(oracle: Oracle) -> None:
    compare(oracle, [*edges(), *pairs()])


@pytest.fixture(scope="module")
def written() -> list[str]:
    rng = random.Random(f"{SEED} selectors")
    devices = [a_device(rng) for _ in range(5)]
    return [sample.question["expression"] for sample in selectors(rng, devices, COUNT)]


def test_selectors(oracle: Oracle, written: list[str]) -> None:
    compare(oracle, written)


def test_damaged_selectors(oracle: Oracle, written: list[str]) -> None:
    rng = random.Random(f"{SEED} damaged")
    compare(oracle, [damaged(rng, text) for text in written])


def test_expressions_of_every_form(oracle: Oracle) -> None:
    rng = random.Random(f"{SEED} forms")
    compare(oracle, [cel_syntax.expression(rng, rng.randint(1, 4)) for _ in range(COUNT)])


def test_mutilated_expressions(oracle: Oracle) -> None:
    rng = random.Random(f"{SEED} mutilated")
    whole = (cel_syntax.expression(rng, rng.randint(1, 3)) for _ in range(COUNT))
    compare(oracle, [cel_syntax.mutilated(rng, text) for text in whole])


def test_heaps_of_words(oracle: Oracle) -> None:
    rng = random.Random(f"{SEED} words")
    compare(oracle, [cel_syntax.heap(rng) for _ in range(3 * COUNT)])


def test_the_environment_for_new_expressions_has_the_same_language(oracle: Oracle) -> None:
    rng = random.Random(f"{SEED} new")
    texts = [cel_syntax.expression(rng, 2) for _ in range(COUNT)]
    env = {"type": "new", "consumableCapacity": False, "listTypeAttributes": False}
    stored, new = (oracle.trees(texts), oracle.trees(texts, env=env))
    assert [_syntax(answer) for answer in stored] == [_syntax(answer) for answer in new]


def _syntax(answer: JSON) -> object:
    """What the parser found: a tree, or its error."""
    return "nodes" in answer or "parsed" in answer or answer.get("compileError")

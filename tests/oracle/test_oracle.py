"""The oracle answers as it is described, and generated expressions are what they should be."""

from __future__ import annotations

import os
import random
import subprocess
from typing import Any

import pytest

from dra_testing import cel_golden, cel_report
from dra_testing.cel_devices import FULL, a_device
from dra_testing.cel_expressions import derived, selectors
from dra_testing.cel_oracle import SOURCE, VERSION, Oracle
from dra_testing.cel_tables import LIBRARIES

pytestmark = pytest.mark.go


def test_the_shared_cases_are_answered_as_written(oracle: Oracle) -> None:
    assert cel_golden.shared_cases(oracle) == []


def test_the_oracle_is_built_from_the_version_that_it_names() -> None:
    required = (SOURCE / "go.mod").read_text(encoding="utf-8")
    assert f"k8s.io/dynamic-resource-allocation v{VERSION}\n" in required


@pytest.mark.parametrize("name", ["selectors-1", "derived", "edges", "environments"])
def test_committed_answers_are_those_of_the_oracle(name: str, oracle: Oracle) -> None:
    lines = cel_golden.lines((cel_golden.FOLDER / f"{name}.jsonl").read_text("utf-8"))
    asked: list[dict[str, Any]] = [
        {key: line[key] for key in ("id", "kind", "expression", "device", "env") if key in line}
        for line in lines
    ]
    devices = cel_golden.devices(random.Random(cel_golden.SEED))
    answers = cel_golden.answered(oracle, asked, devices)
    for line, answer in zip(lines, answers, strict=True):
        line.pop("costs", None)
        answer.pop("costs", None)
        assert answer == line


def test_a_line_that_is_no_question_does_not_end_the_program(oracle: Oracle) -> None:
    lines = ["nonsense", '{"id":1}', '{"id":2,"expression":"true","devise":{}}', ""]
    lines += ['{"id":3,"expression":"true","kind":"x"}', '{"id":"ok","expression":"true"}']
    done = subprocess.run(
        [oracle.program], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    answers = done.stdout.splitlines()
    assert ["error" in answer for answer in answers] == [True, True, True, True, False]


def test_a_tree_names_types_and_overloads(oracle: Oracle) -> None:
    (tree,) = oracle.trees(["1 == dyn(1u)"])
    (root,) = [node for node in tree["nodes"] if node["id"] == tree["root"]]
    assert (root["name"], root["type"], root["overloads"]) == ("_==_", "bool", ["equals"])
    (refused,) = oracle.trees(["1 == 1u"])
    assert "no matching overload" in refused["compileError"]
    assert refused["parsed"]["nodes"][0]["name"] == "_==_"


def test_measuring_counts_what_matched(oracle: Oracle) -> None:
    measured = oracle.bench([FULL, {"driver": "a"}], ["device.driver == 'a'", "1"], rounds=2)
    first, second = measured["results"]
    assert (first["matches"], first["errors"]) == (1, 0)
    assert first["evaluationsPerSecond"] > 0 < first["compileMicroseconds"]
    assert "must evaluate to bool" in second["compileError"]


def test_random_expressions_are_of_every_kind_and_about_every_library(oracle: Oracle) -> None:
    seed = int(os.environ.get("DRAGOMAN_SEED") or random.randrange(2**32))
    rng = random.Random(seed)
    devices = [a_device(rng) for _ in range(10)]
    mix = cel_report.mix(oracle, selectors(rng, devices, 3000))
    print(f"seed {seed}: {mix.text()}")
    assert mix.share("value") >= 0.5
    assert 0.08 <= mix.share("compileError") <= 0.25
    assert 0.08 <= mix.share("evalError") <= 0.25
    assert not mix.kinds["error"], seed
    assert all(mix.libraries[name] >= 0.03 * mix.count for name in LIBRARIES)
    more = cel_report.mix(oracle, derived(rng, devices, 600))
    print(more.text())
    assert more.share("value") >= 0.5
    assert {"string", "int", "bool", "version", "strings", "ints", "bools", "versions"} <= set(
        more.values
    )


def test_the_same_seed_gives_the_same_expressions() -> None:
    def texts() -> list[object]:
        rng = random.Random("seed")
        devices = [a_device(rng) for _ in range(3)]
        return [sample.question for sample in selectors(rng, devices, 200)]

    assert texts() == texts()

"""CEL beside golden answers of the reference, without Go: ``tests/data/cel``.

The files are made anew with ``python -m dra_testing.cel_golden``; what the lines hold stands there.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_core.cel.environment import SCHEDULER_1_37, Environment
from dra_core.cel.program import Program, compile_selector
from dra_core.cel.tracker import LIMIT
from dra_testing import cel_golden
from dra_testing.cel_compare import fast_answer, our_answer, verdict

JSON = dict[str, Any]


#: What costs more is evaluated in ``tests/contract/test_cel.py`` only.
COSTLY = 20_000


def compiled(line: JSON) -> Program:
    """The selector of a question."""
    return compile_selector(line["expression"], environment(line))


def environment(line: JSON) -> Environment:
    """That of a question."""
    env = line.get("env")
    if env is None:
        return SCHEDULER_1_37
    features = {
        "consumable_capacity": env.get("consumableCapacity", True),
        "list_attributes": env.get("listTypeAttributes", True),
    }
    return Environment((1, 37), stored=env.get("type", "stored") == "stored", **features)


def difference(line: JSON) -> str:
    """What is not as the line says."""
    expected = line.get("expect", {})
    if "panic" in expected:
        return ""
    if not expected or int(line.get("cost", 0)) > COSTLY:
        estimate = compiled(line).max_cost
        fits = estimate == int(line.get("maxCost", estimate))
        return "" if fits else f"maxCost {estimate}, expected {line['maxCost']}"
    ours = our_answer(line, environment(line))
    fast = fast_answer(line, environment(line))
    if verdict(ours) != verdict(fast):
        return f"{ours}, without counting {fast}"
    if verdict(ours) != verdict(expected):
        return f"{ours}, expected {expected}"
    return _fact_difference(line, ours)


def _fact_difference(line: JSON, ours: JSON) -> str:
    for key in ("maxCost", "outputType"):
        if key in line and str(line[key]) != str(ours.get(key)):
            return f"{key} {ours.get(key)}, expected {line[key]}"
    if "cost" not in ours:
        return ""
    if "cost" in line and int(line["cost"]) != ours["cost"]:
        return f"cost {ours['cost']}, expected {line['cost']}"
    least, most = line.get("costs", (0, LIMIT + 1))  # some that were seen, of many
    if not 0.8 * int(least) <= ours["cost"] <= 1.2 * int(most):
        return f"cost {ours['cost']}, seen were {least} to {most}"
    return ""


@pytest.mark.parametrize("name", cel_golden.names())
def test_golden_answers(name: str) -> None:
    lines = list(cel_golden.read(name))
    found = [(line["expression"], text) for line in lines if (text := difference(line))]
    assert not found, f"{len(found)} of {len(lines)}: {json.dumps(found[:5], indent=1)}"
    assert len(lines) >= 100


def test_the_shared_cases() -> None:
    data = json.loads((cel_golden.FOLDER / "cases.json").read_text())
    found = []
    for case in data["cases"]:
        line = {**case, "device": data["devices"][case["device"]]}
        if "compileError" in case["expect"]:
            line.pop("outputType", None)
        if case["id"] in RANDOM_ORDER:
            del line["cost"]
        if text := difference(line):
            found.append((case["id"], text))
    assert not found, found
    assert len(data["cases"]) == 204


#: They walk over a map until something is found; the reference does that in random order.
RANDOM_ORDER = frozenset(("x-domain-macro", "x-exists-on-map-values", "x-transformlist-over-attrs"))


def test_a_wrong_answer_is_noticed() -> None:
    line = next(line for line in cel_golden.read("selectors-1") if "match" in line["expect"])
    assert difference(line) == ""
    assert difference({**line, "maxCost": line["maxCost"] + 1})
    assert difference({**line, "cost": line["cost"] + 1})
    assert difference({**line, "expect": {"evalError": "no such key: x"}})

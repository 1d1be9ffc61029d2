"""Golden answers: expressions with what the reference says, in ``tests/data/cel``.

::

    python -m dra_testing.cel_golden           # make them anew (needs Go)
    python -m dra_testing.cel_golden --check   # only say what would change

Every line of the ``.jsonl`` files is a question and its answer::

    {"id": "s-1", "kind": "selector", "expression": "true", "device": "device-3",
     "expect": {"match": true}, "cost": 0, "maxCost": 0, "outputType": "bool"}

:func:`read` gives them with devices in place of names. In the files ``kind`` is left out for
selectors and ``device``, a name in ``devices.json``, for ``full``. ``expect`` has one of ``match``,
``attribute``, ``evalError``, ``compileError`` (every error as ``line:column: text``, or the text)
and ``panic``; it is left out where the evaluation takes the reference more than 3 s.
``costs`` stands for ``cost`` where that varies, because maps are visited in random order: the
least and the most that were seen. ``env`` is that of the question. ``estimateError`` stands for
``maxCost`` where the estimate failed.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dra_testing.cel_costly import estimated_exactly, near_limit, running_exactly
from dra_testing.cel_devices import FULL, Device, a_device
from dra_testing.cel_environments import CHOICES, DERIVED, SELECTORS
from dra_testing.cel_expressions import Sample, derived, selectors
from dra_testing.cel_hostile import edges, pairs
from dra_testing.cel_oracle import Oracle
from dra_testing.cel_report import kind_of

JSON = dict[str, Any]
FOLDER = Path(__file__).resolve().parents[2] / "data" / "cel"
SEED = 1037
LONGEST = 1200
"""Characters of an expression; the deeply nested ones are made when they are needed."""
REPEAT = 200


def devices(rng: random.Random) -> dict[str, Device]:
    return {"full": FULL} | {f"device-{n}": a_device(rng) for n in range(24)}


def _questions(samples: Iterable[Sample], prefix: str, named: dict[str, Device]) -> Iterator[JSON]:
    """As lines of a file, each expression once."""
    names = {id(device): name for name, device in named.items()}
    seen: set[str] = set()
    for sample in samples:
        expression = sample.question["expression"]
        if expression in seen or len(expression) > LONGEST:
            continue
        seen.add(expression)
        device = names[id(sample.question["device"])]
        yield {**sample.question, "id": f"{prefix}-{len(seen)}", "device": device}


def _line(kind: str, number: str, expression: str, **more: object) -> JSON:
    return {"id": number, "kind": kind, "expression": expression, "device": "full", **more}


def files(oracle: Oracle) -> dict[str, list[JSON]]:
    """The questions of every file, without answers."""
    rng = random.Random(SEED)
    named = devices(rng)
    pool = list(named.values())
    random_ones = list(_questions(selectors(rng, pool, 1580), "s", named))[:1500]
    costly = list(near_limit(oracle, random.Random(SEED), 500))
    exact = [*estimated_exactly(oracle, costly), *running_exactly(oracle)]
    found = {
        f"selectors-{number + 1}": random_ones[number * 500 : number * 500 + 500]
        for number in range(3)
    }
    found["derived"] = list(_questions(derived(rng, pool, 330), "d", named))[:300]
    found["near-limit"] = [
        _line("selector", f"{name}-{number}", text)
        for number, (name, text, _) in enumerate([*costly, *exact])
    ]
    found["edges"] = [_line("selector", f"edge-{n}", text) for n, text in enumerate(edges())]
    found["pairs"] = [_line("selector", f"pair-{n}", text) for n, text in enumerate(pairs())]
    found["environments"] = [
        _line(kind, f"env-{place}-{number}", text, env=env)
        for place, env in enumerate(CHOICES)
        for kind, texts in (("selector", SELECTORS), ("derived", DERIVED))
        for number, text in enumerate(texts)
    ]
    return found


def answered(
    oracle: Oracle, asked: Sequence[JSON], named: dict[str, Device], *, deadline: float = 10
) -> list[JSON]:
    """The lines with their answers; those whose value is not always the same are left out."""
    full = [{**line, "device": named[line["device"]]} for line in asked]
    answers = oracle.ask(full, repeat=REPEAT, deadline=deadline)
    found = []
    for line, answer in zip(asked, answers, strict=True):
        outcomes = [answer, *answer.get("others", ())]
        values = {json.dumps(_expected(outcome)) for outcome in outcomes}
        if len(values - {"null"}) <= 1:
            found.append(line | _outcome(answer, outcomes))
    return found


def _expected(answer: JSON) -> JSON | None:
    kind = kind_of(answer)
    if kind == "compileError":
        errors = re.findall(r"ERROR: <input>:(.*)", answer[kind])
        return {kind: "\n".join(errors) or answer[kind]}
    if kind == "evalError" and "operation interrupted" in answer[kind]:
        return None
    return {kind: answer[kind]}


def _outcome(answer: JSON, outcomes: list[JSON]) -> JSON:
    # None if only one of the evaluations was interrupted.
    expected = min((_expected(outcome) for outcome in outcomes), key=lambda e: e is not None)
    costs = sorted({outcome["cost"] for outcome in outcomes if "cost" in outcome})
    result: JSON = {} if expected is None else {"expect": expected}
    if len(costs) > 1:
        result["costs"] = [costs[0], costs[-1]]
    elif costs and expected is not None:
        result["cost"] = costs[0]
    for key in ("maxCost", "estimateError", "outputType"):
        if key in answer:
            result[key] = answer[key]
    return result


def make(oracle: Oracle, *, deadline: float) -> dict[str, str]:
    """The text of every file; what takes longer than ``deadline`` seconds gets no answer."""
    named = devices(random.Random(SEED))
    rows = (f"{json.dumps(name)}: {_text(device)}" for name, device in named.items())
    texts = {"devices.json": "{\n" + ",\n".join(rows) + "\n}\n"}
    for name, asked in files(oracle).items():
        done = answered(oracle, asked, named, deadline=deadline)
        texts[f"{name}.jsonl"] = "".join(f"{_text(_short(line))}\n" for line in done)
    return texts


_USUAL = {"kind": "selector", "device": "full"}


def _short(line: JSON) -> JSON:
    """Without what is as usual."""
    return {key: value for key, value in line.items() if _USUAL.get(key) != value}


def _text(value: object) -> str:
    """One line; only what could break it or cannot be seen is escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def lines(text: str) -> list[JSON]:
    """The lines of a file of golden answers, in full."""
    return [_USUAL | json.loads(line) for line in text.split("\n") if line]


def read(name: str) -> Iterator[JSON]:
    """The lines of the file ``name`` with their devices, not only the names of those."""
    named = json.loads((FOLDER / "devices.json").read_text("utf-8"))
    for line in lines((FOLDER / f"{name}.jsonl").read_text("utf-8")):
        yield line | {"device": named[line["device"]]}


def names() -> list[str]:
    """The names that :func:`read` takes."""
    return sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def shared_cases(oracle: Oracle) -> list[str]:
    """Cases of ``cases.json`` answered differently; a cost may be any that the oracle sees."""
    content = json.loads((FOLDER / "cases.json").read_text("utf-8"))
    asked = [
        {
            "id": case["id"],
            "kind": case["kind"],
            "expression": case["expression"],
            "device": content["devices"][case["device"]],
        }
        for case in content["cases"]
    ]
    found = []
    for case, answer in zip(content["cases"], oracle.ask(asked, repeat=REPEAT), strict=True):
        outcomes = [answer, *answer.get("others", ())]
        same = any(
            case["expect"].items() <= outcome.items() and case.get("cost") == outcome.get("cost")
            for outcome in outcomes
        )
        if not same or case.get("outputType") != answer.get("outputType"):
            found.append(f"cases.json: {case['id']}")
    return found


def differences(texts: dict[str, str]) -> list[str]:
    """What is not as committed, but for costs that depend on chance."""
    found = []
    for name, text in texts.items():
        path = FOLDER / name
        old = path.read_text("utf-8") if path.exists() else ""
        if name.endswith(".json"):
            found += [name] if old != text else []
            continue
        new_lines = {line["id"]: line for line in lines(text)}
        old_lines = {line["id"]: line for line in lines(old)}
        for key in [*old_lines, *(key for key in new_lines if key not in old_lines)]:
            if _fixed(old_lines.get(key), old_lines.get(key)) != _fixed(
                new_lines.get(key), old_lines.get(key)
            ):
                found.append(f"{name}: {key}")
    return found


def _fixed(line: JSON | None, old: JSON | None) -> JSON | None:
    """What must be the same: no costs that vary, no answers that took too long for the old one."""
    if line is None or old is None:
        return line
    left_out = {"costs"} if "expect" in old else {"costs", "cost", "expect"}
    return {key: value for key, value in line.items() if key not in left_out}


def main(arguments: Sequence[str]) -> int:
    oracle = Oracle.build()
    check = "--check" in arguments
    texts = make(oracle, deadline=10 if check else 3)
    changed = differences(texts)
    for what in shared_cases(oracle):
        print(f"answered differently: {what}")  # noqa: T201
    print("\n".join(f"changed: {what}" for what in changed[:50]) or "nothing changed")  # noqa: T201
    if check:
        return 1 if changed else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in {what.split(":")[0] for what in changed}:
        (FOLDER / name).write_text(texts[name], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

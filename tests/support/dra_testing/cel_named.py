"""What an expression can name besides ``device``: objects by their type, and all functions.

::

    python -m dra_testing.cel_named           # make tests/data/cel/{objects,declarations}.json anew

``objects.json`` has a list for each expression: the expression, what came of it (``true``,
``false``, ``"eval"`` or ``"compile"`` for errors), its cost, and its static estimate. The
expressions are those of the file itself; a new one is a line with nothing else in its list.
``declarations.json`` is what the oracle says to ``-declarations``.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dra_testing.cel_oracle import Oracle

FOLDER = Path(__file__).resolve().parents[2] / "data" / "cel"
OBJECTS = FOLDER / "objects.json"
DECLARATIONS = FOLDER / "declarations.json"
DEVICE = {
    "driver": "d",
    "attributes": {"d/x": {"bool": True}, "d/n": {"int": 5}, "d/s": {"string": "abc"}},
    "capacity": {"d/m": "1Gi"},
}


def question(expression: str) -> dict[str, Any]:
    return {"kind": "selector", "expression": expression, "device": DEVICE}


def row(expression: str, answer: Mapping[str, Any]) -> list[Any]:
    """A line of the table."""
    if "compileError" in answer:
        return [expression, "compile"]
    outcome = "eval" if "evalError" in answer else answer["match"]
    return [expression, outcome, int(answer["cost"]), int(answer["maxCost"])]


def _write(path: Path, rows: list[Any]) -> None:
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in rows)
    path.write_text(f"[\n{lines}\n]\n", "utf-8")


def main() -> None:
    oracle = Oracle.build()
    expressions = [line[0] for line in json.loads(OBJECTS.read_text("utf-8"))]
    answers = oracle.ask([question(expression) for expression in expressions])
    _write(OBJECTS, [row(*pair) for pair in zip(expressions, answers, strict=True)])
    said = subprocess.run(
        [str(oracle.program), "-declarations"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    _write(DECLARATIONS, [json.loads(line) for line in said.splitlines()])


if __name__ == "__main__":
    main()

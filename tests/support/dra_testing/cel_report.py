"""What generated expressions turn out to be, as the oracle sees them.

::

    python -m dra_testing.cel_report [SEED] [COUNT]
"""

from __future__ import annotations

import collections
import json
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dra_testing.cel_devices import a_device
from dra_testing.cel_expressions import Sample, derived, selectors
from dra_testing.cel_oracle import Oracle
from dra_testing.cel_tables import LIBRARIES

JSON = dict[str, Any]
KINDS = ("match", "attribute", "compileError", "evalError", "panic", "error")


def kind_of(answer: JSON) -> str:
    """Which of :data:`KINDS` an answer is."""
    return next(kind for kind in KINDS if kind in answer)


@dataclass
class Mix:
    """Counts over questions and their answers."""

    count: int = 0
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    values: collections.Counter[str] = field(default_factory=collections.Counter)
    libraries: collections.Counter[str] = field(default_factory=collections.Counter)
    varying: int = 0
    lengths: list[int] = field(default_factory=list)

    def add(self, sample: Sample, answer: JSON) -> None:
        self.count += 1
        kind = kind_of(answer)
        self.kinds["value" if kind in ("match", "attribute") else kind] += 1
        if kind in ("match", "attribute"):
            self.values[
                json.dumps(answer[kind]) if kind == "match" else next(iter(answer[kind]))
            ] += 1
        self.libraries.update(sample.libraries)
        self.varying += "others" in answer
        self.lengths.append(len(sample.question["expression"]))

    def share(self, kind: str) -> float:
        return self.kinds[kind] / self.count

    def text(self) -> str:
        lengths = sorted(self.lengths)
        lines = [
            f"{self.count} expressions, {self.varying} with answers that vary",
            "  "
            + ", ".join(f"{kind} {n / self.count:.1%}" for kind, n in self.kinds.most_common()),
            "  values: " + ", ".join(f"{v} {n}" for v, n in self.values.most_common()),
            f"  length: median {lengths[len(lengths) // 2]}, longest {lengths[-1]}",
            "  libraries: "
            + ", ".join(f"{name} {self.libraries[name] / self.count:.1%}" for name in LIBRARIES),
        ]
        return "\n".join(lines)


def mix(oracle: Oracle, samples: Iterable[Sample], *, repeat: int = 1) -> Mix:
    """What the samples are."""
    asked = list(samples)
    result = Mix()
    for sample, answer in zip(
        asked, oracle.ask([s.question for s in asked], repeat=repeat), strict=True
    ):
        result.add(sample, answer)
    return result


def declared_overloads(oracle: Oracle) -> set[str]:
    """The ids of all overloads in the scheduler's environment."""
    done = subprocess.run([oracle.program, "-declarations"], capture_output=True, check=True)
    return {json.loads(line)["id"] for line in done.stdout.decode().splitlines()}


def unused_overloads(oracle: Oracle, expressions: Sequence[str]) -> set[str]:
    """Overloads that no tree of ``expressions`` refers to."""
    used = {
        overload
        for tree in oracle.trees(expressions)
        for node in tree.get("nodes", ())
        for overload in node.get("overloads", ())
    }
    return declared_overloads(oracle) - used


def main(arguments: Sequence[str]) -> None:
    seed, count = [int(text) for text in [*arguments, "1", "6000"][:2]]
    rng = random.Random(seed)
    devices = [a_device(rng) for _ in range(30)]
    oracle = Oracle.build()
    samples = list(selectors(rng, devices, count))
    unused = unused_overloads(oracle, [sample.question["expression"] for sample in samples])
    report = [
        f"seed {seed}, selectors: {mix(oracle, samples, repeat=30).text()}",
        f"  overloads not used: {', '.join(sorted(unused)) or 'none'}",
        f"derived attributes: {mix(oracle, derived(rng, devices, count // 4), repeat=30).text()}",
    ]
    print("\n".join(report))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])

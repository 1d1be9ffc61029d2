"""Our answers about CEL beside those of the reference, question by question.

A question has the form of ``tests/oracle/README.md`` and of ``dra cel --batch``. What is compared
is the value, or whether the error came while compiling or while evaluating (not its words), the
type, the static estimate, and the cost of the evaluation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dra_cli.cel_devices import from_data, short
from dra_core.cel.environment import SCHEDULER_1_37, Environment
from dra_core.cel.faults import CompileError, EvaluationFailed, PlanError
from dra_core.cel.program import Kind, compile_derived, compile_selector

JSON = dict[str, Any]
_KINDS = ("match", "attribute", "compileError", "evalError")


def our_answer(question: Mapping[str, Any], environment: Environment = SCHEDULER_1_37) -> JSON:
    """What we say, in the reference's form."""
    kind = Kind(question.get("kind", "selector"))
    make = compile_selector if kind is Kind.SELECTOR else compile_derived
    try:
        program = make(question["expression"], environment)
    except CompileError as error:
        kind_of_error = "InternalError" if isinstance(error, PlanError) else "RuleInvalid"
        return {"compileError": str(error), "errorType": kind_of_error}
    facts = {"outputType": str(program.output_type), "maxCost": program.max_cost}
    subject = from_data(question.get("device") or {})
    outcome = program.evaluate(subject.input)
    try:
        value = program.answer(outcome)
    except EvaluationFailed as error:
        return {"evalError": error.text, "cost": outcome.cost} | facts
    answer = {"match": value} if kind is Kind.SELECTOR else {"attribute": short(value)}
    return answer | {"cost": outcome.cost} | facts


def fast_answer(question: Mapping[str, Any], environment: Environment = SCHEDULER_1_37) -> JSON:
    """The same from the evaluator that does not count."""
    kind = Kind(question.get("kind", "selector"))
    make = compile_selector if kind is Kind.SELECTOR else compile_derived
    try:
        program = make(question["expression"], environment)
    except CompileError as error:
        return {"compileError": str(error)}
    device = from_data(question.get("device") or {}).input
    try:
        if kind is Kind.SELECTOR:
            return {"match": program.matches(device)}
        return {"attribute": short(program.attribute(device))}
    except EvaluationFailed as error:
        return {"evalError": error.text}


def verdict(answer: Mapping[str, Any]) -> tuple[str, Any]:
    """What an answer says: its kind, and the value unless it is an error."""
    kind = next(kind for kind in _KINDS if kind in answer)
    return kind, None if kind.endswith("Error") else answer[kind]


def other_error(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Whether both do not compile, but one is invalid and the other an internal error."""
    known = ("RuleInvalid", "InternalError")
    kind = theirs.get("errorType")
    return kind in known and kind != ours.get("errorType", kind)


@dataclass
class Comparison:
    """How a number of answers compare."""

    asked: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    #: Where value or kind of error differ: question, theirs, ours.
    different: list[tuple[JSON, JSON, JSON]] = field(default_factory=list)
    costs: int = 0
    #: Where the cost differs, with theirs and ours.
    other_cost: list[tuple[JSON, int, int]] = field(default_factory=list)
    other_estimate: list[tuple[JSON, int, int]] = field(default_factory=list)
    other_type: list[tuple[JSON, str, str]] = field(default_factory=list)

    def add(self, question: JSON, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
        """Compare one pair of answers."""
        self.asked += 1
        kind, _ = verdict(theirs)
        self.kinds[kind] += 1
        if verdict(theirs) != verdict(ours) or other_error(theirs, ours):
            self.different.append((question, dict(theirs), dict(ours)))
            return
        if "outputType" in theirs and theirs["outputType"] != ours["outputType"]:
            self.other_type.append((question, theirs["outputType"], ours["outputType"]))
        if "maxCost" in theirs and int(theirs["maxCost"]) != ours["maxCost"]:
            self.other_estimate.append((question, int(theirs["maxCost"]), ours["maxCost"]))
        if "cost" in theirs:
            self.costs += 1
            if int(theirs["cost"]) != ours["cost"]:
                self.other_cost.append((question, int(theirs["cost"]), ours["cost"]))

    @property
    def worst_cost(self) -> float:
        """The largest relative difference of a cost."""
        return max(
            (abs(theirs - ours) / max(theirs, 1) for _, theirs, ours in self.other_cost), default=0
        )

    def report(self, examples: int = 10) -> str:
        """Counts, and the first of each sort of difference."""
        lines = [
            f"{self.asked} asked: {dict(self.kinds)}",
            (
                f"{len(self.different)} different; {len(self.other_cost)} of {self.costs} costs, "
                f"worst {self.worst_cost:.0%}; {len(self.other_estimate)} estimates; "
                f"{len(self.other_type)} types"
            ),
        ]
        for question, theirs, ours in self.different[:examples]:
            lines.append(f"  {question['expression']!r}\n    theirs {_brief(theirs)}")
            lines.append(f"    ours   {_brief(ours)}")
        for name, found in (
            ("cost", self.other_cost),
            ("estimate", self.other_estimate),
            ("type", self.other_type),
        ):
            lines += [f"  {name} {q['expression']!r}: {t} / {o}" for q, t, o in found[:examples]]
        return "\n".join(lines)


def _brief(answer: Mapping[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False)[:300]


def compared(
    questions: Iterable[JSON], answers: Iterable[Mapping[str, Any]], *, fast: bool = True
) -> Comparison:
    """Compare our answers with those of the reference; ``fast`` also asks the other evaluator."""
    found = Comparison()
    for question, theirs in zip(questions, answers, strict=True):
        ours = our_answer(question)
        found.add(question, theirs, ours)
        if fast and verdict(ours) != verdict(fast_answer(question)):
            found.different.append((question, dict(ours), fast_answer(question)))
    return found

"""What an expression says about a device, as data: the same for one device and for a batch."""

from __future__ import annotations

import time
from typing import Any, Final

from dra_cli.cel_devices import Subject, short
from dra_core.cel.checker import shown
from dra_core.cel.deadline import Clock
from dra_core.cel.environment import Environment
from dra_core.cel.faults import CompileError, EvaluationFailed
from dra_core.cel.program import Kind, Program, compile_derived, compile_selector
from dra_core.cel.tracker import LIMIT

JSON = dict[str, Any]

#: Above it a number of JSON is not exact for everybody who reads it, and is written as text.
_EXACT: Final = 2**53


def compiled(kind: Kind, expression: str, environment: Environment) -> Program:
    """The program of an expression. Errors: ``CompileError``."""
    make = compile_selector if kind is Kind.SELECTOR else compile_derived
    return make(expression, environment)


def facts(program: Program) -> JSON:
    """What is known without a device. ``aboveLimit``: an API server refuses it."""
    cost = program.max_cost
    return {
        "outputType": shown(program.output_type),
        "maxCost": cost if cost <= _EXACT else str(cost),
        "aboveLimit": cost > LIMIT,
    }


def refused(error: CompileError) -> JSON:
    """What is wrong with an expression; offsets are in code points."""
    places = [{"offset": fault.offset, "message": fault.text} for fault in error.faults]
    return {"compileError": str(error), "faults": places}


def answer(program: Program, subject: Subject, timeout: float) -> JSON:
    """What it says about a device within so many seconds."""
    clock = Clock(time.monotonic, time.monotonic() + timeout)
    outcome = program.evaluate(subject.input, clock=clock)
    try:
        value = program.answer(outcome)
    except EvaluationFailed as error:
        offset = program.offset(error.node)
        place = {} if offset is None else {"offset": offset}
        return {"evalError": error.text, **place, "cost": outcome.cost}
    if isinstance(value, bool) and program.kind is Kind.SELECTOR:
        return {"match": value, "cost": outcome.cost}
    return {"attribute": short(value), "cost": outcome.cost}

"""``dra cel``: what an expression of a selector or derived attribute gives, and what it costs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TextIO

import click

from dra_cli.cel_devices import Subject, from_data, from_file, from_slices, short
from dra_core.cel.checker import shown
from dra_core.cel.deadline import Clock
from dra_core.cel.environment import Environment, for_validation
from dra_core.cel.faults import CompileError, EvaluationFailed
from dra_core.cel.program import Kind, Program, compile_derived, compile_selector
from dra_core.cel.tracker import LIMIT
from dra_core.errors import DraError, InvalidValue
from dra_core.validation.servers import server

_MAX_COST_SHOWN: Final = 2**53


@click.command()
@click.argument("expression", required=False)
@click.option("--derived", is_flag=True, help="The expression is that of a derived attribute.")
@click.option(
    "--device",
    "device_file",
    metavar="FILE",
    help="One device, YAML or JSON: driver, attributes, capacity, allowMultipleAllocations.",
)
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="FILE|DIR|-",
    help="ResourceSlices: the expression is asked about all their devices. Repeatable.",
)
@click.option("--batch", metavar="FILE|-", help="Questions, one JSON object a line; see below.")
@click.option(
    "--new",
    is_flag=True,
    help="As an API server checks a new object; else as a scheduler runs what is stored.",
)
@click.option(
    "--kubernetes-version",
    default="1.37",
    show_default=True,
    metavar="VERSION",
    help="Whose environment: 1.36 or 1.37.",
)
@click.option("--timeout", default=10.0, show_default=True, help="Seconds for one evaluation.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def cel(
    *,
    expression: str | None,
    derived: bool,
    device_file: str | None,
    files: Sequence[str],
    batch: str | None,
    new: bool,
    kubernetes_version: str,
    timeout: float,
    output: str,
) -> int:
    """Evaluate a CEL EXPRESSION as the scheduler does: value, type, cost.

    Without devices the expression is compiled: its type and the most that it can cost. An error is
    shown where it is. In the scheduler an evaluation error is not "no match": it ends the attempt
    for the whole claim.

    --batch reads lines {id, kind: selector|derived, expression, device: {driver, attributes,
    capacity, allowMultipleAllocations}} and writes lines {id, match}, {id, attribute},
    {id, compileError} or {id, evalError}, with cost, outputType and maxCost.

    Exit status: 0 if all has a value, 1 after a compile or evaluation error, 2 if the call or an
    input cannot be understood.
    """
    environment = _environment(kubernetes_version, new=new)
    if batch is not None:
        if expression is not None or device_file or files:
            raise click.UsageError("--batch takes no expression, --device or --filename")
        return _batch(batch, environment, timeout)
    if expression is None:
        raise click.UsageError("give an expression, or --batch")
    if device_file and files:
        raise click.UsageError("give --device or --filename, not both")
    kind = Kind.DERIVED if derived else Kind.SELECTOR
    subjects = [from_file(device_file)] if device_file else list(from_slices(files))
    if files and not subjects:
        raise InvalidValue(f"{', '.join(files)}: no ResourceSlice with devices in it")
    report = _report(kind, expression, subjects, environment, timeout)
    click.echo(json.dumps(report, indent=2) if output == "json" else _text(report, kind))
    return 1 if report.get("compileError") or report.get("errors") else 0


def _environment(version: str, *, new: bool) -> Environment:
    known = server(version, {})
    if known.minor not in (36, 37):
        raise InvalidValue(
            f"--kubernetes-version {version}: only 1.36 and 1.37 are known to dra cel"
        )
    if not new:
        return Environment((1, known.minor))
    found = for_validation(
        known.minor,
        consumable_capacity=known.gates["DRAConsumableCapacity"],
        list_attributes=known.gates["DRAListTypeAttributes"],
    )
    assert found is not None  # noqa: S101 - new expressions are always checked
    return found


def _compiled(kind: Kind, expression: str, environment: Environment) -> Program:
    make = compile_selector if kind is Kind.SELECTOR else compile_derived
    return make(expression, environment)


def _report(
    kind: Kind,
    expression: str,
    subjects: Sequence[Subject],
    environment: Environment,
    timeout: float,
) -> dict[str, Any]:
    report: dict[str, Any] = {"kind": kind.value, "expression": expression}
    try:
        program = _compiled(kind, expression, environment)
    except CompileError as error:
        return report | _refused(error)
    report |= _compile_facts(program)
    answers = []
    for subject in subjects:
        answer = _answer(program, subject, timeout)
        where = {"driver": subject.driver, "pool": subject.pool, "device": subject.device.name}
        answers.append({key: value for key, value in where.items() if value} | answer)
    if subjects:
        report["devices"] = answers
        report["errors"] = sum("evalError" in answer for answer in answers)
    return report


def _compile_facts(program: Program) -> dict[str, Any]:
    cost = program.max_cost
    return {
        "outputType": shown(program.output_type),
        "maxCost": cost if cost <= _MAX_COST_SHOWN else str(cost),
        "aboveLimit": cost > LIMIT,
    }


def _refused(error: CompileError) -> dict[str, Any]:
    places = [{"offset": fault.offset, "message": fault.text} for fault in error.faults]
    return {"compileError": str(error), "faults": places}


def _answer(program: Program, subject: Subject, timeout: float) -> dict[str, Any]:
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


# -- text ------------------------------------------------------------------------------------------
def _text(report: Mapping[str, Any], kind: Kind) -> str:
    if "compileError" in report:
        return f"does not compile\n{report['compileError']}"
    lines = [f"type {report['outputType']}, costs at most {report['maxCost']} units"]
    if report["aboveLimit"]:
        lines.append(f"an API server refuses it: the limit is {LIMIT} units")
    devices = report.get("devices", [])
    rows = [[_name(answer), _value(answer, kind), str(answer["cost"])] for answer in devices]
    if rows:
        lines += _table([["DEVICE", "VALUE", "COST"], *rows])
    lines += [
        f"{_name(answer)}: {answer['evalError']}\n{_caret(report['expression'], answer)}"
        for answer in devices
        if "evalError" in answer
    ]
    if len(devices) > 1 and kind is Kind.SELECTOR:
        matching = sum(answer.get("match", False) for answer in devices)
        lines.append(f"{matching} of {len(devices)} devices match, {report['errors']} errors")
    return "\n".join(lines)


def _name(answer: Mapping[str, Any]) -> str:
    return "/".join(answer[key] for key in ("driver", "pool", "device") if key in answer)


def _value(answer: Mapping[str, Any], kind: Kind) -> str:
    if "evalError" in answer:
        return "error"
    if kind is Kind.SELECTOR:
        return "match" if answer["match"] else "no match"
    return json.dumps(answer["attribute"], ensure_ascii=False)


def _caret(expression: str, answer: Mapping[str, Any]) -> str:
    offset = answer.get("offset", 0)
    start = expression.rfind("\n", 0, offset) + 1
    line = expression[start:].partition("\n")[0]
    return f" | {line}\n | {'.' * (offset - start)}^"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


# -- batch -----------------------------------------------------------------------------------------
def _batch(name: str, environment: Environment, timeout: float) -> int:
    failed = False
    for line in _lines(name):
        answer = _batch_answer(line, environment, timeout)
        failed = failed or not ("match" in answer or "attribute" in answer)
        sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
    sys.stdout.flush()
    return 1 if failed else 0


def _lines(name: str) -> Iterator[str]:
    if name == "-":
        yield from _questions(sys.stdin)
        return
    try:
        with open(name, encoding="utf-8") as file:  # noqa: PTH123 - a name as given
            yield from _questions(file)
    except OSError as error:
        raise InvalidValue(f"{name}: {error.strerror}") from error


def _questions(file: TextIO) -> Iterator[str]:
    return (line for line in file if line.strip())


def _batch_answer(line: str, environment: Environment, timeout: float) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    try:
        question = json.loads(line)
        if not isinstance(question, dict) or not isinstance(question.get("expression"), str):
            raise InvalidValue("a question is an object with an expression")
        answer["id"] = question.get("id")
        kind = Kind(question.get("kind", "selector"))
        subject = from_data(question.get("device") or {})
        program = _compiled(kind, question["expression"], environment)
    except CompileError as error:
        return answer | {"compileError": str(error)}
    except (DraError, ValueError, RecursionError) as error:
        return answer | {"error": " ".join(str(error).split())}
    return answer | _answer(program, subject, timeout) | _compile_facts(program)

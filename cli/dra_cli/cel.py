"""``dra cel``: what an expression of a selector or derived attribute gives, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import click

from dra_cli import cel_batch
from dra_cli.cel_answers import JSON, answer, compiled, facts, refused
from dra_cli.cel_devices import Subject, from_file, from_slices
from dra_cli.gates import parsed
from dra_core.cel.environment import Environment
from dra_core.cel.faults import CompileError
from dra_core.cel.program import Kind
from dra_core.cel.tracker import LIMIT
from dra_core.errors import InvalidValue
from dra_core.validation.servers import server

#: Characters of the cost of an evaluation, which ends soon after the limit.
_COST_WIDTH: Final = len(str(LIMIT))


@click.command()
@click.argument("expression", required=False)
@click.option("--derived", is_flag=True, help="The expression is that of a derived attribute.")
@click.option(
    "--device",
    "device_file",
    metavar="FILE|-",
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
@click.option("--batch", metavar="FILE|-", help="Questions, one JSON object a line; see above.")
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
    help="Whose environment: 1.36, 1.37.",
)
@click.option(
    "--feature-gates",
    default="",
    metavar="NAME=true,…",
    help="Gates that are set other than by default.",
)
@click.option(
    "--timeout",
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="For one evaluation.",
)
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
    feature_gates: str,
    timeout: float,
    output: str,
) -> int:
    """Evaluate a CEL EXPRESSION as the scheduler does: value, type, cost.

    Without devices the expression is compiled: its type and the most that it can cost. An error is
    shown where it is. In the scheduler an evaluation error is not "no match": it ends the attempt
    for the whole claim.

    --batch reads lines {id, kind: selector|derived, expression, device: {driver, attributes,
    capacity, allowMultipleAllocations}} and writes lines {id, match}, {id, attribute},
    {id, compileError} or {id, evalError}, with cost, outputType and maxCost; {error} for a line
    that is no question.

    Exit status: 0 if all has a value, 1 after a compile or evaluation error, 2 if the call or an
    input cannot be understood.
    """
    if not timeout > 0:
        raise click.UsageError("--timeout is a number of seconds above zero")
    environment = _environment(kubernetes_version, feature_gates, new=new)
    if batch is not None:
        if expression is not None or device_file or files or derived:
            raise click.UsageError("--batch takes no expression, --derived, --device or --filename")
        return cel_batch.run(batch, environment, timeout)
    if expression is None:
        raise click.UsageError("give an expression, or --batch")
    if device_file and files:
        raise click.UsageError("give --device or --filename, not both")
    _check_text(expression)
    kind = Kind.DERIVED if derived else Kind.SELECTOR
    subjects = [from_file(device_file)] if device_file else list(from_slices(files))
    if files and not subjects:
        where = ", ".join("standard input" if name == "-" else name for name in files)
        raise InvalidValue(f"{where}: no ResourceSlice with devices in it")
    report, answers = _report(kind, expression, environment, subjects, timeout)
    if output == "json":
        return _print_json(report, answers)
    return _print(report, answers, kind, subjects)


def _environment(version: str, gates: str, *, new: bool) -> Environment:
    known = server(version, parsed(gates))
    return Environment(
        (1, known.minor),
        stored=not new,
        consumable_capacity=known.has("DRAConsumableCapacity"),
        list_attributes=known.has("DRAListTypeAttributes"),
    )


def _check_text(expression: str) -> None:
    try:
        expression.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"the expression is not text in UTF-8 (character {error.start})"
        ) from error


def _report(
    kind: Kind,
    expression: str,
    environment: Environment,
    subjects: Sequence[Subject],
    timeout: float,
) -> tuple[JSON, Iterable[JSON]]:
    """What is said about the expression, and the answers about devices as they are found."""
    report: JSON = {"kind": kind.value, "expression": expression}
    try:
        program = compiled(kind, expression, environment)
    except CompileError as error:
        return report | refused(error), ()
    answers = (_place(subject) | answer(program, subject, timeout) for subject in subjects)
    return report | facts(program), answers


def _place(subject: Subject) -> JSON:
    where = {"driver": subject.driver, "pool": subject.pool, "device": subject.device.name}
    return {key: value for key, value in where.items() if value}


def _print_json(report: JSON, answers: Iterable[JSON]) -> int:
    found = list(answers)
    errors = sum("evalError" in one for one in found)
    if found:
        report |= {"devices": found, "errors": errors}
    click.echo(json.dumps(report, indent=2))
    return 1 if errors or "compileError" in report else 0


# -- text ------------------------------------------------------------------------------------------
def _print(report: JSON, answers: Iterable[JSON], kind: Kind, subjects: Sequence[Subject]) -> int:
    """Rows come as they are found; errors follow, each kind of error once."""
    if "compileError" in report:
        click.echo(f"does not compile\n{report['compileError']}")
        return 1
    click.echo(f"type {report['outputType']}, costs at most {report['maxCost']} units")
    if report["aboveLimit"]:
        click.echo(f"an API server refuses it: the limit is {LIMIT} units")
    if not subjects:
        return 0
    width = max(len(_name(_place(subject))) for subject in subjects)
    click.echo(f"{'DEVICE':{width}}  {'COST':>{_COST_WIDTH}}  VALUE")
    matching, failed = 0, dict[tuple[str, int | None], list[str]]()
    for one in answers:
        click.echo(f"{_name(one):{width}}  {one['cost']:>{_COST_WIDTH}}  {_value(one)}")
        matching += bool(one.get("match"))
        if "evalError" in one:
            failed.setdefault((one["evalError"], one.get("offset")), []).append(_name(one))
    for line in _failures(report["expression"], failed):
        click.echo(line)
    if len(subjects) > 1 and kind is Kind.SELECTOR:
        errors = sum(map(len, failed.values()))
        click.echo(f"{matching} of {len(subjects)} devices match, {errors} errors")
    return 1 if failed else 0


def _name(one: Mapping[str, Any]) -> str:
    return "/".join(one[key] for key in ("driver", "pool", "device") if key in one)


def _value(one: Mapping[str, Any]) -> str:
    if "evalError" in one:
        return "error"
    if "match" in one:
        return "match" if one["match"] else "no match"
    return json.dumps(one["attribute"], ensure_ascii=False)


def _failures(
    expression: str, failed: Mapping[tuple[str, int | None], Sequence[str]]
) -> Iterator[str]:
    for (text, offset), names in failed.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{names[0]}{more}: {text}"
        if offset is not None:
            yield _caret(expression, offset)


def _caret(expression: str, offset: int) -> str:
    start = expression.rfind("\n", 0, offset) + 1
    line = expression[start:].partition("\n")[0]
    return f" | {line}\n | {'.' * (offset - start)}^"

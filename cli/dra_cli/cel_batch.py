"""Questions about expressions, one JSON object a line, and their answers, line by line.

No line ends a batch: what cannot be understood is answered with an error. Each answer is written
out before the next line is read, so that another program can ask and wait.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from dra_cli.cel_answers import JSON, answer, compiled, facts, refused
from dra_cli.cel_devices import from_data
from dra_core.cel.environment import Environment
from dra_core.cel.faults import CompileError
from dra_core.cel.program import Kind
from dra_core.errors import DraError, InvalidValue

#: Bytes of a line. An expression has at most 10 KiB, a device of the API at most some 100 KiB.
MAX_LINE: Final = 4 * 2**20
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_KINDS: Final = {kind.value: kind for kind in Kind}


def run(name: str, environment: Environment, timeout: float) -> int:
    """Answer all questions of a file (``-``: of standard input); the exit status."""
    if name == "-":
        return _answered(sys.stdin.buffer, environment, timeout)
    try:
        with open(name, "rb") as file:  # noqa: PTH123 - a name as given
            return _answered(file, environment, timeout)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InvalidValue(f"{name}: {error.strerror}") from error


def _answered(file: BinaryIO, environment: Environment, timeout: float) -> int:
    status = 0
    out = sys.stdout.buffer
    for number, line in _lines(file):
        found = _answer(line, environment, timeout)
        if "error" in found:
            found |= {} if "id" in found else {"line": number}
            status = 2
        elif "match" not in found and "attribute" not in found:
            status = status or 1
        out.write(_written(found))
        out.flush()
    return status


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers; of one that is too long a part."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        rest = line
        while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE + 1)
        if line.strip():
            yield number, line


def _answer(line: bytes, environment: Environment, timeout: float) -> JSON:
    found: JSON = {}
    try:
        question = _question(line)
        found["id"] = _identifier(question)
        kind, expression = _asked(question)
        device = question.get("device")
        subject = from_data({} if device is None else device)
        program = compiled(kind, expression, environment)
        return found | answer(program, subject, timeout) | facts(program)
    except CompileError as error:
        return found | refused(error)
    except (DraError, RecursionError) as error:
        return found | {"error": _sentence(error)}


def _question(line: bytes) -> JSON:
    if len(line) > MAX_LINE:
        raise InvalidValue(f"the line is longer than {MAX_LINE // 2**20} MiB")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise InvalidValue(f"the line is not text in UTF-8 (byte {error.start})") from error
    try:
        question = json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise InvalidValue("the line is nested too deep") from error
    except ValueError as error:
        raise InvalidValue(f"the line is not JSON: {error}") from error
    if not isinstance(question, dict):
        raise InvalidValue("a question is an object")
    return _whole(question) if "\\u" in text else question


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _whole(value: Any) -> Any:
    """The same with U+FFFD for halves of characters, which is how Kubernetes reads them."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _identifier(question: JSON) -> str | float | None:
    found = question.get("id")
    if found is None or isinstance(found, str | int | float):
        return found
    raise InvalidValue(f"id is text or a number, not {_kind(found)}")


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else "an object"


def _asked(question: JSON) -> tuple[Kind, str]:
    expression, kind = question.get("expression"), question.get("kind")
    if not isinstance(expression, str):
        raise InvalidValue("a question has an expression, which is text")
    if kind is None:
        return Kind.SELECTOR, expression
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidValue(f"kind is one of {', '.join(_KINDS)}, not {_brief(kind)}")
    return _KINDS[kind], expression


def _brief(value: object) -> str:
    return repr(value)[:60] if isinstance(value, str | int | float) else _kind(value)


def _sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the expression or the device is nested too deep"
    return " ".join(str(error).split())


def _written(found: JSON) -> bytes:
    """ASCII, since some readers take characters such as U+2028 for the end of a line."""
    return json.dumps(found).encode() + b"\n"

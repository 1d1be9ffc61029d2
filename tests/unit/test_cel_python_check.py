"""An independent check: cel-python 0.5.0 gives the same values, on what it gets right.

Left out, because cel-python is wrong or silent there:

* ``.?``, ``[?…]``, optional entries, ``cel.bind``, macros of two variables, ``.name``: no grammar;
* the libraries of Kubernetes and the extensions (strings, lists, sets, format): it has none;
* numbers of two kinds side by side (``1 == 1.0``, ``1 < 2u``), ``dyn(true) == 1``, lists or maps of
  several kinds: it has errors or ``true`` where the answer is a value or ``false``;
* errors as items (``{'a': 1 / 0}.size()``), beside ``&&``, ``||`` and ``?:``, and in macros
  (``[0, 1].exists(x, 1 / x == 1)``): it evaluates every side and every item;
* ``string(true)``, ``string(1.0)`` and doubles as text: it writes them as Python does;
* ``"%d" % …`` and text with numbers: Python's operators show through;
* ``contains`` of what ``+`` made, which is no text of CEL there any more;
* time zones and fractions of a second in getters, durations of less than a microsecond;
* ``"abc".exists(…)``, ``has()`` of what is no map: values where the reference has errors;
* everything that a type check refuses: it has none. So all expressions here are well typed.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import celpy
import pytest
from celpy import celtypes
from celpy.evaluation import CELEvalError

from dra_core.cel.devices import DeviceInput, device_input
from dra_core.cel.faults import EvaluationFailed, PlanError
from dra_core.cel.program import compile_selector
from dra_core.cel.values import Duration, Map, Timestamp, Uint
from dra_core.model.devices import Device
from dra_core.names import DeviceName

COUNT: Final = 400
SEED: Final = int(os.environ.get("DRAGOMAN_SEED") or random.SystemRandom().randrange(10**6))
ERROR: Final = "an error"
_MICROSECOND: Final = dt.timedelta(microseconds=1)

#: Evaluates an expression to a plain value, or ``ERROR``.
Evaluate = Callable[[str], object]


@pytest.fixture(scope="module")
def theirs() -> Iterator[Evaluate]:
    """cel-python, which sets Python's recursion limit for all: it gets its own for this module."""
    limit = sys.getrecursionlimit()
    environment = celpy.Environment()

    def evaluate(expression: str) -> object:
        program = environment.program(environment.compile(expression))
        try:
            return _theirs(program.evaluate({}))
        except CELEvalError:
            return ERROR

    yield evaluate
    sys.setrecursionlimit(limit)


@pytest.fixture(scope="module")
def device() -> DeviceInput:
    return device_input("a.io", Device(DeviceName("d")))


def ours(expression: str, device: DeviceInput) -> object:
    try:
        return _ours(compile_selector(f"dyn({expression})").value(device))
    except (EvaluationFailed, PlanError):  # the conversion of a constant fails beforehand
        return ERROR


# -- both sorts of values as plain ones: (kind, value) --


def _theirs(value: Any) -> object:
    if isinstance(value, CELEvalError):  # an error is a value there, also in a list
        raise value
    if isinstance(value, list):
        return "list", [_theirs(item) for item in value]
    if isinstance(value, dict):
        return "map", sorted((_theirs(key), _theirs(item)) for key, item in value.items())
    if isinstance(value, dt.datetime):
        return "timestamp", (dt.datetime.fromtimestamp(0, dt.UTC) - value) // -_MICROSECOND
    if isinstance(value, dt.timedelta):
        return "duration", value // _MICROSECOND
    for name, kind, plain in _SCALARS:  # results are of Python's own kinds now and then
        if isinstance(value, kind):
            return name, plain(value)
    raise TypeError(f"{value!r} of {type(value)}")


_SCALARS: Final[tuple[tuple[str, Any, Any], ...]] = (
    ("bool", (celtypes.BoolType, bool), bool),
    ("uint", celtypes.UintType, int),
    ("int", int, int),
    ("double", float, float),
    ("string", str, str),
    ("bytes", bytes, bytes),
)


def _ours(value: Any) -> object:
    if type(value) is list:
        return "list", [_ours(item) for item in value]
    if type(value) is Map:
        return "map", sorted((_ours(key), _ours(item)) for key, item in value.items())
    if type(value) is Timestamp or type(value) is Duration:
        return type(value).__name__.lower(), value.nanos // 1000
    names = {bool: "bool", int: "int", Uint: "uint", float: "double", str: "string"}
    return names.get(type(value), "bytes"), int(value) if type(value) is Uint else value


# -- expressions --


class _Writer:
    """Writes well-typed expressions; ``variables`` are those of the loops around a place."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._variables: list[tuple[str, str]] = []

    def write(self, kind: str, depth: int) -> str:
        known = [name for name, of in self._variables if of == kind]
        if known and self._rng.random() < 0.4:
            return self._rng.choice(known)
        if depth == 0:
            return self._rng.choice(_LITERALS[kind])
        return self._filled(self._rng.choice(_FORMS[kind]), depth - 1)

    def _filled(self, form: str, depth: int) -> str:
        """``{int}`` becomes an int, ``{x=int:bool}`` a bool that may use ``x``, ``«`` a brace."""
        text, rest = "", form
        while "{" in rest:
            before, _, rest = rest.partition("{")
            hole, _, rest = rest.partition("}")
            text += before + self._hole(hole, depth)
        return (text + rest).replace("«", "{").replace("»", "}")

    def _hole(self, hole: str, depth: int) -> str:
        variable, _, kind = hole.rpartition(":")
        if not variable:
            return self.write(kind, depth)
        name, _, of = variable.partition("=")
        self._variables.append((name, of))
        text = self.write(kind, depth)
        self._variables.pop()
        return text


_SMALL: Final = ["0", "1", "2"]
_TEXTS: Final = ['""', '"a"', '"ab"', '"b c"', '"\u00fc\U0001f600"', '"A100"']
_LITERALS: Final = {
    "cheap": ["x > 1"],
    "short": ["true"],
    "small": _SMALL,
    "int": ["0", "1", "2", "-3", "7", "42", "9223372036854775807", "-9223372036854775808"],
    "uint": ["0u", "1u", "5u", "18446744073709551615u"],
    "double": ["0.0", "1.5", "-2.25", "1e3"],
    "bool": ["true", "false"],
    "string": _TEXTS,
    "text": _TEXTS,
    "ints": ["[1]", "[3, 1, 2]", "[0, 0]"],
    "strings": ["['a']", "['b', 'a', 'ab']"],
    "map": ["«'a': 1»", "«'a': 1, 'b': 2»"],
    "timestamp": [
        "timestamp('2024-02-29T12:30:45Z')", "timestamp('1970-01-01T00:00:00Z')",
        "timestamp('1999-12-31T23:59:59+02:00')",
    ],
    "duration": ["duration('1h')", "duration('90s')", "duration('-2m')", "duration('1h30m')"],
}  # fmt: skip

_FORMS: Final = {
    "small": _SMALL,
    "text": _TEXTS,
    "int": [
        *(f"({{int}} {sign} {{int}})" for sign in "+-*/%"), "-({int})", "size({string})",
        "size({ints})", "{ints}.size()", "({bool} ? {int} : {int})", "{ints}[0]", "{map}['a']",
        "{map}.a", "{timestamp}.getFullYear()", "{timestamp}.getMonth()", "{timestamp}.getDate()",
        "{timestamp}.getDayOfWeek()", "{timestamp}.getHours()", "{timestamp}.getMinutes()",
        "{timestamp}.getSeconds()", "{duration}.getHours()", "{duration}.getMinutes()",
        "{duration}.getSeconds()", "int('17')", "int(5u)", "int({timestamp})",
    ],
    "uint": [*(f"({{uint}} {sign} {{uint}})" for sign in "+-*/%"), "uint('3')"],
    "double": [*(f"({{double}} {sign} {{double}})" for sign in "+-*"), "double('2.5')"],
    "bool": [
        "({bool} && {bool})", "({bool} || {bool})", "!{bool}", "({bool} ? {bool} : {bool})",
        *(
            f"({{{kind}}} {sign} {{{kind}}})"
            for kind in ("int", "uint", "double", "string", "timestamp", "duration")
            for sign in ("==", "!=", "<", "<=", ">", ">=")
        ),
        "({ints} == {ints})", "({strings} != {strings})", "({map} == {map})",
        "({int} in {ints})", "({string} in {strings})", "({string} in {map})",
        "{text}.contains({string})", "{string}.startsWith({string})",
        "{string}.endsWith({string})", "{string}.matches('^[a-z]+')", "has({map}.b)",
        "{ints}.all(x, {x=int:cheap})", "{ints}.exists(x, {x=int:cheap})",
        "{ints}.exists_one(x, {x=int:cheap})", "{strings}.exists(s, {s=string:short})",
        "{map}.all(k, {k=string:short})",
    ],
    "cheap": ["x > {small}", "x == {small}", "(x > {small} && x < 3)", "!(x == 1)"],
    "short": ["size({string}) > 1", "{string} == 'a'", "{string}.startsWith('a')"],
    "string": [
        "({string} + {string})", "({bool} ? {string} : {string})", "{strings}[0]",
        "string({int})", "string({uint})", "string(b'xyz')",
    ],
    "ints": [
        "({ints} + {ints})", "[{small}, {small}]", "{ints}.filter(x, {x=int:cheap})",
        "{ints}.map(x, x == 1 ? 2 : x)", "({bool} ? {ints} : {ints})",
    ],
    "strings": ["({strings} + {strings})", "[{string}]", "{strings}.map(s, s + 'z')"],
    "map": ["«'a': {small}, 'c': {small}»", "({bool} ? {map} : {map})"],
    "timestamp": ["({timestamp} + {duration})", "({timestamp} - {duration})"],
    "duration": ["({duration} + {duration})", "({timestamp} - {timestamp})"],
}  # fmt: skip

_KINDS: Final = ("int", "uint", "double", "bool", "string", "ints", "strings", "map", "timestamp")


@pytest.mark.parametrize("seed", [SEED], ids=[f"seed-{SEED}"])
def test_values_are_those_of_cel_python(
    theirs: Evaluate, device: DeviceInput, seed: int, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    different = []
    values = 0
    for number in range(COUNT):
        text = _Writer(rng).write(_KINDS[number % len(_KINDS)], rng.choice([1, 2, 2, 3]))
        expected = theirs(text)
        values += expected is not ERROR
        if ours(text, device) != expected:
            different.append((text, expected, ours(text, device)))
    assert not different, (len(different), different[:5])
    assert values >= COUNT // 2
    assert capfd.readouterr() == ("", "")

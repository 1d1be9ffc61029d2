"""``string.format``, in the form that version 2 of the string library has.

``%f`` and ``%e`` at the top are written for American readers (``1,234.500000``, ``∞``, and a power
of ten with a superscript), and with the quirks of the Go package that does it: the number in
``%.9e`` is the least width, not the precision; the precision of ``%f`` is cut to 8 bits where it
asks for zeros and to 16 bits where it rounds; and one above 10,000,009 gives ``%!(NOVERB)``. Inside
lists and maps values are written as in an expression, doubles with six digits behind the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from dra_core.cel.faults import EvalError
from dra_core.cel.library.bounds import check_text
from dra_core.cel.library.conversions import TEXTS
from dra_core.cel.library.numerals import parse_double, parse_int
from dra_core.cel.library.quoting import quoted
from dra_core.cel.values import Duration, Map, Timestamp, Uint, Value, type_of

_DEFAULT_PRECISION: Final = 6
_WIDEST: Final = 1_000_000
_NO_VERB: Final = "%!(NOVERB)"
_NOT_FINITE: Final = frozenset(("NaN", "Infinity", "-Infinity"))
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
#: What a clause says of a value it does not take.
WRONG_KIND: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
    "types, durations, and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}


def wrong_kind(verb: str, kind: str) -> EvalError:
    """The clause does not take a value of that type."""
    return EvalError(f"error during formatting: {WRONG_KIND[verb]}, was given {kind}")


@dataclass(frozen=True, slots=True)
class Clause:
    """``%.3f``: which argument it is for, the letter, and the number if there is one."""

    argument: int
    verb: str
    precision: int | None = None


def clauses(pattern: str, given: int) -> Iterator[str | Clause]:
    """The text between the clauses, and the clauses, in order; ``given`` arguments are there.

    Errors: ``EvalError`` for a clause that is none or has no argument.
    """
    place = argument = 0
    while (percent := pattern.find("%", place)) >= 0:
        yield pattern[place:percent]
        if pattern.startswith("%", percent + 1):
            yield "%"
            place = percent + 2
            continue
        if percent + 1 == len(pattern):
            raise EvalError("unexpected end of string")
        if argument >= given:
            raise EvalError(f"index {argument} out of range")
        clause, place = _clause(pattern, percent + 1, argument)
        yield clause
        argument += 1
    yield pattern[place:]


def _clause(pattern: str, place: int, argument: int) -> tuple[Clause, int]:
    precision = None
    if pattern[place] == ".":
        start = place + 1
        place = start
        while place < len(pattern) and pattern[place] in "0123456789":
            place += 1
        if place == len(pattern):
            raise _unreadable("error while parsing precision: could not find its end")
        precision = parse_int(pattern[start:place])
        if precision is None:
            raise _unreadable(f"error while parsing precision: {pattern[start:place]!r}")
    verb = pattern[place]
    if verb not in WRONG_KIND:
        raise _unreadable(f'unrecognized formatting clause "{verb}"')
    return Clause(argument, verb, precision), place + 1


def _unreadable(text: str) -> EvalError:
    return EvalError(f"could not parse formatting clause: {text}")


def formatted(pattern: str, args: list[Value]) -> str:
    """The pattern with the arguments in place of its clauses.

    Errors: ``EvalError`` for a clause that is none, has no argument, or one of the wrong type;
    ``CostExceeded`` for a text that is too long. Arguments without a clause do not matter.
    """
    budget = _Budget()
    parts = []
    for piece in clauses(pattern, len(args)):
        if isinstance(piece, str):
            parts.append(budget.take(piece))
        else:
            parts.append(_clause_text(piece, args[piece.argument], budget))
    return "".join(parts)


class _Budget:
    """Counts what is written, so that values that hold one another many times over stay small."""

    def __init__(self) -> None:
        self._written = 0

    def take(self, text: str) -> str:
        self._written += len(text)
        check_text(self._written)
        return text


def _clause_text(clause: Clause, value: Value, budget: _Budget) -> str:
    if clause.verb == "s":
        return _string(value, budget)
    writer = _NUMBERS[clause.verb]
    text = writer(value, _DEFAULT_PRECISION if clause.precision is None else clause.precision)
    if text is None:
        raise wrong_kind(clause.verb, type_of(value).name)
    return budget.take(text)


# -- %s --------------------------------------------------------------------------------------------
def _string(value: Value, budget: _Budget) -> str:
    kind = type(value)
    if kind is list:
        return _list(value, budget)
    if kind is Map:
        return _map(value, budget)
    write = TEXTS.get(kind)
    if write is None:
        raise wrong_kind("s", type_of(value).name)
    return budget.take(write(value))


def _list(items: list[Value], budget: _Budget) -> str:
    parts = []
    for item in items:
        budget.take(", ")
        parts.append(_literal(item, budget))
    return f"[{', '.join(parts)}]"


def _map(entries: Map, budget: _Budget) -> str:
    pairs = []
    for key, value in entries.items():
        if type(key) not in (str, bool, int, Uint):
            raise _unformatted(f"map key of type {type_of(key).name}")
        budget.take(":, ")
        pairs.append((_literal(key, budget), _literal(value, budget)))
    pairs.sort(key=lambda pair: pair[0])
    inner = ", ".join(f"{key}:{value}" for key, value in pairs)
    return f"{{{inner}}}"


def _literal(value: Value, budget: _Budget) -> str:
    """A value inside a list or a map, written as in an expression."""
    kind = type(value)
    if kind is list:
        return _list(value, budget)
    if kind is Map:
        return _map(value, budget)
    write = _LITERALS.get(kind) or TEXTS.get(kind)
    if write is None:
        raise _unformatted(type_of(value).name)
    return budget.take(write(value))


def _unformatted(what: str) -> EvalError:
    return EvalError(f"error during formatting: no formatting function for {what}")


def _double_literal(number: float) -> str:
    if math.isfinite(number):
        return f"{number:.6f}"
    return f'"{TEXTS[float](number)}"'


_LITERALS: Final[dict[type, Callable[..., str]]] = {
    str: quoted,
    bytes: lambda value: f"b{quoted(TEXTS[bytes](value))}",
    float: _double_literal,
    Duration: lambda value: f'duration("{TEXTS[Duration](value)}")',
    Timestamp: lambda value: f'timestamp("{TEXTS[Timestamp](value)}")',
}


# -- %d %f %e %b %x %o -----------------------------------------------------------------------------
def _decimal(value: Value, _precision: int) -> str | None:
    return str(int(value)) if type(value) in (int, Uint) else None


def _octal(value: Value, _precision: int) -> str | None:
    return f"{int(value):o}" if type(value) in (int, Uint) else None


def _binary(value: Value, _precision: int) -> str | None:
    return f"{int(value):b}" if type(value) in (int, Uint, bool) else None


def _hex(value: Value, _precision: int) -> str | None:
    if type(value) in (int, Uint):
        return f"{int(value):x}"
    if type(value) is str:
        return value.encode().hex()
    return value.hex() if type(value) is bytes else None


def _upper_hex(value: Value, precision: int) -> str | None:
    text = _hex(value, precision)
    return None if text is None else text.upper()


def _double(value: Value) -> float | None:
    """A double, or one of the texts for those that are no numbers."""
    if type(value) is str and value in _NOT_FINITE:
        return parse_double(value)
    return value if type(value) is float else None


def _fixed(value: Value, precision: int) -> str | None:
    number = _double(value)
    if number is None:
        return None
    if precision // 10 > _WIDEST:
        return _NO_VERB
    special = _special(number)
    if special is not None:
        return special
    zeros, digits = precision % 2**8, (precision + 2**15) % 2**16 - 2**15
    size = abs(number)
    plain = f"{size:.{digits}f}" if digits >= 0 else format(Decimal(repr(size)), "f")
    whole, _, fraction = plain.partition(".")
    fraction = fraction.rstrip("0").ljust(zeros, "0")
    point = "." if fraction else ""
    return f"{'-' if number < 0 else ''}{int(whole):,}{point}{fraction}"


def _scientific(value: Value, width: int) -> str | None:
    number = _double(value)
    if number is None:
        return None
    if width // 10 > _WIDEST:
        return _NO_VERB
    text = _special(number)
    if text is None:
        mantissa, _, exponent = f"{abs(number):.6e}".partition("e")
        power = f"{int(exponent):0{3 if exponent.startswith('-') else 2}d}"
        sign = "-" if number < 0 else ""
        text = f"{sign}{mantissa}\u00d710{power.translate(_SUPERSCRIPT)}"
    return text.rjust(width % 2**16)


def _special(number: float) -> str | None:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return None


_NUMBERS: Final[dict[str, Callable[[Value, int], str | None]]] = {
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": _upper_hex,
    "o": _octal,
}

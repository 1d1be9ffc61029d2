"""``+ - * / %`` and the sign.

Integers have 64 bits and do not wrap around; doubles are those of IEEE 754, dividing by zero
included. Texts: "integer overflow", "division by zero" and so on, as the reference has them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type
from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.library import bounds
from dra_core.cel.signatures import Overload
from dra_core.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, Uint, Value

SECOND: Final = 10**9
#: Seconds of the first and the last moment, of the years 1 and 9999.
FIRST_SECOND: Final = -62_135_596_800
LAST_SECOND: Final = 253_402_300_799


def whole(number: int) -> int:
    """A result as an int. Errors: ``EvalError`` "integer overflow"."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvalError("integer overflow")


def unsigned(number: int) -> Uint:
    """A result as a uint. Errors: ``EvalError`` "unsigned integer overflow"."""
    if 0 <= number <= UINT_MAX:
        return Uint(number)
    raise EvalError("unsigned integer overflow")


def moment(nanos: int, offset: int = 0) -> Timestamp:
    """A timestamp. Errors: ``EvalError`` "timestamp overflow" before the year 1, after 9999."""
    if FIRST_SECOND <= nanos // SECOND <= LAST_SECOND:
        return Timestamp(nanos, offset)
    raise EvalError("timestamp overflow")


def _add_int(left: int, right: int) -> int:
    total = left + right
    if INT_MIN <= total <= INT_MAX:
        return total
    raise EvalError("integer overflow")


def _subtract_int(left: int, right: int) -> int:
    rest = left - right
    if INT_MIN <= rest <= INT_MAX:
        return rest
    raise EvalError("integer overflow")


def _multiply_int(left: int, right: int) -> int:
    product = left * right
    if INT_MIN <= product <= INT_MAX:
        return product
    raise EvalError("integer overflow")


def _divide_int(left: int, right: int) -> int:
    """Towards zero."""
    if right == 0:
        raise EvalError("division by zero")
    quotient = abs(left) // abs(right)
    return whole(quotient if (left < 0) == (right < 0) else -quotient)


def _modulo_int(left: int, right: int) -> int:
    """What ``/`` leaves: it has the sign of the left side."""
    if right == 0:
        raise EvalError("modulus by zero")
    if right == -1:
        whole(-left)  # the quotient does not fit, and the reference computes both at once
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _add_uint(left: Uint, right: Uint) -> Uint:
    return unsigned(left + right)


def _subtract_uint(left: Uint, right: Uint) -> Uint:
    return unsigned(left - right)


def _multiply_uint(left: Uint, right: Uint) -> Uint:
    return unsigned(left * right)


def _divide_uint(left: Uint, right: Uint) -> Uint:
    if right == 0:
        raise EvalError("division by zero")
    return Uint(int(left) // int(right))


def _modulo_uint(left: Uint, right: Uint) -> Uint:
    if right == 0:
        raise EvalError("modulus by zero")
    return Uint(int(left) % int(right))


def _divide_double(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _negate(number: Value) -> Value:
    """``-x``; a duration has a sign too, though only where its type was not known before."""
    if type(number) is int:
        return whole(-number)
    if type(number) is float:
        return -number
    if type(number) is Duration:
        return Duration(whole(-number.nanos))
    raise no_such_overload("-_" if type(number) is not bool else "")


def _add_lists(left: list[Value], right: list[Value]) -> list[Value]:
    bounds.check_items(len(left) + len(right))
    return left + right


def _add_durations(left: Duration, right: Duration) -> Duration:
    return Duration(whole(left.nanos + right.nanos))


def _subtract_durations(left: Duration, right: Duration) -> Duration:
    return Duration(whole(left.nanos - right.nanos))


def _later(start: Timestamp, span: Duration) -> Timestamp:
    return moment(start.nanos + span.nanos, start.offset)


def _after(span: Duration, start: Timestamp) -> Timestamp:
    return _later(start, span)


def _earlier(start: Timestamp, span: Duration) -> Timestamp:
    return moment(start.nanos + whole(-span.nanos), start.offset)


def _between(end: Timestamp, start: Timestamp) -> Duration:
    """The reference scales the whole seconds first, which can overflow where the sum would not."""
    seconds = end.nanos // SECOND - start.nanos // SECOND
    fraction = end.nanos % SECOND - start.nanos % SECOND
    return Duration(whole(whole(seconds * SECOND) + fraction))


def _same(function: str, overload: str, of: Type, call: Callable[..., Value]) -> Overload:
    return Overload(overload, function, (of, of), of, call)


_LIST = celtypes.list_of(celtypes.param("A"))

OVERLOADS: Final[tuple[Overload, ...]] = (
    _same("_+_", "add_bytes", BYTES, operator.add),
    _same("_+_", "add_double", DOUBLE, operator.add),
    _same("_+_", "add_duration_duration", DURATION, _add_durations),
    Overload("add_duration_timestamp", "_+_", (DURATION, TIMESTAMP), TIMESTAMP, _after),
    Overload("add_timestamp_duration", "_+_", (TIMESTAMP, DURATION), TIMESTAMP, _later),
    _same("_+_", "add_int64", INT, _add_int),
    _same("_+_", "add_list", _LIST, _add_lists),
    _same("_+_", "add_string", STRING, operator.add),
    _same("_+_", "add_uint64", UINT, _add_uint),
    _same("_/_", "divide_double", DOUBLE, _divide_double),
    _same("_/_", "divide_int64", INT, _divide_int),
    _same("_/_", "divide_uint64", UINT, _divide_uint),
    _same("_%_", "modulo_int64", INT, _modulo_int),
    _same("_%_", "modulo_uint64", UINT, _modulo_uint),
    _same("_*_", "multiply_double", DOUBLE, operator.mul),
    _same("_*_", "multiply_int64", INT, _multiply_int),
    _same("_*_", "multiply_uint64", UINT, _multiply_uint),
    Overload("negate_double", "-_", (DOUBLE,), DOUBLE, operator.neg),
    Overload("negate_int64", "-_", (INT,), INT, _negate, guarded=False),
    _same("_-_", "subtract_double", DOUBLE, operator.sub),
    _same("_-_", "subtract_duration_duration", DURATION, _subtract_durations),
    _same("_-_", "subtract_int64", INT, _subtract_int),
    Overload("subtract_timestamp_duration", "_-_", (TIMESTAMP, DURATION), TIMESTAMP, _earlier),
    Overload("subtract_timestamp_timestamp", "_-_", (TIMESTAMP, TIMESTAMP), DURATION, _between),
    _same("_-_", "subtract_uint64", UINT, _subtract_uint),
)

"""Quantities: ``quantity("1.5Gi")`` and what can be asked of one.

What ``isInteger`` and ``asInteger`` take for a whole number is up to the way in which Go holds it:
``1000m`` is none. A sum or difference cannot be the right side of ``==`` (see ``QuantityValue``).
One thing is left out: Go changes how it holds the left side of a comparison with a number of
another kind, so that ``isInteger`` of that same value can be false afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dra_core.cel.celtypes import BOOL, DOUBLE, INT, QUANTITY, STRING, Type
from dra_core.cel.faults import EvalError
from dra_core.cel.signatures import Overload
from dra_core.cel.values import QuantityValue, Value
from dra_core.errors import InvalidQuantity
from dra_core.quantity import Format, Quantity


def _parse(text: str) -> QuantityValue:
    try:
        return QuantityValue(Quantity.parse(text))
    except InvalidQuantity as error:
        raise EvalError(str(error)) from error


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except InvalidQuantity:
        return False
    return True


def _as_integer(value: QuantityValue) -> int:
    whole = value.quantity.as_int64()
    if whole is None:
        raise EvalError("cannot convert value to integer")
    return whole


def _computed(compute: Callable[[], Quantity]) -> QuantityValue:
    try:
        return QuantityValue(compute(), computed=True)
    except InvalidQuantity as error:  # more digits than dra_core.quantity takes
        raise EvalError(str(error)) from error


def _add(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    return _computed(lambda: left.quantity.add(right.quantity))


def _sub(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    return _computed(lambda: left.quantity.sub(right.quantity))


def _add_int(left: QuantityValue, right: int) -> QuantityValue:
    return _computed(lambda: left.quantity.add(_whole(right)))


def _sub_int(left: QuantityValue, right: int) -> QuantityValue:
    return _computed(lambda: left.quantity.sub(_whole(right)))


def _whole(number: int) -> Quantity:
    return Quantity.whole(number, Format.DECIMAL_EXPONENT)


def _member(
    identifier: str, function: str, result: Type, call: Callable[..., Value], *others: Type
) -> Overload:
    return Overload(identifier, function, (QUANTITY, *others), result, call, member=True)


def _compare(left: QuantityValue, right: QuantityValue) -> int:
    return left.quantity.compare(right.quantity)


OVERLOADS: Final[tuple[Overload, ...]] = (
    Overload("string_to_quantity", "quantity", (STRING,), QUANTITY, _parse),
    Overload("is_quantity_string", "isQuantity", (STRING,), BOOL, _is_quantity),
    Overload("quantity_sign", "sign", (QUANTITY,), INT, lambda value: value.quantity.sign()),
    _member(
        "quantity_is_greater_than",
        "isGreaterThan",
        BOOL,
        lambda left, right: _compare(left, right) > 0,
        QUANTITY,
    ),
    _member(
        "quantity_is_less_than",
        "isLessThan",
        BOOL,
        lambda left, right: _compare(left, right) < 0,
        QUANTITY,
    ),
    _member("quantity_compare_to", "compareTo", INT, _compare, QUANTITY),
    _member(
        "quantity_get_float",
        "asApproximateFloat",
        DOUBLE,
        lambda value: value.quantity.approximate_float(),
    ),
    _member("quantity_get_int", "asInteger", INT, _as_integer),
    _member(
        "quantity_is_integer",
        "isInteger",
        BOOL,
        lambda value: value.quantity.as_int64() is not None,
    ),
    _member("quantity_add", "add", QUANTITY, _add, QUANTITY),
    _member("quantity_add_int", "add", QUANTITY, _add_int, INT),
    _member("quantity_sub", "sub", QUANTITY, _sub, QUANTITY),
    _member("quantity_sub_int", "sub", QUANTITY, _sub_int, INT),
)

"""Functions of CEL, called with values of which no type is known."""

from __future__ import annotations

from collections.abc import Iterator

from dra_core.cel.dispatch import matcher
from dra_core.cel.faults import EvalError
from dra_core.cel.library import (
    arithmetic,
    comparisons,
    conversions,
    optionals,
    standard,
    strings,
    times,
)
from dra_core.cel.signatures import Overload
from dra_core.cel.values import Value

_MODULES = (standard, arithmetic, comparisons, conversions, strings, times, optionals)


def overloads() -> Iterator[Overload]:
    """Those of the language, of strings and of optional values."""
    for module in _MODULES:
        yield from module.OVERLOADS


def call(function: str, *args: Value) -> Value:
    """The value of the first overload that fits, else ``EvalError`` "no such overload"."""
    for overload in overloads():
        if overload.function != function or len(overload.params) != len(args):
            continue
        tests = [matcher(param) if overload.guarded else None for param in overload.params]
        fits = all(test is None or test(arg) for test, arg in zip(tests, args, strict=True))
        if fits and overload.call is not None:
            return overload.call(*args)
    raise EvalError("no such overload")


def same(left: Value, right: Value) -> bool:
    """Equal and of one kind, NaN and the sign of zero included."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return left.hex() == float(right).hex()
    return bool(left == right)

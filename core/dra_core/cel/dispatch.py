"""Which overload of a function is called with values of which the checker did not know the type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dra_core.cel.celtypes import Kind, Type
from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.signatures import Overload
from dra_core.cel.values import Map, Uint, Value, type_of

Function = Callable[..., Value]
Test = Callable[[Value], bool]

_PYTHON: Final[dict[Kind, type]] = {
    Kind.BOOL: bool,
    Kind.INT: int,
    Kind.UINT: Uint,
    Kind.DOUBLE: float,
    Kind.STRING: str,
    Kind.BYTES: bytes,
    Kind.NULL: type(None),
}


def bound(
    overloads: Sequence[Overload], chosen: Sequence[str], operands: Sequence[Type]
) -> Function:
    """The function to call: the one overload that the checker chose, or the first that fits.

    ``operands`` are the types the checker found for the arguments: what is certain is not tested
    again. Errors: ``EvalError`` "no such overload" when it is called with what fits none.
    """
    if len(chosen) == 1:
        overload = next(one for one in overloads if one.id == chosen[0])
        return _guarded(overload, operands)
    return _first_fitting(
        [one for one in overloads if one.call and len(one.params) == len(operands)]
    )


def _guarded(overload: Overload, operands: Sequence[Type]) -> Function:
    call = overload.call
    if call is None:
        raise TypeError(f"{overload.id} is evaluated in its own way")
    tests = [
        (place, test)
        for place, (param, operand) in enumerate(zip(overload.params, operands, strict=True))
        if not _certain(param, operand) and (test := matcher(param)) is not None
    ]
    if not tests or not overload.guarded:
        return call

    def guarded(*args: Value) -> Value:
        for place, test in tests:
            if not test(args[place]):
                raise mismatch(overload.function, args)
        return call(*args)

    return guarded


def _first_fitting(overloads: Sequence[Overload]) -> Function:
    name = overloads[0].function if overloads else ""
    table = [(one.call, _tests(one)) for one in overloads]

    def first_fitting(*args: Value) -> Value:
        for call, tests in table:
            if call is not None and all(test(args[place]) for place, test in tests):
                return call(*args)
        raise mismatch(name, args)

    return first_fitting


def _tests(overload: Overload) -> list[tuple[int, Test]]:
    """What the arguments are tested for; an overload without guards looks at them itself."""
    params = enumerate(overload.params) if overload.guarded else ()
    return [(place, test) for place, of in params if (test := matcher(of)) is not None]


def mismatch(function: str, args: Sequence[Value]) -> EvalError:
    """No overload takes values of these types."""
    return no_such_overload(f"{function}({', '.join(type_of(arg).name for arg in args)})")


def _certain(param: Type, operand: Type) -> bool:
    """Whether a value of the operand's type is one of the parameter's without looking at it."""
    if param.is_dyn or param.kind is Kind.PARAM:
        return True
    if param.kind is not operand.kind or param.name != operand.name or operand.nullable:
        return False
    if param.is_optional:  # what ``or`` gives need not be one, whatever the checker says
        return False
    if param.kind in (Kind.LIST, Kind.MAP):
        return all(_certain(a, b) for a, b in zip(param.params, operand.params, strict=True))
    return True


def matcher(of: Type) -> Test | None:
    """A test of whether a value is of a type; ``None`` if every value is.

    Of a list the first item is looked at, of a map the first entry.
    """
    if of.is_dyn or of.kind is Kind.PARAM:
        return None
    if of.kind is Kind.LIST:
        return _list_matcher(matcher(of.params[0]))
    if of.kind is Kind.MAP:
        return _map_matcher(matcher(of.params[0]), matcher(of.params[1]))
    python: Any = _PYTHON.get(of.kind)
    if python is not None:
        return lambda value: type(value) is python
    name = of.name
    return lambda value: type_of(value).name == name


def _list_matcher(item: Test | None) -> Test:
    if item is None:
        return lambda value: type(value) is list
    return lambda value: type(value) is list and (not value or item(value[0]))


def _map_matcher(key: Test | None, item: Test | None) -> Test:
    def matches(value: Value) -> bool:
        if type(value) is not Map:
            return False
        first = next(value.items(), None)
        if first is None:
            return True
        return (key is None or key(first[0])) and (item is None or item(first[1]))

    return matches

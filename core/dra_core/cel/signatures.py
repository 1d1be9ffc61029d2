"""How a function of an expression is declared: its overloads, and what they do.

An overload has an identifier of its own, the same in all implementations of the language; costs and
the checker's answers name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dra_core.cel.celtypes import Kind, Type


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    ``params`` of a member function start with the type of its target. ``call`` takes the values of
    all of them and answers a value, or raises ``faults.EvalError``; before it is called, the values
    were checked against ``params`` as far as the types that run can be told (``guarded``). Without
    a ``call`` the evaluator has a way of its own (``&&``, ``?:``, ``_[_]`` …).
    """

    id: str
    function: str
    params: tuple[Type, ...]
    result: Type
    call: Callable[..., Any] | None = None
    member: bool = False
    guarded: bool = True
    #: The type parameters that occur in the signature.
    type_params: tuple[Type, ...] = field(init=False)

    def __post_init__(self) -> None:
        found: dict[Type, None] = {}
        for of in (*self.params, self.result):
            found.update(dict.fromkeys(_parameters(of)))
        object.__setattr__(self, "type_params", tuple(found))

    @property
    def is_generic(self) -> bool:
        """Whether its types depend on those of its arguments."""
        return bool(self.type_params)


def member(
    identifier: str,
    function: str,
    params: tuple[Type, ...],
    result: Type,
    call: Callable[..., Any],
) -> Overload:
    """An overload of a member function."""
    return Overload(identifier, function, params, result, call, member=True)


def _parameters(of: Type) -> Iterator[Type]:
    if of.kind is Kind.PARAM:
        yield of
    for item in of.params:
        yield from _parameters(item)

"""The operators that the evaluator has a way of its own for, and ``!``.

Their arguments need not all have a value: ``&&`` and ``||`` give the value of a side that decides,
whatever the other one is; ``?:`` evaluates one branch. ``_[_]`` is part of the path it stands in.
"""

from __future__ import annotations

import operator
from typing import Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import BOOL, INT
from dra_core.cel.signatures import Overload

#: Functions whose value is computed when the expression is compiled, if their only argument is
#: constant by then. Where they have none, the expression is refused.
CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)

#: Functions with one implementation for all their overloads: it looks at the values alone, whatever
#: the checker found. All others call the one overload the checker chose, if it chose one.
SINGLETONS: Final = frozenset(
    (
        *("_?_:_", "_&&_", "_||_", "!_", "_==_", "_!=_", "_[_]", "@in", "size", "type", "dyn"),
        *("_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_<_", "_<=_", "_>_", "_>=_", "matches"),
    )
)

_A = celtypes.param("A")
_B = celtypes.param("B")


def _not_strictly_false(value: bool) -> bool:
    """Whether a loop goes on. The evaluator also goes on where there is no value."""
    return value


OVERLOADS: Final[tuple[Overload, ...]] = (
    Overload("conditional", "_?_:_", (BOOL, _A, _A), _A),
    Overload("logical_and", "_&&_", (BOOL, BOOL), BOOL),
    Overload("logical_or", "_||_", (BOOL, BOOL), BOOL),
    Overload("logical_not", "!_", (BOOL,), BOOL, operator.not_),
    Overload("not_strictly_false", "@not_strictly_false", (BOOL,), BOOL, _not_strictly_false),
    Overload("equals", "_==_", (_A, _A), BOOL),
    Overload("not_equals", "_!=_", (_A, _A), BOOL),
    Overload("index_list", "_[_]", (celtypes.list_of(_A), INT), _A),
    Overload("index_map", "_[_]", (celtypes.map_of(_A, _B), _A), _B),
)

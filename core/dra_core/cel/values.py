"""The values of expressions, as Python has them.

==================== ==============================================================================
expression           Python
==================== ==============================================================================
``null``, bool, int  ``None``, ``bool``, ``int`` (64 bits, checked where it is made)
uint                 ``Uint``, an ``int`` from 0 to 2^64-1
double, bytes        ``float``, ``bytes``
string               ``str``, counted in code points
list                 ``list``, never changed once it is a value
map                  ``Map``
timestamp, duration  ``Timestamp``, ``Duration``
type                 ``TypeValue``
optional             ``Optional``; ``NONE`` is the empty one
quantity, semver     ``QuantityValue``, ``SemverValue``
url, ip, cidr …      values of their libraries, with a class attribute ``cel_type``
==================== ==============================================================================

``bool`` is an ``int`` to Python and ``True == 1 == 1.0``; so kinds are told apart with
``type(v) is``, and maps hold their keys by kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import Type
from dra_core.cel.faults import Aborted, EvalError, no_such_overload
from dra_core.quantity import Quantity
from dra_core.semver import SemVer

#: Any of the above. The checker and ``type_of`` know which one.
Value = Any

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A moment: nanoseconds since 1970-01-01T00:00:00Z, from the year 1 to the year 9999.

    ``offset``: the seconds east of UTC it was written with. Only its text shows them.
    """

    cel_type: ClassVar[Type] = celtypes.TIMESTAMP
    nanos: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of nanoseconds, 64 bits."""

    cel_type: ClassVar[Type] = celtypes.DURATION
    nanos: int


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, ``type(1)``: only its name counts."""

    cel_type: ClassVar[Type] = celtypes.TYPE
    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing."""

    cel_type: ClassVar[Type] = celtypes.optional_of(celtypes.DYN)
    has_value: bool
    value: Value = None


NONE: Final = Optional(has_value=False)


@dataclass(frozen=True, slots=True, eq=False)
class QuantityValue:
    """A quantity. One that came from arithmetic (``computed``) cannot be the right side of ``==``:
    "no such overload", as in Kubernetes.
    """

    cel_type: ClassVar[Type] = celtypes.QUANTITY
    quantity: Quantity
    computed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SemverValue:
    """A semantic version."""

    cel_type: ClassVar[Type] = celtypes.SEMVER
    version: SemVer


def key_of(key: Value) -> Any:
    """What a key of a map is held by: strings by themselves, the rest by kind and value.

    Lists, maps and optionals are keys by being the same object. Errors: ``Aborted`` for a kind
    that cannot be a key in the reference, where the evaluation then ends.
    """
    kind = type(key)
    if kind is str:
        return key
    if kind is float and math.isnan(key):  # equal to nothing
        return (float, object())
    if kind in _BY_IDENTITY:
        return (kind, id(key))
    if kind in _NO_KEYS:
        raise Aborted(f"internal error: a {type_of(key).name} cannot be a key")
    return (kind, key)


class Map:
    """A map, in the order given; keys are found as ``==`` finds them."""

    __slots__ = ("default", "entries", "named")
    cel_type: ClassVar[Type] = celtypes.MAP

    def __init__(
        self,
        entries: dict[Any, tuple[Value, Value]],
        default: Map | None = None,
        *,
        named: bool = False,
    ) -> None:
        #: ``key_of(key)`` -> (key, value)
        self.entries = entries
        #: What ``map[key]`` and ``map.key`` give for a key that is not there, if that is no error.
        #: The map does not contain the key for all that (``key in map``).
        self.default = default
        #: Whether it did not come from an expression, and can have no keys but strings: any other
        #: one is just not there.
        self.named = named

    @classmethod
    def of(cls, pairs: Iterable[tuple[Value, Value]], *, named: bool = False) -> Map:
        """A map of pairs; a later pair replaces an earlier one with the same key."""
        return cls({key_of(key): (key, value) for key, value in pairs}, named=named)

    def __len__(self) -> int:
        return len(self.entries)

    def keys(self) -> Iterator[Value]:
        """The keys."""
        return (key for key, _ in self.entries.values())

    def items(self) -> Iterator[tuple[Value, Value]]:
        """Keys with their values."""
        return iter(self.entries.values())

    def find(self, key: Value) -> tuple[Value, Value] | None:
        """The entry with a key; whole numbers are found across their kinds.

        Errors: ``Aborted`` for a kind that cannot be looked up (see ``key_of``).
        """
        entries, kind = self.entries, type(key)
        if kind is str:
            return entries.get(key)
        if self.named or not entries:
            return None
        found = entries.get(key_of(key))
        if found is None and kind in _NUMBERS:
            return self._find_number(key)
        return found

    def _find_number(self, key: float) -> tuple[Value, Value] | None:
        """The entry of an equal int or uint; those of doubles are found by doubles alone."""
        if type(key) is float and not key.is_integer():
            return None
        whole = int(key)
        found = None
        # The reference takes the least int, as a double, for one that does not fit.
        if type(key) is not int and INT_MIN < whole <= INT_MAX:
            found = self.entries.get((int, whole))
        if found is None and type(key) is not Uint and 0 <= whole <= UINT_MAX:
            found = self.entries.get((Uint, Uint(whole)))
        return found


_NUMBERS: Final = frozenset((int, Uint, float))
#: Kinds that Python compares as the language does, among themselves.
_SIMPLE: Final = frozenset((str, int, Uint, float, bool, bytes))
_BY_IDENTITY: Final = frozenset((list, Map, Optional))
_NO_KEYS: Final[set[type]] = {bytes, SemverValue}

_PLAIN: Final[dict[type, Type]] = {
    bool: celtypes.BOOL,
    int: celtypes.INT,
    Uint: celtypes.UINT,
    float: celtypes.DOUBLE,
    str: celtypes.STRING,
    bytes: celtypes.BYTES,
    list: celtypes.LIST,
    type(None): celtypes.NULL,
}


def type_of(value: Value) -> Type:
    """The type of a value as it runs: items of lists and maps are not looked at."""
    found = _PLAIN.get(type(value))
    return found if found is not None else value.cel_type


def size_of(value: Value) -> int:
    """What cost counts as the size of a value: items, code points or bytes; 1 for all others but
    those that say so themselves (``cel_size``: addresses).
    """
    kind = type(value)
    if kind is str or kind is list or kind is bytes or kind is Map:
        return len(value)
    if kind is Optional and value.has_value:
        return size_of(value.value)
    size: int = 1 if kind in _PLAIN else getattr(value, "cel_size", 1)
    return size


def equal(left: Value, right: Value) -> bool:
    """``left == right``. Numbers compare by value across their kinds, other kinds are never equal.

    Errors: ``EvalError`` where the value's own comparison knows no such type (quantity, semver …).
    """
    if left is None or right is None:
        return left is right
    kind = type(left)
    if kind in _NUMBERS:
        return type(right) in _NUMBERS and _equal_numbers(left, right)
    if kind in _CONTAINERS:
        return _equal_containers(left, right, {})
    special = _EQUALITY.get(kind)
    if special is not None:
        return special(left, right)
    return kind is type(right) and bool(left == right)


#: Pairs of containers, by their ``id``, that were compared before: a value may hold another one
#: many times over.
_Seen = dict[tuple[int, int], bool]


def _equal_numbers(left: float, right: float) -> bool:
    if type(left) is float or type(right) is float:
        return float(left) == float(right)  # precision is lost here in the reference too
    return left == right


def _equal_containers(left: Value, right: Value, seen: _Seen) -> bool:
    if type(left) is not type(right):
        return False
    pair = (id(left), id(right))
    known = seen.get(pair)
    if known is None:
        known = seen[pair] = _CONTAINERS[type(left)](left, right, seen)
    return known


def _alike(left: Value, right: Value, seen: _Seen) -> bool:
    """Whether two items count as equal: an error while comparing them does, too."""
    if type(left) in _SIMPLE and type(left) is type(right):
        return left == right  # type: ignore[no-any-return]
    try:
        if type(left) in _CONTAINERS:
            return _equal_containers(left, right, seen)
        return equal(left, right)
    except EvalError:
        return True


def _equal_lists(left: list[Value], right: list[Value], seen: _Seen) -> bool:
    if len(left) != len(right):
        return False
    for mine, its in zip(left, right, strict=True):
        if type(mine) in _SIMPLE and type(mine) is type(its):  # as below, without a call
            if mine != its:
                return False
        elif not _alike(mine, its, seen):
            return False
    return True


def _equal_maps(left: Map, right: Map, seen: _Seen) -> bool:
    if len(left) != len(right):
        return False
    for key, value in left.items():
        found = right.find(key)
        if found is None and right.default is None:
            return False
        if not _alike(value, right.default if found is None else found[1], seen):
            return False
    return True


def _equal_optionals(left: Optional, right: Optional, seen: _Seen) -> bool:
    if not left.has_value or not right.has_value:
        return left.has_value == right.has_value
    if type(left.value) in _CONTAINERS:
        return _equal_containers(left.value, right.value, seen)
    special = _EQUALITY.get(type(left.value))
    if special is not None:
        return special(left.value, right.value)  # which may have no answer for null
    return equal(left.value, right.value)


_CONTAINERS: Final[dict[type, Callable[[Any, Any, _Seen], bool]]] = {
    list: _equal_lists,
    Map: _equal_maps,
    Optional: _equal_optionals,
}


def _equal_quantities(left: QuantityValue, right: Value) -> bool:
    if type(right) is not QuantityValue or right.computed:
        raise no_such_overload()
    return left.quantity == right.quantity


def _equal_semvers(left: SemverValue, right: Value) -> bool:
    if type(right) is not SemverValue:
        raise no_such_overload()
    return left.version.compare(right.version) == 0


_EQUALITY: Final[dict[type, Callable[[Any, Any], bool]]] = {
    QuantityValue: _equal_quantities,
    SemverValue: _equal_semvers,
}


def register_equality(
    kind: type, compare: Callable[[Any, Any], bool], *, is_key: bool = True
) -> None:
    """Give a library's value type its own ``==``; called once when the library's module is read.

    ``is_key`` is whether such values can be keys of maps.
    """
    _EQUALITY[kind] = compare
    if not is_key:
        _NO_KEYS.add(kind)

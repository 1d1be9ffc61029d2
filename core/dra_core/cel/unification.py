"""Whether one type fits another, with the type parameters that this settles.

``Bindings`` holds what is known of parameters and of the checker's own variables. A question that
is answered with no leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_core.cel.celtypes import DYN, Kind, Type

_COMPOSED: Final = frozenset((Kind.OPAQUE, Kind.LIST, Kind.MAP))
#: Kinds to which null fits, beside the wrappers.
_TAKE_NULL: Final = frozenset(
    (Kind.OPAQUE, Kind.STRUCT, Kind.ANY, Kind.DURATION, Kind.TIMESTAMP, Kind.NULL)
)


class Bindings:
    """Type parameters and what they stand for."""

    def __init__(self) -> None:
        self._known: dict[Type, Type] = {}

    def assignable(self, left: Type, right: Type) -> bool:
        """Whether one type can be used for the other; settles parameters if so."""
        return self.all_assignable((left,), (right,))

    def all_assignable(self, left: Sequence[Type], right: Sequence[Type]) -> bool:
        """The same for types in pairs; all or nothing."""
        before = self._known
        self._known = dict(before) if before else {}
        if self._lists_fit(left, right):
            return True
        self._known = before
        return False

    def bind(self, parameter: Type, to: Type) -> None:
        """Let a parameter stand for a type."""
        self._known[parameter] = to

    def resolved(self, of: Type, *, open_as_dyn: bool) -> Type:
        """A type with its parameters replaced; those not settled stay, or become ``dyn``."""
        if not of.params and of.kind is not Kind.PARAM:
            return of
        known = self._known.get(of)
        if known is not None:
            return self.resolved(known, open_as_dyn=open_as_dyn)
        if of.kind is Kind.PARAM:
            return DYN if open_as_dyn else of
        params = tuple([self.resolved(param, open_as_dyn=open_as_dyn) for param in of.params])
        return of if params == of.params else Type(of.kind, of.name, params, of.nullable)

    def _lists_fit(self, left: Sequence[Type], right: Sequence[Type]) -> bool:
        if len(left) != len(right):
            return False
        return all(self._fits(a, b) for a, b in zip(left, right, strict=True))

    def _fits(self, left: Type, right: Type) -> bool:
        if right.kind is Kind.PARAM:
            fits, settled = self._substitutes(left, right)
            if fits or settled:
                return fits
        if left.kind is Kind.PARAM:
            return self._substitutes(right, left)[0]
        if left.is_dyn or right.is_dyn or Kind.ERROR in (left.kind, right.kind):
            return True
        if left.kind is Kind.NULL or right.kind is Kind.NULL:
            return _takes_null(right if left.kind is Kind.NULL else left)
        return self._same_kinds_fit(left, right)

    def _same_kinds_fit(self, left: Type, right: Type) -> bool:
        if left.kind is not right.kind or (left.kind is not Kind.TYPE and left.name != right.name):
            return False
        return left.kind not in _COMPOSED or self._lists_fit(left.params, right.params)

    def _substitutes(self, of: Type, parameter: Type) -> tuple[bool, bool]:
        """Whether a type can stand for a parameter, and whether that one is settled already."""
        if of == parameter:
            return True, True
        known = self._known.get(parameter)
        if known is None:
            if not self._is_free_of(parameter, of):
                return False, False
            self._known[parameter] = of
            return True, False
        if of == known:
            return True, True
        if not self._fits(of, known):
            return False, True
        general = most_general(of, known)
        if self._is_free_of(parameter, general):
            self._known[parameter] = general
        return True, True

    def _is_free_of(self, parameter: Type, within: Type) -> bool:
        """Whether a parameter does not occur in a type: it would never end otherwise."""
        if parameter == within:
            return False
        if within.kind is Kind.PARAM:
            known = self._known.get(within)
            return known is None or self._is_free_of(parameter, known)
        return all(self._is_free_of(parameter, param) for param in within.params)


def _takes_null(of: Type) -> bool:
    return of.nullable or of.kind in _TAKE_NULL


def most_general(left: Type, right: Type) -> Type:
    """The less specific one of two types that fit each other."""
    return left if _is_as_general(left, right) else right


def _is_as_general(left: Type, right: Type) -> bool:
    if left.is_dyn or left.kind is Kind.PARAM:
        return True
    if right.is_dyn or right.kind is Kind.PARAM or left.kind is not right.kind:
        return False
    if left.kind is Kind.TYPE:
        return True
    if left.kind not in _COMPOSED:
        return left == right
    if left.name != right.name or len(left.params) != len(right.params):
        return False
    return all(_is_as_general(a, b) for a, b in zip(left.params, right.params, strict=True))

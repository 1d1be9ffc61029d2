"""Semantic versions: ``semver("1.2.3")`` and what can be asked of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dra_core.cel.celtypes import BOOL, INT, SEMVER, STRING, Type
from dra_core.cel.faults import EvalError
from dra_core.cel.signatures import Overload
from dra_core.cel.values import INT_MAX, SemverValue, Value
from dra_core.errors import InvalidVersion
from dra_core.semver import SemVer


def _parse(text: str, normalize: Value = False) -> SemverValue:
    try:
        return SemverValue(_read(text, normalize))
    except InvalidVersion as error:
        raise EvalError(str(error)) from error


def _is_semver(text: str, normalize: Value = False) -> bool:
    try:
        _read(text, normalize)
    except InvalidVersion:
        return False
    return True


def _read(text: str, normalize: Value) -> SemVer:
    return SemVer.parse_normalized(text) if normalize else SemVer.parse(text)


def _signed(number: int) -> int:
    """A number of a version as an int of 64 bits, which is too small for some."""
    return number if number <= INT_MAX else number - 2**64


def _compare(left: SemverValue, right: SemverValue) -> int:
    return left.version.compare(right.version)


def _member(
    identifier: str, function: str, result: Type, call: Callable[..., Value], *others: Type
) -> Overload:
    return Overload(identifier, function, (SEMVER, *others), result, call, member=True)


OVERLOADS: Final[tuple[Overload, ...]] = (
    Overload("string_to_semver", "semver", (STRING,), SEMVER, _parse),
    Overload("string_bool_to_semver", "semver", (STRING, BOOL), SEMVER, _parse),
    Overload("is_semver_string", "isSemver", (STRING,), BOOL, _is_semver),
    Overload("is_semver_string_bool", "isSemver", (STRING, BOOL), BOOL, _is_semver),
    _member(
        "semver_is_greater_than",
        "isGreaterThan",
        BOOL,
        lambda left, right: _compare(left, right) > 0,
        SEMVER,
    ),
    _member(
        "semver_is_less_than",
        "isLessThan",
        BOOL,
        lambda left, right: _compare(left, right) < 0,
        SEMVER,
    ),
    _member("semver_compare_to", "compareTo", INT, _compare, SEMVER),
    _member("semver_major", "major", INT, lambda value: _signed(value.version.major)),
    _member("semver_minor", "minor", INT, lambda value: _signed(value.version.minor)),
    _member("semver_patch", "patch", INT, lambda value: _signed(value.version.patch)),
)

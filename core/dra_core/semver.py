"""Semantic versions, as attributes of devices and CEL expressions have them.

Syntax and precedence are those of semver.org 2.0.0, with the limit of the parser that DRA uses
(github.com/blang/semver/v4 v4.0.0): a number is at most 2^64-1. The API server itself checks only
the syntax of ``DeviceAttribute.version`` (and a length of 64 bytes), so it accepts a version whose
numbers are too large for the parser; CEL then fails on the device that has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

from dra_core.errors import InvalidVersion

_NUMBER: Final = r"(?:0|[1-9][0-9]*+)"
_PRE: Final = rf"(?:[0-9]*+[A-Za-z-][0-9A-Za-z-]*+|{_NUMBER})"
_BUILD: Final = r"[0-9A-Za-z-]++"
_TEXT: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-({_PRE}(?:\.{_PRE})*+))?(?:\+({_BUILD}(?:\.{_BUILD})*+))?"
)
_UINT64_MAX: Final = 2**64 - 1
_UINT64_DIGITS: Final = 20


def has_syntax(text: str) -> bool:
    """Whether the API server accepts the text as a version (its length aside)."""
    return _TEXT.fullmatch(text) is not None


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class SemVer:
    """A semantic version. Order and equality are those of precedence: ``build`` does not count.

    ``pre`` holds numeric identifiers as numbers: they come before all others.
    """

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> SemVer:
        """Read ``'1.2.3-rc.1+build.5'``; raises InvalidVersion for anything looser."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise InvalidVersion(
                f"version {_shown(text)} is not valid: write MAJOR.MINOR.PATCH without leading "
                "zeros, and after it -PRERELEASE and +BUILD where needed (semver.org 2.0.0)"
            )
        major, minor, patch = (_number(part, text) for part in match.group(1, 2, 3))
        pre = tuple(
            _number(part, text) if part.isdecimal() else part
            for part in (match[4].split(".") if match[4] else ())
        )
        return cls(major, minor, patch, pre, tuple(match[5].split(".")) if match[5] else ())

    @classmethod
    def parse_normalized(cls, text: str) -> SemVer:
        """Read what ``semver(text, true)`` of CEL takes: also a leading ``v``, leading zeros, and
        one or two numbers, ``'v1.02'``. Raises InvalidVersion.

        A version without patch must not have a pre-release or build.
        """
        parts = text.removeprefix("v").split(".", 2)
        numbers = [_without_zeros(part) for part in parts]
        if len(numbers) < 3 and ("+" in numbers[-1] or "-" in numbers[-1]):
            raise InvalidVersion(
                f"version {_shown(text)} is not valid: one or two numbers cannot have a "
                "pre-release or build behind them, write MAJOR.MINOR.PATCH"
            )
        numbers += ["0"] * (3 - len(numbers))
        return cls.parse(".".join(numbers))

    def __str__(self) -> str:
        pre = "-" + ".".join(map(str, self.pre)) if self.pre else ""
        build = "+" + ".".join(self.build) if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}{build}"

    def compare(self, other: SemVer) -> int:
        """-1, 0 or 1: before, equal to or after ``other`` in precedence."""
        numbers = (self.major, self.minor, self.patch)
        others = (other.major, other.minor, other.patch)
        if numbers != others:
            return 1 if numbers > others else -1
        if self.pre == other.pre:
            return 0
        if not self.pre or not other.pre:
            return -1 if self.pre else 1
        pairs = enumerate(zip(self.pre, other.pre, strict=False))
        shorter = min(len(self.pre), len(other.pre))
        place = next((place for place, (mine, its) in pairs if mine != its), shorter)
        left, right = _order(self.pre[place : place + 1]), _order(other.pre[place : place + 1])
        return 1 if left > right else -1

    def _key(self) -> tuple[object, ...]:
        # A release comes after its pre-releases, a longer pre-release after a shorter one.
        return self.major, self.minor, self.patch, not self.pre, _order(self.pre)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, SemVer) else NotImplemented

    def __lt__(self, other: SemVer) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _order(pre: tuple[int | str, ...]) -> tuple[object, ...]:
    return tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in pre)


def _without_zeros(part: str) -> str:
    """A number, and perhaps more behind it, without the zeros before it."""
    if len(part) <= 1:
        return part
    bare = part.lstrip("0")
    return bare if bare[:1].isascii() and bare[:1].isdecimal() else "0" + bare


def _number(digits: str, text: str) -> int:
    number = int(digits) if len(digits) <= _UINT64_DIGITS else _UINT64_MAX + 1
    if number > _UINT64_MAX:
        raise InvalidVersion(
            f"version {_shown(text)} is not valid: a number in it is larger than {_UINT64_MAX}: "
            "write a smaller one"
        )
    return number


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")

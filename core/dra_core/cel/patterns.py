r"""Patterns of Go's ``regexp`` in the syntax of RE2.

The two have one syntax and one meaning, but for this, which is rewritten or refused here:

* ``\C`` (any byte) and group names beyond ASCII letters, digits and ``_`` are RE2's alone.
* ``\p{...}`` ignores case, blanks, ``-`` and ``_`` in Go 1.26, knows the long names of categories,
  ``Any``, ``Assigned``, ``ASCII``, ``LC`` and ``Cn``, and counts unassigned characters to ``C``.
  (For the same reason Go finds no script with ``_`` in its name.)
* Groups nested 1,000 deep are too deep for Go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_DEPTH: Final = 1000

#: Gives the characters that a class of RE2 matches, as ranges for within a class.
Ranges = Callable[[str], str]


class BadPattern(ValueError):
    """Go refuses what RE2 would take."""


_SPECIAL: Final = re.compile(r"\\[pPC]|\(\?P?<[^>]*[^\x00-\x7f]")
_QUOTED: Final = re.compile(r"\\Q.*?(?:\\E|\Z)", re.DOTALL)
_NAMED_CLASS: Final = re.compile(r"\[:.*?:\]", re.DOTALL)
_PROPERTY: Final = re.compile(r"\\([pP])(?:\{([^}]*)\}|([^{]))", re.DOTALL)
_GROUP_NAME: Final = re.compile(r"\(\?P?<([^>]*)>")
_CLASS_START: Final = re.compile(r"\[\^?\]?")


def translated(pattern: str, ranges: Ranges) -> str:
    """The pattern as RE2 is to read it. Raises ``BadPattern``; RE2 finds all other mistakes."""
    if pattern.count("(") >= _DEPTH and _depth(pattern) >= _DEPTH:
        raise BadPattern("expression nests too deeply")
    return _Rewriting(pattern, ranges).result() if _SPECIAL.search(pattern) else pattern


def _depth(pattern: str) -> int:
    """How deep groups that capture are nested, roughly: escapes and classes are left out."""
    deepest, open_groups = 0, []
    for token in re.finditer(r"\\.|\[\^?\]?[^]]*\]|\((\?)?|\)", pattern, re.DOTALL):
        if token[0][0] == "(":
            open_groups.append(not token[1])
            deepest = max(deepest, sum(open_groups)) if len(open_groups) >= _DEPTH else deepest
        elif token[0] == ")" and open_groups:
            open_groups.pop()
    return deepest


class _Rewriting:
    """One way through a pattern, from its start to its end."""

    def __init__(self, pattern: str, ranges: Ranges) -> None:
        self.ranges = ranges
        self.pattern = pattern
        self.position = 0
        self.in_class = False
        self.parts: list[str] = []

    def result(self) -> str:
        while self.position < len(self.pattern):
            self.parts.append(self._inside() if self.in_class else self._outside())
        return "".join(self.parts)

    def _take(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        match = expression.match(self.pattern, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def _character(self) -> str:
        """The next character, with a backslash before it both."""
        size = 2 if self.pattern[self.position] == "\\" else 1
        taken = self.pattern[self.position : self.position + size]
        self.position += size
        return taken

    def _outside(self) -> str:
        if quoted := self._take(_QUOTED):
            return quoted[0]
        if named := self._take(_GROUP_NAME):
            if not named[1].isascii():
                raise BadPattern(f"invalid named capture: {named[0]}")
            return named[0]
        if start := self._take(_CLASS_START):
            self.in_class = True
            return start[0]
        if found := self._take(_PROPERTY):
            return self._property(found)
        if self.pattern.startswith("\\C", self.position):
            raise BadPattern(r"invalid escape sequence: \C")
        return self._character()

    def _inside(self) -> str:
        if named := self._take(_NAMED_CLASS):
            return named[0]
        if found := self._take(_PROPERTY):
            return self._property(found)
        taken = self._character()
        self.in_class = taken != "]"
        return taken

    def _property(self, found: re.Match[str]) -> str:
        name = found[2] if found[2] is not None else found[3]
        negated = (found[1] == "P") != name.startswith("^")
        canonical = _canonical(name.removeprefix("^"))
        own = _OWN_CLASSES.get(canonical)
        if own is None:
            return rf"\{'P' if negated else 'p'}{{{_ALIASES.get(canonical, canonical)}}}"
        ranges = self.ranges(_complement(own) if negated else own)
        return ranges if self.in_class else f"[{ranges}]"


def _canonical(name: str) -> str:
    bare = re.sub(r"[-_ ]", "", name)
    return bare[:1].upper() + bare[1:].lower() if bare.isascii() else bare


def _complement(expression: str) -> str:
    return f"[^{expression[1:]}" if expression[1] != "^" else f"[{expression[2:]}"


#: Names that RE2 does not know or reads otherwise, as classes of what it knows.
_OWN_CLASSES: Final = {
    "Ascii": r"[\x00-\x7f]",
    "Assigned": r"[\pL\pM\pN\pP\pS\pZ\pC]",
    "Cn": r"[^\pL\pM\pN\pP\pS\pZ\pC]",
    "Unassigned": r"[^\pL\pM\pN\pP\pS\pZ\pC]",
    "C": r"[^\pL\pM\pN\pP\pS\pZ]",
    "Other": r"[^\pL\pM\pN\pP\pS\pZ]",
    "Lc": r"[\p{Lu}\p{Ll}\p{Lt}]",
    "Casedletter": r"[\p{Lu}\p{Ll}\p{Lt}]",
}

#: The long names of categories.
_ALIASES: Final[dict[str, str]] = dict(
    re.findall(
        r"(\w+)=(\w+)",
        "Closepunctuation=Pe Combiningmark=M Connectorpunctuation=Pc Control=Cc Cntrl=Cc "
        "Currencysymbol=Sc Dashpunctuation=Pd Decimalnumber=Nd Digit=Nd Enclosingmark=Me "
        "Finalpunctuation=Pf Format=Cf Initialpunctuation=Pi Letter=L Letternumber=Nl "
        "Lineseparator=Zl Lowercaseletter=Ll Mark=M Mathsymbol=Sm Modifierletter=Lm "
        "Modifiersymbol=Sk Nonspacingmark=Mn Number=N Openpunctuation=Ps Otherletter=Lo "
        "Othernumber=No Otherpunctuation=Po Othersymbol=So Paragraphseparator=Zp Privateuse=Co "
        "Punctuation=P Punct=P Separator=Z Spaceseparator=Zs Spacingmark=Mc Surrogate=Cs "
        "Symbol=S Titlecaseletter=Lt Uppercaseletter=Lu",
    )
)

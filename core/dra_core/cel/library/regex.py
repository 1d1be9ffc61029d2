"""``matches`` of the language, and ``find`` and ``findAll`` of Kubernetes."""

from __future__ import annotations

from typing import Final

from dra_core.cel.celtypes import BOOL, INT, STRING, list_of
from dra_core.cel.regexps import find, find_all, matches
from dra_core.cel.signatures import Overload

_STRINGS = (STRING, STRING)

OVERLOADS: Final[tuple[Overload, ...]] = (
    Overload("matches", "matches", _STRINGS, BOOL, matches),
    Overload("matches_string", "matches", _STRINGS, BOOL, matches, member=True),
    Overload("string_find_string", "find", _STRINGS, STRING, find, member=True),
    Overload("string_find_all_string", "findAll", _STRINGS, list_of(STRING), find_all, member=True),
    Overload(
        "string_find_all_string_int",
        "findAll",
        (STRING, STRING, INT),
        list_of(STRING),
        find_all,
        member=True,
    ),
)

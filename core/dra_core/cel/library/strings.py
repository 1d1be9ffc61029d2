"""Functions on strings: those of the language, and version 2 of the string library.

All places are counted in code points. There is no ``reverse`` in this version.
"""

from __future__ import annotations

from typing import Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import BOOL, DYN, INT, STRING
from dra_core.cel.faults import EvalError
from dra_core.cel.library.bounds import check_text
from dra_core.cel.library.text_format import formatted
from dra_core.cel.signatures import Overload, member
from dra_core.cel.values import Value

#: White space as Unicode has it, which is less than ``str.strip`` takes away.
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TO_LOWER: Final = str.maketrans(_UPPER, _UPPER.lower())
_TO_UPPER: Final = str.maketrans(_UPPER.lower(), _UPPER)
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _out_of_range(place: int) -> EvalError:
    return EvalError(f"index out of range: {place}")


def _contains(text: str, part: str) -> bool:
    return part in text


def _char_at(text: str, place: int) -> str:
    """One code point; right behind the last one there is the empty string."""
    if not 0 <= place <= len(text):
        raise _out_of_range(place)
    return text[place : place + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    """The first place from ``start`` on, else -1; an empty part is found wherever one looks."""
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start)


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_of_from(text: str, part: str, start: int) -> int:
    """The last place that is not behind ``start``; a start behind the end finds nothing."""
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _lower(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_TO_LOWER)


def _upper(text: str) -> str:
    return text.upper() if text.isascii() else text.translate(_TO_UPPER)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """The first ``limit`` places, all if it is negative. An empty ``old`` is before every code
    point and at the end.
    """
    growth = len(new) - len(old)
    if growth > 0 and (len(text) + 1) * len(new) > _UNCHECKED:
        places = text.count(old)
        check_text(len(text) + growth * (places if limit < 0 else min(places, limit)))
    return text.replace(old, new, limit)


def _split(text: str, separator: str, limit: int = -1) -> list[Value]:
    """At most ``limit`` parts, the last one with the rest; all if it is negative.

    Without a separator every code point is a part.
    """
    if limit == 0:
        return []
    if separator:
        return list(text.split(separator, limit - 1 if limit > 0 else -1))
    if not 0 < limit < len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_to(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if end > len(text):
        raise _out_of_range(end)
    return text[start:end]


def _trim(text: str) -> str:
    return text.strip(_SPACE)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _join(items: list[Value], separator: str = "") -> str:
    length = len(separator) * max(len(items) - 1, 0)
    for item in items:
        if type(item) is not str:
            raise EvalError(f"join: invalid input: {item}")
        length += len(item)
    check_text(length)
    return separator.join(items)


#: Results that cannot get longer than this are not measured beforehand.
_UNCHECKED: Final = 100_000


_TEXT: Final = (STRING,)
_TEXT_INT: Final = (STRING, INT)
_TWO: Final = (STRING, STRING)
_TWO_INT: Final = (STRING, STRING, INT)
_STRINGS: Final = celtypes.list_of(STRING)

OVERLOADS: Final[tuple[Overload, ...]] = (
    member("contains_string", "contains", _TWO, BOOL, _contains),
    member("ends_with_string", "endsWith", _TWO, BOOL, str.endswith),
    member("starts_with_string", "startsWith", _TWO, BOOL, str.startswith),
    member("string_char_at_int", "charAt", _TEXT_INT, STRING, _char_at),
    member("string_index_of_string", "indexOf", _TWO, INT, _index_of),
    member("string_index_of_string_int", "indexOf", _TWO_INT, INT, _index_of),
    member("string_last_index_of_string", "lastIndexOf", _TWO, INT, _last_index_of),
    member("string_last_index_of_string_int", "lastIndexOf", _TWO_INT, INT, _last_index_of_from),
    member("string_lower_ascii", "lowerAscii", _TEXT, STRING, _lower),
    member("string_replace_string_string", "replace", (STRING,) * 3, STRING, _replace),
    member("string_replace_string_string_int", "replace", (*_TWO, STRING, INT), STRING, _replace),
    member("string_split_string", "split", _TWO, _STRINGS, _split),
    member("string_split_string_int", "split", _TWO_INT, _STRINGS, _split),
    member("string_substring_int", "substring", _TEXT_INT, STRING, _substring),
    member("string_substring_int_int", "substring", (STRING, INT, INT), STRING, _substring_to),
    member("string_trim", "trim", _TEXT, STRING, _trim),
    member("string_upper_ascii", "upperAscii", _TEXT, STRING, _upper),
    member("string_format", "format", (STRING, celtypes.list_of(DYN)), STRING, formatted),
    Overload("strings_quote", "strings.quote", _TEXT, STRING, _quote),
    member("list_join", "join", (_STRINGS,), STRING, _join),
    member("list_join_string", "join", (_STRINGS, STRING), STRING, _join),
)

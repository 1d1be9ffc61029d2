r"""Regular expressions as Go reads them, matched by google-re2 in time linear to the text.

Where the two part, :mod:`dra_core.cel.patterns` rewrites patterns before RE2 sees them. What is
left: a pattern that RE2 compiles to more than 8 MiB is refused (``\pL{400}``; Go takes 128), and
RE2 knows characters of newer versions of Unicode than the 15.0 of Go.

Compiled patterns are kept in a cache of 32, which bounds their memory to 256 MiB; the usual one
takes a few KiB. Nothing else keeps them, so an expression of many patterns cannot hold more.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.patterns import BadPattern, translated
from dra_core.cel.values import TypeValue, Value
from dra_core.errors import DraError

_MEMORY: Final = 8 << 20
_KEPT: Final = 32

#: Takes the text in bytes, where to start and where to stop.
_Matcher = Callable[[bytes, int, int], list[tuple[int, int]]]


class RegexpsMissing(DraError):
    """google-re2 is not installed."""


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern matches anywhere in the text. Raises ``EvalError`` for a bad pattern."""
    return _search(compiled(pattern), text.encode(), 0)[0] >= 0


def find(text: str, pattern: str) -> str:
    """The first match, empty without one. Raises ``EvalError`` for a bad pattern."""
    encoded = text.encode()
    start, end = _search(compiled(pattern), encoded, 0)
    return encoded[start:end].decode() if start >= 0 else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """The matches from left to right, at most ``limit`` where it is not negative.

    Matches do not overlap, and an empty one right after another one does not count. Raises
    ``EvalError`` for a bad pattern.
    """
    match = compiled(pattern)
    encoded = text.encode()
    found: list[str] = []
    position, before = 0, -1
    while position <= len(encoded) and len(found) != limit:
        start, end = _search(match, encoded, position)
        if start < 0:
            break
        if end > position or start != before:
            found.append(encoded[start:end].decode())
        position = end if end > position else position + 1
        before = end
    return found


def precompiled(
    function: str, overload: str, constants: Sequence[tuple[Value] | None]
) -> Callable[..., Value] | None:
    """What a call does whose pattern is a constant: the pattern is checked once, now.

    ``constants`` holds the target and the arguments, None for those that are not constant. The
    answer is None where this is no call with a constant pattern. Errors: ``EvalError`` for a bad
    pattern; the reference then refuses the expression.
    """
    call = _SEARCHES.get(function)
    if call is None or len(constants) < 2 or (constant := constants[1]) is None:
        return None
    pattern = constant[0]
    if type(pattern) is not str:
        return None
    compiled(pattern)
    search: Callable[..., Value] = call

    def searched(text: Value, _: Value, *limit: Value) -> Value:
        if type(text) is TypeValue:
            text = text.name
        if type(text) is not str or not all(type(number) is int for number in limit):
            raise no_such_overload(overload or function)
        return search(text, pattern, *limit)

    return searched


#: By the names of their functions in expressions; the second argument is the pattern.
_SEARCHES: Final[dict[str, Callable[..., Value]]] = {
    "matches": matches,
    "find": find,
    "findAll": find_all,
}


def _search(match: _Matcher, encoded: bytes, position: int) -> tuple[int, int]:
    """The first match from a place on, in bytes; (-1, -1) without one."""
    size = len(encoded)
    start, end = match(encoded, position, size)[0]
    while 0 < start < size and encoded[start] & 0xC0 == 0x80:
        # Within a character: RE2 takes each of its bytes for a place where \B holds.
        start, end = match(encoded, start + 1, size)[0]
    return start, end


@functools.lru_cache(maxsize=_KEPT)
def compiled(pattern: str) -> _Matcher:
    """The pattern in its compiled form. Raises ``EvalError`` for one that Go refuses."""
    try:
        return _compile(translated(pattern, _ranges), pattern)
    except BadPattern as error:
        raise _invalid(pattern, str(error)) from error


def _compile(translated: str, pattern: str) -> _Matcher:
    re2 = _re2()
    compiled = re2.RE2(translated.encode(), _options(re2))
    if not compiled.ok():
        raise _invalid(pattern, compiled.error().decode(errors="replace"))
    # Groups were made not to capture, so the only span is that of the match.
    return functools.partial(compiled.Match, re2.RE2.Anchor.UNANCHORED)


@functools.cache
def _re2() -> Any:
    """The extension below google-re2's module: the module would keep 128 patterns of its own."""
    try:
        return importlib.import_module("re2")._re2  # noqa: SLF001
    except (ImportError, AttributeError) as error:
        raise RegexpsMissing(
            "CEL needs google-re2 for regular expressions, and it is not installed (or in a "
            "version that is not known): pip install 'dragoman[cel]'"
        ) from error


def _options(re2: Any) -> Any:
    options = re2.RE2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = True  # faster
    return options


def _invalid(pattern: str, why: str) -> EvalError:
    shown = pattern if len(pattern) <= 80 else pattern[:77] + "..."
    return EvalError(f"regular expression {shown!r} is not valid: {why}")


@functools.cache
def _ranges(expression: str) -> str:
    """The characters that a class matches, as ranges for within a class; found by trying all."""
    match = _compile(f"(?:{expression})+", expression)
    ranges: list[str] = []
    for first in range(0, 0x110000, 0x800):
        if 0xD800 <= first < 0xE000:
            continue  # surrogates are no characters
        block = "".join(map(chr, range(first, first + 0x800))).encode()
        position = 0
        while position < len(block):
            start, position = match(block, position, len(block))[0]
            if start < 0:
                break
            run = block[start:position].decode()
            ranges.append(rf"\x{{{ord(run[0]):x}}}-\x{{{ord(run[-1]):x}}}")
    return "".join(ranges)

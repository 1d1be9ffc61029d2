"""Where our CEL differs from the reference, knowingly: at most 15 entries, each with a reproducer.

``tests/contract/test_cel.py`` asks both about every entry, so that the list stays true: an entry
that no longer differs fails there. Nothing on it is found by the random expressions of that test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Known:
    """One difference. ``theirs`` and ``ours`` are kinds of outcomes, or a match as text."""

    expression: str
    theirs: str
    ours: str
    reason: str


KNOWN: Final = (
    Known(
        '[?device.attributes["a.io"].x].size() == 1',
        "panic",
        "compileError",
        "the reference panics while it compiles an optional item of unknown type; the API server "
        "then answers 500",
    ),
    Known(
        '{dyn(b"a"): 1}.size() == 1',
        "panic",
        "compileError",
        "the reference panics while it plans a map with a key of bytes",
    ),
    Known(
        "cel.bind(a, lists.range(600000), (a + a).size() > 0)",
        "match true",
        "evalError",
        "lists of more than 1,000,000 items are not made: the reference shares the halves, a copy "
        "here would take the memory that no cost unit stands for",
    ),
    Known(
        '"aaaaaaaaaa"' + '.replace("", "bbbbbbbbbb")' * 6 + ".size() > 0",
        "match true",
        "evalError",
        "texts of more than 10,000,000 characters are not made: reading one costs more than the "
        "limit, making it is free in the reference",
    ),
    Known(
        'cel.bind(q, quantity("1"), q.isLessThan(quantity("100Ti")) && q.isInteger())',
        "match false",
        "match true",
        "comparing a quantity changes how the reference holds it, and isInteger() looks at that",
    ),
    Known(
        '"a".matches("(\\\\pL{400}){2}") || true',
        "match true",
        "compileError",
        "patterns that compile to more than 8 MiB are refused",
    ),
    Known(
        'dyn([quantity("1")]) + dyn([1]) == dyn([1]) + dyn([1])',
        "evalError",
        "match true",
        "an item that cannot be compared counts as equal in a list, but as an error in a list that "
        "`+` made, which the reference keeps in its two parts",
    ),
    Known(
        "dyn(device) in {dyn(device): 1}",
        "match false",
        "match true",
        "as a key of a map, an object is only itself, and the reference makes another one of the "
        "device each time it is named",
    ),
)

"""Whole boolean expressions about one library, built from the inside out."""

from __future__ import annotations

from dra_testing.cel_tables import BY_LIBRARY, LIBRARIES
from dra_testing.cel_types import TERNARY, UNARY, Type, substitute
from dra_testing.cel_writer import BOOL, Place, Writer, Written, consumers

#: Libraries that other expressions hardly contain.
SELDOM = (
    "bytes", "cidr", "extlists", "format", "ip", "macros", "quantity", "regex", "semver", "time",
    "twovar", "unicode", "url",
)  # fmt: skip


def about(writer: Writer, library: str, depth: int) -> tuple[Written, Type]:
    """An expression that is about ``library``, of any type."""
    template = writer.rng.choice(BY_LIBRARY[library])
    bound = writer.complete(template, {})
    place = Place(depth)
    return writer.fill(template, bound, place), substitute(template.result, bound)


def wrapped(
    writer: Writer, inner: Written, kind: Type, result: Type | None
) -> tuple[Written, Type]:
    """``inner`` as a part of something; of the type ``result`` if one is asked for."""
    template, number, bound = writer.rng.choice(consumers(kind, result))
    bound = writer.complete(template, bound)
    outer = writer.fill(template, bound, Place(1), (number, inner))
    return outer, substitute(template.result, bound)


def a_selector(writer: Writer, library: str | None = None) -> str:
    """An expression that gives true or false, and is about ``library``."""
    rng = writer.rng
    inner, kind = about(writer, library or rng.choice(LIBRARIES), rng.choice([1, 1, 2]))
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        inner, kind = wrapped(writer, inner, kind, None)
    if kind != BOOL:
        inner, kind = wrapped(writer, inner, kind, BOOL)
    roll = rng.random()
    if roll < 0.15:
        other, its = about(writer, rng.choice(SELDOM), 1)
        if its != BOOL:
            other, _ = wrapped(writer, other, its, BOOL)
        operator, needs = rng.choice([("&&", 3), ("||", 2)])
        pair = [inner.within(needs), other.within(needs)]
        rng.shuffle(pair)
        return f" {operator} ".join(pair)
    if roll < 0.18:
        return f"!{inner.within(UNARY)}"
    return inner.within(TERNARY)

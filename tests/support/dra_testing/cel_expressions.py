"""Random CEL expressions over every library that device selectors may use, as questions.

::

    devices = [a_device(rng) for _ in range(10)]
    for sample in selectors(random.Random(seed), devices, count):
        oracle.ask([sample.question])

:mod:`dra_testing.cel_writer` writes what is well typed, :mod:`dra_testing.cel_wrong` what is not,
:mod:`dra_testing.cel_hostile` has what tries limits and edges, :mod:`dra_testing.cel_costly` what
is near the cost limit. :mod:`dra_testing.cel_report` tells with the oracle how many are of which
kind.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dra_testing.cel_devices import Device
from dra_testing.cel_selectors import a_selector, about
from dra_testing.cel_tables import LIBRARIES
from dra_testing.cel_types import parse_type
from dra_testing.cel_writer import Writer
from dra_testing.cel_wrong import a_wrong_selector


class Sample(NamedTuple):
    """A question as the oracle takes it, and the libraries that it was written from."""

    question: dict[str, Any]
    libraries: frozenset[str]


def selectors(
    rng: random.Random, devices: Sequence[Device], count: int, *, wrong: float = 0.2
) -> Iterator[Sample]:
    """Selectors about every library in turn; a share of them is wrong on purpose."""
    for number in range(count):
        library = LIBRARIES[number % len(LIBRARIES)]
        device = rng.choice(devices)
        if rng.random() < wrong:
            expression, writer = a_wrong_selector(rng, device, library)
        else:
            writer = Writer(rng, device)
            expression = a_selector(writer, library)
        question = {"id": number, "kind": "selector", "expression": expression, "device": device}
        yield Sample(question, frozenset(writer.libraries))


#: What a derived attribute may be, and what not.
_DERIVED = (
    "string",
    "int",
    "bool",
    "semver",
    "list(string)",
    "list(int)",
    "list(bool)",
    "list(semver)",
)
_FORBIDDEN = (
    "double", "uint", "bytes", "quantity", "duration", "timestamp", "ip", "url", "list(double)",
    "list(list(int))", "map(string, int)", "optional(int)", "optional(string)", "list(quantity)",
)  # fmt: skip


def derived(
    rng: random.Random, devices: Sequence[Device], count: int, *, forbidden: float = 0.1
) -> Iterator[Sample]:
    """Derived attributes of every allowed type, and some of forbidden ones."""
    for number in range(count):
        device = rng.choice(devices)
        writer = Writer(rng, device)
        kind = parse_type(rng.choice(_FORBIDDEN if rng.random() < forbidden else _DERIVED))
        roll = rng.random()
        if roll < 0.1:
            text = rng.choice(["", "dyn"]) + f"({writer.make(kind, 2).text})"
        elif roll < 0.2:
            expression, its = about(writer, rng.choice(LIBRARIES), 1)
            text = expression.text if its.name in ("bool", "int") else f"[dyn({expression.text})]"
        else:
            text = writer.make(kind, rng.choice([1, 2, 2, 3])).text
        question = {"id": number, "kind": "derived", "expression": text, "device": device}
        yield Sample(question, frozenset(writer.libraries))

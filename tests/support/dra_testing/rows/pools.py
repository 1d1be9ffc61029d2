"""Rows of pools, counter sets and node selectors."""

from __future__ import annotations

from typing import Final

from dra_core.model.devices import Counter
from dra_core.quantity import Quantity
from dra_testing.rows.example import (
    FORBIDDEN,
    GONE,
    INVALID,
    MALFORMED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    TWICE,
    UNREADABLE,
    Base,
    Row,
    changed,
    table,
)
from dra_testing.rows.slices import ANYWHERE, ONE, SELECTOR, SET, SLICE, counters, slice_of

_PLACED: Final = Base(slice_of(), "spec", model="spec")
_FREE: Final = Base({**SLICE, "spec": ANYWHERE}, "spec", model="spec")
_POOL: Final = table(
    Base(SLICE, "spec.pool", model="spec.pool"),
    Row("ResourcePool.generation", "generation", 7, -1, reads=("generation", 7)),
    Row("ResourcePool.name", "name", "rack/p", "rack//p", reads=("name", "rack/p")),
    Row("ResourcePool.resourceSliceCount", "resourceSliceCount", 3, 0, reads=("slice_count", 3)),
    Row("ResourcePool.generation#required", "generation", 0, GONE, UNREADABLE, server=201),
    Row("ResourcePool.name#required", "name", "p", GONE, REQUIRED),
    Row("ResourcePool.resourceSliceCount#required", "resourceSliceCount", 1, GONE),
    Row("ResourcePool.name#max-253", "name", "p" * 253, f"{'p' * 200}/{'q' * 53}", TOO_LONG),
    Row("ResourcePool.name#subdomains-with-slashes", "name", "a/b.c/d-1", "a/"),
    Row("ResourcePool.name#subdomains-with-slashes", "name", "a.b", "A.b"),
    Row("ResourcePool.name#immutable", "name", "p", "q", update=True),
    Row("ResourcePool.resourceSliceCount#positive", "resourceSliceCount", 1, 0),
)
_SETS: Final = table(
    Base(
        changed(_PLACED, {"devices": GONE, "sharedCounters": [SET]}),
        "spec.sharedCounters.0",
        model="spec.shared_counters.0",
    ),
    Row(
        "CounterSet.counters",
        "counters",
        {"m": {"value": "2"}},
        {"M": {"value": "2"}},
        reads=("counters", {"m": Counter(Quantity.parse("2"))}),
    ),
    Row("CounterSet.name", "name", "set-1", "set_1", reads=("name", "set-1")),
    Row("CounterSet.counters#required", "counters", ONE, GONE, REQUIRED),
    Row("CounterSet.name#required", "name", "s", GONE, REQUIRED),
    Row("CounterSet.counters#max-32", "counters", counters(32), counters(33), TOO_MANY),
    Row(
        "CounterSet.counters#names-unique",
        "counters",
        counters(2),
        {**counters(1), "again:c0": {"value": "1"}},
        TWICE,
    ),
    Row(
        "CounterSet.counters#names-dns-label",
        "counters",
        counters(1, "c" * 63),
        counters(1, "c" * 64),
    ),
    Row("CounterSet.name#dns-label", "name", "s" * 63, "s" * 64),
    Row(
        "Counter.value",
        "counters.c.value",
        "2",
        "two",
        MALFORMED,
        reads=("counters.c.value", Quantity.parse("2")),
    ),
    Row("Counter.value#required", "counters.c.value", "1", GONE, UNREADABLE, server=201),
)
_TERM: Final = "nodeSelector.nodeSelectorTerms.0.matchExpressions.0"
_REQUIREMENT: Final = table(
    Base(
        changed(_FREE, {"nodeSelector": SELECTOR}),
        f"spec.{_TERM}",
        model="spec.node_selector.terms.0.match_expressions.0",
    ),
    Row("NodeSelectorRequirement.key", "key", "rack", "rack 1", reads=("key", "rack")),
    Row(
        "NodeSelectorRequirement.operator",
        "operator",
        "DoesNotExist",
        "IsNot",
        reads=("operator", "DoesNotExist"),
    ),
    Row(
        "NodeSelectorRequirement.values",
        "values",
        ["a", "b"],
        ["a", "b c"],
        {"values[1]": INVALID},
        reads=("values", ("a", "b")),
        more={"operator": "In"},
    ),
    Row("NodeSelectorRequirement.key#required", "key", "zone", GONE),
    Row("NodeSelectorRequirement.operator#required", "operator", "Exists", GONE),
    *(
        Row("NodeSelectorRequirement.operator#allowed", "operator", word, word.lower(), more=more)
        for words, more in (
            (("In", "NotIn"), {"values": ["a"]}),
            (("Exists", "DoesNotExist"), {}),
            (("Gt", "Lt"), {"values": ["5"]}),
        )
        for word in words
    ),
    *(
        Row(
            "NodeSelectorRequirement.values#in-not-empty",
            "values",
            ["a"],
            [],
            REQUIRED,
            more={"operator": word},
        )
        for word in ("In", "NotIn")
    ),
    *(
        Row(
            "NodeSelectorRequirement.values#exists-empty",
            "values",
            [],
            ["a"],
            FORBIDDEN,
            more={"operator": word},
        )
        for word in ("Exists", "DoesNotExist")
    ),
    *(
        Row(
            "NodeSelectorRequirement.values#gt-lt-one-integer",
            "values",
            ["5"],
            bad,
            REQUIRED,
            more={"operator": word},
        )
        for word in ("Gt", "Lt")
        for bad in ([], ["5", "6"])
    ),
)

ROWS: Final = [*_POOL, *_SETS, *_REQUIREMENT]

"""Parts of a device that slices, claims and taint rules have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_core.validation import field_rules, names
from dra_core.validation.field_rules import Problems
from dra_core.validation.problems import Path, invalid, not_supported, required

EFFECTS: Final = ["NoExecute", "NoSchedule", "None"]
OPERATIONS: Final = ["*", "NodePrepareResources", "NodeUnprepareResources"]
#: ``bindingConditions``, and as many ``bindingFailureConditions``.
CONDITIONS_MAX: Final = 4
CONDITIONS: Final = ("bindingConditions", "bindingFailureConditions")

Item = Mapping[str, Any]


def taint(value: Item, path: Path, *, stored_effect: str | None = None) -> Problems:
    """A taint of a device or of a rule; an effect that is stored may stay whatever it is."""
    yield from names.label_key(value["key"], path.child("key"))
    yield from names.label_value(value.get("value", ""), path.child("value"))
    if value["effect"] != stored_effect:
        yield from effect(value["effect"], path.child("effect"))


def effect(text: str, path: Path) -> Problems:
    """What a taint does: one of three words."""
    if not text:
        yield required(path, f"must be one of: {', '.join(EFFECTS)}")
    elif text not in EFFECTS:
        yield not_supported(path, text, EFFECTS)


def binding_conditions(device: Item, path: Path) -> Problems:
    """``bindingConditions`` and ``bindingFailureConditions``: both or none, and disjoint."""
    (first, good), (second, bad) = ((name, device.get(name, ())) for name in CONDITIONS)
    for name, items in ((first, good), (second, bad)):
        at = path.child(name)
        yield from field_rules.each(items, at, names.label_key, CONDITIONS_MAX)
        yield from field_rules.distinct(items, at)
    for number, condition in enumerate(bad):
        if condition in good:
            at = path.child(second).index(number)
            yield invalid(at, condition, f"is one of {first} too: remove one")
    if bool(good) != bool(bad):
        missing, there = (second, first) if good else (first, second)
        yield invalid(path.child(missing), [], f"cannot be empty beside {there}")


def operations(words: Sequence[str], path: Path, stored: Sequence[str] = ()) -> Problems:
    """``skipNodeOperations``: a set of known words; what is stored may be an unknown one."""
    yield from field_rules.distinct(words, path)
    for number, word in enumerate(words):
        if word not in OPERATIONS and word not in stored:
            yield not_supported(path.index(number), word, OPERATIONS)


def paired_operations(words: Sequence[str], path: Path) -> Problems:
    """Who does not prepare has nothing to unprepare."""
    if "NodePrepareResources" in words and not {"NodeUnprepareResources", "*"} & set(words):
        yield invalid(path, words, "must name NodeUnprepareResources as well, or '*'")

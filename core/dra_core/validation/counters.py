"""Rules for shared counters and their consumption (partitionable devices, KEP-4815)."""

from __future__ import annotations

from typing import Any, Final

from dra_core.validation import field_rules, names
from dra_core.validation.problems import Path, Problem, required, too_many

JSON = dict[str, Any]

COUNTER_SETS_MAX: Final = 8
COUNTERS_MAX: Final = 32
CONSUMPTIONS_MAX: Final = 2
GROUPS_MAX: Final = 2


def counter_sets(sets: list[JSON], path: Path) -> list[Problem]:
    """``spec.sharedCounters``."""
    if len(sets) > COUNTER_SETS_MAX:
        return [too_many(path, len(sets), COUNTER_SETS_MAX)]
    found = list(field_rules.distinct([s["name"] for s in sets], path))
    for i, counter_set in enumerate(sets):
        found += _named_counters(counter_set, "name", path.index(i))
    return found


def new_keys(sets: list[JSON], old: list[JSON], path: Path) -> list[Problem]:
    """Bad names of new counters, which 1.37 reports even where there are too many counters.

    Names that the old set of the same name has are not looked at again.
    """
    if len(sets) > COUNTER_SETS_MAX:
        return []
    before: dict[str, JSON] = {}
    for counter_set in old:
        before.setdefault(counter_set["name"], counter_set)
    found: list[Problem] = []
    for i, counter_set in enumerate(sets):
        known = before.get(counter_set["name"], {}).get("counters", {})
        where = path.index(i).child("counters")
        for key in counter_set.get("counters", {}):
            if key not in known:
                found += names.dns_label(key, where)
    return found


def consumptions(items: list[JSON], path: Path) -> list[Problem]:
    """``devices[].consumesCounters``."""
    if len(items) > CONSUMPTIONS_MAX:
        return [too_many(path, len(items), CONSUMPTIONS_MAX)]
    found = list(field_rules.distinct([c["counterSet"] for c in items], path))
    for i, item in enumerate(items):
        where = path.index(i)
        found += _named_counters(item, "counterSet", where)
    return found


def declared_consumptions(items: list[JSON], path: Path) -> list[Problem]:
    """What 1.37 checks once more, and besides: compatibility groups, names beyond the limit."""
    found = consumptions(items, path)
    if len(items) > CONSUMPTIONS_MAX:
        return found
    for i, item in enumerate(items):
        where = path.index(i)
        for key in item.get("counters", {}):
            found += names.dns_label(key, where.child("counters"))
        found += _groups(item.get("compatibilityGroups", []), where)
    return found


def _named_counters(item: JSON, name: str, path: Path) -> list[Problem]:
    value, counters = item[name], item.get("counters", {})
    where = path.child(name)
    found = names.dns_label(value, where) if value else [required(where, "must name a counter set")]
    where = path.child("counters")
    if not counters:
        found.append(required(where, "must have at least one counter"))
    elif len(counters) > COUNTERS_MAX:
        found.append(too_many(where, len(counters), COUNTERS_MAX))
    else:
        for key in counters:
            found += names.dns_label(key, where)
    return found


def _groups(groups: list[str], path: Path) -> list[Problem]:
    where = path.child("compatibilityGroups")
    if len(groups) > GROUPS_MAX:
        return [too_many(where, len(groups), GROUPS_MAX)]
    found = list(field_rules.distinct(groups, where))
    for i, group in enumerate(groups):
        found += names.dns_label(group, where.index(i))
    return found

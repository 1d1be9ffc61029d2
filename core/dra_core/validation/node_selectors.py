"""Rules for node selectors of slices and devices (core/v1 NodeSelector)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dra_core.validation import names
from dra_core.validation.problems import Path, Problem, forbidden, invalid, required

JSON = dict[str, Any]

#: How many values an operator needs, and what to say otherwise.
_NEEDS_VALUES: Final = ("In", "NotIn")
_NO_VALUES: Final = ("Exists", "DoesNotExist")
_ONE_VALUE: Final = ("Gt", "Lt")


def node_selector(selector: JSON, path: Path) -> list[Problem]:
    """Terms and their requirements; at least one term."""
    terms = selector.get("nodeSelectorTerms", [])
    where = path.child("nodeSelectorTerms")
    if not terms:
        return [required(where, "must have one node selector term")]
    return [p for i, term in enumerate(terms) for p in _term(term, where.index(i))]


def slice_node_selector(selector: JSON, path: Path) -> list[Problem]:
    """The same for ``spec.nodeSelector``: exactly one term, so that selectors can be merged."""
    found = node_selector(selector, path)
    count = len(selector.get("nodeSelectorTerms", []))
    if count != 1:
        where = path.child("nodeSelectorTerms")
        found.append(invalid(where, count, "terms: write exactly one node selector term"))
    return found


def node_choice(
    holder: JSON,
    path: Path,
    ways: Sequence[str],
    selector: Callable[[JSON, Path], list[Problem]],
    why: str = "",
) -> list[Problem]:
    """Exactly one of the ways to say on which nodes something is: a name, a selector, a flag."""
    found: list[Problem] = []
    chosen: list[str] = []
    for way in ways:
        value, where = holder.get(way), path.child(way)
        if value is None:
            continue
        if way == "nodeName":
            found += names.dns_subdomain(value, where)
        elif way == "nodeSelector":
            found += selector(value, where)
        elif not value:
            found.append(invalid(where, False, "must be true or absent"))
        if value or way == "nodeSelector":
            chosen.append(way)
    rule = f"exactly one of {', '.join(ways)}{why}"
    if not chosen:
        found.append(required(path, f"needs {rule}"))
    if len(chosen) > 1:
        found.append(invalid(path, ", ".join(chosen), f"are set: keep {rule}"))
    return found


def _term(term: JSON, path: Path) -> list[Problem]:
    labels, fields = path.child("matchExpressions"), path.child("matchFields")
    found: list[Problem] = []
    for i, requirement in enumerate(term.get("matchExpressions", [])):
        found += _label_requirement(requirement, labels.index(i))
    for i, requirement in enumerate(term.get("matchFields", [])):
        found += _field_requirement(requirement, fields.index(i))
    return found


def _label_requirement(requirement: JSON, path: Path) -> list[Problem]:
    operator, values = requirement["operator"], requirement.get("values", [])
    where = path.child("values")
    found: list[Problem] = []
    if operator in _NEEDS_VALUES:
        if not values:
            found.append(required(where, f"operator {operator} needs at least one value"))
    elif operator in _NO_VALUES:
        if values:
            found.append(forbidden(where, f"operator {operator} takes no values: remove them"))
    elif operator in _ONE_VALUE:
        if len(values) != 1:
            found.append(required(where, f"operator {operator} needs one value, a whole number"))
    else:
        rule = "is no operator: use In, NotIn, Exists, DoesNotExist, Gt or Lt"
        found.append(invalid(path.child("operator"), operator, rule))
    found += names.label_key(requirement["key"], path.child("key"))
    for i, value in enumerate(values):
        found += names.label_value(value, where.index(i))
    return found


def _field_requirement(requirement: JSON, path: Path) -> list[Problem]:
    """``matchFields`` knows one key, metadata.name, and one value."""
    operator, values = requirement["operator"], requirement.get("values", [])
    found: list[Problem] = []
    if operator not in _NEEDS_VALUES:
        found.append(invalid(path.child("operator"), operator, "is not possible: use In or NotIn"))
    elif len(values) != 1:
        found.append(required(path.child("values"), "needs exactly one node name"))
    if requirement["key"] != "metadata.name":
        rule = "is no field of nodes that can be selected by: use metadata.name"
        found.append(invalid(path.child("key"), requirement["key"], rule))
        return found
    for i, value in enumerate(values):
        found += names.dns_subdomain(value, path.child("values").index(i))
    return found

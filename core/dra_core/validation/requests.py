"""``spec.devices`` of claims and claim templates: requests, constraints, configuration."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from dra_core import formats
from dra_core.validation import (
    claim_gates,
    configurations,
    device_parts,
    expressions,
    field_rules,
    names,
)
from dra_core.validation.expressions import DerivedCost
from dra_core.validation.field_rules import Problems
from dra_core.validation.problems import Path, invalid, not_supported, required
from dra_core.validation.servers import Server

REQUESTS_MAX: Final = 32
FIRST_AVAILABLE_MAX: Final = 8
CONSTRAINTS_MAX: Final = 32
CONFIG_MAX: Final = 32
MODES: Final = ["All", "ExactCount"]
OPERATORS: Final = ["Equal", "Exists"]

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class References:
    """What names in a claim can refer to.

    ``requests`` has the names of subrequests by that of the request; ``attributes`` the names in
    constraints by the request or ``request/subrequest`` they are for, under ``""`` for all.
    """

    requests: Mapping[str, frozenset[str]]
    attributes: Mapping[str, AbstractSet[str]]

    def knows(self, name: str) -> bool:
        """Whether ``name`` is a request, or ``request/subrequest``."""
        request, slash, sub = name.partition("/")
        return request in self.requests and (not slash or sub in self.requests[request])

    def constrained(self, attribute: str, request: str) -> bool:
        """Whether a constraint on ``request`` (or ``request/subrequest``) uses the attribute."""
        targets = ("", request, request.partition("/")[0])
        return any(attribute in self.attributes.get(target, ()) for target in targets)


def references(devices: Item) -> References:
    """Read the names once; of two requests with one name the last counts."""
    requests = {
        request["name"]: frozenset(sub["name"] for sub in request.get("firstAvailable", ()))
        for request in devices["requests"]
    }
    attributes: dict[str, set[str]] = {}
    for constraint in devices.get("constraints", ()):
        name = constraint.get("matchAttribute", constraint.get("distinctAttribute"))
        if name is not None:
            for target in constraint.get("requests", ()) or ("",):
                attributes.setdefault(target, set()).add(name)
    return References(requests, attributes)


@dataclass(frozen=True, slots=True)
class _Asking:
    """What the requests of one claim are looked at with."""

    known: References
    server: Server
    cost: DerivedCost


def device_problems(devices: Item, path: Path, server: Server) -> Problems:
    """Everything in ``spec.devices`` of a new claim."""
    known = references(devices)
    asking = _Asking(known, server, DerivedCost())
    requests = devices["requests"]
    at = path.child("requests")
    yield from field_rules.each(requests, at, lambda r, p: _request(r, p, asking), REQUESTS_MAX)
    yield from asking.cost.problems(path)
    yield from field_rules.distinct([r["name"] for r in requests], at, REQUESTS_MAX)
    yield from field_rules.each(
        devices.get("constraints", ()),
        path.child("constraints"),
        lambda c, p: _constraint(c, p, known, server),
        CONSTRAINTS_MAX,
    )
    yield from field_rules.each(
        devices.get("config", ()),
        path.child("config"),
        lambda c, p: configuration(c, p, known),
        CONFIG_MAX,
    )


def configuration(config: Item, path: Path, known: References) -> Problems:
    """``config[]`` of a claim or of an allocation."""
    yield from request_references(config.get("requests", ()), path.child("requests"), known)
    yield from configurations.opaque(config, path)


def request_references(targets: Sequence[str], path: Path, known: References) -> Problems:
    """``requests`` of a constraint or configuration: a set of names of this claim."""
    yield from field_rules.each(
        targets, path, lambda name, p: request_reference(name, p, known), REQUESTS_MAX
    )
    yield from field_rules.distinct(targets, path, REQUESTS_MAX)


def request_reference(name: str, path: Path, known: References) -> Problems:
    """``request`` or ``request/subrequest`` of this claim."""
    well_formed = all(formats.is_dns_label(part) for part in name.split("/"))
    if name.count("/") > 1 or not well_formed or not known.knows(name):
        there = ", ".join(itertools.islice(known.requests, 8)) or "none"
        yield invalid(path, name, f"is not a request of this claim; its requests: {there}")


def _request(request: Item, path: Path, asking: _Asking) -> Problems:
    yield from names.dns_label(request["name"], path.child("name"))
    subs = request.get("firstAvailable", [])
    if "exactly" in request and subs:
        yield invalid(path, request["name"], "has both exactly and firstAvailable: remove one")
    elif "exactly" in request:
        at = path.child("exactly")
        yield from _asked(request["exactly"], at, asking, request["name"])
    elif subs:
        at = path.child("firstAvailable")

        def check(sub: Item, p: Path) -> Problems:
            yield from names.dns_label(sub["name"], p.child("name"))
            yield from _asked(sub, p, asking, f"{request['name']}/{sub['name']}")

        yield from field_rules.each(subs, at, check, FIRST_AVAILABLE_MAX)
        yield from field_rules.distinct([s["name"] for s in subs], at, FIRST_AVAILABLE_MAX)
    else:
        yield required(path, "needs exactly or firstAvailable")


def _asked(asked: Item, path: Path, asking: _Asking, name: str) -> Problems:
    yield from names.class_name(asked["deviceClassName"], path.child("deviceClassName"))
    selectors = asked.get("selectors", ())
    yield from configurations.selectors(selectors, path.child("selectors"), asking.server)
    yield from _derived(asked, path.child("derivedAttributes"), asking, name)
    yield from _count(path, asked["allocationMode"], asked.get("count", 0))
    yield from field_rules.each(asked.get("tolerations", ()), path.child("tolerations"), toleration)


def _count(path: Path, mode: str, count: int) -> Problems:
    if mode == "All" and count != 0:
        yield invalid(path.child("count"), count, "cannot be there with allocationMode All")
    if mode == "ExactCount" and count <= 0:
        yield invalid(path.child("count"), count, "is not a number of devices: use 1 or more")
    if mode not in MODES:
        yield not_supported(path.child("allocationMode"), mode, MODES)


def toleration(item: Item, path: Path) -> Problems:
    """``tolerations[]``: with Exists no value; an empty key passes with any operator."""
    if item.get("key"):
        yield from names.label_key(item["key"], path.child("key"))
    operator, value = item["operator"], item.get("value", "")
    if operator not in OPERATORS:
        yield not_supported(path.child("operator"), operator, OPERATORS)
    elif operator == "Equal":
        yield from names.label_value(value, path.child("value"))
    elif value:
        yield invalid(path.child("value"), value, "cannot be there with operator Exists")
    if item.get("effect") and item["effect"] not in device_parts.EFFECTS:
        yield not_supported(path.child("effect"), item["effect"], device_parts.EFFECTS)


def _derived(asked: Item, path: Path, asking: _Asking, request: str) -> Problems:
    """``derivedAttributes``: used by a constraint, each name once (more in ``declared``)."""
    items = asked.get("derivedAttributes", ())
    for number, item in enumerate(items):
        at = path.index(number)
        if item["name"] and not asking.known.constrained(item["name"], request):
            rule = "is used by no matchAttribute or distinctAttribute for this request"
            yield invalid(at.child("name"), item["name"], rule)
        if text := item["expression"]:
            where = at.child("expression")
            yield from expressions.derived(text, where, asking.server, asking.cost)
    yield from field_rules.distinct([item["name"] for item in items], path)


def _constraint(constraint: Item, path: Path, known: References, server: Server) -> Problems:
    yield from request_references(constraint.get("requests", ()), path.child("requests"), known)
    for name in ("matchAttribute", "distinctAttribute"):
        if name in constraint:
            yield from names.fully_qualified_name(constraint[name], path.child(name))
            return
    choice = "needs matchAttribute or distinctAttribute"
    if claim_gates.on(server, "DRAConsumableCapacity"):
        yield required(path, choice)
    else:
        yield required(path.child("matchAttribute"), "must name an attribute: <domain>/<name>")

"""Rules that 1.37 declares in the API types (``+k8s:`` markers) beside its hand-written ones.

Most say the same twice. Here are those that say more: both request kinds are looked into even when
both are set, ``distinctAttribute`` is checked beside ``matchAttribute``, attribute domains are in
lower case, ``derivedAttributes`` and ``skipNodeOperations`` have most of their rules only here.

In an update these rules skip what did not change, items of lists being told apart by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dra_core.validation import configurations, field_rules, names, requests
from dra_core.validation.field_rules import Check, Problems
from dra_core.validation.problems import Path, not_supported, required, too_many

DERIVED_MAX: Final = 32

Item = Mapping[str, Any]


def device_problems(devices: Item, old: Item | None, path: Path) -> Problems:
    """``spec.devices`` of a claim or template; ``old`` is the stored one."""
    at = path.child("requests")
    items, before = devices["requests"], old["requests"] if old else None
    if items != before and len(items) <= requests.REQUESTS_MAX:
        for number, request in enumerate(items):
            was = _named(before, request["name"])
            if request != was:
                yield from _request(request, at.index(number), was)
    constraints = devices.get("constraints", ())
    if not old or constraints != old.get("constraints", ()):
        at = path.child("constraints")
        yield from field_rules.each(constraints, at, _constraint, requests.CONSTRAINTS_MAX)


def _named(items: Iterable[Item] | None, name: str) -> Item | None:
    return next((item for item in items or () if item["name"] == name), None)


def _request(request: Item, path: Path, old: Item | None) -> Problems:
    if "exactly" in request:
        was = (old or {}).get("exactly")
        if request["exactly"] != was:
            yield from _asked(request["exactly"], path.child("exactly"), was)
    subs, before = request.get("firstAvailable", ()), (old or {}).get("firstAvailable", ())
    if old and subs == before:
        return
    at = path.child("firstAvailable")
    if len(subs) > requests.FIRST_AVAILABLE_MAX:
        yield too_many(at, len(subs), requests.FIRST_AVAILABLE_MAX)
        return
    yield from field_rules.distinct([sub["name"] for sub in subs], at)
    for number, sub in enumerate(subs):
        was = _named(before, sub["name"])
        if sub != was:
            yield from _subrequest(sub, at.index(number), was)


def _subrequest(sub: Item, path: Path, old: Item | None) -> Problems:
    if not old or sub["deviceClassName"] != old["deviceClassName"]:
        yield from names.class_name(sub["deviceClassName"], path.child("deviceClassName"))
    yield from _asked(sub, path, old)


def _asked(asked: Item, path: Path, old: Item | None) -> Problems:
    selectors = asked.get("selectors", ())
    if _changed("selectors", asked, old) and len(selectors) > configurations.SELECTORS_MAX:
        yield too_many(path.child("selectors"), len(selectors), configurations.SELECTORS_MAX)
    mode = asked["allocationMode"]
    if _changed("allocationMode", asked, old) and mode not in requests.MODES:
        yield not_supported(path.child("allocationMode"), mode, requests.MODES)
    yield from _list("tolerations", path, asked, old, _toleration)
    yield from _list("derivedAttributes", path, asked, old, _derived, limit=DERIVED_MAX)


def _changed(name: str, new: Item, old: Item | None) -> bool:
    return not old or new.get(name) != old.get(name)


def _list(
    name: str, path: Path, new: Item, old: Item | None, check: Check, *, limit: int | None = None
) -> Problems:
    if _changed(name, new, old):
        yield from field_rules.each(new.get(name, ()), path.child(name), check, limit)


def _toleration(item: Item, path: Path) -> Problems:
    """What hand-written rules say about a toleration, less the rules about its value."""
    value = str(path.child("value"))
    yield from (p for p in requests.toleration(item, path) if p.field != value)


def _derived(item: Item, path: Path) -> Problems:
    if item["name"]:
        yield from names.lower_case_qualified_name(item["name"], path.child("name"))
    else:
        yield required(path.child("name"), "must name the attribute: <domain>/<name>")
    if not item["expression"]:
        yield required(path.child("expression"), "must hold a CEL expression")


def _constraint(constraint: Item, path: Path) -> Problems:
    for name in ("matchAttribute", "distinctAttribute"):
        if name in constraint:
            at = path.child(name)
            yield from names.lower_case_qualified_name(constraint[name], at)

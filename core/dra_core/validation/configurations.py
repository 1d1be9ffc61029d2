"""Selectors, opaque parameters and conditions: parts that several kinds have."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_core.validation import expressions, field_rules, names
from dra_core.validation.field_rules import Problems
from dra_core.validation.problems import (
    Path,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from dra_core.validation.servers import Server

#: ``selectors``: how many.
SELECTORS_MAX: Final = 32
#: ``opaque.parameters`` and ``status.devices[].data``.
DOCUMENT_MAX: Final = 10 * 1024
CONDITIONS_MAX: Final = 8
#: What the server takes for no time at all.
ZERO_TIME: Final = "0001-01-01T00:00:00Z"
_STATUSES: Final = ["False", "True", "Unknown"]
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_MAX: Final = 1024
_MESSAGE_MAX: Final = 32 * 1024


def selectors(
    items: Sequence[Mapping[str, Any]], path: Path, server: Server, *, unchanged: bool = False
) -> Problems:
    """``selectors[].cel``. ``unchanged`` ones are exactly as they were stored before."""

    def check(selector: Mapping[str, Any], at: Path) -> Problems:
        if "cel" not in selector:
            yield required(at.child("cel"), "must hold a CEL expression")
        else:
            text, where = selector["cel"]["expression"], at.child("cel", "expression")
            yield from expressions.selector(text, where, server, unchanged=unchanged)

    yield from field_rules.each(items, path, check, SELECTORS_MAX)


def opaque(config: Mapping[str, Any], path: Path, *, trusted: bool = False) -> Problems:
    """``opaque``: parameters for a driver. ``trusted`` ones, stored before, may be larger."""
    at = path.child("opaque")
    if "opaque" not in config:
        yield required(at, "must hold the parameters for a driver")
        return
    yield from names.driver_name(config["opaque"]["driver"], at.child("driver"))
    limit = None if trusted else DOCUMENT_MAX
    yield from document(config["opaque"]["parameters"], at.child("parameters"), limit)


def document(value: Any, path: Path, limit: int | None) -> Problems:
    """A JSON object of at most ``limit`` bytes, measured as compact JSON.

    The API server measures what it was sent; the clients of Kubernetes send compact JSON.
    """
    if value is None:
        yield required(path, "must be a JSON object, for example {}")
    elif limit is not None and _compact_size(value) > limit:
        yield too_long(path, limit)
    elif not isinstance(value, dict):
        yield invalid(path, value, "is not a JSON object, such as {'key': 'value'}")


def conditions(items: Sequence[Mapping[str, Any]], path: Path, server: Server) -> Problems:
    """``conditions``: at most 8, each type once, as metav1 has them."""
    if len(items) > CONDITIONS_MAX:
        yield too_many(path, len(items), CONDITIONS_MAX)
    keys = [item["type"] for item in items]
    for problem in field_rules.distinct(keys, path):
        # Where 1.36 points at the type, 1.37 points at the whole condition.
        where = problem.field if server.minor >= 37 else f"{problem.field}.type"
        yield type(problem)(where, problem.type, problem.detail)
    for number, item in enumerate(items):
        yield from _condition(item, path.index(number), server)


def _condition(item: Mapping[str, Any], path: Path, server: Server) -> Problems:
    # Before 1.37 an empty type or status was one of the wrong form, not a missing one.
    names_missing = server.minor >= 37
    if names_missing and not item["type"]:
        yield required(path.child("type"))
    else:
        yield from names.label_key(item["type"], path.child("type"))
    if names_missing and not item["status"]:
        yield required(path.child("status"), f"must be one of: {', '.join(_STATUSES)}")
    elif item["status"] not in _STATUSES:
        yield not_supported(path.child("status"), item["status"], _STATUSES)
    if item.get("observedGeneration", 0) < 0:
        yield invalid(path.child("observedGeneration"), item["observedGeneration"], "is below 0")
    if item["lastTransitionTime"] in (None, ZERO_TIME):
        yield required(path.child("lastTransitionTime"), "must be a time of the form RFC 3339")
    yield from _reason(item["reason"], path.child("reason"))
    if names.size(item["message"]) > _MESSAGE_MAX:
        yield too_long(path.child("message"), _MESSAGE_MAX)


def _reason(reason: str, path: Path) -> Problems:
    if not reason:
        yield required(path, "must be one word, such as Ready")
        return
    if not _REASON.fullmatch(reason):
        yield invalid(path, reason, "is not one word: begin with a letter, then A-Z a-z 0-9 _ , :")
    if names.size(reason) > _REASON_MAX:
        yield too_long(path, _REASON_MAX)


def _compact_size(value: Any) -> int:
    return names.size(json.dumps(value, separators=(",", ":"), ensure_ascii=False))

"""Functions of expressions, called by the identifier of their overload."""

from __future__ import annotations

from typing import Any

from dra_core.cel.library import (
    addresses,
    lists,
    named_formats,
    quantities,
    regex,
    sets,
    two_variable,
    urls,
    versions,
)
from dra_core.cel.values import QuantityValue, SemverValue

OVERLOADS = (
    *lists.OVERLOADS,
    *sets.OVERLOADS,
    *regex.OVERLOADS,
    *urls.OVERLOADS,
    *addresses.OVERLOADS,
    *named_formats.OVERLOADS,
    *quantities.OVERLOADS,
    *versions.OVERLOADS,
    *two_variable.OVERLOADS,
)
_CALLS = {overload.id: overload.call for overload in OVERLOADS}


def call(overload: str, *args: Any) -> Any:
    """The value of a call; raises ``EvalError``."""
    function = _CALLS[overload]
    assert function is not None
    return function(*args)


def quantity(text: str) -> QuantityValue:
    """``quantity(text)``."""
    value: QuantityValue = call("string_to_quantity", text)
    return value


def semver(text: str) -> SemverValue:
    """``semver(text)``."""
    value: SemverValue = call("string_to_semver", text)
    return value

"""Attachers by name: entry points of the group ``dragoman.attachers``, found when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Final, cast

from dra_core.errors import InvalidValue
from dra_core.names import DriverName
from dra_operator.api import Attacher, Context, Factory

GROUP: Final = "dragoman.attachers"

#: Options of an attacher, by driver.
Options = Mapping[str, Mapping[str, str]]


def load(chosen: Mapping[str, str], options: Options) -> dict[DriverName, Attacher]:
    """The attachers of these drivers, by driver -> name of the entry point.

    Raises InvalidValue with a sentence that says what there is.
    """
    for driver in options:
        if driver not in chosen:
            raise InvalidValue(
                f"--attacher-option is for driver {driver!r}, which has no --attacher"
            )
    return {
        DriverName(driver): _made(driver, name, options.get(driver, {}))
        for driver, name in chosen.items()
    }


def _made(driver: str, name: str, options: Mapping[str, str]) -> Attacher:
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        known = ", ".join(sorted(found)) or "there is none"
        raise InvalidValue(f"--attacher {driver}={name}: no such attacher; known: {known}")
    try:
        factory = cast("Factory", found[name].load())
    except Exception as error:  # whatever the import of somebody's package raises
        raise InvalidValue(
            f"--attacher {driver}={name}: {found[name].value} cannot be loaded: {error}"
        ) from error
    return factory(Context(driver, dict(options)))

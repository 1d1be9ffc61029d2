"""``--feature-gates NAME=true,OTHER=false``."""

from __future__ import annotations

from collections.abc import Mapping

from dra_core.errors import InvalidValue


def parsed(text: str) -> Mapping[str, bool]:
    """The gates that are named. Errors: ``InvalidValue`` for a value that is neither."""
    gates = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, value = part.partition("=")
        if value.lower() not in ("true", "false"):
            raise InvalidValue(f"--feature-gates {part!r} is not NAME=true or NAME=false")
        gates[name] = value.lower() == "true"
    return gates

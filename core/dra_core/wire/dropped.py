"""Fields that an API server did not keep."""

from __future__ import annotations

from collections.abc import Mapping


def dropped_fields(sent: object, stored: object, path: str = "") -> list[str]:
    """Paths of fields that were sent and are not there, list items without their index.

    What the API leaves out because it is empty was not dropped.
    """
    if isinstance(sent, Mapping):
        have = stored if isinstance(stored, Mapping) else {}
        found: list[str] = []
        for key, value in sent.items():
            here = f"{path}.{key}" if path else str(key)
            if key in have:
                found += dropped_fields(value, have[key], here)
            elif value not in (None, [], {}, ""):
                found.append(here)
        return found
    if isinstance(sent, list) and isinstance(stored, list):
        pairs = zip(sent, stored, strict=False)
        return [field for a, b in pairs for field in dropped_fields(a, b, f"{path}[]")]
    return []

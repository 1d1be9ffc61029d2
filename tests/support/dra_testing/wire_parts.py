"""What reading an object did not understand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from dra_core.model.devices import RawAttribute


def unknown_parts(value: object, where: str = "") -> Iterator[str]:
    """Places of the value where something was not understood."""
    if isinstance(value, RawAttribute):
        yield where
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            part = getattr(value, field.name)
            if field.name != "unknown":
                yield from unknown_parts(part, f"{where}.{field.name}")
            elif part:
                yield f"{where}: {part}"
    elif isinstance(value, tuple):
        for index, part in enumerate(value):
            yield from unknown_parts(part, f"{where}[{index}]")
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from unknown_parts(part, f"{where}[{key}]")

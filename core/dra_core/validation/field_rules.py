"""Rules about lists, and about fields that only claims have. Names are in ``names``."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final

from dra_core.validation import names
from dra_core.validation.problems import Path, Problem, duplicate, invalid, required, too_many

Problems = Iterator[Problem]
Check = Callable[[Any, Path], Iterable[Problem]]

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def each(items: Sequence[Any], path: Path, check: Check, limit: int | None = None) -> Problems:
    """Check the items of a list; of one that is too long, nothing but that is said."""
    if limit is not None and len(items) > limit:
        yield too_many(path, len(items), limit)
        return
    for number, item in enumerate(items):
        yield from check(item, path.index(number))


def distinct(keys: Sequence[Hashable], path: Path, limit: int | None = None) -> Problems:
    """No key twice; silent about a list that is too long (:func:`each` speaks of that)."""
    seen: set[Hashable] = set()
    for number, key in enumerate(keys if limit is None or len(keys) <= limit else ()):
        if key in seen:
            yield duplicate(path.index(number), key)
        seen.add(key)


def class_name(value: str, path: Path) -> Iterable[Problem]:
    """``deviceClassName``: the name of a DeviceClass."""
    if not value:
        return [required(path, "must name a DeviceClass")]
    return names.dns_subdomain(value, path)


def share_id(value: str, path: Path) -> Problems:
    """``shareID``: a UUID in its normal form."""
    if not _UUID.fullmatch(value):
        yield invalid(path, value, "is not a UUID in lower case, 8-4-4-4-12 hexadecimal digits")

"""Rules about lists, whatever is in them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Sized
from typing import Any

from dra_core.validation.problems import Path, Problem, duplicate, too_many

Problems = Iterator[Problem]
Check = Callable[[Any, Path], Iterable[Problem]]


def each(items: Sequence[Any], path: Path, check: Check, limit: int | None = None) -> Problems:
    """Check the items of a list; of one that is too long, nothing but that is said."""
    if limit is not None and len(items) > limit:
        yield from at_most(items, path, limit)
        return
    for number, item in enumerate(items):
        yield from check(item, path.index(number))


def at_most(items: Sized, path: Path, limit: int) -> Problems:
    """Not more items than this."""
    if len(items) > limit:
        yield too_many(path, len(items), limit)


def distinct(keys: Sequence[Hashable], path: Path, limit: int | None = None) -> Problems:
    """No key twice; silent about a list that is too long (:func:`each` speaks of that)."""
    seen: set[Hashable] = set()
    for number, key in enumerate(keys if limit is None or len(keys) <= limit else ()):
        if key in seen:
            yield duplicate(path.index(number), key)
        seen.add(key)

"""Room on Python's stack for expressions nested deeper than Python expects.

A legal expression is up to 250 levels deep in its text, and several times that as a tree. Each
level takes one or two frames, all of them plain Python functions that take no room on the stack of
the process. So when the 1,000 frames of Python's default do not suffice, its limit is raised, once
and for all; it is never lowered, since another thread may be deep in an expression.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, TypeVar

#: Frames that the deepest legal expression needs, with a reserve.
FRAMES: Final = 6000

_T = TypeVar("_T")


def deep(work: Callable[[], _T], before: Callable[[], None] | None = None) -> _T:
    """Do the work; if the stack was too small, make room and do it again after ``before``."""
    try:
        return work()
    except RecursionError:
        if sys.getrecursionlimit() >= FRAMES:
            raise
        sys.setrecursionlimit(FRAMES)
    if before is not None:
        before()
    return work()

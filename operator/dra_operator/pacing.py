"""How fast evictions may go: pods a second, and how much of a pool may be on its way out."""

from __future__ import annotations

import collections
import math
from collections.abc import Hashable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field


class Rate:
    """At most so many starts within any second; below one a second, one in so many seconds.

    ``at`` is a monotonic time in seconds.
    """

    def __init__(self, per_second: float) -> None:
        self._window = max(1.0, 1.0 / per_second)
        self._starts: collections.deque[float] = collections.deque(
            maxlen=max(1, math.floor(per_second * self._window))
        )

    def next_at(self, at: float) -> float:
        """The earliest moment for one more, ``at`` if that is now."""
        full = len(self._starts) == self._starts.maxlen
        return max(at, self._starts[0] + self._window) if full else at

    def start(self, at: float) -> None:
        """One has been started."""
        self._starts.append(at)


@dataclass(slots=True)
class Shares:
    """At most this ``share`` of a group's pods may be on their way out, but one in any case.

    A key is a group: the pods of one pool that one rule taints.
    """

    share: float
    _busy: dict[Hashable, set[str]] = field(default_factory=dict)

    def room(self, key: Hashable, size: int, others: AbstractSet[str] = frozenset()) -> bool:
        """Whether one more may start in a group of ``size`` pods, those on their way included.

        ``others`` are on their way for whatever reason, also those that were entered here.
        """
        busy = len(others | self._busy.get(key, set()))
        return busy < max(1, math.floor(self.share * size))

    def enter(self, key: Hashable, uid: str) -> None:
        """This pod is on its way out."""
        self._busy.setdefault(key, set()).add(uid)

    def leave(self, key: Hashable, uid: str) -> None:
        """It is gone, or stays after all."""
        members = self._busy.get(key)
        if members is not None:
            members.discard(uid)
            if not members:
                del self._busy[key]

    def total(self) -> int:
        """All pods on their way out."""
        return sum(len(members) for members in self._busy.values())


@dataclass(frozen=True, slots=True)
class Hold:
    """A rule that concerns more than this ``share`` of all pods with claims waits for a person.

    A selector that is too wide drains a cluster. Rules for up to ``few`` pods are never held.
    """

    share: float
    few: int = 10

    def holds(self, pods: int, users: int) -> bool:
        """Whether ``pods`` of the ``users`` are too many."""
        return pods > self.few and pods > self.share * users

    def why(self, pods: int, users: int, annotation: str) -> str:
        """A sentence for people."""
        return (
            f"{pods} of the {users} pods that use devices would be evicted, more than the share of "
            f"{self.share:g} (--hold-share): nothing is evicted until the rule has the annotation "
            f'{annotation}: "true" or concerns fewer pods'
        )


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds before another attempt: doubling from ``first`` up to ``most``."""

    first: float = 1.0
    most: float = 60.0

    def pause(self, failures: int, wanted: float = 0.0) -> float:
        """After so many failures in a row; ``wanted`` is what the server asked for."""
        return max(wanted, min(self.most, self.first * 2.0 ** min(failures - 1, 16)))

"""Which pool names are free for a publisher without a node.

All slices of a driver that name one pool are that pool, whoever publishes them: a pool of the
cluster with the name of a node's pool would make both of them incomplete, and the scheduler would
allocate from neither. The node's stays; ours waits until its name is free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dra_core.model.slices import Pool
from dra_core.names import PoolName

#: Seconds for which an answer is good, unless there are new names to ask about.
AGAIN: Final = 10.0


class PoolNames:
    """Used by the publishing thread.

    ``used`` asks for the pools of nodes, by name, with a slice of each; it raises ApiError.
    ``report`` logs an error about a subject once, ``tell`` makes an Event of it.
    """

    def __init__(
        self,
        used: Callable[[], Mapping[str, str]],
        report: Callable[[str, str, str], None],
        tell: Callable[[str, str, str], None],
        clock: Callable[[], float],
    ) -> None:
        self._used = used
        self._report = report
        self._tell = tell
        self._clock = clock
        self._known: Mapping[str, str] = {}
        self._asked: frozenset[PoolName] = frozenset()
        self._refused: frozenset[PoolName] = frozenset()
        self._until = float("-inf")
        #: Which pools are not published for their names; empty if there are none.
        self.trouble = ""

    def free(self, pools: Sequence[Pool]) -> list[Pool]:
        """Those whose names no node uses."""
        names = frozenset(pool.name for pool in pools)
        if not names <= self._asked or self._clock() >= self._until:
            self._known = self._used()
            self._asked = names
            self._until = self._clock() + AGAIN
        refused = {n: _refusal(n, self._known[n]) for n in sorted(names & self._known.keys())}
        for name, sentence in (dict.fromkeys(self._refused, "") | refused).items():
            self._report(f"name of pool {name}", "pool refused", sentence)
            self._tell("PoolNameTaken", name, sentence)
        self._refused = frozenset(refused)
        self.trouble = "; ".join(refused.values())
        return [pool for pool in pools if pool.name not in self._known]


def _refusal(pool: PoolName, owner: str) -> str:
    return (
        f"pool {pool!r} is not published: a node has a pool of that name ({owner}); pool names are "
        "unique among all instances of a driver, rename one of the two"
    )

"""The order in which Go leaves equal items when it sorts.

``sort`` and ``sortBy`` of lists are made with Go's ``sort.Slice``, which is not stable beyond 12
items: which of several items with one key comes first follows from how the algorithm moves them
about. An expression can see that (``xs.sortBy(x, x.size())[0]``), so the same moves are made here.
The algorithm is pattern-defeating quicksort (arxiv.org/abs/2106.05123) with insertion sort below 13
items and heap sort after too many bad pivots, the pivots chosen as Go does it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

_INSERTION: Final = 12
_NINTHER: Final = 50
_SHIFTING: Final = 50
_STEPS: Final = 5
#: As many swaps as there can be while a pivot is looked for: the items are in reverse order.
_ALL_SWAPPED: Final = 12
_UINT64: Final = 2**64 - 1


def sorted_places(keys: Sequence[Any]) -> list[int]:
    """The places of the keys, in the order in which Go sorts them. All are of one kind."""
    if not any(type(key) is float and math.isnan(key) for key in keys):
        places = sorted(range(len(keys)), key=keys.__getitem__)
        if len(keys) <= _INSERTION or _all_differ([keys[place] for place in places]):
            return places
    return _Sorting(keys).places


def _all_differ(ordered: list[Any]) -> bool:
    return all(left != right for left, right in itertools.pairwise(ordered))


class _Sorting:
    def __init__(self, keys: Sequence[Any]) -> None:
        self.keys = list(keys)
        self.places = list(range(len(keys)))
        self._quick(0, len(keys), len(keys).bit_length())

    def _before(self, left: int, right: int) -> bool:
        return bool(self.keys[left] < self.keys[right])

    def _swap(self, left: int, right: int) -> None:
        for items in (self.keys, self.places):
            items[left], items[right] = items[right], items[left]

    def _quick(self, start: int, end: int, bad_pivots: int) -> None:
        """Sort from ``start`` up to ``end``: the smaller part first, then the other one."""
        balanced = partitioned = True
        while end - start > _INSERTION:
            size = end - start
            if bad_pivots == 0:
                self._heap(start, end)
                return
            if not balanced:
                self._scatter(start, size)
                bad_pivots -= 1
            pivot, sorted_already = self._pivot(start, end)
            if balanced and partitioned and sorted_already and self._nearly_sorted(start, end):
                return
            if start > 0 and not self._before(start - 1, pivot):
                start = self._split_equal(start, end, pivot)
                continue
            middle, partitioned = self._split(start, end, pivot)
            balanced = min(middle - start, end - middle) >= size // 8
            if middle - start < end - middle:
                self._quick(start, middle, bad_pivots)
                start = middle + 1
            else:
                self._quick(middle + 1, end, bad_pivots)
                end = middle
        self._insert(start, end)

    def _insert(self, start: int, end: int) -> None:
        for place in range(start + 1, end):
            self._sink(place, start)

    def _sink(self, place: int, start: int) -> None:
        """Move an item left to where it belongs."""
        while place > start and self._before(place, place - 1):
            self._swap(place, place - 1)
            place -= 1

    # -- the pivot --

    def _pivot(self, start: int, end: int) -> tuple[int, bool]:
        """The place of the pivot, and whether the items seem to be in order."""
        quarter = (end - start) // 4
        swaps = 0

        def ordered(left: int, right: int) -> tuple[int, int]:
            nonlocal swaps
            if self._before(right, left):
                swaps += 1
                return right, left
            return left, right

        def median(first: int, second: int, third: int) -> int:
            first, second = ordered(first, second)
            second, third = ordered(second, third)
            return ordered(first, second)[1]

        candidates = [start + quarter, start + 2 * quarter, start + 3 * quarter]
        if end - start >= _NINTHER:
            candidates = [median(place - 1, place, place + 1) for place in candidates]
        pivot = median(*candidates)
        if swaps != _ALL_SWAPPED:
            return pivot, swaps == 0
        self._reverse(start, end)
        return end - 1 - (pivot - start), True

    def _reverse(self, start: int, end: int) -> None:
        for items in (self.keys, self.places):
            items[start:end] = items[start:end][::-1]

    def _scatter(self, start: int, size: int) -> None:
        """Break a pattern that made a bad pivot, by numbers that depend on the size alone."""
        random = size
        limit = 1 << size.bit_length()
        middle = start + size // 4 * 2
        for place in range(middle - 1, middle + 2):
            random ^= random << 13 & _UINT64
            random ^= random >> 7
            random ^= random << 17 & _UINT64
            other = random & (limit - 1)
            self._swap(place, start + (other - size if other >= size else other))

    # -- one step of it --

    def _split(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Smaller items before the pivot, others after it; its place, and if they were so."""
        self._swap(start, pivot)
        low, high = self._misplaced(start + 1, end - 1, start)
        untouched = low > high
        while low <= high:
            self._swap(low, high)
            low, high = self._misplaced(low + 1, high - 1, start)
        self._swap(high, start)
        return high, untouched

    def _misplaced(self, low: int, high: int, pivot: int) -> tuple[int, int]:
        """The next items from both sides that stand on the wrong one."""
        while low <= high and self._before(low, pivot):
            low += 1
        while low <= high and not self._before(high, pivot):
            high -= 1
        return low, high

    def _split_equal(self, start: int, end: int, pivot: int) -> int:
        """Items equal to the pivot first, greater ones after them; where those begin."""
        self._swap(start, pivot)
        low, high = start + 1, end - 1
        while True:
            while low <= high and not self._before(start, low):
                low += 1
            while low <= high and self._before(start, high):
                high -= 1
            if low > high:
                return low
            self._swap(low, high)
            low += 1
            high -= 1

    def _nearly_sorted(self, start: int, end: int) -> bool:
        """Whether the items are in order after moving a few that are not."""
        place = start + 1
        for _ in range(_STEPS):
            while place < end and not self._before(place, place - 1):
                place += 1
            if place == end:
                return True
            if end - start < _SHIFTING:
                return False
            self._swap(place, place - 1)
            if place - start >= 2:
                self._sink(place - 1, 0)
            if end - place >= 2:
                self._rise(place + 1, end)
        return False

    def _rise(self, place: int, end: int) -> None:
        """Move the item before a place right to where it belongs."""
        while place < end and self._before(place, place - 1):
            self._swap(place, place - 1)
            place += 1

    def _heap(self, start: int, end: int) -> None:
        size = end - start
        for root in range((size - 1) // 2, -1, -1):
            self._sift(root, size, start)
        for last in range(size - 1, -1, -1):
            self._swap(start, start + last)
            self._sift(0, last, start)

    def _sift(self, root: int, size: int, start: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self._before(start + child, start + child + 1):
                child += 1
            if not self._before(start + root, start + child):
                return
            self._swap(start + root, start + child)
            root = child

"""What benchmarks print."""

from __future__ import annotations

from collections.abc import Sequence


def table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print rows under a title and a head; all columns but the first to the right."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    print(f"\n{title}")  # noqa: T201 - to who runs the benchmark
    for row in (head, *lines):
        first, *rest = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
        print(*cells, sep="  ")  # noqa: T201 - see above

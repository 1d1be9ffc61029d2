"""Numbers for monitoring in the text format of Prometheus, at ``/metrics``."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_PREFIX: Final = "dra_operator_"
#: What there is: name without prefix -> type, help. Names that end in _total are counters.
_HELP: Final[Mapping[str, str]] = {
    "attempts_total": "Attempts to evict a pod, by result.",
    "cancelled_total": "Pods that were to go and stay after all.",
    "observed_total": "Pods that would have been evicted, in mode observe.",
    "pods_gone_total": "Evicted pods that are gone.",
    "pods": "Pods that are to go, by state.",
    "leading": "Whether this instance is the one that may evict.",
    "objects": "Objects in memory, by resource.",
    "watch_up": "Whether a resource is being watched, by resource.",
    "watch_starts_total": "Times the watches were started.",
    "unreadable": "Whether a resource may not be read, by resource.",
    "compared_total": "Comparisons with the API server, by result.",
    "strays_total": "Objects forgotten by a comparison, by resource.",
}

_Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Series:
    name: str
    labels: _Labels


class Registry:
    """See :class:`dra_operator.ports.Measures`; any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[_Series, float] = {}

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Count up."""
        series = _series(name, labels)
        with self._lock:
            self._values[series] = self._values.get(series, 0.0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[_series(name, labels)] = float(value)

    def text(self) -> str:
        """All of it."""
        with self._lock:
            values = sorted(self._values.items(), key=lambda e: (e[0].name, e[0].labels))
        lines = []
        for name, what in _HELP.items():
            found = [(s, v) for s, v in values if s.name == name]
            if found:
                kind = "counter" if name.endswith("_total") else "gauge"
                lines += [f"# HELP {_PREFIX}{name} {what}", f"# TYPE {_PREFIX}{name} {kind}"]
                lines += [f"{_PREFIX}{name}{_shown(s.labels)} {_number(v)}" for s, v in found]
        return "\n".join(lines) + "\n"


def _series(name: str, labels: Mapping[str, str]) -> _Series:
    if name not in _HELP:
        raise KeyError(name)
    return _Series(name, tuple(sorted(labels.items())))


def _shown(labels: _Labels) -> str:
    if not labels:
        return ""
    parts = [f'{key}="{_escaped(value)}"' for key, value in labels]
    return "{" + ",".join(parts) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)

"""Numbers for monitoring in the text format of Prometheus, at ``/metrics``."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

_Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Series:
    name: str
    labels: _Labels


class Registry:
    """Numbers of a program; any thread may use it.

    ``described`` says what there is: name without ``prefix`` -> help. Names that end in ``_total``
    are counters, all others gauges.
    """

    def __init__(self, prefix: str, described: Mapping[str, str]) -> None:
        self._prefix = prefix
        self._described = described
        self._lock = threading.Lock()
        self._values: dict[_Series, float] = {}

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Count up."""
        series = self._series(name, labels)
        with self._lock:
            self._values[series] = self._values.get(series, 0.0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[self._series(name, labels)] = float(value)

    def forget(self, **labels: str) -> None:
        """Drop all numbers that have these labels."""
        gone = set(labels.items())
        with self._lock:
            self._values = {s: v for s, v in self._values.items() if not gone <= set(s.labels)}

    def text(self) -> str:
        """All of it."""
        with self._lock:
            values = sorted(self._values.items(), key=lambda e: (e[0].name, e[0].labels))
        lines = []
        for name, what in self._described.items():
            found = [(s, v) for s, v in values if s.name == name]
            if found:
                kind = "counter" if name.endswith("_total") else "gauge"
                full = self._prefix + name
                lines += [f"# HELP {full} {what}", f"# TYPE {full} {kind}"]
                lines += [f"{full}{_shown(s.labels)} {_number(v)}" for s, v in found]
        return "\n".join(lines) + "\n"

    def _series(self, name: str, labels: Mapping[str, str]) -> _Series:
        if name not in self._described:
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

"""Numbers for monitoring in the text format of Prometheus, at ``/metrics``."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_PREFIX: Final = "dra_driver_publisher_"
#: What there is: name without prefix -> type, help. Names that end in _total are counters.
_HELP: Final[Mapping[str, str]] = {
    "writes_total": "Requests that write ResourceSlices, by verb.",
    "failures_total": "Attempts to publish that failed and were tried again.",
    "discoveries_total": "Times the driver was asked for its devices, by result.",
    "pool_devices": "Devices published of a pool.",
    "pool_generation": "Generation of a pool.",
    "devices_left_out": "Devices of a pool that the API refuses (by=rules, by=server).",
    "devices_withheld": "Devices of a pool withheld because the cluster lacks a feature.",
    "features_missing": "Features that the pools use and the cluster does not have.",
}

_Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Series:
    name: str
    labels: _Labels


class Registry:
    """See :class:`dra_driver.ports.Measures`; any thread may use it."""

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

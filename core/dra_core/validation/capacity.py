"""Rules for ``devices[].capacity[].requestPolicy`` (consumable capacity, KEP-5075)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from dra_core.quantity import Quantity
from dra_core.validation.problems import (
    ErrorType,
    Path,
    Problem,
    duplicate,
    forbidden,
    invalid,
    required,
    too_many,
)
from dra_core.validation.servers import Server

JSON = dict[str, Any]

#: ``requestPolicy.validValues`` has at most so many entries.
VALUES_MAX: Final = 10
_NANO: Final = 10**9
_MILLI_NANOS: Final = 10**6
_INT64_MAX: Final = 2**63 - 1
_NUMBER: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)\.?(?P<fraction>[0-9]*)(?P<suffix>.*)"
)
_EXPONENTS: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def fractional_ranges(server: Server) -> bool:
    """Whether validRange and validValues are compared exactly instead of in whole units."""
    return server.has("DRAFractionalCapacityRange")


def capacity(value: JSON, path: Path, *, shared: bool, server: Server) -> list[Problem]:
    """One capacity; a policy needs a device with allowMultipleAllocations (``shared``)."""
    policy = value.get("requestPolicy")
    if policy is None:
        return []
    where = path.child("requestPolicy")
    if not shared:
        detail = "needs allowMultipleAllocations: true on the device: set it or remove the policy"
        return [forbidden(where, detail)]
    return _policy(Quantity.parse(value["value"]), policy, where, server)


def _policy(total: Quantity, policy: JSON, path: Path, server: Server) -> list[Problem]:
    values, limits, default = (policy.get(k) for k in ("validValues", "validRange", "default"))
    if values and limits is not None:
        return [forbidden(path, "validValues and validRange exclude each other: keep one")]
    if not values and limits is None:
        return []
    if default is None:
        name = "validValues" if values else "validRange"
        return [required(path.child("default"), f"must be set along with {name}")]
    if values:
        return _values(Quantity.parse(default), total, values, path.child("validValues"), server)
    return _Range(Quantity.parse(default), total, limits or {}, path.child("validRange")).problems(
        server
    )


def _values(
    default: Quantity, total: Quantity, texts: list[str], path: Path, server: Server
) -> list[Problem]:
    """Ascending, at most the capacity, no value twice, the default among them.

    With too many values the server looks at none of them, so that the default is not found either.
    """
    values = [Quantity.parse(text) for text in texts]
    found = [
        invalid(path.index(i + 1), texts[i + 1], f"is less than {texts[i]} before it: sort them")
        for i in range(len(values) - 1)
        if values[i] > values[i + 1]
    ]
    if len(values) > VALUES_MAX:
        found.append(too_many(path, len(values), VALUES_MAX))
        return [*found, _default_missing(default, path)]
    keys = [_decimal_text(t) for t in texts] if fractional_ranges(server) else map(_whole, values)
    seen: set[object] = set()
    for i, (value, key) in enumerate(zip(values, keys, strict=True)):
        if value > total:
            found.append(invalid(path.index(i), texts[i], f"is more than the capacity, {total}"))
        if key in seen:
            found.append(duplicate(path.index(i), texts[i]))
        seen.add(key)
    if default not in values:
        found.append(_default_missing(default, path))
    return found


def _default_missing(default: Quantity, path: Path) -> Problem:
    detail = f"default {default} is none of the values: add it or choose another default"
    return Problem(str(path), ErrorType.INVALID, detail)


class _Range:
    """A default and a validRange within a capacity."""

    def __init__(self, default: Quantity, total: Quantity, limits: JSON, path: Path) -> None:
        self.default, self.total, self.path = default, total, path
        self.low, self.high, self.step = (
            Quantity.parse(limits[k]) if k in limits else None for k in ("min", "max", "step")
        )

    def problems(self, server: Server) -> list[Problem]:
        """All of them, in whole units or, with the gate and a fraction anywhere, in thousandths."""
        if self.low is None:
            return [required(self.path.child("min"), "must be set in a validRange")]
        found = list(self._bounds(self.low, server))
        milli = fractional_ranges(server) and any(q.nanos % _NANO for _, q in self._named())
        if milli:
            unsafe = [
                invalid(self.path.child(name), str(q), "is finer than a thousandth: round it")
                for name, q in self._named()
                if q.nanos % _MILLI_NANOS or abs(q.nanos // _MILLI_NANOS) > _INT64_MAX
            ]
            if unsafe:
                return found + unsafe
        if self.step is not None:
            found += self._steps(self.low, self.step, milli=milli, server=server)
        return found

    def _named(self) -> Iterator[tuple[str, Quantity]]:
        yield "default", self.default
        for name, q in (("min", self.low), ("max", self.high), ("step", self.step)):
            if q is not None:
                yield name, q

    def _bounds(self, low: Quantity, server: Server) -> Iterator[Problem]:
        default, total, high = self.default, self.total, self.high
        # 1.36 blames the bound, 1.37 the default.
        blames_default = server.minor >= 37
        if low > total:
            yield self._wrong("min", low, f"is more than the capacity, {total}")
        if default < low:
            name = "default" if blames_default else "min"
            yield self._wrong(name, default, f"as default is less than min, {low}")
        if high is None:
            return
        if low > high:
            yield self._wrong("max", high, f"is less than min, {low}")
        if high > total:
            yield self._wrong("max", high, f"is more than the capacity, {total}")
        if default > high:
            name = "default" if blames_default else "max"
            yield self._wrong(name, default, f"as default is more than max, {high}")

    def _wrong(self, name: str, value: Quantity, detail: str) -> Problem:
        return invalid(self.path.child(name), str(value), detail)

    def _steps(
        self, low: Quantity, step: Quantity, *, milli: bool, server: Server
    ) -> list[Problem]:
        if step.nanos == 0 or (step.nanos < 0 and server.minor >= 37):
            return [self._wrong("step", step, "must be more than 0")]
        found: list[Problem] = []
        if low.nanos + step.nanos > self.total.nanos:
            detail = f"from min, {low}, is beyond the capacity, {self.total}"
            found.append(self._wrong("step", step, detail))
        if not milli and server.minor >= 37:
            outside = [
                self._wrong(name, q, f"must be from 0 to {_INT64_MAX}")
                for name, q in self._named()
                if not 0 <= q.nanos <= _INT64_MAX * _NANO
            ]
            if outside:
                return found + outside
        unit = _MILLI_NANOS if milli else _NANO
        start, width = _units(low, unit), _units(step, unit)
        if width == 0:  # 1.36 panics here, and for a step of 0: it divides by it
            return [*found, self._wrong("step", step, f"must be at most {_INT64_MAX}")]
        for value in (self.default, self.high):
            if value is not None and (_units(value, unit) - start) % width:
                detail = f"does not lead from {low} to {value}: choose values at whole steps"
                found.append(self._wrong("step", step, detail))
        return found


def _units(quantity: Quantity, unit: int) -> int:
    """Whole units, fractions rounded away from zero, as Quantity.Value does; 0 beyond 64 bits."""
    size = -(-abs(quantity.nanos) // unit)
    size = size if size <= _INT64_MAX else 0
    return size if quantity.nanos >= 0 else -size


def _whole(quantity: Quantity) -> int:
    return _units(quantity, _NANO)


def _decimal_text(text: str) -> tuple[int, int]:
    """Nanos and decimal places: with fractional ranges 1 and 1.0 are two values to the server.

    It compares the text of the number behind the quantity, whose places are those of the number as
    written and of its suffix.
    """
    match = _NUMBER.fullmatch(text)
    suffix = match["suffix"] if match else ""
    places = len(match["fraction"]) if match else 0
    if suffix[:1] in {"e", "E"} and len(suffix) > 1 and suffix[1] != "i":
        places -= int(suffix[1:])
    else:
        places -= _EXPONENTS.get(suffix, 0)
    return Quantity.parse(text).nanos, max(0, min(9, places))

"""Texts about one device: paths to its attributes and capacities, its domains and names."""

from __future__ import annotations

import random
from collections.abc import Callable

from dra_testing.cel_devices import CAPACITIES, DRIVERS, NAMES, OTHER_DOMAINS, Device, paths
from dra_testing.cel_literals import quoted

_ALL_NAMES = [name for names in NAMES.values() for name in names]


class DeviceWords:
    """What the words of templates that are about the device become."""

    def __init__(self, rng: random.Random, device: Device) -> None:
        self._rng = rng
        self._driver: str = device["driver"]
        self._attributes = paths(device, "attributes")
        self._capacities = paths(device, "capacity")
        self._domain = self._driver
        """That of the last ``{#attrs}`` or ``{#caps}``."""

    def word(self, word: str) -> str | None:
        """The text for ``word``, None if it is not about devices."""
        makers: dict[str, Callable[[], str]] = {
            "attrs": lambda: self._map("attributes"),
            "caps": lambda: self._map("capacity"),
            "cap": self.capacity,
            "cap_id": self._capacity_id,
            "id": self._id,
            "domain": lambda: self._quoted_domain(self._some_domain()),
            "selected": self._selected,
        }
        return makers[word]() if word in makers else None

    def _capacity_id(self) -> str:
        here = [name for domain, name, _ in self._capacities if domain == self._domain]
        return self._rng.choice(here or CAPACITIES)

    def _id(self) -> str:
        found = [name for _, name, _ in self._attributes + self._capacities]
        return quoted(self._rng, self._rng.choice([*found, "nosuch", "model"]))

    def attribute(self, word: str, kind: str, names: dict[str, str]) -> str | None:
        """The path to an attribute of the type ``kind``: ``attr``, ``opt``(ional), or ``in_g``."""
        found = [(domain, name) for domain, name, its in self._attributes if its == kind]
        if word == "in_g":
            here = [name for domain, name in found if domain == self._domain]
            return f"{names['g']}.{self._rng.choice(here)}" if here else None
        if not found and self._rng.random() < 0.85:
            return None
        if found and self._rng.random() < 0.97:
            domain, name = self._rng.choice(found)
        else:
            domain, name = self._some_domain(), self._rng.choice(_ALL_NAMES)
        if word == "opt":
            return self._optional(domain, name)
        text = f"device.attributes[{self._quoted_domain(domain)}]"
        if self._rng.random() < 0.1:
            return f"{text}[{quoted(self._rng, name)}]"
        return f"{text}.{name}"

    def capacity(self) -> str:
        """A path to a capacity; now and then to one that is not there."""
        if not self._capacities and self._rng.random() < 0.9:
            return f'quantity("{self._rng.choice(["1Gi", "3", "500m"])}")'
        if self._capacities and self._rng.random() < 0.97:
            domain, name, _ = self._rng.choice(self._capacities)
        else:
            domain, name = self._some_domain(), self._rng.choice(CAPACITIES)
        text = f"device.capacity[{self._quoted_domain(domain)}]"
        if self._rng.random() < 0.1:
            return f"{text}[{quoted(self._rng, name)}]"
        return f"{text}.{name}"

    def _map(self, part: str) -> str:
        paths_there = self._attributes if part == "attributes" else self._capacities
        domains = [domain for domain, _, _ in paths_there] or [self._driver]
        self._domain = self._rng.choice([*domains, *domains, self._some_domain()])
        return f"device.{part}[{self._quoted_domain(self._domain)}]"

    def _some_domain(self) -> str:
        return self._rng.choice([self._driver, *DRIVERS, *OTHER_DOMAINS, "nosuch.example.com"])

    def _quoted_domain(self, domain: str) -> str:
        if domain == self._driver and self._rng.random() < 0.08:
            return "device.driver"
        return quoted(self._rng, domain)

    def _optional(self, domain: str, name: str) -> str:
        if self._rng.random() < 0.2:
            name = self._rng.choice(["nosuch", *_ALL_NAMES])
        where = self._quoted_domain(domain)
        text = f"device.attributes[{self._rng.choice(['', '?'])}{where}]"
        if self._rng.random() < 0.3:
            return f"{text}[?{quoted(self._rng, name)}]"
        return f"{text}.?{name}"

    def _selected(self) -> str:
        part = self._rng.choice(["attributes", "attributes", "capacity"])
        there = self._attributes if part == "attributes" else self._capacities
        if there and self._rng.random() < 0.6:
            domain, name, _ = self._rng.choice(there)
        else:
            domain, name = self._some_domain(), self._rng.choice([*_ALL_NAMES, *CAPACITIES])
        return f"device.{part}[{self._quoted_domain(domain)}].{name}"

"""Random devices in the short form of the oracle, for CEL expressions.

Names and values are drawn from small pools, so that expressions about one device say something
about another as well.
"""

from __future__ import annotations

import random
from typing import Any

Device = dict[str, Any]

DRIVERS = ["gpu.example.com", "nic.example.com", "dra.example.com", "tpu.vendor.io"]
OTHER_DOMAINS = ["dra.example.com", "resource.kubernetes.io", "topology.example.com", "x.io"]
#: Attribute names by type; a name has one type in all devices but for those of ``MOODY``.
NAMES = {
    "string": ["model", "uuid", "pcieRoot", "arch", "vendor", "endpoint", "address", "note"],
    "int": ["index", "numa", "slots", "year", "offset"],
    "bool": ["ecc", "mig", "healthy", "shared"],
    "semver": ["driverVersion", "firmware", "apiVersion"],
    "list(string)": ["tags", "regions", "peers"],
    "list(int)": ["links", "lanes"],
    "list(bool)": ["flags", "bits"],
    "list(semver)": ["fw", "versions"],
}
MOODY = ["kind", "value", "extra"]
CAPACITIES = ["memory", "cores", "bandwidth", "slices", "rx_queues"]

STRINGS = [
    "A100-SXM4-40GB", "H100", "h100-pcie", "GPU-12ab", "pci0000:01", "ampere", "Hopper", "acme",
    "10.0.0.7", "10.0.0.0/24", "https://a.example.com:8443/x?q=1", "fd00::1", "", "x", "1.2.3",
    "42", "true", "a b\tc", "\u00fcber", "\u65e5\u672c\u8a9e", "\U0001f600", "e\u0301", "n\u00ba5",
    "2024-02-29T12:00:00Z", "1h30m", "aGVsbG8=", "fast", "nvlink", "eu-west-1", "null", "A" * 64,
]  # fmt: skip
INTS = [0, 1, 2, 3, 4, 7, 8, 42, 100, 1024, -1, -3, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
VERSIONS = [
    "1.2.3", "0.0.0", "535.104.5", "2.0.0-rc.1", "2.0.0-rc.10", "1.0.0+b1", "1.0.0-alpha+x.7",
    "10.20.30", "18446744073709551615.0.0", "1.0.0--", "0.0.1-0a",
]  # fmt: skip
QUANTITIES = [
    "40Gi", "108", "1500m", "0", "1", "100Gi", "10G", "1.5Gi", "0.5", "1e3", "12E", "1n", "16Ki",
    "-1", "9223372036854775807", "100k", "0.000000001", "80Gi", "1Ti", "1024Mi",
]  # fmt: skip


#: Every attribute of NAMES in the driver's domain, with as many values as a device may have.
FULL: Device = {
    "driver": "gpu.example.com",
    "allowMultipleAllocations": True,
    "attributes": {
        **{name: {"string": f"{name}-A100"} for name in NAMES["string"]},
        **{name: {"int": number} for number, name in enumerate(NAMES["int"])},
        **{name: {"bool": name < "k"} for name in NAMES["bool"]},
        **{name: {"version": "1.2.3"} for name in NAMES["semver"]},
        **{
            name: {"strings": ["fast", "nvlink", "eu", "x", "y", "z"]}
            for name in NAMES["list(string)"]
        },
        **{name: {"ints": [1, 2, 4, 8, 16, 32]} for name in NAMES["list(int)"]},
        **{name: {"bools": [True, False, True]} for name in NAMES["list(bool)"]},
        **{name: {"versions": ["1.2.3", "2.0.0-rc.1"]} for name in NAMES["list(semver)"]},
    },
    "capacity": {"memory": "40Gi", "cores": "108", "bandwidth": "1500m"},
}


def a_device(rng: random.Random) -> Device:
    """A valid device: 1 to 32 attributes and capacities, of one to four domains."""
    driver = rng.choice(DRIVERS)
    device: Device = {"driver": driver, "attributes": {}, "capacity": {}}
    if rng.random() < 0.6:
        device["allowMultipleAllocations"] = rng.random() < 0.6
    count = rng.choice([rng.randint(1, 6), rng.randint(6, 16), rng.randint(20, 32)])
    domains = rng.sample([d for d in OTHER_DOMAINS if d != driver], rng.randint(0, 3))
    slots: list[tuple[str | None, str, str]] = [
        (domain, kind, name)
        for domain in [None, *domains]
        for kind, names in [*NAMES.items(), ("moody", MOODY)]
        for name in names
    ]
    capacities = rng.randint(0, min(5, count // 2))
    taken: set[str] = set()
    for domain, kind, name in rng.sample(slots, len(slots)):
        if len(device["attributes"]) >= count - capacities:
            break
        kind_now = rng.choice(list(NAMES)) if kind == "moody" else kind
        qualified = _qualified(rng, driver, domain, name)
        if (key := qualified.removeprefix(f"{driver}/")) not in taken:
            taken.add(key)
            device["attributes"][qualified] = a_value(rng, kind_now)
    for name in rng.sample(CAPACITIES, capacities):
        qualified = _qualified(rng, driver, rng.choice([None, None, *domains]), name)
        device["capacity"][qualified] = rng.choice(QUANTITIES)
    return device


def _qualified(rng: random.Random, driver: str, domain: str | None, name: str) -> str:
    if domain is None:
        return f"{driver}/{name}" if rng.random() < 0.1 else name
    return f"{domain}/{name}"


def a_value(rng: random.Random, kind: str) -> Device:
    """An attribute of the type ``kind`` (as the keys of :data:`NAMES`)."""
    if kind.startswith("list("):
        inner = kind[5:-1]
        # A device has at most 48 values in lists; every one may have a list or two.
        size = rng.choice([1, 2, 3, 4, rng.randint(0, 8)])
        values = [_scalar(rng, inner) for _ in range(size)]
        key = {"string": "strings", "int": "ints", "bool": "bools", "semver": "versions"}[inner]
        return {key: values}
    key = {"string": "string", "int": "int", "bool": "bool", "semver": "version"}[kind]
    return {key: _scalar(rng, kind)}


def _scalar(rng: random.Random, kind: str) -> Any:
    pools: dict[str, list[Any]] = {
        "string": STRINGS,
        "int": INTS,
        "bool": [True, False],
        "semver": VERSIONS,
    }
    return rng.choice(pools[kind])


def kind_of(value: Device) -> str:
    """The type of an attribute, as the keys of :data:`NAMES`."""
    return {
        "string": "string", "int": "int", "bool": "bool", "version": "semver",
        "strings": "list(string)", "ints": "list(int)", "bools": "list(bool)",
        "versions": "list(semver)",
    }[next(iter(value))]  # fmt: skip


def paths(device: Device, part: str) -> list[tuple[str, str, str]]:
    """(domain, id, type) of the attributes or capacities of ``device``."""
    found = []
    for qualified, value in device.get(part, {}).items():
        domain, _, name = qualified.rpartition("/")
        kind = "quantity" if part == "capacity" else kind_of(value)
        found.append((domain or device["driver"], name, kind))
    return found

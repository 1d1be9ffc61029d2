"""likeness: a device taken as right without a look is one that would have been found right."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from dra_core import wire
from dra_core.errors import InvalidObject
from dra_core.likeness import as_right_as
from dra_core.model.devices import Capacity, Device, Version
from dra_core.model.slices import Pool
from dra_core.names import DeviceName, DriverName, NodeName, PoolName
from dra_core.quantity import Quantity
from dra_core.soundness import Soundness
from dra_testing import slice_objects

DRIVER, NODE = DriverName("gpu.example.com"), NodeName("n1")
RIGHT = Device(
    DeviceName("a"),
    {"model": "x", "index": 1, "ecc": True, "driver": Version("1.2.3"), "links": (1, 2)},
    {"memory": Capacity.of("1Gi")},
)


def fault(device: Device) -> str:
    """What is wrong with it when nothing else has been judged."""
    return "".join(Soundness(DRIVER, NODE).check(Pool(PoolName("n1"), (device,))).faults.values())


def attributes(**changes: object) -> Device:
    return replace(RIGHT, attributes={**RIGHT.attributes, **changes})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "device",
    [
        replace(RIGHT, name=DeviceName("b")),
        attributes(model="y" * 64),
        attributes(index=-(2**63)),
        attributes(ecc=False),
        attributes(driver=Version("1.0.0-rc.1")),
        replace(RIGHT, capacity={"memory": Capacity.of("1Gi")}),
    ],
)
def test_what_differs_in_name_numbers_and_texts_is_alike(device: Device) -> None:
    assert as_right_as(device, RIGHT)
    assert fault(device) == ""


@pytest.mark.parametrize(
    "device",
    [
        replace(RIGHT, name=DeviceName("B")),
        attributes(model="y" * 65),
        attributes(model=1),
        attributes(index=2**63),
        attributes(index=True),
        attributes(driver=Version("1.0")),
        attributes(driver="1.2.3"),
        attributes(links=(1, 3)),
        attributes(more=1),
        replace(RIGHT, capacity={"memory": Capacity.of("2Gi")}),
        replace(RIGHT, capacity={"cores": Capacity.of("1Gi")}),
        replace(RIGHT, capacity={"memory": Capacity(Quantity.parse("1024Mi"))}),
        replace(RIGHT, allow_multiple_allocations=True),
        replace(RIGHT, attributes=None),  # type: ignore[arg-type]
        None,
    ],
)
def test_what_differs_otherwise_has_to_be_judged(device: Device) -> None:
    assert not as_right_as(device, RIGHT)


def test_one_is_no_true() -> None:
    shared = replace(RIGHT, allow_multiple_allocations=True)
    assert not as_right_as(replace(shared, allow_multiple_allocations=1), shared)  # type: ignore[arg-type]


def device_of(rng: random.Random, seed: str) -> Device | None:
    """Some device of a random slice, right or wrong."""
    try:
        made = slice_objects.random_create(seed, 37).obj["spec"]["devices"]
        return wire.device_from_json(rng.choice(made))
    except (InvalidObject, KeyError, TypeError, IndexError):
        return None


def altered(rng: random.Random, device: Device) -> Device:
    """With other names, texts and numbers."""
    strings, versions = slice_objects.STRINGS, slice_objects.VERSIONS
    found = dict(device.attributes)
    for key, value in device.attributes.items():
        if isinstance(value, str):
            found[key] = rng.choice(strings)
        elif isinstance(value, Version):
            found[key] = Version(rng.choice(versions))
        elif isinstance(value, int) and not isinstance(value, bool):
            found[key] = rng.choice((0, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1))
    name = rng.choice((device.name, DeviceName(rng.choice(slice_objects.LABELS))))
    return replace(device, name=name, attributes=found)


def test_random_devices_get_the_verdict_that_they_get_alone() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    alike = refused = 0
    for number in range(600):
        device = device_of(rng, f"{seed}-{number}")
        if device is None or fault(device):
            continue
        other = altered(rng, device)
        alone = fault(other)
        refused += bool(alone)
        if as_right_as(other, device):
            alike += 1
            assert alone == "", f"seed {seed}, number {number}"
        elif not any(isinstance(v, tuple) for v in device.attributes.values()):
            assert alone, f"seed {seed}, number {number}: right, and not seen to be"
    assert alike > 40, (seed, alike)
    assert refused > 40, (seed, refused)


def test_a_pool_of_many_is_judged_as_each_alone() -> None:
    names = [DeviceName(f"d-{n}") for n in range(300)]
    devices = [replace(RIGHT, name=name) for name in names]
    devices[17] = attributes(model="y" * 65)
    devices[123] = replace(RIGHT, name=DeviceName("B"))
    devices[200] = replace(devices[200], capacity={"memory": Capacity.of("2Gi")})
    found = Soundness(DRIVER, NODE).check(Pool(PoolName("n1"), tuple(devices)))
    assert set(found.faults) == {"a", "B"}
    assert len(found.pool.devices) == 298

"""capabilities: what a server keeps is tried out once, named once, and tried again later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra_core import features
from dra_core.errors import ApiForbidden, ApiInvalid, ApiUnavailable
from dra_core.model.devices import Device, NodeAllocatable
from dra_core.model.slices import PublishedSlice
from dra_core.model.taints import DeviceTaint
from dra_core.names import DeviceName, PoolName
from dra_driver.capabilities import DROPPED_AGAIN, REFUSED_AGAIN, Capabilities, shown

PLAIN = Device(DeviceName("d"))
TAINTED = replace(PLAIN, taints=(DeviceTaint("k", "NoSchedule"),))
LISTED = replace(PLAIN, attributes={"ports": (1, 2)})
MAPPED = replace(PLAIN, node_allocatable={"cpu": NodeAllocatable()})
BOTH = replace(LISTED, node_allocatable={"cpu": NodeAllocatable()})


def a_slice(*devices: Device) -> PublishedSlice:
    return PublishedSlice("00000-x", PoolName("p"), 1, 1, devices)


class Lab:
    """A server that drops and refuses what it is told, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.dropping: set[str] = set()
        self.refusing: dict[str, type[Exception]] = {}
        self.tried: list[PublishedSlice] = []
        self.announced: list[str] = []
        self.capabilities = Capabilities(lambda: self.now, self._announce)

    def _announce(self, reason: str, subject: str, note: str) -> None:
        if note:
            self.announced.append(f"{reason} {subject}: {note}")

    def try_out(self, wanted: PublishedSlice) -> PublishedSlice:
        self.tried.append(wanted)
        for gate, error in self.refusing.items():
            if gate in features.used(wanted):
                raise error(f"no {gate} here")
        devices = wanted.devices
        for gate in self.dropping:
            devices = tuple(map(features.FEATURES[gate].without, devices))
        return replace(wanted, devices=devices)

    def explore(self, *devices: Device) -> bool:
        return self.capabilities.explore(a_slice(*devices), self.try_out)


@pytest.fixture
def lab() -> Lab:
    return Lab()


def test_what_uses_nothing_is_not_tried_out(lab: Lab) -> None:
    assert not lab.explore(PLAIN)
    assert lab.tried == []


def test_what_is_there_is_tried_out_once(lab: Lab) -> None:
    assert not lab.explore(TAINTED)
    assert not lab.explore(TAINTED, LISTED)
    assert not lab.explore(TAINTED, LISTED)
    assert len(lab.tried) == 2
    assert lab.announced == []
    assert shown(lab.capabilities.unavailable()) == "every feature that the pools use is there"


def test_what_is_dropped_is_named_once_and_tried_again_quietly(lab: Lab) -> None:
    lab.dropping = {"DRADeviceTaints"}
    assert lab.explore(TAINTED)
    assert set(lab.capabilities.missing) == {"DRADeviceTaints"}
    assert not lab.explore(TAINTED), "nothing new is found out"
    assert len(lab.tried) == 1
    for _ in range(3):
        lab.now += DROPPED_AGAIN - 1
        lab.capabilities.look_again()
        assert set(lab.capabilities.missing) == {"DRADeviceTaints"}
        lab.now += 1
        lab.capabilities.look_again()
        assert lab.capabilities.missing == {}
        assert lab.explore(TAINTED)
    assert len(lab.tried) == 4
    assert len(lab.announced) == 1
    assert "DRADeviceTaints" in shown(lab.capabilities.unavailable())


def test_a_refusal_in_other_words_is_not_named_again(lab: Lab) -> None:
    """The words have the name of what was tried out, and of the devices in it."""
    for number in range(3):
        tried = f'ResourceSlice "try-out-{number}" is forbidden'

        def refuse(wanted: PublishedSlice, why: str = tried) -> PublishedSlice:
            if features.NODE_ALLOCATABLE in features.used(wanted):
                raise ApiForbidden(why)
            return wanted

        lab.capabilities.look_again()
        assert lab.capabilities.explore(a_slice(MAPPED), refuse)
        assert tried in lab.capabilities.unavailable()[features.NODE_ALLOCATABLE]
        lab.now += REFUSED_AGAIN + 1
    assert len(lab.announced) == 1


def test_what_comes_back_is_there(lab: Lab) -> None:
    lab.dropping = {"DRADeviceTaints"}
    lab.explore(TAINTED)
    lab.dropping = set()
    lab.now += DROPPED_AGAIN
    lab.capabilities.look_again()
    assert not lab.explore(TAINTED)
    assert lab.capabilities.unavailable() == {}


@pytest.mark.parametrize(
    ("device", "refused"),
    [
        (LISTED, {"DRAListTypeAttributes": ApiInvalid}),
        (MAPPED, {"DRANodeAllocatableResources": ApiForbidden}),
        (
            BOTH,
            {"DRAListTypeAttributes": ApiInvalid, "DRANodeAllocatableResources": ApiForbidden},
        ),
        (BOTH, {"DRANodeAllocatableResources": ApiForbidden}),
    ],
    ids=["list", "node", "both", "one of two"],
)
def test_a_refusal_is_led_back_to_its_feature(
    lab: Lab, device: Device, refused: dict[str, type[Exception]]
) -> None:
    lab.refusing = refused
    assert lab.explore(device)
    assert set(lab.capabilities.missing) == set(refused)
    assert all("refused: no DRA" in m.reason for m in lab.capabilities.missing.values())
    lab.now += REFUSED_AGAIN
    lab.capabilities.look_again()
    assert lab.capabilities.missing == {}


def test_a_refusal_for_another_reason_is_left_to_the_write(lab: Lab) -> None:
    def refuse(_: PublishedSlice) -> PublishedSlice:
        raise ApiInvalid("the name is wrong")

    assert not lab.capabilities.explore(a_slice(BOTH), refuse)
    assert lab.capabilities.missing == {}


def test_a_server_without_an_answer_says_nothing_about_features(lab: Lab) -> None:
    def fail(_: PublishedSlice) -> PublishedSlice:
        raise ApiUnavailable("no answer")

    with pytest.raises(ApiUnavailable):
        lab.capabilities.explore(a_slice(TAINTED), fail)
    assert lab.capabilities.missing == {}
    assert not lab.explore(TAINTED), "it is still to be tried out"
    assert len(lab.tried) == 1


def test_real_writes_are_compared_too(lab: Lab) -> None:
    """The gate was switched off after it had been found on."""
    lab.explore(TAINTED)
    assert lab.capabilities.learn(a_slice(TAINTED), a_slice(PLAIN))
    assert set(lab.capabilities.missing) == {"DRADeviceTaints"}

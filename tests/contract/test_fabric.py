"""The simulated fabric as a process, the attacher and the profile that speak to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_core import wire
from dra_core.errors import PreparationFailed
from dra_core.names import DeviceName, DriverName, NodeName, PoolName
from dra_driver import api as driver_api
from dra_driver.profiles.fabric import NODE_READY, Agent, FabricProfile
from dra_fabric.client import Attachment, Client, Refused, Unreachable
from dra_operator import attachers
from dra_operator.api import (
    Attacher,
    AttachFailed,
    Context,
    DeviceId,
    InvalidValue,
    NotNow,
    Tag,
    Wish,
)
from dra_operator.attachers.fabric import FabricAttacher
from dra_testing.binding_stand import FabricProcess, fabric
from dra_testing.polling import until

DRIVER = DriverName("fabric.example.com")
TAG = Tag("cluster", "ns", "c", "uid-1")
WAIT = 5.0


def device(name: str) -> DeviceId:
    return DeviceId(DRIVER, PoolName("fabric"), DeviceName(name))


def wish(name: str = "fab-0", node: str = "n1", tag: Tag = TAG) -> Wish:
    return Wish(device(name), node, tag)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[FabricProcess]:
    with fabric(tmp_path / "log", "--latency=0.2", "--slots=2", "--devices=4") as made:
        yield made


@pytest.fixture
def attacher(manager: FabricProcess) -> Attacher:
    (made,) = attachers.load({DRIVER: "fabric"}, {DRIVER: {"url": manager.url}}).values()
    return made


def attach(attacher: Attacher, what: Wish) -> None:
    until("it is attached", lambda: attacher.attach(what, WAIT).done)
    attacher.verify(what, WAIT)


def detach(attacher: Attacher, what: Wish) -> None:
    until("it is detached", lambda: attacher.detach(what.device, what.tag, WAIT).done)


def test_it_attaches_once_tells_whose_it_is_and_detaches(
    manager: FabricProcess, attacher: Attacher
) -> None:
    assert not attacher.attach(wish(), WAIT).done
    attach(attacher, wish())
    attach(attacher, wish())
    (found,) = attacher.attachments(WAIT)
    assert (found.device, found.node, found.tag) == (device("fab-0"), "n1", TAG)
    detach(attacher, wish())
    assert attacher.attachments(WAIT) == []
    detach(attacher, wish())


def test_a_lost_request_a_lost_answer_and_a_late_one_are_got_over(
    manager: FabricProcess, attacher: Attacher
) -> None:
    manager.client.fault(operation="attach", kind="lose")
    manager.client.fault(operation="attach", kind="lose-answer")
    for _ in range(2):
        with pytest.raises(NotNow):
            attacher.attach(wish(), WAIT)
    attach(attacher, wish())
    assert len(manager.attachments()) == 1
    manager.client.fault(operation="attach", kind="late", seconds=1.0)
    with pytest.raises(NotNow):
        attacher.attach(wish("fab-1"), 0.3)
    until("the fabric does it all the same", lambda: len(manager.attachments()) == 2)
    attach(attacher, wish("fab-1"))
    assert len(manager.attachments()) == 2


def test_what_is_attached_twice_is_there_once_before_it_is_done(
    manager: FabricProcess, attacher: Attacher
) -> None:
    manager.client.fault(operation="attach", kind="twice")
    attacher.attach(wish(), WAIT)
    assert len(manager.attachments()) == 2
    attach(attacher, wish())
    assert len(manager.attachments()) == 1


def test_it_moves_to_another_node(manager: FabricProcess, attacher: Attacher) -> None:
    attach(attacher, wish(node="n1"))
    attach(attacher, wish(node="n2"))
    (found,) = manager.attachments()
    assert found.node == "n2"


def test_what_is_busy_or_has_no_slot_comes_again_and_what_is_refused_does_not(
    manager: FabricProcess, attacher: Attacher
) -> None:
    attach(attacher, wish("fab-0"))
    with pytest.raises(NotNow, match="for another tag"):
        attacher.attach(wish("fab-0", tag=Tag("cluster", "ns", "d", "uid-2")), WAIT)
    attach(attacher, wish("fab-1"))
    with pytest.raises(NotNow, match="2 slots, all in use"):
        attacher.attach(wish("fab-2"), WAIT)
    manager.client.fault(operation="attach", kind="refuse")
    with pytest.raises(AttachFailed) as refused:
        attacher.attach(wish("fab-3", node="n2"), WAIT)
    assert refused.value.reason == "PortDown"
    with pytest.raises(AttachFailed, match="no device 'odd'"):
        attacher.attach(wish("odd", node="n2"), WAIT)
    with pytest.raises(AttachFailed, match="set bindsToNode"):
        attacher.attach(wish("fab-3", node=""), WAIT)


def test_a_link_that_is_down_is_not_verified(manager: FabricProcess, attacher: Attacher) -> None:
    manager.client.set(linksDown=["fab-0"])
    until("it is attached", lambda: attacher.attach(wish(), WAIT).done)
    with pytest.raises(NotNow, match="link of fab-0 on node n1 is not up"):
        attacher.verify(wish(), WAIT)
    manager.client.set(linksDown=[])
    attacher.verify(wish(), WAIT)


def test_attachments_of_others_are_not_shown(manager: FabricProcess, attacher: Attacher) -> None:
    manager.client.attach("fab-3", "n1", {"by": "hand"}, WAIT)
    assert attacher.attachments(WAIT) == []


def test_nobody_there(manager: FabricProcess, attacher: Attacher) -> None:
    manager.process.stop()
    with pytest.raises(NotNow, match="no answer"):
        attacher.attachments(WAIT)
    with pytest.raises(Unreachable):
        Client(manager.url).devices(WAIT)


@pytest.mark.parametrize(
    ("chosen", "options", "sentence"),
    [
        ({DRIVER: "odd"}, {}, "--attacher fabric.example.com=odd: no such attacher; known: fabric"),
        ({}, {DRIVER: {"url": "x"}}, "which has no --attacher"),
        ({DRIVER: "fabric"}, {DRIVER: {"url": "x"}}, "'x' is not like http://HOST:PORT"),
        ({DRIVER: "fabric"}, {DRIVER: {"port": "1"}}, "no option 'port'; there are: url, pool"),
    ],
)
def test_what_is_wrong_with_the_choice_is_said(
    chosen: dict[str, str], options: dict[str, dict[str, str]], sentence: str
) -> None:
    with pytest.raises(InvalidValue) as error:
        attachers.load(chosen, options)
    assert sentence in str(error.value)


def test_requests_that_make_no_sense_are_refused(manager: FabricProcess) -> None:
    with pytest.raises(Refused, match="kind must be one of"):
        manager.client.fault(kind="odd")
    assert FabricAttacher(Context(DRIVER, {"url": manager.url})).attachments(WAIT) == []


# -- the driver's side


def profile(manager: FabricProcess, **options: str) -> FabricProfile:
    known = {option.name: option.default for option in FabricProfile.OPTIONS}
    known |= {"url": manager.url, **options}
    return FabricProfile(driver_api.Context(DRIVER, NodeName("n1"), Path("/plugin"), lambda: known))


def offered(made: FabricProfile) -> dict[str, list[str]]:
    return {str(pool.name): [str(d.name) for d in pool.devices] for pool in made.pools()}


def test_no_device_is_offered_twice_whatever_is_attached(
    manager: FabricProcess, attacher: Attacher
) -> None:
    made = profile(manager, publish="yes", local="2")
    fabric_pool = [f"fab-{index}" for index in range(4)]
    nothing = {"n1": ["local-0", "local-1"], "fabric": fabric_pool}
    assert offered(made) == nothing
    attach(attacher, wish("fab-1"))
    assert "fab-1" in made._seen(manager.attachments()), "the node sees it"
    assert offered(made) == nothing
    # Out of the inventory, still on the node: for as long as it is attached it is the fabric's.
    manager.client.set(devices=1)
    assert offered(made) == {"n1": ["local-0", "local-1"], "fabric": ["fab-0"]}


def test_a_pool_of_the_fabric_waits_for_both_conditions_if_the_node_confirms(
    manager: FabricProcess,
) -> None:
    made = profile(manager, publish="yes")
    data = wire.device_to_json(made.pools()[1].devices[0])
    assert data["bindsToNode"] is True
    assert data["bindingConditions"] == ["fabric.example.com/Attached"]
    assert data["bindingFailureConditions"] == ["fabric.example.com/AttachFailed"]
    made._context.options()["confirm"] = "yes"  # type: ignore[index]
    data = wire.device_to_json(made.pools()[1].devices[0])
    assert data["bindingConditions"] == ["fabric.example.com/Attached", NODE_READY]
    assert NODE_READY in FabricAttacher.OTHERS


def test_prepare_wants_the_device_attached_here_for_this_claim(
    manager: FabricProcess, attacher: Attacher
) -> None:
    made = profile(manager)
    result = driver_api.AllocationResult("r", *device("fab-2"))
    claim = wire.claim_from_json(
        {"metadata": {"name": "c", "namespace": "ns", "uid": "uid-1"}, "spec": {"devices": {}}}
    )
    with pytest.raises(PreparationFailed, match="is not attached to node 'n1'"):
        made.prepare(claim, [result])
    attach(attacher, wish("fab-2", tag=Tag("cluster", "ns", "d", "uid-2")))
    with pytest.raises(PreparationFailed, match="for this claim"):
        made.prepare(claim, [result])
    detach(attacher, wish("fab-2", tag=Tag("cluster", "ns", "d", "uid-2")))
    attach(attacher, wish("fab-2"))
    (edits,) = made.prepare(claim, [result])
    assert edits.env == {"FABRIC_DEVICE_2": "fab-2"}


def test_the_agent_confirms_what_is_attached_and_again_after_a_while() -> None:
    items = [
        Attachment(1, "fab-0", "n1", {}, "attached", "up"),
        Attachment(2, "fab-1", "n1", {}, "attaching", "up"),
    ]
    said: list[str] = []
    trouble: list[driver_api.DraError] = [PreparationFailed("once more")]
    seconds = [0.0]

    def confirm(item: Attachment) -> None:
        said.append(item.device)
        if trouble:
            raise trouble.pop()

    agent = Agent(lambda: items, confirm, lambda: seconds[0])
    agent.look()
    agent.look()
    agent.look()
    assert said == ["fab-0", "fab-0"]
    seconds[0] = 20.0
    agent.look()
    assert said == ["fab-0"] * 3

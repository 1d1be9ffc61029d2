"""Calls with several claims: each is answered for itself, whatever happens to the others."""

from __future__ import annotations

import concurrent.futures
import json
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess, running
from dra_testing.hand_driver import SECRET
from dra_testing.places import (
    HAND,
    HAND_PROGRAM,
    Claims,
    MuteServer,
    Place,
    Result,
    kubeconfig,
    open_gate,
)
from dra_testing.polling import until

if TYPE_CHECKING:
    from testcluster.cluster import Cluster

Start = Callable[..., DriverProcess]
Claim = tuple[str, str, str]
OTHER = "other.example.com"


@pytest.fixture(scope="module")
def place(control_plane: Cluster) -> Iterator[Place]:
    """A place with a driver of simulated GPUs, for all tests that ask it only."""
    with tempfile.TemporaryDirectory(prefix="drv") as folder:
        made = Place(Path(folder), control_plane.kubeconfig)
        with running(made.arguments(), made.folder / "log") as driver:
            driver.wait_for("serving")
            yield made


@pytest.fixture
def hand(short_path: Path, control_plane: Cluster) -> Place:
    """A place for the vendor's program."""
    return Place(short_path, control_plane.kubeconfig, HAND)


@pytest.fixture
def make(control_plane: Cluster) -> Iterator[Callable[..., Claim]]:
    """``make(place, Result, …)``: a claim with this allocation."""
    everybody: list[Claims] = []

    def make(at: Place, *results: Result) -> Claim:
        everybody.append(Claims(control_plane, at.node))
        return everybody[-1].make(results or None)

    yield make
    for claims in everybody:
        claims.delete_all()


def started(driver: DriverProcess) -> DriverProcess:
    driver.wait_for("serving")
    return driver


def devices(answer: Any) -> list[tuple[str, str, list[str]]]:
    return [(d.pool_name, d.device_name, list(d.request_names)) for d in answer.devices]


def assert_plain(error: str) -> None:
    """A sentence for the pod's owner: no trace of Python in it, and nothing secret."""
    assert error
    assert "\n" not in error
    for trace in (
        "Traceback",
        'File "',
        ".py",
        " object at 0x",
        "Error(",
        SECRET,
    ):
        assert trace not in error, error


@case("DRV-04")
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_every_claim_of_a_call_is_answered_for_itself(
    place: Place, make: Callable[..., Claim], version: str
) -> None:
    good = make(place, Result("gpu-0"))
    unknown = make(place, Result("gpu-999"))
    mixed = make(place, Result("gpu-1"), Result("nic-0", OTHER, "nic"))
    unallocated = make(place)
    gone = ("default", "no-such-claim", str(uuid.uuid4()))
    reborn = (*good[:2], str(uuid.uuid4()))
    foreign = make(place, Result("nic-1", OTHER))
    asked = [good, unknown, mixed, unallocated, gone, reborn, foreign]

    answers = place.kubelet().prepare(*asked, version=version)

    assert sorted(answers) == sorted(claim[2] for claim in asked)
    assert devices(answers[good[2]]) == [(place.node, "gpu-0", ["gpu"])]
    assert devices(answers[mixed[2]]) == [(place.node, "gpu-1", ["gpu"])]
    assert devices(answers[foreign[2]]) == []
    for claim in (good, mixed, foreign):
        assert answers[claim[2]].error == ""
    reasons = {
        unknown: f"device 'gpu-999' in pool '{place.node}' is not on node '{place.node}'",
        unallocated: "is not allocated",
        gone: "does not exist",
        reborn: f"is gone; another one of that name has the UID {good[2]}",
    }
    for claim, reason in reasons.items():
        answer = answers[claim[2]]
        assert_plain(answer.error)
        assert reason in answer.error
        assert f"{claim[0]}/{claim[1]} (UID {claim[2]})" in answer.error
        assert devices(answer) == []
    assert [c for c in asked if place.cdi_file(c[2]).exists()] == [good, mixed]


@case("DRV-04")
def test_each_device_is_named_by_an_id_of_its_own_in_the_claims_file(
    place: Place, make: Callable[..., Claim]
) -> None:
    claim = make(place, Result("gpu-0"), Result("gpu-1"), Result("gpu-1", request="two"))

    answer = place.kubelet().prepare(claim)[claim[2]]

    ids = [list(device.cdi_device_ids) for device in answer.devices]
    document = json.loads(place.cdi_file(claim[2]).read_text())
    assert ids == [[f"{document['kind']}={entry['name']}"] for entry in document["devices"]]
    assert len({identifier for (identifier,) in ids}) == 3
    # The same again for the same.
    assert place.kubelet().prepare(claim)[claim[2]] == answer


@case("DRV-04")
def test_a_container_asks_by_the_main_request(place: Place, make: Callable[..., Claim]) -> None:
    claim = make(place, Result("gpu-3", request="gpu/small"), Result("gpu-4", request="more"))

    answer = place.kubelet().prepare(claim)[claim[2]]

    assert devices(answer) == [(place.node, "gpu-3", ["gpu"]), (place.node, "gpu-4", ["more"])]


@case("DRV-04")
def test_a_share_is_named_in_v1_only(place: Place, make: Callable[..., Claim]) -> None:
    shares = [str(uuid.uuid4()) for _ in range(2)]
    claim = make(place, *(Result("gpu-0", share=share) for share in shares), Result("gpu-1"))

    v1 = place.kubelet().prepare(claim, version="v1")[claim[2]]
    v1beta1 = place.kubelet().prepare(claim, version="v1beta1")[claim[2]]

    assert [device.share_id for device in v1.devices] == [*shares, ""]
    assert [device.HasField("share_id") for device in v1.devices] == [True, True, False]
    # Also not as a field that this version has no name for.
    assert not any(share.encode() in v1beta1.SerializeToString() for share in shares)
    assert devices(v1) == devices(v1beta1)
    ids = {identifier for device in v1.devices for identifier in device.cdi_device_ids}
    assert len(ids) == 3


@case("DRV-04")
def test_a_claim_that_is_asked_for_twice_in_a_call_is_prepared_once(
    hand: Place, make: Callable[..., Claim], start_driver: Start
) -> None:
    started(start_driver(*hand.hand(), **HAND_PROGRAM))
    claim = make(hand, Result("plain-0", HAND))

    answers = hand.kubelet().prepare(claim, claim, claim)

    assert {uid: answer.error for uid, answer in answers.items()} == {claim[2]: ""}
    assert len(answers[claim[2]].devices) == 1
    assert hand.diary() == [f"prepare {claim[2]}"]
    answers = hand.kubelet().unprepare(claim, claim)
    assert {uid: answer.error for uid, answer in answers.items()} == {claim[2]: ""}


@case("DRV-04")
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_bug_in_a_vendors_driver_concerns_that_claim_only_and_tells_nothing(
    hand: Place, make: Callable[..., Claim], start_driver: Start, version: str
) -> None:
    driver = started(start_driver(*hand.hand(), **HAND_PROGRAM))
    fine = [make(hand, Result(f"plain-{n}", HAND)) for n in range(2)]
    wrong = {kind: make(hand, Result(f"{kind}-0", HAND)) for kind in ("bug", "none", "few", "odd")}

    answers = hand.kubelet().prepare(fine[0], *wrong.values(), fine[1], version=version)

    assert len(answers) == 6
    assert [answers[claim[2]].error for claim in fine] == ["", ""]
    errors = {kind: answers[claim[2]].error for kind, claim in wrong.items()}
    for error in errors.values():
        assert_plain(error)
    assert errors["bug"].endswith(
        ": the driver failed unexpectedly (ValueError); its log has the details"
    )
    assert "answered 0 devices where 1 were asked" in errors["few"]
    assert {path.name for path in hand.cdi.iterdir()} == {hand.cdi_file(c[2]).name for c in fine}
    (record,) = [r for r in driver.events("claim failed") if r["uid"] == wrong["bug"][2]]
    assert record["level"] == "error"
    assert record["exception"]


@case("DRV-04")
def test_a_vendors_driver_that_wants_to_exit_does_not_take_the_call_down(
    hand: Place, make: Callable[..., Claim], start_driver: Start
) -> None:
    driver = started(start_driver(*hand.hand(), **HAND_PROGRAM))
    fine, wrong = make(hand, Result("plain-0", HAND)), make(hand, Result("exit-0", HAND))

    answers = hand.kubelet().prepare(fine, wrong, timeout=5.0)

    assert answers[fine[2]].error == ""
    assert_plain(answers[wrong[2]].error)
    assert "SystemExit" in answers[wrong[2]].error
    assert driver.process.poll() is None


@case("DRV-04")
def test_text_that_protobuf_cannot_carry_does_not_take_the_call_down(
    hand: Place, make: Callable[..., Claim], start_driver: Start
) -> None:
    """A vendor's error may name a file whose name is not UTF-8."""
    started(start_driver(*hand.hand(), **HAND_PROGRAM))
    fine, wrong = make(hand, Result("plain-0", HAND)), make(hand, Result("surrogate-0", HAND))

    answers = hand.kubelet().prepare(fine, wrong, timeout=5.0)

    assert answers[fine[2]].error == ""
    assert re.search(r"cannot read /dev/x-.+y$", answers[wrong[2]].error)


@case("DRV-04")
def test_the_values_of_variables_stay_out_of_the_log(
    hand: Place, make: Callable[..., Claim], start_driver: Start
) -> None:
    """A traceback belongs there; what local variables hold may be a credential."""
    driver = started(start_driver(*hand.hand(), **HAND_PROGRAM))
    claim = make(hand, Result("bug-local", HAND))

    hand.kubelet().prepare(claim)

    record = driver.wait_for("claim failed")
    (exception,) = record["exception"]
    assert exception["exc_type"] == "ValueError"
    assert exception["frames"]
    assert not any(frame.get("locals") for frame in exception["frames"])


@case("DRV-04")
def test_without_an_api_server_each_claim_is_refused_at_once_and_unprepare_works(
    short_path: Path, start_driver: Start
) -> None:
    place = Place(short_path)
    started(start_driver(*place.arguments()))
    claims = [("default", f"claim-{n}", str(uuid.uuid4())) for n in range(3)]
    place.cdi_file(claims[0][2]).write_text("{}")  # as from before the API server went away
    before = time.monotonic()

    first, second = (place.kubelet().prepare(*claims) for _ in range(2))
    undone = place.kubelet().unprepare(*claims)

    assert time.monotonic() - before < 5.0
    assert sorted(first) == sorted(claim[2] for claim in claims)
    for uid, answer in first.items():
        assert_plain(answer.error)
        assert "Connection refused" in answer.error
        assert second[uid].error == answer.error  # so that events about it are counted as one
    assert {answer.error for answer in undone.values()} == {""}
    assert not place.cdi_file(claims[0][2]).exists()


@case("DRV-04")
def test_an_api_server_that_says_nothing_does_not_use_up_the_kubelets_patience(
    short_path: Path, start_driver: Start
) -> None:
    server = MuteServer()
    place = Place(short_path, kubeconfig(short_path / "kubeconfig", server.url))
    started(start_driver(*place.arguments()))
    claims = [("default", f"claim-{n}", str(uuid.uuid4())) for n in range(3)]

    answers = place.kubelet().prepare(*claims, timeout=3.0)
    undone = place.kubelet().unprepare(("default", "other", "some-uid"), timeout=3.0)

    assert sorted(answers) == sorted(claim[2] for claim in claims)
    for answer in answers.values():
        assert answer.error.endswith("is still running; ask again to join it")
    assert undone["some-uid"].error == ""
    server.close()


@case("DRV-04")
def test_unprepare_of_what_was_never_prepared_succeeds(
    place: Place, make: Callable[..., Claim]
) -> None:
    known = make(place, Result("gpu-0"))
    unknown = ("default", "never-seen", str(uuid.uuid4()))
    place.kubelet().prepare(known)

    for version in ("v1", "v1beta1"):
        answers = place.kubelet().unprepare(known, unknown, version=version)
        assert {uid: answer.error for uid, answer in answers.items()} == {
            known[2]: "",
            unknown[2]: "",
        }
    assert not place.cdi_file(known[2]).exists()


@case("DRV-04")
def test_a_uid_that_is_no_uid_is_refused_for_itself(
    place: Place, make: Callable[..., Claim]
) -> None:
    good = make(place, Result("gpu-0"))
    bad = ["", "../../escape", "a/b", "x" * 129]

    prepared = place.kubelet().prepare(good, *(("default", "claim", uid) for uid in bad))
    undone = place.kubelet().unprepare(good, *(("default", "claim", uid) for uid in bad))

    for answers in (prepared, undone):
        assert sorted(answers) == sorted([good[2], *bad])
        assert answers[good[2]].error == ""
        for uid in bad:
            assert_plain(answers[uid].error)
            assert "UID" in answers[uid].error


@case("DRV-04")
def test_a_call_for_a_claim_that_is_being_prepared_joins_it(
    hand: Place, make: Callable[..., Claim], start_driver: Start
) -> None:
    started(start_driver(*hand.hand(), **HAND_PROGRAM))
    slow, quick = make(hand, Result("slow-a", HAND)), make(hand, Result("plain-0", HAND))
    gate = hand.gate("a")

    # The kubelet gives up on the first call, and asks again.
    answers = hand.kubelet().prepare(slow, quick, timeout=2.0)
    assert answers[slow[2]].error.endswith("is still running; ask again to join it")
    assert answers[quick[2]].error == ""
    # Each call asks for another claim after the slow one, which shows that it has arrived.
    others = [make(hand, Result(f"plain-{n}", HAND)) for n in range(1, 9)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        again = [pool.submit(hand.kubelet().prepare, slow, other) for other in others]
        until(
            "all have joined",
            lambda: {f"prepare {other[2]}" for other in others} <= {*hand.diary()},
        )
        assert hand.kubelet().prepare(quick, timeout=2.0)[quick[2]].error == ""
        open_gate(gate)
        joined = {call.result(10)[slow[2]].SerializeToString() for call in again}

    assert len(joined) == 1
    assert hand.diary().count(f"prepare {slow[2]}") == 1
    assert hand.cdi_file(slow[2]).exists()


@case("DRV-04")
def test_a_prepare_after_an_unprepare_does_not_join_the_one_before_it(
    hand: Place, make: Callable[..., Claim], start_driver: Start
) -> None:
    """Prepare, unprepare, prepare: what comes last holds, also if the first is slow."""
    started(start_driver(*hand.hand(), **HAND_PROGRAM))
    claim = make(hand, Result("slow-a", HAND))
    gate = hand.gate("a")
    kubelet = hand.kubelet()

    first = kubelet.prepare(claim, timeout=1.5)[claim[2]]
    undone = kubelet.unprepare(claim, timeout=1.5)[claim[2]]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        last = pool.submit(kubelet.prepare, claim, timeout=20.0)
        joined = kubelet.prepare(claim, timeout=1.5)[claim[2]]  # the last one is there by now
        with gate.open("wb"):
            gate.unlink()
            gate.write_bytes(b"")  # nobody has to wait any more
        answer = last.result(25)[claim[2]]
    until("the claim was unprepared", lambda: f"unprepare {claim[2]}" in hand.diary())

    for early in (first, undone, joined):
        assert "ask again" in early.error
    assert answer.error == ""
    assert [line.split()[0] for line in hand.diary()] == ["prepare", "unprepare", "prepare"]
    assert hand.cdi_file(claim[2]).exists()

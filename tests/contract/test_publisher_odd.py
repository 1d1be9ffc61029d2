"""Odd pools and slices that others have touched, on a real API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess
from dra_testing.polling import until
from dra_testing.publishing_stand import SLICES, Stand, devices
from dra_testing.slices import Cluster

pytestmark = pytest.mark.control_plane


@pytest.fixture
def stand(
    control_plane: Cluster, short_path: Path, start_driver: Callable[..., DriverProcess]
) -> Iterator[Stand]:
    made = Stand(control_plane, short_path, start_driver)
    yield made
    made.close()


@case("PUB-04")
def test_a_pool_that_is_wrong_after_a_restart_stays_as_it_was(stand: Stand) -> None:
    stand.start(devices("a", "b"))
    stand.wait_for("a", "b")
    before = [item["metadata"]["uid"] for item in stand.slices()]
    stand.driver.finish()
    other = {"name": f"{stand.node}/other", "devices": devices("c")}
    stand.offer(devices("a", "a"), other)
    stand.run()
    stand.port = stand.driver.wait_for("answering probes")["port"]
    until("the other pool is there", lambda: "c" in stand.published())
    ok, message = stand.ready()["Published"]
    assert not ok
    assert "two devices named 'a'" in message
    assert {"a", "b"} < set(stand.published())
    assert before[0] in [item["metadata"]["uid"] for item in stand.slices()]
    stand.becomes(devices("a"), other)
    stand.settled()
    until("the pool is changed", lambda: set(stand.published()) == {"a", "c"})
    assert before[0] in [item["metadata"]["uid"] for item in stand.slices()]


def test_what_others_keep_in_the_metadata_of_a_slice_survives(stand: Stand) -> None:
    stand.start(devices("a"))
    stand.wait_for("a")
    path = f"{SLICES}/{stand.slices()[0]['metadata']['name']}"
    kept = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    stand.cluster.api("PATCH", path, {"metadata": kept}, patch="merge")
    stand.becomes(devices("b"))
    stand.wait_for("b")
    metadata = stand.cluster.api("GET", path)["metadata"]
    assert {key: metadata.get(key) for key in kept} == kept


def test_a_slice_that_lost_its_owner_gets_it_back(stand: Stand) -> None:
    """Else it would stay when its Node goes: ``--cascade=orphan`` takes the owner away."""
    stand.start(devices("a"))
    stand.wait_for("a")
    path = f"{SLICES}/{stand.slices()[0]['metadata']['name']}"
    owners = stand.cluster.api("GET", path)["metadata"]["ownerReferences"]
    stand.cluster.api("PATCH", path, {"metadata": {"ownerReferences": None}}, patch="merge")
    until(
        "it is owned again",
        lambda: stand.cluster.api("GET", path)["metadata"].get("ownerReferences") == owners,
    )
    assert stand.published().keys() == {"a"}
    stand.settled()


@case("PUB-01")
def test_a_slice_that_is_held_back_while_it_is_deleted_is_there_again(stand: Stand) -> None:
    """With a finalizer it stays for a while, and its name with it."""
    stand.start(devices("a"))
    stand.wait_for("a")
    path = f"{SLICES}/{stand.slices()[0]['metadata']['name']}"
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    stand.cluster.api("PATCH", path, hold, patch="merge")
    stand.cluster.api("DELETE", path)
    stand.becomes(devices("b"))
    until("it is written", lambda: set(stand.published()) == {"b"})
    stand.becomes()
    stand.becomes(devices("c"))
    stand.cluster.api("PATCH", path, {"metadata": {"finalizers": []}}, patch="merge")
    until(
        "a new one is there",
        lambda: (
            set(stand.published()) == {"c"}
            and "deletionTimestamp" not in stand.slices()[0]["metadata"]
        ),
    )
    stand.settled()

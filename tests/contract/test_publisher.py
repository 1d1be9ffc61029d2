"""The driver's ResourceSlices on a real API server, seen by a watcher at every moment.

The driver runs as a process with the rights of its service account and nothing else.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_testing.cases import case
from dra_testing.driver_process import DriverProcess
from dra_testing.polling import until
from dra_testing.slices import Cluster, Watcher, driver_kubeconfig, make_node

pytestmark = pytest.mark.control_plane

_numbers = itertools.count(1)


def gpus(count: int) -> tuple[str, ...]:
    return tuple(f"gpu-{i}" for i in range(count))


class Setup:
    """A node without a kubelet, a watcher, and a driver whose number of GPUs can change."""

    def __init__(self, cluster: Cluster, folder: Path, start: Callable[..., DriverProcess]) -> None:
        self.node = f"publisher-{next(_numbers)}"
        make_node(cluster, self.node)
        self.cluster = cluster
        self.watcher = Watcher(cluster, self.node)
        self._folder = folder
        self._start = start
        self._kubeconfig = driver_kubeconfig(cluster, self.node)
        self._config = folder / "settings.yaml"
        self.driver: DriverProcess

    def set_count(self, count: int) -> None:
        self._config.write_text(f"options: {{count: {count}}}\n")

    def start(self, count: int) -> None:
        self.set_count(count)
        self.driver = self.run()
        self.watcher.wait_for(gpus(count))

    def run(self, *more: str) -> DriverProcess:
        return self._start(
            f"--config={self._config}",
            f"--node-name={self.node}",
            f"--kubeconfig={self._kubeconfig}",
            f"--kubelet-root={self._folder}",
            f"--cdi-dir={self._folder / 'cdi'}",
            *more,
        )

    def change(self, count: int) -> None:
        self.set_count(count)
        self.driver.signal(signal.SIGHUP)
        self.watcher.wait_for(gpus(count))

    def delete(self, *names: str) -> None:
        for name in names:
            self.cluster.api("DELETE", f"/apis/resource.k8s.io/v1/resourceslices/{name}")

    def names(self) -> list[str]:
        return [name for name, _ in self.watcher.now.slices]

    def close(self) -> None:
        self.watcher.stop()
        self.driver.finish()
        self.delete(*self.names())
        self.cluster.api("DELETE", f"/api/v1/nodes/{self.node}")


@pytest.fixture
def server(control_plane: Cluster) -> Cluster:
    """The newest version, unless a test asks for others."""
    return control_plane


@pytest.fixture
def setup(
    server: Cluster, short_path: Path, start_driver: Callable[..., DriverProcess]
) -> Iterator[Setup]:
    made = Setup(server, short_path, start_driver)
    yield made
    made.close()


class TestOnEveryVersion:
    """Publishing on 1.37 and on 1.36."""

    @pytest.fixture(params=["control_plane", "control_plane_136"])
    def server(self, request: pytest.FixtureRequest) -> Cluster:
        found: Cluster = request.getfixturevalue(request.param)
        return found

    def test_a_pool_grows_without_a_wrong_moment(self, setup: Setup) -> None:
        setup.start(300)
        slices = [
            setup.cluster.api("GET", f"/apis/resource.k8s.io/v1/resourceslices/{name}")
            for name in setup.names()
        ]
        assert [len(s["spec"]["devices"]) for s in slices] == [128, 128, 44]
        assert {s["spec"]["pool"]["generation"] for s in slices} == {1}
        assert {s["spec"]["pool"]["resourceSliceCount"] for s in slices} == {3}
        assert {s["spec"]["nodeName"] for s in slices} == {setup.node}
        owner = setup.cluster.api("GET", f"/api/v1/nodes/{setup.node}")["metadata"]["uid"]
        assert {s["metadata"]["ownerReferences"][0]["uid"] for s in slices} == {owner}

        before = setup.watcher.now
        at = len(setup.watcher.moments)
        setup.change(301)
        assert [m.event for m in setup.watcher.moments[at:]] == ["MODIFIED"], "one update"
        assert setup.watcher.now.generation == 1
        assert setup.watcher.now.slices[:2] == before.slices[:2], "the other slices are untouched"

        setup.change(384)
        at = len(setup.watcher.moments)
        setup.change(385)
        after = setup.watcher.moments[at:]
        assert {m.devices for m in after} <= {None, gpus(384), gpus(385)}, (
            "never complete and wrong"
        )
        assert None in {m.devices for m in after}, "four writes cannot be one moment"
        assert setup.watcher.longest_incomplete(at) <= 1.0
        assert len(setup.names()) == 4
        assert setup.watcher.now.generation == 2

    def test_what_is_published_is_what_the_profile_says(self, setup: Setup) -> None:
        setup.start(1)
        (name,) = setup.names()
        spec = setup.cluster.api("GET", f"/apis/resource.k8s.io/v1/resourceslices/{name}")["spec"]
        uuid = spec["devices"][0]["attributes"].pop("uuid")
        assert uuid["string"].startswith("GPU-")
        assert len(uuid["string"]) == 40
        assert spec == {
            "driver": "gpu.example.com",
            "nodeName": setup.node,
            "pool": {"name": setup.node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {
                        "model": {"string": "SIM-100"},
                        "driverVersion": {"version": "1.0.0"},
                        "index": {"int": 0},
                    },
                    "capacity": {"memory": {"value": "80Gi"}},
                }
            ],
        }


@case("PUB-06")
def test_two_instances_do_not_fight(setup: Setup) -> None:
    """During a rolling update the old one publishes until it ends, then the new one does."""
    setup.start(2)
    old = setup.driver
    setup.set_count(3)
    at = len(setup.watcher.moments)
    new = setup.run("--pod-uid=0b1d5f0a-8f2f-4c39-9d0c-7a1e5c2b9f01")
    new.wait_for("another instance publishes; this one takes over when it ends")
    new.wait_for("serving")
    assert setup.watcher.moments[at:] == []
    assert old.stop() == 0
    setup.watcher.wait_for(gpus(3), timeout=5.0)
    assert len(setup.watcher.moments) == at + 1, "one update"


def test_an_empty_pool_is_published_as_one(setup: Setup) -> None:
    setup.start(0)
    assert len(setup.names()) == 1


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restart_writes_nothing(setup: Setup, end: str) -> None:
    setup.start(300)
    before = setup.watcher.now
    getattr(setup.driver, end)()
    setup.start(300)
    setup.driver.wait_for("serving")
    # The driver has compared once it has answered a change that comes after its start.
    setup.change(301)
    assert setup.watcher.now.slices[:2] == before.slices[:2]
    assert setup.watcher.now.generation == 1
    setup.driver.wait_for("pool published")
    assert len(setup.driver.events("pool published")) == 1


@pytest.mark.parametrize(
    "which", [slice(0, 1), slice(1, 2), slice(0, 3)], ids=["first", "middle", "all"]
)
def test_slices_deleted_by_hand_are_back_within_5_seconds(setup: Setup, which: slice) -> None:
    setup.start(300)
    at = len(setup.watcher.moments)
    victims = setup.names()[which]
    setup.delete(*victims)
    until("the deletion is seen", lambda: len(setup.watcher.moments) >= at + len(victims))
    setup.watcher.wait_for(gpus(300), timeout=5.0)
    assert setup.watcher.now.generation == 1


def test_a_slice_edited_by_hand_is_restored(setup: Setup) -> None:
    setup.start(2)
    (name,) = setup.names()
    path = f"/apis/resource.k8s.io/v1/resourceslices/{name}"
    patch = [
        {"op": "remove", "path": "/spec/devices/1"},
        {"op": "replace", "path": "/spec/devices/0/attributes/model/string", "value": "FAKE"},
        {"op": "add", "path": "/spec/devices/0/taints", "value": [{"key": "x", "effect": "None"}]},
    ]
    at = len(setup.watcher.moments)
    setup.cluster.api("PATCH", path, patch, patch="json")
    setup.watcher.saw(gpus(1), at)
    setup.watcher.wait_for(gpus(2), timeout=5.0)
    device = setup.cluster.api("GET", path)["spec"]["devices"][0]
    assert device["attributes"]["model"] == {"string": "SIM-100"}
    assert "taints" not in device


def test_slices_of_others_are_left_alone(setup: Setup) -> None:
    """Of another node's driver and of another driver on the same node."""
    others = {
        "other-node": {"driver": "gpu.example.com", "nodeName": "elsewhere"},
        "other-driver": {"driver": "nic.example.com", "nodeName": setup.node},
    }
    pool = {"name": setup.node, "generation": 9, "resourceSliceCount": 1}
    path = "/apis/resource.k8s.io/v1/resourceslices"
    made = {}
    for name, spec in others.items():
        body = {"metadata": {"name": name}, "spec": spec | {"pool": pool}}
        made[name] = setup.cluster.api("POST", path, body)
    try:
        setup.set_count(1)
        setup.driver = setup.run()
        setup.driver.wait_for("pool published")
        for name, item in made.items():
            assert setup.cluster.api("GET", f"{path}/{name}") == item
    finally:
        setup.delete("other-node")

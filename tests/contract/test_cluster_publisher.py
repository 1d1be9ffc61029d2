"""Publishing without a node, on a real API server, as the shipped service account.

The shipped admission policy is in force. Pools stand in a file (``dra_testing.pools_driver``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_testing import cluster_stand
from dra_testing.cases import case
from dra_testing.cluster_stand import DRIVER, NAMESPACE, POD_UID, SLICES, Stand
from dra_testing.driver_process import DriverProcess
from dra_testing.polling import until
from dra_testing.publishing_stand import devices, numbered
from testcluster.cluster import Cluster

pytestmark = pytest.mark.control_plane

MANIFESTS = Path(__file__).parents[2] / "manifests"
LEASES = cluster_stand.LEASE.rpartition("/")[0]
ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}


TAKEN = (
    "pool 'taken' is not published: a node has a pool of that name (slice '00000-of-a-node' of "
    "node '{}'); pool names are unique among all instances of a driver, rename one of the two"
)


def pool(count: int, name: str = "fabric", **fields: Any) -> dict[str, Any]:
    return {"name": name, "nodes": "all", "devices": numbered(count), **fields}


def pools_of(stand: Stand) -> list[str]:
    """A name for each slice of no node."""
    return sorted(item["spec"]["pool"]["name"] for item in stand.of_no_node())


def names(count: int) -> tuple[str, ...]:
    return tuple(f"d-{n}" for n in range(count))


@pytest.fixture
def server(control_plane: Cluster) -> Cluster:
    """The newest version, unless a test asks for others."""
    return control_plane


@pytest.fixture
def stand(server: Cluster, short_path: Path, tmp_path: Path) -> Iterator[Stand]:
    started: list[DriverProcess] = []

    def start(*arguments: str, **options: Any) -> DriverProcess:
        process = DriverProcess(arguments, **options)
        started.append(process)
        return process

    cluster_stand.install(server)
    made = Stand(server, short_path, start)
    yield made
    for process in started:
        process.finish()
    made.close()


class TestOnEveryVersion:
    """The main path, on 1.37 and on 1.36."""

    @pytest.fixture(params=["control_plane", "control_plane_136"])
    def server(self, request: pytest.FixtureRequest) -> Cluster:
        found: Cluster = request.getfixturevalue(request.param)
        return found

    def test_pools_of_every_kind_belong_to_no_node(self, stand: Stand) -> None:
        each = devices("everywhere", allNodes=True) + devices("here", nodeName="n1")
        publisher = stand.run(
            pool(2, "all"),
            pool(2, "zone", nodes=SELECTOR),
            {"name": "each", "nodes": "each", "devices": each},
        )
        publisher.settled()
        assert publisher.get("/healthz")[0] == publisher.get("/readyz")[0] == 200
        found = {item["spec"]["pool"]["name"]: item for item in stand.slices()}
        assert sorted(found) == ["all", "each", "zone"]
        assert found["all"]["spec"]["allNodes"] is True
        assert found["zone"]["spec"]["nodeSelector"] == SELECTOR
        assert found["each"]["spec"]["perDeviceNodeSelection"] is True
        assert len(stand.of_no_node()) == 3, "neither nodeName nor an owner"
        assert publisher.process.stop() == 0
        assert len(stand.of_no_node()) == 3, "a stop keeps them"

    def test_a_change_a_crash_a_restart_and_the_end(self, stand: Stand) -> None:
        first = stand.run(pool(300))
        stand.watcher.wait_for(names(300))
        first.settled()
        at = len(stand.watcher.moments)
        first.offer(pool(301))
        stand.watcher.wait_for(names(301))
        assert [m.event for m in stand.watcher.moments[at:]] == ["MODIFIED"], "one update"

        first.process.kill()
        at = len(stand.watcher.moments)
        second = stand.run(pool(301), name=first.name)  # as a container that starts again
        second.settled()
        assert stand.watcher.moments[at:] == [], "what is right is not written again"
        second.offer(pool(1))
        stand.watcher.wait_for(names(1))
        assert second.process.stop() == 0

        last = stand.run(pool(1), more=("--on-stop=withdraw",))
        last.settled()
        assert last.process.stop() == 0
        assert stand.slices() == []


@case("PUB-01")
def test_what_others_delete_or_edit_is_restored(stand: Stand) -> None:
    publisher = stand.run(pool(200))
    stand.watcher.wait_for(names(200))
    publisher.settled()
    first, second = stand.slices()
    at = len(stand.watcher.moments)
    stand.delete(second)
    stand.watcher.saw(None, at)
    stand.watcher.wait_for(names(200), timeout=5.0)
    patch = [{"op": "remove", "path": "/spec/devices/0"}]
    path = f"{SLICES}/{first['metadata']['name']}"
    at = len(stand.watcher.moments)
    stand.cluster.api("PATCH", path, patch, patch="json")
    stand.watcher.saw(names(200)[1:], at)
    stand.watcher.wait_for(names(200), timeout=5.0)
    # A slice of the driver that nobody has asked for goes.
    stand.plant("ffff0-left-over", pool="forgotten", allNodes=True)
    until("it is gone", lambda: len(stand.slices()) == 2)


@case("PUB-06")
def test_instances_on_nodes_and_the_publisher_leave_each_other_alone(stand: Stand) -> None:
    node = stand.node()
    theirs: list[dict[str, Any]] = [
        {"devices": numbered(3)},
        {"name": f"{node}/shared", "nodes": "all", "devices": numbered(2)},
    ]
    instance = stand.node_instance(node, *theirs)
    until("the node has published", lambda: len(stand.of_nodes()) == 2)
    before = stand.of_nodes()
    other_driver = stand.plant("other-driver", driver="other.example.com", allNodes=True)

    publisher = stand.run(pool(200), more=("--on-stop=withdraw", "--rescan-interval=0.2"))
    publisher.settled()
    publisher.offer(pool(3), pool(2, "more"))
    until("both are there", lambda: pools_of(stand) == ["fabric", "more"])
    publisher.settled()
    assert stand.of_nodes() == before
    mine = stand.of_no_node()
    assert instance.stop() == 0
    again = stand.node_instance(node, *theirs, {"name": f"{node}/new", "devices": numbered(1)})
    until("the node has a third one", lambda: len(stand.of_nodes()) == 3)
    again.wait_for("pool published")
    assert stand.of_no_node() == mine
    assert publisher.process.stop() == 0
    assert stand.of_no_node() == []
    assert stand.of_nodes().items() >= before.items()
    path = f"{SLICES}/other-driver"
    assert stand.cluster.api("GET", path) == other_driver
    stand.delete(other_driver)


@case("PUB-06")
@pytest.mark.parametrize("kind", ["nodeName", "owner"])
def test_a_pool_with_the_name_of_a_pool_of_a_node_is_refused(stand: Stand, kind: str) -> None:
    node = stand.node()
    if kind == "nodeName":
        planted = stand.plant("00000-of-a-node", pool="taken", nodeName=node)
    else:
        uid = stand.cluster.api("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        planted = stand.plant("00000-of-a-node", owner, pool="taken", allNodes=True)
    publisher = stand.run(pool(2, "taken"), pool(2, "free"))
    until("the other one is there", lambda: len(stand.of_no_node()) == 1)
    said = (False, TAKEN.format(node))
    until("it says which one is not", lambda: publisher.ready()["Published"] == said)
    assert {i["spec"]["pool"]["name"] for i in stand.of_no_node()} == {"free"}
    assert stand.cluster.api("GET", f"{SLICES}/00000-of-a-node") == planted
    assert publisher.get("/readyz")[0] == 503
    publisher.offer(pool(2, "free"), pool(1, "other"))
    until("the rest is published", lambda: len(stand.of_no_node()) == 2)
    publisher.settled()


@case("PUB-06")
def test_a_slice_that_was_given_to_a_node_is_that_nodes_until_it_is_gone(stand: Stand) -> None:
    publisher = stand.run(pool(2), pool(2, "other"), more=("--rescan-interval=0.2",))
    publisher.settled()
    node = stand.node()
    uid = stand.cluster.api("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    (item,) = (i for i in stand.of_no_node() if i["spec"]["pool"]["name"] == "fabric")
    path = f"{SLICES}/{item['metadata']['name']}"
    given = stand.cluster.api("PATCH", path, {"metadata": {"ownerReferences": [owner]}})
    until("it says so", lambda: f"node '{node}'" in publisher.ready()["Published"][1])
    until("only the other pool is left", lambda: pools_of(stand) == ["other"])
    assert stand.cluster.api("GET", path) == given
    refusals = [r for r in publisher.process.records() if "a Node owns" in str(r)]
    assert refusals == [], "it does not even try to write it"
    stand.delete(given)
    publisher.settled()
    assert pools_of(stand) == ["fabric", "other"]


def test_a_pool_of_this_node_is_refused_by_name_and_the_others_are_published(stand: Stand) -> None:
    publisher = stand.run(pool(2, "right"), {"name": "wrong", "devices": numbered(1)})
    until("the other one is there", lambda: len(stand.of_no_node()) == 1)
    ok, message = publisher.ready()["Published"]
    assert not ok
    assert message.startswith("pool 'wrong' has nodes=Nodes.THIS (the default), but this publisher")
    assert "Nodes.ALL" in message


@case("PUB-04")
def test_a_failed_discovery_keeps_what_is_published(stand: Stand) -> None:
    publisher = stand.run(pool(2))
    publisher.settled()
    before = stand.slices()
    publisher.fail("the fabric does not answer")
    until("it is not ready", lambda: publisher.get("/readyz")[0] == 503)
    assert stand.slices() == before


@case("PUB-02")
def test_a_feature_that_is_not_there_is_an_event_about_the_pod(stand: Stand) -> None:
    proxy = stand.proxy()
    proxy.add(lambda _: True, strip=("taints",))
    hot = devices("hot", taints=[{"key": "example.com/hot", "effect": "NoSchedule"}])
    publisher = stand.run(pool(0, devices=hot + devices("cold")), proxy=proxy)
    stand.watcher.wait_for(("cold",))
    publisher.settled()
    assert "DRADeviceTaints" in publisher.ready()["Features"][1]
    path = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"

    def told() -> list[Any]:
        return [e for e in stand.cluster.api("GET", path)["items"] if publisher.name in str(e)]

    (event,) = until("the event is there", told)
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": NAMESPACE,
        "name": publisher.name,
        "uid": POD_UID,
    }
    assert (event["reason"], event["reportingController"]) == ("FeatureNotThere", DRIVER)


@case("PUB-06")
def test_of_two_replicas_one_publishes_and_the_other_takes_over_when_it_is_killed(
    stand: Stand,
) -> None:
    first = stand.run(pool(2))
    first.settled()
    second = stand.run(pool(3))
    second.process.wait_for("another instance publishes; this one takes over when it ends")
    assert first.leads()
    assert not second.leads()
    assert second.get("/readyz")[0] == 200, "who waits is ready"
    (item,) = stand.slices()
    at = len(stand.watcher.moments)
    stand.delete(item)  # both see it, one answers
    stand.watcher.saw(None, at)
    stand.watcher.wait_for(names(2), timeout=5.0)
    first.offer(pool(4))
    stand.watcher.wait_for(names(4))
    second.offer(pool(5))
    first.offer(pool(6))
    stand.watcher.wait_for(names(6))
    assert names(5) not in {m.devices for m in stand.watcher.moments}
    assert stand.holder() == first.name

    at = len(stand.watcher.moments)
    first.process.kill()
    stand.watcher.wait_for(names(5), timeout=25.0)
    assert [m.event for m in stand.watcher.moments[at:]] == ["MODIFIED"], "in place, nothing lost"
    assert stand.holder() == second.name


def test_a_replica_that_stops_in_order_is_followed_at_once(stand: Stand) -> None:
    first = stand.run(pool(2), more=("--on-stop=withdraw",))
    first.settled()
    second = stand.run(pool(2), more=("--on-stop=withdraw",))
    second.process.wait_for("another instance publishes; this one takes over when it ends")
    at = len(stand.watcher.moments)
    assert second.process.stop() == 0
    assert stand.watcher.moments[at:] == [], "who does not publish does not withdraw"
    third = stand.run(pool(2))
    third.process.wait_for("another instance publishes; this one takes over when it ends")
    first.process.stop()
    stand.watcher.wait_for(names(2), timeout=5.0)
    third.settled()


@case("PUB-06")
def test_a_replica_that_cannot_renew_its_lease_writes_nothing_more(stand: Stand) -> None:
    proxy = stand.proxy()
    cut_off = stand.run(pool(2), proxy=proxy)
    cut_off.settled()
    other = stand.run(pool(3))
    other.process.wait_for("another instance publishes; this one takes over when it ends")
    proxy.add(lambda c: "/leases/" in c.path, status=503)
    stand.watcher.wait_for(names(3), timeout=25.0)
    at, writes = len(stand.watcher.moments), len(proxy.writes())
    cut_off.process.wait_for("another instance publishes; this one takes over when it ends")
    cut_off.offer(pool(4))
    other.offer(pool(5))
    stand.watcher.wait_for(names(5))
    until("it has looked", lambda: len(cut_off.process.events("settings read again")) == 1)
    other.settled()
    assert [m.devices for m in stand.watcher.moments[at:]] == [names(5)]
    assert len(proxy.writes()) == writes


def test_without_an_election_there_is_no_lease(stand: Stand) -> None:
    publisher = stand.run(pool(2), more=("--no-leader-election",))
    publisher.settled()
    items = stand.cluster.api("GET", LEASES)["items"]
    assert items == []
    assert "Lease" not in publisher.ready()


def test_the_scheduler_allocates_what_the_example_asks_for(stand: Stand) -> None:
    """Profile ports, the example, and a pod on a node that nothing was published for."""
    cluster, example = stand.cluster, MANIFESTS / "examples" / "ports"
    stand.run_profile()
    readme = (example / "README.md").read_text()
    expected = re.search(r"```output\n(.+?)\n```", readme, re.DOTALL)
    (command,) = re.findall(r"^    kubectl (get .+)$", readme, re.MULTILINE)
    assert expected
    until("the output", lambda: cluster.kubectl(*command.split()).strip() == expected[1])

    classes = MANIFESTS / "components" / "cluster-publisher" / "deviceclass-ports.yaml"
    cluster.kubectl("apply", "-f", str(classes))
    cluster.kubectl("apply", "-k", str(example))
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    status = {"status": {"capacity": capacity, "allocatable": capacity}}
    node = f"/api/v1/nodes/{stand.node()}/status"
    cluster.api("PATCH", node, status, patch="merge")
    pods = "/api/v1/namespaces/default/pods"
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/two-ports"
    container = {"name": "c", "image": "none", "resources": {"claims": [{"name": "ports"}]}}
    spec = {
        "containers": [container],
        "tolerations": [{"operator": "Exists"}],
        "resourceClaims": [{"name": "ports", "resourceClaimName": "two-ports"}],
        "terminationGracePeriodSeconds": 0,
    }
    cluster.api("POST", pods, {"metadata": {"name": "user-of-ports"}, "spec": spec})
    try:
        found = until("ports", lambda: cluster.api("GET", claims).get("status", {}), timeout=60.0)
        results = found["allocation"]["devices"]["results"]
        assert [(r["pool"], r["device"]) for r in results] == [
            ("network", "port-0"),
            ("network", "port-1"),
        ]
    finally:
        cluster.api("DELETE", f"{pods}/user-of-ports?gracePeriodSeconds=0")
        cluster.kubectl("delete", "--wait=false", "-k", str(example))

"""The operator as it is shipped: image, Deployment, rights; it evicts, on a node with devices.

The in-tree evictor is off. Driver and operator are installed from ``manifests/``.
"""

from __future__ import annotations

import json
import re
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_testing.pods import Namespace, pod, request, template
from dra_testing.polling import until
from testcluster import fixtures, installation
from testcluster.cluster import Cluster
from testcluster.driver_image import IMAGE, ensure_driver_image
from testcluster.installation import OPERATOR

pytestmark = pytest.mark.node

REPLICAS = 2
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
Thing = tuple[str, str, str]
"""Kind, namespace and name of an object."""


class Installed:
    """Driver and operator, and what they look like from outside."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.node = cluster.require_node()
        self.before: set[Thing] = set()

    def install(self) -> None:
        """The driver, then the operator in mode evict."""
        self.node.import_image(ensure_driver_image())
        installation.apply(self.cluster)
        installation.wait_ready(self.cluster)
        self.before = self.things()
        self.install_operator("evict")

    def install_operator(self, mode: str | None = None) -> None:
        """``kubectl apply -k``, as shipped but for the mode; or change to that mode."""
        folder = installation.operator_overlay(self.cluster, mode)
        self.cluster.kubectl("apply", "-k", str(folder))
        self.cluster.kubectl(
            *("-n", OPERATOR, "rollout", "status", f"deployment/{OPERATOR}", "--timeout=90s")
        )

    def uninstall_operator(self) -> None:
        """``kubectl delete -k``, until everything is gone from the API."""
        folder = installation.operator_overlay(self.cluster)
        self.cluster.kubectl("delete", "--wait=true", "-k", str(folder))

    def things(self) -> set[Thing]:
        """All objects of all kinds, but Events and what comes and goes with them."""
        listed = self.cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        kinds = [k for k in listed if not k.startswith(("events", "componentstatuses"))]
        found = self.cluster.kubectl_json("get", ",".join(kinds), "--all-namespaces")["items"]
        return {
            (i["kind"], i["metadata"].get("namespace", ""), i["metadata"]["name"]) for i in found
        }

    def replicas(self) -> dict[str, dict[str, Any]]:
        """The operator's pods by name, once all are ready and none is on its way out."""

        def probe() -> dict[str, dict[str, Any]]:
            items = self.cluster.kubectl_json("-n", OPERATOR, "get", "pods")["items"]
            assert len(items) == REPLICAS, [i["metadata"]["name"] for i in items]
            conditions = [c for i in items for c in i["status"]["conditions"]]
            ready = [c["status"] for c in conditions if c["type"] == "Ready"]
            assert ready == ["True"] * REPLICAS, conditions
            return {i["metadata"]["name"]: i for i in items}

        return until(f"{REPLICAS} replicas are ready", probe, timeout=60.0)

    def lease(self) -> dict[str, Any]:
        """Of the operator: ``spec``."""
        found = self.cluster.kubectl_json("-n", OPERATOR, "get", "lease", OPERATOR)
        spec: dict[str, Any] = found["spec"]
        return spec

    def leader(self, *, other_than: str = "") -> str:
        """Name of the pod that leads, once one does."""

        def probe() -> str:
            holder = str(self.lease()["holderIdentity"])
            assert holder not in ("", other_than)
            return holder

        return until("a replica leads", probe, timeout=30.0)

    def records(self, name: str) -> list[dict[str, Any]]:
        """What a replica has logged."""
        lines = self.cluster.kubectl("-n", OPERATOR, "logs", name).splitlines()
        return [json.loads(line) for line in lines]

    def readiness(self, replica: dict[str, Any]) -> dict[str, Any]:
        """What a replica answers to the kubelet: its conditions by name."""
        url = f"http://{replica['status']['podIP']}:8080/readyz"
        with urllib.request.urlopen(url, timeout=5) as answer:
            return {c["name"]: c for c in json.load(answer)["conditions"]}

    def process(self, replica: dict[str, Any]) -> Path:
        """Its folder below /proc."""
        (status,) = replica["status"]["containerStatuses"]
        found = self.node.crictl("inspect", status["containerID"].removeprefix("containerd://"))
        return Path("/proc") / str(json.loads(found)["info"]["pid"])


@pytest.fixture(scope="module")
def installed(pytestconfig: pytest.Config) -> Iterator[Installed]:
    wanted: dict[str, Any] = {
        "node": True,
        "controllers": "*,-device-taint-eviction-controller",
    }
    with fixtures._running(pytestconfig, **wanted) as cluster:
        made = Installed(cluster)
        made.install()
        yield made


@dataclass(frozen=True)
class User:
    """A running pod with a GPU."""

    name: str
    uid: str
    claim: str
    claim_uid: str
    device: dict[str, str]


class Workload:
    """A Deployment of one pod whose claim comes from a template."""

    def __init__(self, installed: Installed, namespace: Namespace) -> None:
        self.installed = installed
        self.namespace = namespace
        body = pod("user", {"gpu": {"resourceClaimTemplateName": "one"}}, {"a": ["gpu"]})
        labels = {"app": "user"}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "user"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": body["spec"]},
            },
        }
        namespace.apply(template("one", request("gpu")), deployment)

    def user(self, *, after: User | None = None) -> User:
        """The pod, once it runs; another one than ``after``."""

        def probe() -> User:
            found = {i["metadata"]["uid"]: i for i in self.namespace.get("pods")["items"]}
            if after:
                found.pop(after.uid, None)
            assert len(found) == 1, list(found)
            ((uid, one),) = found.items()
            assert "deletionTimestamp" not in one["metadata"]
            statuses = one["status"].get("containerStatuses", [{"state": {}}])
            assert "running" in statuses[0]["state"], one["status"]
            (entry,) = one["status"]["resourceClaimStatuses"]
            claim = self.namespace.get("resourceclaim", entry["resourceClaimName"])
            (device,) = claim["status"]["allocation"]["devices"]["results"]
            metadata = claim["metadata"]
            name = one["metadata"]["name"]
            return User(name, uid, metadata["name"], metadata["uid"], device)

        return until("the pod of the Deployment runs", probe, timeout=60.0)

    def sees(self, user: User) -> dict[str, str]:
        """The devices that its container was given."""
        return self.namespace.environment(user.name, "a")

    def taint(self, user: User) -> None:
        """A rule with a NoExecute taint on its device."""
        selector = {key: user.device[key] for key in ("driver", "pool", "device")}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": f"bad-{user.device['device']}"},
            "spec": {
                "deviceSelector": selector,
                "taint": {"key": "example.com/bad", "value": "yes", "effect": "NoExecute"},
            },
        }
        self.namespace.apply(body)

    def prepared(self, user: User) -> bool:
        """Whether the driver has a CDI file for the claim of ``user``."""
        files = [path.name for path in Path(self.installed.node.cdi_dir).iterdir()]
        return any(user.claim_uid in name for name in files)

    def gone(self, user: User) -> bool:
        """Whether pod, claim and prepared devices of ``user`` are gone."""
        for kind, uid in (("pods", user.uid), ("resourceclaims", user.claim_uid)):
            items = self.namespace.get(kind)["items"]
            assert uid not in [i["metadata"]["uid"] for i in items], f"{kind} {uid} is there"
        return not self.prepared(user)

    def events(self, user: User) -> list[tuple[str, str, str]]:
        """Reason, who says so and which instance, of Events about evictions of ``user``."""
        return [
            (e["reason"], e["reportingComponent"], e["reportingInstance"])
            for e in self.namespace.get("events")["items"]
            if e["involvedObject"].get("uid") == user.uid and "Evict" in e["reason"]
        ]

    def wait_completed(self, user: User) -> None:
        """Until the rule on its device says that all is done, as docs/operator.md shows it."""
        rule = f"devicetaintrule/bad-{user.device['device']}"
        condition = "--for=condition=EvictionInProgress=false"
        self.namespace.cluster.kubectl("wait", condition, rule, "--timeout=60s")

    def moved(self, user: User) -> User:
        """The pod that stands for ``user`` on another device after its own was tainted."""
        self.taint(user)
        following = self.user(after=user)
        until("nothing of the old pod is left", lambda: self.gone(user), timeout=60.0)
        assert following.device["device"] != user.device["device"]
        assert following.claim_uid != user.claim_uid
        assert self.prepared(following)
        assert list(self.sees(following).values()) == [following.device["device"]]
        return following

    def close(self) -> None:
        """Gone for good, with the rules."""
        self.namespace.delete("deployment", "user")
        self.namespace.cluster.kubectl("delete", "devicetaintrules", "--all")
        self.namespace.close()


@pytest.fixture
def workload(installed: Installed, request: pytest.FixtureRequest) -> Iterator[Workload]:
    name = f"moves-{abs(hash(request.node.name)) % 10**6}"
    made = Workload(installed, Namespace(installed.cluster, name))
    yield made
    made.close()


def test_two_replicas_are_ready_and_one_of_them_leads(installed: Installed) -> None:
    replicas = installed.replicas()
    leader = installed.leader()
    (other,) = replicas.keys() - {leader}
    for name, replica in replicas.items():
        (status,) = replica["status"]["containerStatuses"]
        assert status["restartCount"] == 0
        conditions = installed.readiness(replica)
        assert all(c["ok"] for c in conditions.values()), conditions
        assert conditions["LeftOut"]["message"] == "nothing", "its rights are complete"
        assert conditions["Mode"]["message"] == "evict"
        led = [r for r in installed.records(name) if r["event"] == "leading"]
        assert len(led) == (name == leader)
    says = installed.readiness(replicas[leader])["Leading"]["message"]
    assert says == "this instance"
    says = installed.readiness(replicas[other])["Leading"]["message"]
    assert says == f"another one: {leader}"


def test_it_runs_as_its_manifest_says_and_as_nobody(
    installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the API server, and in what the kernel says about the process."""
    text = (installation.MANIFESTS / "components" / "operator" / "deployment.yaml").read_text()
    shipped = yaml.safe_load(text)["spec"]["template"]["spec"]
    nobody = "\t".join(["65532"] * 4)  # real, effective, saved, of the file system
    rights = {
        "Uid": nobody,
        "Gid": nobody,
        "NoNewPrivs": "1",
        "Seccomp": "2",
        **dict.fromkeys(CAPABILITIES, "0000000000000000"),
    }
    for replica in installed.replicas().values():
        spec = replica["spec"]
        assert spec["securityContext"] == shipped["securityContext"]
        (one,), (wanted,) = spec["containers"], shipped["containers"]
        assert one["securityContext"] == wanted["securityContext"]
        assert one["image"] == IMAGE
        process = installed.process(replica)
        text = (process / "status").read_text()
        status = dict(re.findall(r"^(\w+):\s*(.*)$", text, re.MULTILINE))
        assert {key: status[key] for key in rights} == rights
        mounts = [line.split() for line in (process / "mountinfo").read_text().splitlines()]
        (root,) = [m for m in mounts if m[4] == "/"]
        assert "ro" in root[5].split(",")
        with capsys.disabled():
            sys.stdout.write(f"\noperator in a pod: {status['VmRSS']} of memory")


def test_a_rule_moves_a_deployments_pod_to_another_device(
    installed: Installed, workload: Workload, capsys: pytest.CaptureFixture[str]
) -> None:
    user = workload.user()
    assert workload.prepared(user)
    assert list(workload.sees(user).values()) == [user.device["device"]]
    leader = installed.leader()
    began = time.monotonic()
    workload.moved(user)
    seconds = time.monotonic() - began
    assert until("the Event is there", lambda: workload.events(user)) == [_evicted_by(leader)]
    workload.wait_completed(user)
    told = {
        name
        for name in installed.replicas()
        for record in installed.records(name)
        if record["event"] == "pod evicted" and record["uid"] == user.uid
    }
    assert told == {leader}
    with capsys.disabled():
        sys.stdout.write(f"\nrule made, pod moved to another device: {seconds:.1f} s\n")


def _evicted_by(name: str) -> tuple[str, str, str]:
    return ("DeviceTaintEviction", OPERATOR, name)


def test_the_other_replica_takes_over_and_evicts(installed: Installed, workload: Workload) -> None:
    user = workload.user()
    installed.replicas()
    old = installed.leader()
    transitions = installed.lease()["leaseTransitions"]
    installed.cluster.kubectl("-n", OPERATOR, "delete", "pod", old, "--wait=false")
    new = installed.leader(other_than=old)
    assert installed.lease()["leaseTransitions"] > transitions
    workload.moved(user)
    assert until("the Event is there", lambda: workload.events(user)) == [_evicted_by(new)]
    assert old not in installed.replicas()


def test_as_shipped_it_finds_out_that_nobody_else_evicts(
    installed: Installed, workload: Workload
) -> None:
    """In mode auto, which takes a minute: two rules of its own that nobody answers."""
    installed.install_operator()
    user = workload.user()
    replicas = installed.replicas()
    leader = installed.leader()

    def mode() -> str:
        return str(installed.readiness(replicas[leader])["Mode"]["message"])

    until("it has chosen to evict", lambda: mode().startswith("auto: evict"), timeout=100.0)
    assert not [t for t in installed.things() if t[0] == "DeviceTaintRule"], "its own are gone"
    workload.moved(user)
    assert until("the Event is there", lambda: workload.events(user)) == [_evicted_by(leader)]


def test_nothing_was_refused_and_nothing_went_wrong(installed: Installed) -> None:
    for name in installed.replicas():
        records = installed.records(name)
        assert "everything has been read" in [r["event"] for r in records]
        assert not [r for r in records if r["level"] in ("error", "critical")]
        assert not [r for r in records if "forbidden" in json.dumps(r)]


def test_uninstalled_it_leaves_nothing(installed: Installed) -> None:
    """Neither in the API server nor on the node. The last test of the module."""
    installed.replicas()
    installed.leader()
    made = {thing for thing in installed.things() - installed.before if OPERATOR in thing[2]}
    assert {"ClusterRole", "ClusterRoleBinding", "Namespace", "Lease"} <= {t[0] for t in made}
    assert {"Deployment", "Role", "RoleBinding", "ServiceAccount"} <= {t[0] for t in made}
    assert {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} <= {t[0] for t in made}
    installed.uninstall_operator()

    def nothing_is_left() -> bool:
        # What its rights allow it to make: in its namespace, named so, or Events.
        left = [t for t in installed.things() - installed.before if "dragoman" in "/".join(t)]
        assert not left, left
        return True

    until("nothing is left of it", nothing_is_left, timeout=60.0)
    assert made.isdisjoint(installed.things())
    running = json.loads(installed.node.crictl("ps", "-o", "json"))["containers"]
    assert [c["metadata"]["name"] for c in running] == ["driver"]

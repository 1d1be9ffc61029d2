"""The manifests: accepted by real API servers, with the rights they say and no others."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_core.errors import ApiError, ApiForbidden, ApiInvalid
from dra_driver.adapters.kube import KubeApi
from dra_testing import cluster_stand
from dra_testing.cases import case
from dra_testing.polling import until
from testcluster.cluster import Cluster

pytestmark = pytest.mark.control_plane

MANIFESTS = Path(__file__).parents[2] / "manifests"
FOLDERS = sorted(
    str(p.parent.relative_to(MANIFESTS))
    for p in [
        *MANIFESTS.glob("overlays/*/kustomization.yaml"),
        *MANIFESTS.glob("examples/*/kustomization.yaml"),
    ]
)
SLICES = "/apis/resource.k8s.io/{}/resourceslices"
PUBLISHER = "dragoman-cluster-publisher"
PORTS = "ports.example.com"
EXISTS = {"key": "example.com/fabric", "operator": "Exists"}
#: What the policy of the publisher without a node says.
OF_NO_NODE = "may write slices without nodeName only"
OWNED = "may not write slices that a Node owns"


def render(cluster: Cluster, folder: str) -> list[dict[str, Any]]:
    text = cluster.kubectl("kustomize", str(MANIFESTS / folder))
    return [item for item in yaml.safe_load_all(text) if item]


def find(items: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (found,) = (i for i in items if i["kind"] == kind and i["metadata"]["name"] == name)
    return found


def driver_pod(items: list[dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = find(items, "DaemonSet", "dragoman-driver")["spec"]["template"]["spec"]
    return spec


@pytest.fixture(scope="session", params=["1.37.2", "1.36.3"])
def server(request: pytest.FixtureRequest) -> Cluster:
    name = {"1.37.2": "control_plane", "1.36.3": "control_plane_136"}[request.param]
    cluster: Cluster = request.getfixturevalue(name)
    assert cluster.version == request.param
    for folder in ("base", "components/operator", "components/cluster-publisher"):
        cluster.kubectl("apply", "-f", str(MANIFESTS / folder / "namespace.yaml"))
    return cluster


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_api_server_takes_every_manifest_strictly(server: Cluster, folder: str) -> None:
    arguments = ["--dry-run=server", "--validate=strict", "-k", str(MANIFESTS / folder)]
    printed = server.kubectl("apply", *arguments)
    assert printed.count("(server dry run)") == len(render(server, folder))


def test_a_misspelt_field_would_be_refused(server: Cluster, tmp_path: Path) -> None:
    """What the test above would not notice without strict validation."""
    text = (MANIFESTS / "base" / "deviceclass-gpu.yaml").read_text()
    broken = tmp_path / "class.yaml"
    broken.write_text(text.replace("selectors:", "selector:"))
    printed = server.kubectl("apply", "--dry-run=server", "-f", str(broken), check=False)
    assert 'unknown field "spec.selector"' in printed


@case("REG-03")
@pytest.mark.parametrize("overlay", ["default", "other-paths"])
def test_paths_are_said_once(control_plane: Cluster, overlay: str) -> None:
    items = render(control_plane, f"overlays/{overlay}")
    text = json.dumps(items)
    assert "KUBELET_ROOT/" not in text
    assert '"/CDI_DIR' not in text
    if overlay == "other-paths":
        assert "/var/lib/kubelet" not in text
        assert "/var/run/cdi" not in text
    root, cdi = {
        "default": ("/var/lib/kubelet", "/var/run/cdi"),
        "other-paths": ("/data/kubelet", "/etc/cdi"),
    }[overlay]
    (container,) = driver_pod(items)["containers"]
    environment = {e["name"]: e.get("value") for e in container["env"]}
    assert environment["DRA_DRIVER_KUBELET_ROOT"] == root
    assert environment["DRA_DRIVER_CDI_DIR"] == cdi
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    hosts = {v["name"]: v["hostPath"]["path"] for v in driver_pod(items)["volumes"]}
    assert mounts == hosts, "the same path inside and outside"
    assert mounts == {
        "plugin": f"{root}/plugins/gpu.example.com",
        "registry": f"{root}/plugins_registry",
        "cdi": cdi,
    }


@case("PKG-02")
def test_the_driver_outlives_its_consumers(control_plane: Cluster) -> None:
    items = render(control_plane, "overlays/default")
    pod = driver_pod(items)
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["priorityClassName"] == "system-node-critical"
    assert pod["terminationGracePeriodSeconds"] >= 30
    update = find(items, "DaemonSet", "dragoman-driver")["spec"]["updateStrategy"]
    assert update["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


@case("REG-02")
def test_a_surge_needs_socket_names_of_its_own(control_plane: Cluster) -> None:
    items = render(control_plane, "overlays/default")
    (container,) = driver_pod(items)["containers"]
    (uid,) = (e for e in container["env"] if e["name"] == "DRA_DRIVER_POD_UID")
    assert uid["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.uid"}}


def test_the_driver_has_no_privilege_it_does_not_need(control_plane: Cluster) -> None:
    items = render(control_plane, "overlays/default")
    pod = driver_pod(items)
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "runAsUser": 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        assert field not in pod


def allowed(items: list[dict[str, Any]], role: str) -> set[str]:
    rules = find(items, "ClusterRole", role)["rules"]
    return {
        f"{group or 'core'}/{resource}:{verb}"
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@case("PKG-01")
def test_the_rights_are_those_of_the_allow_list(control_plane: Cluster) -> None:
    items = render(control_plane, "overlays/default")
    listed = (Path(__file__).parents[1] / "data" / "driver" / "rights.txt").read_text().split()
    assert allowed(items, "dragoman-driver") == set(listed)
    assert not any("*" in right for right in listed)


def test_the_operator_has_the_rights_of_its_allow_list(control_plane: Cluster) -> None:
    items = render(control_plane, "overlays/operator")
    listed = (Path(__file__).parents[1] / "data" / "operator" / "rights.txt").read_text().split()
    assert allowed(items, "dragoman-operator") == set(listed)
    assert not any("*" in right for right in listed)
    (create, others) = find(items, "Role", "dragoman-operator")["rules"]
    assert (create["verbs"], create["resources"]) == (["create"], ["leases"])
    assert (others["verbs"], others["resourceNames"]) == (["get", "update"], ["dragoman-operator"])


@case("BIND-03")
def test_who_may_set_conditions_of_which_devices(control_plane: Cluster) -> None:
    items = render(control_plane, "overlays/operator-attaching")
    role = find(items, "ClusterRole", "dragoman-operator-attaching")
    assert rights_with_names(role) == {
        "core/namespaces:get of kube-system",
        "resource.k8s.io/resourceclaims/driver:arbitrary-node:patch of fabric.example.com",
        "resource.k8s.io/resourceclaims/status:patch",
        "resource.k8s.io/resourceclaims:get",
    }
    text = (MANIFESTS / "components" / "driver-conditions" / "rbac.yaml").read_text()
    role = find(list(yaml.safe_load_all(text)), "ClusterRole", "dragoman-driver-conditions")
    assert rights_with_names(role) == {
        "resource.k8s.io/resourceclaims/driver:associated-node:patch of fabric.example.com",
        "resource.k8s.io/resourceclaims/status:patch",
    }


def rights_with_names(role: dict[str, Any]) -> set[str]:
    return {
        f"{group or 'core'}/{resource}:{verb}"
        + "".join(f" of {name}" for name in rule.get("resourceNames") or [])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_operator_needs_no_privilege_and_finds_out_whether_to_evict(
    control_plane: Cluster,
) -> None:
    items = render(control_plane, "overlays/operator")
    deployment = find(items, "Deployment", "dragoman-operator")["spec"]
    assert deployment["replicas"] == 2
    (container,) = deployment["template"]["spec"]["containers"]
    assert "--mode=auto" in container["args"]
    namespace = find(items, "Namespace", "dragoman-operator")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    metadata = {"name": "restricted", "namespace": "dragoman-operator"}
    pod = {"apiVersion": "v1", "kind": "Pod", **deployment["template"], "metadata": metadata}
    text = json.dumps(pod)
    for file in ("namespace.yaml", "rbac.yaml"):
        control_plane.kubectl("apply", "-f", str(MANIFESTS / "components" / "operator" / file))
    printed = control_plane.kubectl("apply", "--dry-run=server", "-f", "-", input=text)
    assert "created (server dry run)" in printed
    wrong = text.replace('"runAsNonRoot": true', '"runAsNonRoot": false')
    printed = control_plane.kubectl(
        "apply", "--dry-run=server", "-f", "-", input=wrong, check=False
    )
    assert 'violates PodSecurity "restricted' in printed


@pytest.fixture(scope="module")
def policy(control_plane: Cluster) -> Iterator[Cluster]:
    """The rights and the admission policy in force, and two nodes."""
    base = MANIFESTS / "base"
    files = [
        f"-f={base / f}" for f in ("namespace.yaml", "driver-rbac.yaml", "driver-admission.yaml")
    ]
    control_plane.kubectl("apply", *files)
    for name in ("policy-1", "policy-2"):
        control_plane.api("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    yield control_plane
    control_plane.kubectl("delete", "-f", str(base / "driver-admission.yaml"))
    control_plane.kubectl("delete", "nodes", "policy-1", "policy-2")


def published(name: str, driver: str = "gpu.example.com", **spec: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "devices": [{"name": "d", "basic": {}}], **spec}
    return {"metadata": {"name": name}, "spec": spec}


@case("PKG-01")
@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
def test_the_driver_writes_slices_of_its_own_node_and_driver_only(
    policy: Cluster, version: str
) -> None:
    path = SLICES.format(version)
    account = policy.service_account_kubeconfig
    driver = KubeApi.connect(account("dragoman-system", "dragoman-driver", node="policy-1"))
    admin = KubeApi.connect(policy.kubeconfig)

    def body(name: str, **spec: Any) -> dict[str, Any]:
        made = published(name, **spec)
        if version != "v1beta1":
            made["spec"]["devices"] = [{"name": "d"}]
        return {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceSlice", **made}

    def tried(method: str, name: str, sent: dict[str, Any] | None, **query: str) -> str:
        try:
            driver.request(method, path if method == "POST" else f"{path}/{name}", query, sent)
        except (ApiForbidden, ApiInvalid) as error:
            return str(error)
        return "allowed"

    def until_in_force() -> bool:
        wrong = body("x", nodeName="policy-2")
        return "of that node only" in tried("POST", "x", wrong, dryRun="All")

    until("the policy is in force", until_in_force)
    assert tried("POST", "x", body("x", allNodes=True)) != "allowed"
    foreign = body("x", nodeName="policy-1", driver="other.example.com")
    assert "slices of driver other.example.com" in tried("POST", "x", foreign)
    assert tried("POST", "own", body("own", nodeName="policy-1")) == "allowed"
    own = driver.request("GET", f"{path}/own")
    own["spec"]["pool"]["generation"] = 2
    assert tried("PUT", "own", own) == "allowed"
    assert tried("DELETE", "own", None) == "allowed"

    theirs = admin.request("POST", path, None, body("theirs", nodeName="policy-2"))
    try:
        theirs["spec"]["pool"]["generation"] = 2
        assert "of that node only" in tried("PUT", "theirs", theirs)
        assert "of that node only" in tried("DELETE", "theirs", None)
    finally:
        admin.request("DELETE", f"{path}/theirs")

    unbound = KubeApi.connect(account("dragoman-system", "dragoman-driver"))
    with pytest.raises(ApiError, match="does not say on which node"):
        unbound.request("POST", path, None, body("x", nodeName="policy-1"))


@case("PKG-01")
def test_the_cluster_publisher_has_the_rights_of_its_allow_list(control_plane: Cluster) -> None:
    items = render(control_plane, "overlays/cluster-publisher")
    data = Path(__file__).parents[1] / "data" / "cluster-publisher" / "rights.txt"
    listed = data.read_text().split()
    assert allowed(items, PUBLISHER) == set(listed)
    assert not any("*" in right for right in listed)
    (create, others, events) = find(items, "Role", PUBLISHER)["rules"]
    assert (create["verbs"], create["resources"]) == (["create"], ["leases"])
    assert (others["verbs"], others["resources"]) == (["get", "update"], ["leases"])
    assert others["resourceNames"] == ["ports.example.com-publisher"]
    assert (events["verbs"], events["resources"]) == (["create"], ["events"])
    assert {i["kind"] for i in items if "Role" in i["kind"]} == {
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    }


def test_the_cluster_publisher_is_a_pod_without_privilege_or_host(control_plane: Cluster) -> None:
    items = render(control_plane, "overlays/cluster-publisher")
    deployment = find(items, "Deployment", PUBLISHER)["spec"]
    assert deployment["replicas"] == 2
    pod = deployment["template"]["spec"]
    assert "volumes" not in pod
    (container,) = pod["containers"]
    assert container["args"][:2] == ["--no-node", "--profile=ports"]
    fields = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"] for e in container["env"]}
    assert fields == {
        "DRA_DRIVER_IDENTITY": "metadata.name",
        "DRA_DRIVER_LEASE_NAMESPACE": "metadata.namespace",
        "DRA_DRIVER_POD_UID": "metadata.uid",
    }
    namespace = find(items, "Namespace", "dragoman-publisher")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    folder = MANIFESTS / "components" / "cluster-publisher"
    for file in ("namespace.yaml", "rbac.yaml"):
        control_plane.kubectl("apply", "-f", str(folder / file))
    metadata = {"name": "restricted", "namespace": "dragoman-publisher"}
    body = {"apiVersion": "v1", "kind": "Pod", **deployment["template"], "metadata": metadata}
    printed = control_plane.kubectl("apply", "--dry-run=server", "-f", "-", input=json.dumps(body))
    assert "created (server dry run)" in printed


@case("PKG-01")
@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
def test_the_cluster_publisher_writes_slices_of_no_node_and_its_driver_only(
    server: Cluster, version: str
) -> None:
    cluster_stand.install(server)
    path = SLICES.format(version)
    account = server.service_account_kubeconfig("dragoman-publisher", PUBLISHER)
    publisher, admin = KubeApi.connect(account), KubeApi.connect(server.kubeconfig)
    node = server.api("POST", "/api/v1/nodes", {"metadata": {"name": "policy-3"}})["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "policy-3", "uid": node["uid"]}
    made: list[str] = []

    def body(name: str, owners: Any = (), **spec: Any) -> dict[str, Any]:
        item = published(name, **{"driver": PORTS, **spec})
        if version != "v1beta1":
            item["spec"]["devices"] = [{"name": "d"}]
        item["metadata"]["ownerReferences"] = list(owners)
        return {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceSlice", **item}

    def by_admin(name: str, owners: Any = (), **spec: Any) -> dict[str, Any]:
        made.append(name)
        return admin.request("POST", path, None, body(name, owners, **spec))

    def tried(method: str, name: str, sent: dict[str, Any] | None, **query: str) -> str:
        try:
            url = path if method == "POST" else f"{path}/{name}"
            publisher.request(method, url, query, sent)
        except (ApiForbidden, ApiInvalid) as error:
            return str(error)
        return "allowed"

    def changed(item: dict[str, Any]) -> dict[str, Any]:
        item["spec"]["pool"]["generation"] = 2
        return item

    def until_in_force() -> bool:
        wrong = body("x", nodeName="policy-3")
        return OF_NO_NODE in tried("POST", "x", wrong, dryRun="All")

    until("the policy is in force", until_in_force)
    try:
        selector = {"nodeSelectorTerms": [{"matchExpressions": [EXISTS]}]}
        assert tried("POST", "own", body("own", allNodes=True)) == "allowed"
        assert tried("POST", "x", body("x", nodeSelector=selector), dryRun="All") == "allowed"
        own = publisher.request("GET", path, {"fieldSelector": "metadata.name=own"})["items"][0]
        own |= {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceSlice"}
        assert tried("PUT", "own", changed(own)) == "allowed"
        given = own | {"metadata": {"name": "own", "ownerReferences": [owner]}}
        assert OWNED in tried("PUT", "own", given)
        assert tried("DELETE", "own", None) == "allowed"

        assert OWNED in tried("POST", "x", body("x", [owner], allNodes=True))
        foreign = body("x", driver="other.example.com", allNodes=True)
        assert "slices of driver other.example.com" in tried("POST", "x", foreign)

        of_node = by_admin("of-node", nodeName="policy-3")
        owned = by_admin("owned", [owner], allNodes=True)
        others = by_admin("others", driver="other.example.com", allNodes=True)
        assert OF_NO_NODE in tried("DELETE", "of-node", None)
        assert OF_NO_NODE in tried("PUT", "of-node", changed(of_node))
        assert OWNED in tried("DELETE", "owned", None)
        owned["metadata"].pop("ownerReferences")
        assert OWNED in tried("PUT", "owned", changed(owned))
        assert "of driver other.example.com" in tried("DELETE", "others", None)
        assert "of driver other.example.com" in tried("PUT", "others", changed(others))
    finally:
        for name in made:
            admin.request("DELETE", f"{path}/{name}")
        server.api("DELETE", "/api/v1/nodes/policy-3")


@case("PKG-01")
def test_the_policies_cover_every_write_of_every_version(control_plane: Cluster) -> None:
    base = render(control_plane, "overlays/default")
    publisher = render(control_plane, "overlays/cluster-publisher")
    found = [i for i in [*base, *publisher] if i["kind"] == "ValidatingAdmissionPolicy"]
    assert len(found) == 2
    for policy in found:
        assert policy["spec"]["failurePolicy"] == "Fail"
        assert policy["spec"]["matchConstraints"]["resourceRules"] == [
            {
                "apiGroups": ["resource.k8s.io"],
                "apiVersions": ["v1", "v1beta1", "v1beta2"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
                "resources": ["resourceslices"],
            }
        ]


def test_every_example_says_what_it_prints() -> None:
    for folder in MANIFESTS.glob("examples/*/"):
        text = (folder / "README.md").read_text()
        assert re.search(r"```output\n.+?```", text, re.DOTALL), folder.name


def test_no_manifest_asks_for_the_newest_image() -> None:
    found = subprocess.run(
        ["grep", "-rnE", "image:.*:latest|newTag: latest", str(MANIFESTS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""

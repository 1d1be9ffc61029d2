"""The image as shipped, in containerd on a real node, with no right that it does not need."""

from __future__ import annotations

import datetime as dt
import inspect
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import dra_core
from dra_testing.pods import Namespace, claim, device_class, pod, request
from dra_testing.polling import until
from testcluster.cluster import Cluster
from testcluster.driver_image import IMAGE, ensure_driver_image

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "image-test"
DRIVER = "image.example.com"
LOCKED_DOWN = {
    "runAsUser": 0,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def audit(root: str) -> dict[str, object]:
    """What should not be in an image. It runs in the container too, so it brings its imports."""
    import os  # noqa: PLC0415
    import re  # noqa: PLC0415
    import stat  # noqa: PLC0415

    tools = re.compile(
        r"([\w-]+-)?(gcc|g\+\+|cc|c\+\+|clang|cpp|as|ld|make|cargo|go|tcc)(-[\d.]+)?"
    )
    found: dict[str, list[str]] = {"compilers": [], "pip": [], "set-id": [], "world-writable": []}
    count = 0
    device = os.lstat(root).st_dev
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if os.lstat(f"{folder}/{f}").st_dev == device]
        for name in [*folders, *files]:
            path = f"{folder}/{name}"
            mode = os.lstat(path).st_mode
            count += 1
            executable = bool(mode & 0o111) and not stat.S_ISDIR(mode)
            if executable and tools.fullmatch(name) and "/bin" in folder:
                found["compilers"].append(path)
            if re.fullmatch(r"pip(3(\.\d+)?)?|pip-.*\.(whl|dist-info)|ensurepip", name):
                found["pip"].append(path)
            if stat.S_ISREG(mode) and mode & 0o6000:
                found["set-id"].append(path)
            sticky = stat.S_ISDIR(mode) and mode & stat.S_ISVTX
            if mode & 0o002 and not stat.S_ISLNK(mode) and not sticky:
                found["world-writable"].append(path)
    return {"count": count, **found}


# What the container says about itself: the audit, and its rights as the kernel sees them.
REPORT = f"""\
import errno, importlib.util, json, os, re, sys
{inspect.getsource(audit)}
def refusal(path):
    try:
        open(path, "w").close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "written"
status = dict(re.findall(r"^(\\w+):\\s*(.*)$", open("/proc/self/status").read(), re.M))
print(json.dumps({{
    "audit": audit("/"),
    "uid": os.getuid(),
    "safe path": sys.flags.safe_path,
    "status": {{k: status[k] for k in ("CapEff", "CapPrm", "CapBnd", "NoNewPrivs", "Seccomp")}},
    "write": {{p: refusal(p) for p in ("/x", "/opt/dragoman/x", "/tmp/x")}},
    "pip": importlib.util.find_spec("pip") is not None,
    "path": os.environ["PATH"],
}}))
"""

# Of a module and all that it imports: what would have to be compiled at each start, since it is not
# or since its compiled form counts only beside a source of the same age, and whose framework it is.
IMPORTS = """\
import importlib, json, sys
importlib.import_module(sys.argv[1])
def trusted(path):
    try:
        with open(path, "rb") as file:
            return int.from_bytes(file.read(8)[4:], "little") == 1
    except OSError:
        return False
specs = [m.__spec__ for m in list(sys.modules.values()) if getattr(m, "__spec__", None)]
ours = [s for s in specs if s.cached and s.origin.startswith("/opt/dragoman/lib")]
print(json.dumps({
    "count": len(ours),
    "not compiled for good": sorted(s.name for s in ours if not trusted(s.cached)),
    "frameworks": sorted({"grpc", "kopf", "re2"} & set(sys.modules)),
}))
"""


@pytest.fixture(scope="module")
def archive() -> Path:
    return ensure_driver_image()


@pytest.fixture(scope="module")
def namespace(cluster_node: Cluster, archive: Path) -> Iterator[Namespace]:
    cluster_node.require_node().import_image(archive)
    made = Namespace(cluster_node, NAMESPACE)
    yield made
    made.close()


def container(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "securityContext": LOCKED_DOWN,
        **fields,
    }


def as_operator() -> dict[str, Any]:
    """The security context that the operator's manifest asks for."""
    text = (ROOT / "manifests" / "components" / "operator" / "deployment.yaml").read_text()
    spec = yaml.safe_load(text)["spec"]["template"]["spec"]
    (only,) = spec["containers"]
    return {**spec["securityContext"], **only["securityContext"]}


def pod_of(name: str, *containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 40,
        "enableServiceLinks": False,
        "containers": list(containers),
        **fields,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def at(time: str) -> dt.datetime:
    return dt.datetime.fromisoformat(time)


@pytest.fixture(scope="module")
def finished(namespace: Namespace) -> dict[str, Any]:
    """A pod whose containers run a short command each: their exit status and output."""
    python = ["/opt/dragoman/bin/python3", "-c"]
    start = "import time; b = time.time(); import dra_driver.app; print(time.time() - b)"
    body = pod_of(
        "short",
        container("version", args=["--version"]),
        container("help", args=["--help"]),
        container("nonsense", args=["--nonsense"]),
        container("report", command=[*python, REPORT]),
        container("imports", command=[*python, IMPORTS, "dra_driver.app"]),
        container("operator-imports", command=[*python, IMPORTS, "dra_operator.app"]),
        *(
            container(f"operator-{name}", command=command, securityContext=as_operator())
            for name, command in {
                "version": ["dra-operator", "--version"],
                "help": ["dra-operator", "--help"],
                "nonsense": ["dra-operator", "--nonsense"],
                "report": [*python, REPORT],
            }.items()
        ),
        # Alone, before the others, since its time is looked at.
        initContainers=[container("import", command=[*python, start])],
        automountServiceAccountToken=False,
    )
    namespace.apply(body)

    def ended() -> dict[str, Any]:
        status = namespace.get("pod", "short")["status"]
        statuses = status["initContainerStatuses"] + status["containerStatuses"]
        assert all("terminated" in s["state"] for s in statuses), statuses
        return {s["name"]: s["state"]["terminated"]["exitCode"] for s in statuses}

    codes = until("every container has ended", ended, timeout=60.0)
    log = namespace.cluster.kubectl
    return {
        name: (code, log("-n", NAMESPACE, "logs", "short", "-c", name))
        for name, code in codes.items()
    }


@pytest.mark.node
def test_the_entry_point_is_the_driver(finished: dict[str, Any]) -> None:
    version = f"dra-driver, version {dra_core.__version__}"
    assert finished["version"] == (0, f"{version}\n")
    code, text = finished["help"]
    assert code == 0
    assert text.startswith("Usage: dra-driver [OPTIONS]")
    assert "Profile gpu" in text, "the entry points of the installed package are found"
    code, text = finished["nonsense"]
    assert code == 2
    assert text.startswith("dra-driver: ")


@pytest.mark.node
def test_the_operator_is_in_it_too(finished: dict[str, Any]) -> None:
    """As the user of its manifest, with a root file system that cannot be written to."""
    version = f"dra-operator, version {dra_core.__version__}"
    assert finished["operator-version"] == (0, f"{version}\n")
    code, text = finished["operator-help"]
    assert code == 0
    assert text.startswith("Usage: dra-operator [OPTIONS]")
    code, text = finished["operator-nonsense"]
    assert code == 2
    assert text.startswith("dra-operator: ")


@pytest.mark.node
def test_each_program_loads_its_own_and_compiles_nothing(finished: dict[str, Any]) -> None:
    for container_name, framework in {"imports": "grpc", "operator-imports": "kopf"}.items():
        code, text = finished[container_name]
        assert code == 0, text
        report = json.loads(text)
        assert report.pop("count") > 200
        assert report == {"not compiled for good": [], "frameworks": [framework]}


@pytest.mark.node
def test_nothing_is_in_it_that_helps_an_attacker(finished: dict[str, Any]) -> None:
    code, text = finished["report"]
    assert code == 0, text
    report = json.loads(text)
    assert report["audit"].pop("count") > 3000, "the whole image was looked at"
    assert report["audit"] == {"compilers": [], "pip": [], "set-id": [], "world-writable": []}
    assert report["pip"] is False
    assert report["path"].startswith("/opt/dragoman/bin:")
    assert report["safe path"] is True


@pytest.mark.node
@pytest.mark.parametrize(("name", "user"), [("report", 0), ("operator-report", 65532)])
def test_it_ran_without_any_right(finished: dict[str, Any], name: str, user: int) -> None:
    """The driver as root, the operator as anybody."""
    report = json.loads(finished[name][1])
    assert report["uid"] == user
    none = "0000000000000000"
    assert report["status"] == {
        "CapEff": none,
        "CapPrm": none,
        "CapBnd": none,
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }
    assert report["write"] == dict.fromkeys(("/x", "/opt/dragoman/x", "/tmp/x"), "EROFS")


def test_the_audit_finds_what_it_looks_for(tmp_path: Path) -> None:
    """A control: the same function in a tree that has one of each."""
    wanted = {
        "compilers": "usr/bin/x86_64-linux-gnu-gcc-12",
        "pip": "usr/lib/python3/pip",
        "set-id": "usr/bin/su",
        "world-writable": "etc/open",
    }
    modes = {"compilers": 0o755, "set-id": 0o4755, "world-writable": 0o666}
    for kind, name in wanted.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        path.chmod(modes.get(kind, 0o644))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    found = audit(str(tmp_path))
    assert found.pop("count") == 10
    assert found == {kind: [f"{tmp_path}/{name}"] for kind, name in wanted.items()}


@pytest.mark.node
def test_labels_and_size(
    archive: Path, capsys: pytest.CaptureFixture[str], finished: dict[str, Any]
) -> None:
    with tarfile.open(archive) as tar:

        def blob(descriptor: dict[str, Any]) -> Any:
            file = tar.extractfile(f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}")
            assert file
            return json.load(file)

        index = tar.extractfile("index.json")
        assert index
        manifest = blob(json.load(index)["manifests"][0])
        config = blob(manifest["config"])["config"]
    labels = config["Labels"]
    prefix = "org.opencontainers.image."
    assert labels[f"{prefix}version"] == dra_core.__version__
    assert labels[f"{prefix}licenses"] == "Apache-2.0"
    assert config["Entrypoint"] == ["dra-driver"]
    assert "User" not in config
    assert ":latest" not in IMAGE
    sizes = [layer["size"] for layer in manifest["layers"]]
    with capsys.disabled():
        shown = " + ".join(f"{size / 1e6:.1f}" for size in sizes)
        seconds = float(finished["import"][1])
        size = f"{sum(sizes) / 1e6:.1f} MB compressed ({shown})"
        sys.stdout.write(f"\nimage: {size}; imports in {seconds:.2f} s\n")
    assert sum(sizes) < 100e6, "the image has grown: look at what came in"
    assert len(sizes) == 2, "the base and ours"


@pytest.mark.node
def test_a_built_image_is_found_again(archive: Path) -> None:
    program = [sys.executable, "-m", "testcluster.driver_image", "build"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "cluster")}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{archive}\n"
    assert done.stderr == "", "nothing was built"


def driver_account() -> list[dict[str, Any]]:
    """The shipped service account and rights, for a subject of this test's own.

    Without the right to write Events into namespace default, which the driver can do without.
    """
    text = (ROOT / "manifests" / "base" / "driver-rbac.yaml").read_text()
    text = text.replace("dragoman-system", NAMESPACE).replace("dragoman-driver", "image-driver")
    objects = yaml.safe_load_all(text)
    return [one for one in objects if one["metadata"].get("namespace") != "default"]


def driver_pod(cluster: Cluster) -> dict[str, Any]:
    """The driver with no capability; mounted are its own folder, the registry and CDI."""
    node = cluster.require_node()
    folders = {
        "plugin": node.plugins / DRIVER,
        "registry": node.registry,
        "cdi": node.cdi_dir,
    }
    arguments = [
        f"--node-name={node.name}",
        f"--driver-name={DRIVER}",
        f"--kubelet-root={node.kubelet_root}",
        f"--cdi-dir={node.cdi_dir}",
        "--option=count=2",
    ]
    mounts = [{"name": name, "mountPath": str(path)} for name, path in folders.items()]
    return pod_of(
        "driver",
        container("driver", args=arguments, volumeMounts=mounts),
        serviceAccountName="image-driver",
        volumes=[
            {"name": name, "hostPath": {"path": str(path), "type": "DirectoryOrCreate"}}
            for name, path in folders.items()
        ],
    )


@pytest.mark.node
def test_the_driver_prepares_a_claim_without_a_capability(
    cluster_node: Cluster, namespace: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    node = cluster_node.require_node()
    kubectl = cluster_node.kubectl

    def files() -> list[str]:
        return sorted(path.name for path in Path(node.cdi_dir).iterdir())

    def records() -> dict[str, dict[str, Any]]:
        lines = kubectl("-n", NAMESPACE, "logs", "driver", check=False).splitlines()
        return {r["event"]: r for r in (json.loads(x) for x in lines if x.startswith("{"))}

    before = files()
    namespace.apply(*driver_account(), device_class(DRIVER, DRIVER), driver_pod(cluster_node))
    try:
        until("it is registered", lambda: records()["registered with the kubelet"], timeout=60.0)
        namespace.apply(
            claim("one", request("gpu", DRIVER)),
            pod("user", {"gpu": {"resourceClaimName": "one"}}, {"a": ["gpu"]}),
        )
        namespace.running("user")
        (device,) = namespace.allocated("one")
        variables = namespace.environment("user", "a")
        assert variables == {f"GPU_DEVICE_{device.removeprefix('gpu-')}": device}
        (made,) = set(files()) - set(before)
        assert DRIVER in made
        namespace.delete("pod", "user")
        until("its CDI file is gone", lambda: files() == before)

        found = namespace.get("pod", "driver")
        (status,) = found["status"]["containerStatuses"]
        assert status["restartCount"] == 0
        started = at(status["state"]["running"]["startedAt"])  # whole seconds
        created = at(found["metadata"]["creationTimestamp"])
        with capsys.disabled():
            for event in ("serving", "registered with the kubelet"):
                moment = at(records()[event]["timestamp"])
                lived = (moment - created).total_seconds()
                ran = (moment - started).total_seconds()
                sys.stdout.write(
                    f"\ndriver in a pod: {event!r} {lived:.1f} s after its creation, "
                    f"{ran:.1f} s after its start"
                )
        assert (at(records()["serving"]["timestamp"]) - started).total_seconds() < 15
    finally:
        kubectl("-n", NAMESPACE, "delete", "pod", "user", "driver", "--ignore-not-found")
        kubectl("delete", "deviceclass", DRIVER, "--ignore-not-found")
        kubectl("delete", "clusterrole,clusterrolebinding", "image-driver", "--ignore-not-found")
        slices = [
            item["metadata"]["name"]
            for item in cluster_node.kubectl_json("get", "resourceslices")["items"]
            if item["spec"]["driver"] == DRIVER
        ]
        if slices:
            kubectl("delete", "resourceslice", *slices)

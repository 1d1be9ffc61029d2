"""The kind path, as far as it can be shown without Docker.

The configuration is decoded by kind's own types (``go/kind``); ``kind.sh`` runs against stand-ins
for docker, kind and kubectl that write down how they were called. No cluster is made.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from testcluster import versions

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "kind" / "cluster.yaml"
SCRIPT = ROOT / "kind" / "kind.sh"
GO_PROGRAM = Path(__file__).resolve().parent / "go" / "kind"
OVERLAY = ROOT / "manifests" / "overlays" / "kind"
# What the script needs beside the three; PATH has nothing else.
TOOLS = ("bash", "dirname", "grep")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("kind") / "kind"
    subprocess.run(
        ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(built), "."],
        cwd=GO_PROGRAM,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"},
        check=True,
    )
    return built


def decode(program: Path, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program], input=text, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def decoded(program: Path) -> dict[str, Any]:
    done = decode(program, CONFIG.read_text())
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    return content


@pytest.mark.go
def test_kind_understands_every_field(decoded: dict[str, Any]) -> None:
    cluster = decoded["cluster"]
    assert [node["role"] for node in cluster["nodes"]] == ["control-plane", "worker"]
    written = yaml.safe_load(CONFIG.read_text())
    for field in ("name", "featureGates", "runtimeConfig", "containerdConfigPatches"):
        assert cluster[field] == written[field]


@pytest.mark.go
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("name: dragoman", "nam: dragoman", "field nam not found"),
        ("  - role: worker", "  - role: worker\n    gates: {}", "field gates not found"),
        ("GenericWorkload: true", "GenericWorkload: maybe", "cannot unmarshal"),
        ("v1alpha4", "v1alpha5", "v1alpha5"),
        ("enable_cdi = true", "enable_cdi = perhaps", "containerdConfigPatches"),
    ],
)
def test_kind_refuses_what_it_does_not_know(program: Path, old: str, new: str, reason: str) -> None:
    text = CONFIG.read_text()
    assert old in text
    done = decode(program, text.replace(old, new))
    assert done.returncode == 1
    assert reason in done.stderr


@pytest.mark.go
def test_the_node_image_is_the_default_of_that_kind(decoded: dict[str, Any]) -> None:
    images = {node["image"] for node in decoded["cluster"]["nodes"]}
    assert images == {decoded["defaultImage"]}


@pytest.mark.go
def test_cdi_is_on_whichever_configuration_the_node_has(decoded: dict[str, Any]) -> None:
    tables = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
    for patch in decoded["containerd"]:
        settings = patch["plugins"][tables.pop(patch["version"])]
        assert settings == {"enable_cdi": True, "cdi_spec_dirs": ["/etc/cdi", "/var/run/cdi"]}
    assert not tables


def test_gates_are_those_with_which_the_test_cluster_starts() -> None:
    """A component refuses to start with a gate that its version does not know."""
    config = yaml.safe_load(CONFIG.read_text())
    found = re.fullmatch(r"kindest/node:v(\d+\.\d+)\.\d+@sha256:\w+", config["nodes"][0]["image"])
    assert found
    assert config["featureGates"] == dict.fromkeys(versions.find(found[1]).gates, True)
    newer = set(versions.find("1.37").gates) - set(versions.find("1.36").gates)
    lines = CONFIG.read_text().splitlines()
    marked = {line.split(":")[0].strip() for line in lines if line.endswith("# 1.37")}
    assert marked == newer


class StandIns:
    """A PATH with stand-ins that write down their arguments, and what the script did with them."""

    def __init__(self, folder: Path) -> None:
        self._bin = folder / "bin"
        self._bin.mkdir()
        self._calls = folder / "calls"
        self._tree = folder / "tree"
        (self._tree / "kind").mkdir(parents=True)
        (self._tree / "kind" / "kind.sh").write_bytes(SCRIPT.read_bytes())
        (self._tree / "manifests" / "examples" / "two-pods").mkdir(parents=True)
        self.wheels = self._tree / "dist" / "wheels"
        self.wheels.mkdir(parents=True)
        (self.wheels / "dragoman-1-py3-none-any.whl").touch()
        for tool in TOOLS:
            found = next(p for d in ("/usr/bin", "/bin") if (p := Path(d) / tool).exists())
            (self._bin / tool).symlink_to(found)

    def add(self, name: str, answers: str = "") -> None:
        """``answers`` is shell code that runs after the call was written down."""
        program = self._bin / name
        program.write_text(f'#!/bin/bash\necho "{name} $*" >> {self._calls}\n{answers}\n')
        program.chmod(0o755)

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        self._calls.write_text("")
        return subprocess.run(
            ["/bin/bash", str(self._tree / "kind" / "kind.sh"), *words],
            env={"PATH": str(self._bin), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines()


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    made = StandIns(tmp_path)
    made.add("docker")
    made.add("kind")
    made.add("kubectl", 'case "$*" in *"get pods -o name") echo pod/pod-1;; esac')
    return made


def test_up_builds_loads_and_installs_in_this_order(stand_ins: StandIns) -> None:
    done = stand_ins.run("up")
    assert done.returncode == 0, done.stderr
    kube = "kubectl --context kind-dragoman"
    daemonset = "daemonset/dragoman-driver"
    assert stand_ins.calls() == [
        "docker info",
        "docker build --tag localhost/dragoman:dev .",
        "kind get clusters",
        "kind create cluster --name dragoman --config kind/cluster.yaml --wait 120s",
        "kind load docker-image localhost/dragoman:dev --name dragoman",
        f"{kube} apply -k manifests/overlays/kind",
        f"{kube} -n dragoman-system rollout restart {daemonset}",
        f"{kube} -n dragoman-system rollout status {daemonset} --timeout=180s",
    ]


def test_a_cluster_that_is_there_stays_and_a_node_image_can_be_chosen(stand_ins: StandIns) -> None:
    stand_ins.run("up", KIND_CLUSTER="other", KIND_IMAGE="kindest/node:v1.36.1")
    (made,) = [call for call in stand_ins.calls() if call.startswith("kind create")]
    assert "--name other" in made
    assert made.endswith("--image kindest/node:v1.36.1")
    stand_ins.add("kind", "[ $1 = get ] && printf 'another\\ndragoman\\n' || true")
    assert stand_ins.run("up").returncode == 0
    assert not [call for call in stand_ins.calls() if call.startswith("kind create")]


def test_the_demo_shows_the_example_and_removes_it(stand_ins: StandIns) -> None:
    stand_ins.add("kind", "[ $1 = get ] && echo dragoman")
    done = stand_ins.run("demo")
    assert done.returncode == 0, done.stderr
    words = [call.removeprefix("kubectl --context kind-dragoman ") for call in stand_ins.calls()]
    assert words[2:] == [
        "get resourceslices",
        "apply -k manifests/examples/two-pods",
        "wait --for=condition=Ready pod --all --timeout=180s",
        "get pods,resourceclaims",
        "get pods -o name",
        "logs pod/pod-1 --all-containers --prefix",
        "delete -k manifests/examples/two-pods --wait=true",
    ]


def test_the_example_goes_when_its_pods_never_run(stand_ins: StandIns) -> None:
    stand_ins.add("kind", "[ $1 = get ] && echo dragoman")
    stand_ins.add("kubectl", 'case "$*" in *" wait "*) exit 1;; esac')
    assert stand_ins.run("demo").returncode == 1
    assert stand_ins.calls()[-1].endswith("delete -k manifests/examples/two-pods --wait=true")


@pytest.mark.parametrize("command", ["check", "up", "demo", "down"])
@pytest.mark.parametrize("lacking", ["docker", "kind"])
def test_without_docker_or_kind_it_says_so_with_status_2(
    stand_ins: StandIns, tmp_path: Path, command: str, lacking: str
) -> None:
    (tmp_path / "bin" / lacking).unlink()
    done = stand_ins.run(command)
    assert done.returncode == 2
    assert done.stderr == f"kind.sh: needs {lacking} in PATH; without Docker use: make demo\n"
    assert stand_ins.calls() == []


def test_without_an_engine_or_wheels_or_cluster_it_says_so_with_status_2(
    stand_ins: StandIns,
) -> None:
    done = stand_ins.run("demo")
    assert (done.returncode, "no cluster dragoman" in done.stderr) == (2, True)
    next(stand_ins.wheels.iterdir()).unlink()
    done = stand_ins.run("up")
    assert (done.returncode, "run: make wheels" in done.stderr) == (2, True)
    stand_ins.add("docker", "exit 1")
    done = stand_ins.run("up")
    assert (done.returncode, "engine does not answer" in done.stderr) == (2, True)
    assert stand_ins.calls() == ["docker info"]
    assert stand_ins.run("sideways").returncode == 2


def test_the_overlay_that_is_installed_exists() -> None:
    assert (OVERLAY / "kustomization.yaml").exists()

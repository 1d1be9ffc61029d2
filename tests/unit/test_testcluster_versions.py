"""Which versions and feature gates a test cluster can have."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from testcluster import control_plane, network, paths, record, versions
from testcluster.errors import ClusterError
from testcluster.record import Options, Record


@pytest.mark.parametrize(
    ("asked", "number"),
    [("1.37.2", "1.37.2"), ("v1.37.2", "1.37.2"), ("1.37", "1.37.2"), ("1.36", "1.36.3")],
)
def test_a_version_is_found_by_its_number(asked: str, number: str) -> None:
    assert versions.find(asked).number == number


def test_an_unknown_version_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ClusterError, match=r"no Kubernetes 1\.35.*1\.36\.3, 1\.37\.2"):
        versions.find("1.35.4")


@pytest.mark.parametrize("version", versions.VERSIONS.values(), ids=lambda v: v.number)
def test_each_version_is_pinned_in_its_go_module(version: versions.Version) -> None:
    module = (paths.SOURCES / version.module / "go.mod").read_text()
    staging = "0." + version.number.split(".", 1)[1]

    assert f"k8s.io/kubernetes v{version.number}\n" in module
    replaced = re.findall(r"^\tk8s\.io/\S+ => k8s\.io/\S+ (\S+)$", module, re.MULTILINE)
    assert len(replaced) >= 30
    assert set(replaced) == {f"v{staging}"}


def test_gates_of_1_37_are_not_set_on_1_36() -> None:
    old = versions.gates(versions.find("1.36"))
    new = versions.gates(versions.find("1.37"))

    assert "DRADerivedAttributes" in new
    assert "DRADerivedAttributes" not in old
    # On by default in 1.37, yet off in 1.36.
    assert old["DRADeviceTaintRules"]


@pytest.mark.parametrize(
    ("wanted", "flag"),
    [
        ("none", []),
        ("A=true,B=false", ["--feature-gates=A=true,B=false"]),
        (" A=True , none , C=false", ["--feature-gates=C=false"]),
    ],
)
def test_gates_are_chosen_by_words(wanted: str, flag: list[str]) -> None:
    assert versions.gates_flag(versions.gates(versions.find("1.37"), wanted)) == flag


def test_a_later_word_changes_one_gate_of_all() -> None:
    version = versions.find("1.37")
    chosen = versions.gates(version, "all,DRADerivedAttributes=false")

    assert chosen == {**versions.gates(version), "DRADerivedAttributes": False}


@pytest.mark.parametrize("wanted", ["A", "A=yes", "=true", "A=true,,"])
def test_a_malformed_gate_is_refused(wanted: str) -> None:
    with pytest.raises(ClusterError, match="neither NAME=true"):
        versions.gates(versions.find("1.37"), wanted)


def _commands(options: Options) -> dict[str, list[str]]:
    ports = {name: 20000 + n for n, name in enumerate(control_plane.PORTS)}
    binaries = {"tools": "/t", "kube-1.37": "/new", "kube-1.36": "/old"}
    return control_plane.commands(
        Record(options, binaries, address="127.0.0.1", url="https://x", ports=ports)
    )


def test_command_lines_carry_version_gates_and_ports() -> None:
    commands = _commands(Options("a", version="1.36.3", gates="A=true", controllers="*,-x"))

    assert list(commands) == [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ]
    assert commands["etcd"][0] == "/t/etcd"
    assert commands["kube-apiserver"][0] == "/old/kube-apiserver"
    assert "--secure-port=20002" in commands["kube-apiserver"]
    assert "--controllers=*,-x" in commands["kube-controller-manager"]
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        assert "--feature-gates=A=true" in commands[name]


def test_no_command_line_opens_a_port_to_the_world() -> None:
    for command in _commands(Options("a")).values():
        bound = [word for word in command if word.startswith(("--bind-", "--listen-"))]
        assert bound
        assert all("127.0.0.1" in word for word in bound)


def test_components_can_be_left_out_and_given_more_flags() -> None:
    flags = {"kube-apiserver": ("--v=6",)}
    commands = _commands(Options("a", without=("kube-scheduler",), flags=flags))

    assert "kube-scheduler" not in commands
    assert commands["kube-apiserver"][-1] == "--v=6"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (Options("a", without=("etcd",)), "cannot do without etcd"),
        (Options("a", flags={"etcdd": ("--x",)}), "no such component"),
        (Options("a", version="1.36", node=True), "no node with 1.36.3"),
        (Options("A b"), "cluster name 'A b'"),
        (Options("a" * 17), "1 to 16 characters"),
    ],
)
def test_impossible_options_are_refused(options: Options, reason: str) -> None:
    with pytest.raises(ClusterError, match=reason):
        options.checked()


def test_a_record_is_read_back_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(paths, "_ROOM_FOR_SOCKETS", 0)
    paths.make_run_folder("a")
    options = Options("a", without=("kube-scheduler",), flags={"etcd": ("--x",)}, node=True)
    written = Record(options, {"tools": "/t"}, address="10.0.0.1", commands={"etcd": ["/t/etcd"]})
    written.save()

    assert record.load("a") == written
    assert record.with_node(besides="b") == [written]
    assert record.with_node(besides="a") == []


@pytest.mark.parametrize("content", ["", "[]", '{"document": 2}', '{"document": 1}'])
def test_a_record_that_cannot_be_read_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(paths, "_ROOM_FOR_SOCKETS", 0)
    (paths.make_run_folder("a") / "cluster.json").write_text(content)

    assert record.load("a") is None


def test_the_link_of_a_node_fits_into_a_device_name() -> None:
    names = {network.link_name(name) for name in ("a", "b", "a" * 16)}

    assert len(names) == 3
    assert all(len(name) <= 15 for name in names)


def test_free_ports_are_different_and_not_those_taken() -> None:
    first = network.free_ports(5)
    assert len(set(first)) == 5
    assert not set(first) & set(network.free_ports(5, taken=first))

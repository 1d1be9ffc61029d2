"""When a build can be taken from the cache, and how it is made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testcluster import build, images, packages, paths, pki
from testcluster.errors import ClusterError


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the Go modules that a test may change."""
    copy = tmp_path / "go"
    shutil.copytree(paths.SOURCES, copy)
    monkeypatch.setattr(paths, "SOURCES", copy)
    return copy


@pytest.mark.parametrize("name", build.TARGETS)
def test_a_key_is_the_same_for_the_same_input(name: str) -> None:
    target = build.find(name)

    assert build.key(target, "go1.26.8") == build.key(target, "go1.26.8")
    assert build.key(target, "go1.26.8") != build.key(target, "go1.26.9")


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "main.go"])
def test_a_key_changes_with_each_source_file(sources: Path, file: str) -> None:
    target = build.find("kube-1.37")
    before = build.key(target, "go1.26.8")
    with (sources / "kube-1.37" / file).open("a") as stream:
        stream.write("\n")

    assert build.key(target, "go1.26.8") != before


def test_modules_do_not_share_a_key() -> None:
    keys = {build.key(target, "go1.26.8") for target in build.TARGETS.values()}

    assert len(keys) == len(build.TARGETS)


def test_a_build_never_changes_the_module_files(tmp_path: Path) -> None:
    for target in build.TARGETS.values():
        assert "-mod=readonly" in build.command(target, tmp_path)


def test_the_version_is_stamped(tmp_path: Path) -> None:
    command = build.command(build.find("kube-1.36"), tmp_path)
    flags = command[command.index("-ldflags") + 1]

    assert "-X k8s.io/component-base/version.gitVersion=v1.36.3" in flags
    assert "-X k8s.io/component-base/version.gitMinor=36" in flags


def test_all_means_each_target_once() -> None:
    assert sorted(build.names("all")) == sorted(build.TARGETS)


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ClusterError, match=r"no target kube-1\.0: choose from"):
        build.result("kube-1.0")


def test_a_missing_go_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ClusterError, match=r"needs Go 1\.26.* or newer: no go in PATH"):
        build.go_version(build.find("kube-1.37"))


def test_the_cache_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DRAGOMAN_CACHE", str(tmp_path / "here"))
    assert paths.cache() == tmp_path / "here"

    monkeypatch.delenv("DRAGOMAN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert paths.cache() == tmp_path / "dragoman"


def test_missing_packages_are_those_whose_program_is_not_there() -> None:
    wanted = {"shell": "sh", "nothing": "no-such-program", "file": "/no/such/file"}

    assert packages.missing(wanted) == ["nothing", "file"]


def test_an_image_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    archives = []
    for number in range(2):
        root = tmp_path / f"root{number}"
        (root / "bin").mkdir(parents=True)
        (root / "bin" / "program").write_text("text")
        archives.append(tmp_path / f"{number}.tar")
        images.write_archive("localhost/x:1", archives[-1], root, ["/bin/program"])

    assert archives[0].read_bytes() == archives[1].read_bytes()


@pytest.mark.parametrize(
    ("user", "groups", "subject"),
    [
        ("admin", (), "/CN=admin"),
        ("system:node:n", ("system:nodes",), "/O=system:nodes/CN=system:node:n"),
        ("a/b", ("x+y", "z"), r"/O=x\+y/O=z/CN=a\/b"),
    ],
)
def test_users_and_groups_make_a_subject(user: str, groups: tuple[str, ...], subject: str) -> None:
    assert pki.subject(user, groups) == subject


def test_a_user_without_a_name_is_refused() -> None:
    with pytest.raises(ClusterError, match="must be one line and not empty"):
        pki.subject("")

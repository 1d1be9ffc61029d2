"""The container image of driver and operator, built without Docker and without a registry.

The Dockerfile is the one that everybody uses; what is different here is its base: a Debian made by
debootstrap. buildah builds on it with chroot isolation and a storage of its own in a folder that
goes afterwards. Three results are cached, each named after all that it depends on: the base, the
wheels of the dependencies, the image (an OCI archive).

``python -m testcluster.driver_image build`` prints the archive's path, ``… wheels`` fills
``dist/wheels`` for ``docker build``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from . import locks, packages, paths
from .errors import BuildFailed, ClusterError, Unavailable
from .progress import Progress, Ticker

IMAGE = "localhost/dragoman:dev"
TICK = 10.0
"""Seconds between two lines of progress."""

ROOT = Path(__file__).resolve().parents[3]
SUITE, SUITE_PYTHON = "bookworm", "3.11"
_INCLUDED = ("python3",)
_GLIBC = range(17, 37)  # minor versions that Debian bookworm's 2.36 can run
_TRIMMED = (
    "dev/*",
    # debootstrap copies these from the machine
    "etc/hostname",
    "etc/resolv.conf",
    "usr/share/doc/*/*",
    "usr/share/info/*",
    "usr/share/locale/*",
    "usr/share/man/*",
    "var/cache/*/*",
    "var/lib/apt/lists/*",
    "var/log/*",
)
_KEPT = "copyright"  # licences of what is in the image
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REVISION = "1"  # changes the names of cached results when this module makes them differently
_KEEP = 3
"""Images that stay in the cache: those of other checkouts may be in use."""


def ensure_driver_image(progress: Progress | None = None) -> Path:
    """The OCI archive of :data:`IMAGE` for the current tree, built first if need be.

    Raises :class:`Unavailable` where that is not possible, :class:`BuildFailed` with the end of the
    log of what failed.
    """
    progress = progress or Progress()
    folder = paths.cache() / "images"
    archive = folder / f"dragoman-{_key()}.tar"
    if not archive.exists():
        _need_root()
        wanted = {name: packages.FOR_EVERYTHING[name] for name in ("debootstrap", "buildah")}
        packages.ensure(wanted, progress)
        folder.mkdir(parents=True, exist_ok=True)
        waiting = Ticker(TICK, lambda: progress.say("image: another run builds it"))
        with locks.held("driver-image", waiting=waiting.touch):
            if not archive.exists():
                _remove(folder.glob(".build-*"))  # ruins of a run that was killed
                _build(archive, progress)
    archive.touch()
    newest_first = sorted(folder.glob("dragoman-*.tar"), key=_age)
    _remove(newest_first[_KEEP:])
    return archive


def collect_wheels(folder: Path, python: str, arch: str, progress: Progress) -> None:
    """Fill ``folder`` with our wheel and all that it needs, and nothing else."""
    collected = _dependencies(python, arch, progress)
    _remove([folder])
    folder.mkdir(parents=True)
    for wheel in collected.iterdir():
        shutil.copy(wheel, folder)
    _own_wheel(folder, progress)


def default_python() -> str:
    """The Python version of the Dockerfile's default base image."""
    text = (ROOT / "Dockerfile").read_text()
    found = re.search(r"^ARG BASE_IMAGE=\S*python:(\d+\.\d+)", text, re.MULTILINE)
    if not found:
        raise ClusterError("Dockerfile: its default BASE_IMAGE names no Python version")
    return found[1]


# -- names of results


def _digest(parts: Iterable[bytes | str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:16]


def _key() -> str:
    """What the image depends on."""
    parts: list[bytes | str] = [_REVISION, _base_key()]
    for file in _inputs():
        executable = bool(file.stat().st_mode & 0o100)
        parts += [str(file.relative_to(ROOT)), str(executable), file.read_bytes()]
    return _digest(parts)


def _inputs() -> list[Path]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    sources = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    names = ("Dockerfile", ".dockerignore", "pyproject.toml", "README.md", "LICENSE")
    found = [ROOT / name for name in (*names, "image/pip.txt", "requirements/image.txt")]
    for source in sources:
        found += [p for p in (ROOT / source).rglob("*") if p.is_file() and p.suffix != ".pyc"]
    return sorted(found)


def _base_key() -> str:
    return _digest([_REVISION, SUITE, *_INCLUDED, *_TRIMMED, _KEPT, _PATH, _arch()])


def _arch() -> str:
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine(), platform.machine())


def _version() -> str:
    text = (ROOT / "core" / "dra_core" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    return found[1] if found else "unversioned"


# -- building


def _need_root() -> None:
    if sys.platform != "linux":
        raise Unavailable("needs Linux for building an image without Docker: use docker build")
    if os.geteuid() != 0:
        raise Unavailable("needs root for building an image without Docker: use docker build")


def _build(archive: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".build-") as temporary:
        work = Path(temporary)
        base = _base(work, progress)
        context = work / "context"
        for name in ("Dockerfile", ".dockerignore", "image/pip.txt", "requirements/image.txt"):
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, context / name)
        collect_wheels(context / "dist" / "wheels", SUITE_PYTHON, _arch(), progress)
        buildah = _Buildah(work, progress)
        buildah(
            *("build", "--file", str(context / "Dockerfile"), "--tag", IMAGE),
            *("--build-arg", f"BASE_IMAGE=oci-archive:{base}"),
            *("--build-arg", f"VERSION={_version()}"),
            str(context),
            what="image: running the Dockerfile",
        )
        made = work / "image.tar"
        buildah.push(IMAGE, made)
        made.replace(archive)
    size = archive.stat().st_size / 1e6
    progress.say(f"image: {IMAGE} is in {archive} ({size:.0f} MB)")


def _base(work: Path, progress: Progress) -> Path:
    """The OCI archive of the base image; the lock is ours."""
    archive = paths.cache() / "images" / f"base-{SUITE}-{_base_key()}.tar"
    if archive.exists():
        return archive
    root, layer = work / "root", work / "root.tar"
    # In a mount namespace of its own, whatever it mounts goes with it.
    debootstrap = ["unshare", "--mount", "debootstrap", "--variant=minbase"]
    if mirror := os.environ.get("DRAGOMAN_DEBIAN_MIRROR"):
        where = [SUITE, str(root), mirror]
    else:
        where = [SUITE, str(root)]
    included = f"--include={','.join(_INCLUDED)}"
    _run(
        [*debootstrap, included, *where],
        f"base: Debian {SUITE} by debootstrap, about a minute",
        progress,
    )
    for pattern in _TRIMMED:
        _remove(path for path in root.glob(pattern) if path.name != _KEPT)
    _run(
        ["tar", "--numeric-owner", "--one-file-system", f"--directory={root}", "-cf", layer, "."],
        "base: packing",
        progress,
    )
    buildah = _Buildah(work, progress)
    buildah("from", "--name=base", "scratch", what="base: an empty image")
    buildah("add", "--quiet", "base", str(layer), "/", what="base: adding Debian")
    config = ["--env", f"PATH={_PATH}", "--cmd", "/bin/sh"]
    buildah("config", *config, "base", what="base: settings")
    name = f"localhost/dragoman-base:{SUITE}"
    buildah("commit", "--quiet", "--rm", "base", name, what="base: committing")
    buildah.push(name, work / "base.tar")
    (work / "base.tar").replace(archive)
    layer.unlink()
    _remove([root, *(p for p in archive.parent.glob(f"base-{SUITE}-*.tar") if p != archive)])
    return archive


class _Buildah:
    """buildah with all that it keeps below ``work``; nothing of the machine's setup is read."""

    def __init__(self, work: Path, progress: Progress) -> None:
        self._progress = progress
        self._temporary = work / "buildah-tmp"
        self._temporary.mkdir(exist_ok=True)
        self._policy = work / "policy.json"
        self._policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        registries = work / "registries.conf"
        registries.write_text("")
        self._storage = [f"--root={work / 'storage'}", f"--runroot={work / 'run'}"]
        self._environment = {
            "BUILDAH_ISOLATION": "chroot",
            "STORAGE_DRIVER": "vfs",
            "CONTAINERS_REGISTRIES_CONF": str(registries),
            "TMPDIR": str(self._temporary),
            "PATH": packages.search_path(),
        }

    def __call__(self, command: str, *arguments: str, what: str) -> None:
        policy = [f"--signature-policy={self._policy}"] if command in _READ_POLICY else []
        line = ["buildah", *self._storage, command, *policy, *arguments]
        _run(line, what, self._progress, self._environment)

    def push(self, name: str, archive: Path) -> None:
        """Write the image ``name`` into the OCI archive ``archive``."""
        self("push", "--quiet", name, f"oci-archive:{archive}:{name}", what=f"writing {name}")


_READ_POLICY = {"build", "commit", "from", "push"}


def _dependencies(python: str, arch: str, progress: Progress) -> Path:
    """The folder with the wheels of requirements/image.txt and pip, downloaded if need be."""
    lists = [ROOT / "requirements" / "image.txt", ROOT / "image" / "pip.txt"]
    key = _digest([python, arch, *(file.read_bytes() for file in lists)])
    folder = paths.cache() / "wheels" / f"{python}-{arch}-{key}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".wheels-") as temporary:
        into = Path(temporary) / "wheels"
        into.mkdir()
        _run(
            [
                *(sys.executable, "-m", "pip", "download", "--disable-pip-version-check"),
                *("--progress-bar=off", "--only-binary=:all:", f"--python-version={python}"),
                *(f"--platform=manylinux_2_{minor}_{arch}" for minor in reversed(_GLIBC)),
                *("--require-hashes", f"--dest={into}", *(f"--requirement={f}" for f in lists)),
            ],
            f"wheels: downloading those for Python {python} on {arch}",
            progress,
        )
        try:
            into.rename(folder)
        except OSError:
            if not folder.exists():  # another run was first
                raise
    return folder


def _own_wheel(folder: Path, progress: Progress) -> None:
    _run(
        [sys.executable, "-m", "hatchling", "build", "--target=wheel", f"--directory={folder}"],
        "wheels: our own",
        progress,
    )


def _run(
    command: Sequence[str | Path],
    what: str,
    progress: Progress,
    environment: dict[str, str] | None = None,
) -> None:
    """Run a command in the repository's root, telling every 10 s how far it is.

    Raises :class:`BuildFailed` with the end of what it printed.
    """
    progress.say(f"{what} …")
    begun = time.monotonic()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {"PATH": packages.search_path()})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                try:
                    process.wait(TICK)
                except subprocess.TimeoutExpired:
                    seconds = time.monotonic() - begun
                    last = (_tail(log.fileno(), 1) or ["nothing said yet"])[0]
                    progress.say(f"{what}: {seconds:.0f} s, {last[:120]}")
        finally:
            _end(process)
        if process.returncode != 0:
            lines = "\n".join(_tail(log.fileno(), 20))
            raise BuildFailed(
                f"{what}: {command[0]} failed with status {process.returncode}:\n{lines}"
            )


def _tail(descriptor: int, lines: int) -> list[str]:
    """The last lines of a file that another process is still writing."""
    size = os.fstat(descriptor).st_size
    text = os.pread(descriptor, 8192, max(0, size - 8192)).decode(errors="replace")
    return [line for line in text.splitlines() if line.strip()][-lines:]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a process of ours with its children if it runs (we were interrupted)."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _age(path: Path) -> float:
    return -path.stat().st_mtime


def _remove(found: Iterable[Path]) -> None:
    for path in list(found):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


# -- command line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="testcluster.driver_image")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("build", help="build the image; print its OCI archive")
    one.set_defaults(run=lambda _: print(ensure_driver_image()))
    one = commands.add_parser("wheels", help="collect wheels for docker build")
    one.add_argument("--into", type=Path, default=ROOT / "dist" / "wheels", metavar="FOLDER")
    one.add_argument("--python", default=default_python(), metavar="X.Y")
    one.add_argument("--arch", default=_arch(), choices=["x86_64", "aarch64"])
    one.set_defaults(run=_wheels)
    given = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], None] = given.run
    # As an exception, so that the builder is stopped and its folder removed.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        run(given)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _wheels(given: argparse.Namespace) -> None:
    collect_wheels(given.into.absolute(), given.python, given.arch, Progress())
    print(f"{given.into}: {len(list(given.into.glob('*.whl')))} wheels")


if __name__ == "__main__":
    sys.exit(main())

"""Building Kubernetes, etcd and containerd from Go modules.

A result is named after everything that it depends on (module files, source, flags, Go version), so
a changed pin builds anew and an old result is never taken for a new one. It appears under its name
in one rename, and a lock keeps two runs from building the same at once: the later one waits and
tells how far the other is.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import locks, paths, versions
from .errors import BuildFailed, ClusterError, Unavailable
from .progress import Progress, Ticker

TICK = 10.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class Target:
    """One Go module of ours and the programs that it gives.

    ``stamps`` are ``-X`` settings of the linker, ``links`` extra names (link -> program), ``tools``
    says that the programs are the module's ``tool`` lines and not a ``main`` of its own. ``takes``
    is how long a build from nothing takes on 2 cores, ``folder`` where go.mod is if that is not
    among the modules of this package.
    """

    name: str
    stamps: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    tools: bool = False
    takes: str = "about 13 minutes"
    folder: Path | None = None

    @property
    def source(self) -> Path:
        """The folder with go.mod."""
        return self.folder or paths.SOURCES / self.name


def _kubernetes(version: versions.Version) -> Target:
    major, minor, _ = version.number.split(".")
    stamps = [
        f"{package}.{key}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for key, value in (
            ("gitVersion", f"v{version.number}"),
            ("gitMajor", major),
            ("gitMinor", minor),
        )
    ]
    links = tuple((component, "kube") for component in version.components)
    return Target(version.module, tuple(stamps), links)


TARGETS = {target.name: target for target in map(_kubernetes, versions.VERSIONS.values())}
TARGETS["tools"] = Target(
    "tools",
    (
        "github.com/containerd/containerd/v2/version.Version=v2.4.2",
        "sigs.k8s.io/cri-tools/pkg/version.Version=v1.37.0",
    ),
    (("etcd", "server"),),
    tools=True,
    takes="about 4 minutes",
)


def key(target: Target, go_version: str) -> str:
    """What a result depends on, as 16 hexadecimal digits."""
    digest = hashlib.sha256()
    parts = [target.name, go_version, *target.stamps, repr(target.links), repr(_FLAGS)]
    files = sorted(p for p in target.source.iterdir() if p.suffix in {".mod", ".sum", ".go"})
    for part in [part.encode() for part in parts] + [file.read_bytes() for file in files]:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


_FLAGS = ("-mod=readonly", "-buildvcs=false", "-trimpath")
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}


def command(target: Target, output: Path) -> list[str]:
    """The ``go build`` that puts the programs of ``target`` into the folder ``output``."""
    linker = " ".join(["-s", "-w", *(f"-X {stamp}" for stamp in target.stamps)])
    where = f"{output}/" if target.tools else str(output / "kube")
    what = "tool" if target.tools else "."
    return ["go", "build", "-v", *_FLAGS, "-ldflags", linker, "-o", where, what]


def go_version(target: Target) -> str:
    """The version of the installed Go.

    Raises :class:`Unavailable` if there is none or it is older than the module wants.
    """
    needed = re.search(r"^go (\S+)$", (target.source / "go.mod").read_text(), re.MULTILINE)
    wanted = needed[1] if needed else "1.26"
    if not shutil.which("go"):
        raise Unavailable(f"needs Go {wanted} or newer: no go in PATH ({os.environ.get('PATH')})")
    done = subprocess.run(
        ["go", "env", "GOVERSION"],
        cwd=target.source,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    found = done.stdout.strip()
    if done.returncode != 0 or _numbers(found) < _numbers(wanted):
        said = found or done.stderr.strip()
        raise Unavailable(f"needs Go {wanted} or newer: go in PATH is {said}")
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def result(name: str) -> Path:
    """Where the result of target ``name`` is or will be."""
    return _result(find(name))


def _result(target: Target) -> Path:
    return paths.cache() / "bin" / f"{target.name}-{key(target, go_version(target))}"


def find(name: str) -> Target:
    """The target called ``name``."""
    try:
        return TARGETS[name]
    except KeyError:
        raise ClusterError(f"no target {name}: choose from {', '.join(TARGETS)}, all") from None


def ensure(name: str, progress: Progress) -> Path:
    """The folder with the programs of target ``name``, built first if need be."""
    return provide(find(name), progress)


def provide(target: Target, progress: Progress) -> Path:
    """The same for any target; a ``main`` of ours becomes the program ``kube``."""
    name, folder = target.name, _result(target)
    if folder.exists():
        return folder
    note = paths.cache() / "log" / f"build-{name}.progress"
    waiting = Ticker(TICK, lambda: progress.say(f"{name}: another run builds it: {_last(note)}"))
    with locks.held(f"build-{name}", waiting=waiting.touch):
        if not folder.exists():
            _build(target, folder, note, progress)
    return folder


def _last(note: Path) -> str:
    try:
        return note.read_text().strip()
    except FileNotFoundError:
        return "just begun"


def _build(target: Target, folder: Path, note: Path, progress: Progress) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    progress.say(f"{target.name}: building, {target.takes} on 2 cores if nothing is cached")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{target.name}-") as temporary:
        output = Path(temporary) / "bin"
        output.mkdir()
        _run(target, output, note, progress)
        for link, program in target.links:
            (output / link).symlink_to(program)
        output.rename(folder)
    note.unlink(missing_ok=True)
    for old in folder.parent.glob(f"{target.name}-*"):
        if old != folder and re.fullmatch(r"[0-9a-f]{16}", old.name[len(target.name) + 1 :]):
            _forget(old, progress)
    progress.say(f"{target.name}: built into {folder}")


def _forget(old: Path, progress: Progress) -> None:
    """Remove a result that nothing asks for any more, unless a program of it is running."""
    for link in Path("/proc").glob("[0-9]*/exe"):
        try:
            if link.readlink().is_relative_to(old):
                return
        except OSError:
            continue
    progress.say(f"removing the older {old}")
    shutil.rmtree(old, ignore_errors=True)


def _environment() -> dict[str, str]:
    return {**os.environ, **_ENVIRONMENT}


def _run(target: Target, output: Path, note: Path, progress: Progress) -> None:
    """Run ``go build``, telling how far it is; raises :class:`BuildFailed`."""
    compiled: list[str] = []
    messages: list[str] = []
    total = 0

    def tell() -> None:
        now = "downloading modules"
        if total:
            at = f", at {compiled[-1]}" if compiled else ""
            now = f"{len(compiled)} of at most {total} packages compiled{at}"
        note.write_text(now + "\n")
        progress.say(f"{target.name}: {now}")

    finished = threading.Event()
    clock = threading.Thread(target=_every, args=(TICK, tell, finished), daemon=True)
    clock.start()
    try:
        total = _package_count(target)
        status = _go_build(target, output, compiled, messages)
    finally:
        finished.set()
        clock.join()
    if status != 0:
        raise BuildFailed(f"{target.name}: go build failed{_reason(messages)}")


def _go_build(target: Target, output: Path, compiled: list[str], messages: list[str]) -> int:
    """The exit status of ``go build``; what it prints is added to the two lists meanwhile."""
    with subprocess.Popen(
        command(target, output),
        cwd=target.source,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                # -v prints the import path of each package; whatever has a space is a message.
                (messages if " " in line.strip() else compiled).append(line.strip())
        except BaseException:
            process.terminate()
            raise
    return process.returncode


def _every(seconds: float, tell: Callable[[], None], finished: threading.Event) -> None:
    while not finished.wait(seconds):
        tell()


def _reason(messages: list[str]) -> str:
    shown = [line for line in messages if not line.startswith("go: downloading")][-12:]
    text = "\n".join(shown)
    if re.search(r"dial tcp|no such host|proxyconnect|i/o timeout|TLS handshake", text):
        return f": the Go module proxy (GOPROXY) was not reached\n{text}"
    if "no space left" in text:
        return f": the disk is full; the Go build cache takes about 4 GB\n{text}"
    return f":\n{text}"


def _package_count(target: Target) -> int:
    """How many packages there are, compiled or cached; 0 if that cannot be told."""
    packages = "tool" if target.tools else "."
    listed = subprocess.run(
        ["go", "list", "-mod=readonly", "-deps", packages],
        cwd=target.source,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return len(listed.stdout.splitlines())


def background_log(name: str) -> Path:
    """The log of a build in the background."""
    return paths.cache() / "log" / f"build-{name}.log"


def names(word: str) -> Iterator[str]:
    """The targets that ``word`` stands for, the shorter builds first."""
    if word == "all":
        yield from ("tools", versions.find(versions.DEFAULT).module)
        yield from (
            n for n in TARGETS if n not in {"tools", versions.find(versions.DEFAULT).module}
        )
    else:
        yield find(word).name

"""Container images without a registry.

Two are enough for tests: ``localhost/pause:1`` holds a pod's namespaces, ``localhost/busybox:1``
has a shell and tools. An image is one layer in an OCI archive, the same bytes on each build.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import locks, packages, paths
from .errors import ClusterError, Unavailable

PAUSE = "localhost/pause:1"
BUSYBOX = "localhost/busybox:1"

_MEDIA = "application/vnd.oci.image"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PAUSE_SOURCE = """\
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void stop(int number) { (void)number; _exit(0); }
static void reap(int number) { (void)number; while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void)
{
    signal(SIGTERM, stop); signal(SIGINT, stop); signal(SIGCHLD, reap);
    for (;;) pause();
}
"""
_REVISION = "1"  # changes the names of cached images when this module makes them differently


def ensure() -> list[Path]:
    """Archives of the two images, made first if need be."""
    folder = paths.cache() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    busybox = packages.program("busybox")
    if not busybox:
        raise Unavailable("needs a static busybox: as root: apt-get install busybox-static")
    makers: list[tuple[str, bytes, Callable[[Path], None]]] = [
        ("pause", _PAUSE_SOURCE.encode(), _make_pause),
        ("busybox", Path(busybox).read_bytes(), lambda out: _make_busybox(Path(busybox), out)),
    ]
    archives = []
    with locks.held("images", seconds=300):
        for name, content, make in makers:
            digest = hashlib.sha256(_REVISION.encode() + content).hexdigest()[:16]
            archive = folder / f"{name}-{digest}.tar"
            if not archive.exists():
                temporary = archive.with_suffix(".new")
                make(temporary)
                temporary.replace(archive)
            archives.append(archive)
    return archives


def _make_pause(archive: Path) -> None:
    compiler = packages.program("gcc")
    if not compiler:
        raise Unavailable("needs a C compiler: as root: apt-get install gcc libc6-dev")
    with tempfile.TemporaryDirectory() as temporary:
        source, root = Path(temporary) / "pause.c", Path(temporary) / "root"
        root.mkdir()
        source.write_text(_PAUSE_SOURCE)
        command = [compiler, "-static", "-s", "-O2", "-o", str(root / "pause"), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ClusterError(f"gcc could not compile pause: {done.stderr.strip()}")
        write_archive(PAUSE, archive, root, ["/pause"])


def _make_busybox(busybox: Path, archive: Path) -> None:
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for folder in ("bin", "etc", "tmp", "root"):
            (root / folder).mkdir()
        (root / "tmp").chmod(0o1777)
        (root / "bin" / "busybox").write_bytes(busybox.read_bytes())
        (root / "bin" / "busybox").chmod(0o755)
        for applet in listed.stdout.split():
            if applet != "busybox":
                (root / "bin" / applet).symlink_to("busybox")
        (root / "etc" / "passwd").write_text(
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
        )
        (root / "etc" / "group").write_text("root:x:0:\nnogroup:x:65534:\n")
        write_archive(BUSYBOX, archive, root, ["/bin/sh"])


def write_archive(name: str, archive: Path, root: Path, command: list[str]) -> None:
    """Write the tree ``root`` as the image ``name`` into the OCI archive ``archive``.

    All files belong to root and have no time, so that equal trees give equal bytes.
    """
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            tar.add(path, str(path.relative_to(root)), recursive=False, filter=_anonymous)
    blobs = {}

    def store(content: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    stored_layer = store(layer.getvalue(), f"{_MEDIA}.layer.v1.tar")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    config = {
        "architecture": machine,
        "os": "linux",
        "config": {"Cmd": command, "Env": [_PATH]},
        "rootfs": {"type": "layers", "diff_ids": [stored_layer["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.manifest.v1+json",
        "config": store(json.dumps(config).encode(), f"{_MEDIA}.config.v1+json"),
        "layers": [stored_layer],
    }
    entry = store(json.dumps(manifest).encode(), f"{_MEDIA}.manifest.v1+json")
    entry["annotations"] = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name,
    }
    files = {f"blobs/sha256/{digest}": content for digest, content in blobs.items()}
    files["oci-layout"] = b'{"imageLayoutVersion":"1.0.0"}'
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    with tarfile.open(archive, "w") as tar:
        for path_in_tar, content in sorted(files.items()):
            info = tarfile.TarInfo(path_in_tar)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    archive.chmod(0o644)


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mtime = 0
    return info

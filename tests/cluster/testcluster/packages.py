"""Debian packages.

What cannot come from Go modules comes from the distribution: runc (needs C), the CNI plugins, nft.
On another distribution, or without root, nothing is installed and the error names the packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .errors import Unavailable
from .progress import Progress

SBIN = "/usr/local/sbin:/usr/sbin:/sbin"

# Package -> what must be there if it is installed: a program, or a file.
_CONTROL_PLANE = {"openssl": "openssl"}
_NODE = {
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "nftables": "nft",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "iproute2": "ip",
    "util-linux": "nsenter",
    "busybox-static": "busybox",
    "gcc": "gcc",
    "libc6-dev": "/usr/include/stdio.h",
}
_TOOLS = {"debootstrap": "debootstrap", "buildah": "buildah", "curl": "curl", "strace": "strace"}

FOR_CONTROL_PLANE = _CONTROL_PLANE
FOR_NODE = _CONTROL_PLANE | _NODE
FOR_EVERYTHING = _CONTROL_PLANE | _NODE | _TOOLS


def search_path() -> str:
    """``PATH`` with the folders for system programs, which a plain user's often lacks."""
    return f"{os.environ.get('PATH', '/usr/bin:/bin')}:{SBIN}"


def program(name: str) -> str | None:
    """The full path of an installed program."""
    return shutil.which(name, path=search_path())


def missing(wanted: dict[str, str]) -> list[str]:
    """The packages of ``wanted`` that are not installed."""
    return [package for package, probe in wanted.items() if not _present(package, probe)]


def _present(package: str, probe: str) -> bool:
    if probe.startswith("/"):
        return Path(probe).exists()
    found = program(probe)
    if found and package == "busybox-static":
        # The plain busybox has the same name and needs shared libraries.
        with Path(found).open("rb") as file:
            return b"/ld-" not in file.read(4096)
    return found is not None


def ensure(wanted: dict[str, str], progress: Progress) -> None:
    """Install what is missing of ``wanted``.

    Raises :class:`Unavailable` where that is not possible.
    """
    lacking = missing(wanted)
    if not lacking:
        return
    fix = f"as root: apt-get install {' '.join(lacking)}"
    if not shutil.which("apt-get"):
        raise Unavailable(f"needs {', '.join(lacking)} (names of Debian packages): {fix}")
    if os.geteuid() != 0:
        raise Unavailable(f"needs {', '.join(lacking)} and root to install them: {fix}")
    with progress.step(f"installing {' '.join(lacking)}"):
        # The package lists may be there and fresh: an update costs 10 s and is often needless.
        if _apt_get(["install", *lacking]).returncode != 0:
            _apt_get(["update"])
            done = _apt_get(["install", *lacking])
            if done.returncode != 0:
                raise Unavailable(f"apt-get install {' '.join(lacking)} failed: {_end(done)}")
    if still := missing(wanted):
        raise Unavailable(f"apt-get installed {', '.join(still)}, yet they are not found")


def _apt_get(arguments: Iterable[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["apt-get", "-y", "-qq", "-o", "Dpkg::Use-Pty=0", "--no-install-recommends", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _end(done: subprocess.CompletedProcess[str]) -> str:
    return "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])

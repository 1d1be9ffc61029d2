"""Certificates of one cluster, made with the openssl command.

One authority per cluster signs everything: the servers' certificates and each user's. Keys are on
the curve P-256 (RSA keys take seconds on a busy machine) and readable by their owner only.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from . import packages
from .errors import ClusterError, Unavailable

DAYS = 30
"""How long certificates are valid; a test cluster does not live that long."""


class Authority:
    """A certificate authority in the folder ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "ca.crt"
        self.key = folder / "ca.key"

    def create(self) -> None:
        """Make the authority and the key pair that signs service account tokens."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._key(self.key)
        _openssl(
            ["req", "-x509", "-new", "-key", str(self.key), "-out", str(self.certificate)],
            ["-subj", "/CN=testcluster-ca", "-days", str(DAYS)],
        )
        self._key(self.path("sa.key"))
        _openssl(
            ["pkey", "-in", str(self.path("sa.key")), "-pubout", "-out"], [self.path("sa.pub")]
        )

    def path(self, name: str) -> Path:
        """A file of the authority's folder."""
        return self.folder / name

    def issue(
        self,
        name: str,
        *,
        user: str,
        groups: Iterable[str] = (),
        addresses: Iterable[str] = (),
        hosts: Iterable[str] = (),
    ) -> tuple[Path, Path]:
        """Certificate and key, ``name.crt`` and ``name.key``, for ``user`` in ``groups``.

        With ``addresses`` or ``hosts`` it serves as a server's certificate as well.
        """
        certificate, key = self.path(f"{name}.crt"), self.path(f"{name}.key")
        names = [f"IP:{address}" for address in addresses] + [f"DNS:{host}" for host in hosts]
        usage = "clientAuth,serverAuth" if names else "clientAuth"
        lines = ["basicConstraints=CA:FALSE", f"extendedKeyUsage={usage}"]
        if names:
            lines.append("subjectAltName=" + ",".join(names))
        self._key(key)
        with tempfile.TemporaryDirectory(dir=self.folder) as temporary:
            extensions, request = Path(temporary) / "ext", Path(temporary) / "csr"
            extensions.write_text("\n".join(lines) + "\n")
            _openssl(
                ["req", "-new", "-utf8", "-key", str(key), "-out", str(request)],
                ["-subj", subject(user, groups)],
            )
            _openssl(
                ["x509", "-req", "-in", str(request), "-days", str(DAYS), "-out", certificate],
                ["-CA", self.certificate, "-CAkey", self.key, "-extfile", extensions],
                # A random number each: no file with a counter that two runs would share.
                ["-set_serial", f"0x{os.urandom(16).hex()}"],
            )
        return certificate, key

    def _key(self, path: Path) -> None:
        # The file is there, closed to others, before openssl writes into it.
        path.unlink(missing_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _openssl(
            ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], ["-out", path]
        )


def subject(user: str, groups: Iterable[str] = ()) -> str:
    """The subject of a client certificate: Kubernetes takes O for groups and CN for the user."""
    parts = [f"/O={_escaped(group)}" for group in groups]
    return "".join(parts) + f"/CN={_escaped(user)}"


def _escaped(text: str) -> str:
    if not text or "\n" in text:
        raise ClusterError(f"user or group {text!r}: must be one line and not empty")
    return "".join(f"\\{c}" if c in "/\\+=" else c for c in text)


def _openssl(*arguments: Iterable[str | Path]) -> None:
    program = packages.program("openssl")
    if not program:
        raise Unavailable("needs openssl for certificates: as root: apt-get install openssl")
    command = [program, *(str(argument) for part in arguments for argument in part)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterError(f"openssl {command[1]} failed: {done.stderr.strip()}")

"""Kubeconfig files.

Written as JSON, which every reader of YAML takes, with certificates and keys inside, so that a file
can be copied into a container or another folder and still works.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any


def document(
    server: str,
    authority: Path,
    user: str,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    token: str | None = None,
) -> dict[str, Any]:
    """A kubeconfig for ``user``, who shows a client certificate or a bearer token."""
    credentials: dict[str, str] = {}
    if certificate and key:
        credentials["client-certificate-data"] = _encoded(certificate)
        credentials["client-key-data"] = _encoded(key)
    if token:
        credentials["token"] = token
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testcluster", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "default", "context": {"cluster": "testcluster", "user": user}}],
        "current-context": "default",
    }


def write(path: Path, content: dict[str, Any]) -> Path:
    """Write ``content`` to ``path``, readable by its owner only."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
    temporary.replace(path)
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()

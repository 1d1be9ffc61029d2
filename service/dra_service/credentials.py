"""Credentials for the Kubernetes API, as the ``kubernetes`` package reads them.

What it does not do is done here: name what is wrong in one sentence, and follow a token file.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import kubernetes.client
import kubernetes.config
import yaml

from dra_core.errors import InvalidValue


def configuration(kubeconfig: Path | None) -> kubernetes.client.Configuration:
    """``kubeconfig``, else ``$KUBECONFIG``, else the pod's service account, else ~/.kube/config.

    Raises InvalidValue with one sentence if they cannot be read.
    """
    made = kubernetes.client.Configuration()
    _check_readable(kubeconfig)
    try:
        in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
        if kubeconfig is None and "KUBECONFIG" not in os.environ and in_pod:
            kubernetes.config.load_incluster_config(made)  # type: ignore[no-untyped-call]
        else:
            kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=None if kubeconfig is None else str(kubeconfig),
                client_configuration=made,
                persist_config=False,
            )
            _follow_token_file(made, kubeconfig)
    except Exception as error:  # the package raises OSError, YAML, SSL and errors of its own
        raise unusable(kubeconfig, error) from error
    return made


def unusable(kubeconfig: Path | None, error: Exception) -> InvalidValue:
    """One sentence about credentials that were refused."""
    where = kubeconfig or os.environ.get("KUBECONFIG") or "the default place"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return _refusal(where, lines[0])


def _refusal(where: object, why: str | None) -> InvalidValue:
    return InvalidValue(
        f"cannot use the kubeconfig {where}: {why}; give a readable one with --kubeconfig"
    )


def _follow_token_file(made: kubernetes.client.Configuration, kubeconfig: Path | None) -> None:
    """Read the file of ``tokenFile`` at each request, as client-go does: tokens are rotated.

    The package reads it once.
    """
    file = None if kubeconfig is None else str(kubeconfig)
    _, active = kubernetes.config.list_kube_config_contexts(config_file=file)  # type: ignore[no-untyped-call]
    path = _token_file(_paths(kubeconfig), active["context"].get("user"))
    if path is None:
        return

    def refresh(current: kubernetes.client.Configuration) -> None:
        token = path.read_text().strip()
        if not token:
            raise ValueError(f"the token file {path} is empty")
        current.api_key["BearerToken"] = f"Bearer {token}"

    # The package sets it to None and says nothing about its type.
    made.refresh_api_key_hook = refresh  # type: ignore[assignment]


def _token_file(paths: list[Path], user: str | None) -> Path | None:
    """Of the first of the files that has the user; relative to that file."""
    for path in paths:
        if not path.exists():
            continue
        for entry in (yaml.safe_load(path.read_bytes()) or {}).get("users") or []:
            if entry.get("name") == user:
                given = (entry.get("user") or {}).get("tokenFile")
                return path.parent / given if given else None
    return None


def _paths(kubeconfig: Path | None) -> list[Path]:
    """Where the configuration may stand, in order."""
    if kubeconfig is not None:
        return [kubeconfig]
    listed = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    return [Path(p) for p in listed if p] or [Path.home() / ".kube" / "config"]


def _check_readable(kubeconfig: Path | None) -> None:
    """Name the trouble with a file that was asked for; the package would call it all invalid."""
    asked = kubeconfig is not None or "KUBECONFIG" in os.environ
    for path in _paths(kubeconfig) if asked else []:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise _refusal(path, error.strerror) from error
        with contextlib.suppress(yaml.YAMLError, RecursionError, UnicodeError):
            if not isinstance(yaml.safe_load(content) or {}, dict):
                raise _refusal(path, "it is not a YAML mapping")

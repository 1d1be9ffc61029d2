"""What can go wrong with a test cluster.

::

    ClusterError            anything; the message names the object, the reason and the fix
    ├── Unavailable         this machine cannot: a tool, a right or the system itself is missing
    ├── BuildFailed         the Go toolchain refused
    ├── StartFailed         a component died or never became ready; carries the end of its log
    └── ApiError            the API server answered with a status of 400 or more
"""

from __future__ import annotations

from typing import Any


class ClusterError(Exception):
    """Anything that a caller may want to show as one line instead of a traceback."""


class Unavailable(ClusterError):
    """The machine lacks something that no retry brings; fixtures turn this into a skip."""


class BuildFailed(ClusterError):
    """A build from Go modules ended with an error."""


class StartFailed(ClusterError):
    """A component ended early or was not ready in time."""


class ApiError(ClusterError):
    """An answer of the API server with an HTTP status of 400 or more.

    ``status`` is the HTTP status, ``body`` the decoded ``Status`` object (or text).
    """

    def __init__(self, method: str, path: str, status: int, body: Any) -> None:
        self.status = status
        self.body = body
        said = body.get("message", body) if isinstance(body, dict) else body
        super().__init__(f"{method} {path}: HTTP {status}: {said}")

    @property
    def reason(self) -> str:
        """The machine-readable reason, such as ``NotFound``; empty when there is none."""
        return str(self.body.get("reason", "")) if isinstance(self.body, dict) else ""

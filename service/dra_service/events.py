"""Events of ``events.k8s.io/v1``, as JSON data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from dra_service.api_server import JSON, ApiServer

#: Limits: bytes of ``note``, characters of ``reportingInstance``, of a name that others follow.
_NOTE, _INSTANCE, _NAME = 1024, 128, 200
#: Events about objects without a namespace, such as Nodes, stand in this one.
_DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who reports: a controller, one instance of it, and what it was doing."""

    controller: str
    instance: str
    action: str

    def event(
        self, regarding: Mapping[str, str], kind: str, reason: str, note: str, *, name: str
    ) -> JSON:
        """An Event beside what it regards (an ObjectReference); its name begins with ``name``.

        ``kind`` is Normal or Warning.
        """
        namespace = regarding.get("namespace", _DEFAULT)
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"generateName": f"{name[:_NAME]}-", "namespace": namespace},
            "eventTime": micro_time(),
            "reportingController": self.controller,
            "reportingInstance": self.instance[:_INSTANCE],
            "action": self.action,
            "reason": reason,
            "type": kind,
            "note": cut(note),
            "regarding": dict(regarding),
        }


def send(api: ApiServer, event: JSON) -> None:
    """POST; raises ApiError."""
    namespace = quote(event["metadata"]["namespace"], safe="")
    api.request("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", None, event)


def micro_time() -> str:
    """Now, as ``metav1.MicroTime``."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def cut(text: str) -> str:
    """As much of it as a note or a message of a condition holds."""
    return text.encode()[:_NOTE].decode(errors="ignore")

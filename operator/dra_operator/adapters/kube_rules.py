"""DeviceTaintRules that we make to ask, and the conditions that we write on those of others.

See :class:`dra_operator.ports.ProbeApi` and :class:`dra_operator.ports.RuleStatusApi`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote

from dra_core.errors import ApiNotFound
from dra_core.model.objects import Condition
from dra_core.wire import tables
from dra_operator.adapters.kube import APPLY, KubeApi, PathOf, api_version
from dra_operator.cluster import RULES
from dra_operator.ports import RuleCondition
from dra_operator.progress import TYPE
from dra_operator.rule_reports import PROBES
from dra_service.api_server import JSON

#: A driver that nobody has (RFC 2606), so that the rule selects nothing even where an omitted
#: selector selects everything (the scheduler of 1.36).
_NOBODY: Final = "dragoman-probe.invalid"


class _Rules:
    """Both need a path that may come and go."""

    def __init__(self, api: KubeApi, path: PathOf) -> None:
        self._api = api
        self._path_of = path

    def _folder(self) -> str:
        path = self._path_of(RULES)
        if path is None:
            raise ApiNotFound("DeviceTaintRules are not served, or we may not read them")
        return path

    def _path(self, name: str) -> str:
        return f"{self._folder()}/{quote(name, safe='')}"

    def _kind(self) -> JSON:
        return {"apiVersion": api_version(self._folder()), "kind": "DeviceTaintRule"}


class KubeProbes(_Rules):
    """Rules of ours, each with a name of its own."""

    def create(self) -> str:
        """POST."""
        name = f"{PROBES}{os.urandom(6).hex()}"
        spec = {
            "deviceSelector": {"driver": _NOBODY},
            "taint": {"key": "dragoman/probe", "effect": "None"},
        }
        body = {**self._kind(), "metadata": {"name": name}, "spec": spec}
        self._api.request("POST", self._folder(), None, body)
        return name

    def answered(self, name: str) -> bool:
        """GET."""
        return _condition(self._api.request("GET", self._path(name))) is not None

    def delete(self, name: str) -> None:
        """DELETE."""
        self._api.request("DELETE", self._path(name))

    def left_over(self) -> list[str]:
        """LIST."""
        names = (
            str(item["metadata"]["name"])
            for page in self._api.pages(self._folder())
            for item in page.get("items") or []
        )
        return [name for name in names if name.startswith(PROBES)]


class KubeRuleStatus(_Rules):
    """The condition EvictionInProgress."""

    MANAGER: ClassVar[str] = "dragoman-operator"

    def read(self, name: str) -> RuleCondition:
        """GET."""
        data = self._api.request("GET", self._path(name))
        metadata, found = data["metadata"], _condition(data)
        return RuleCondition(
            uid=str(metadata["uid"]),
            generation=int(metadata.get("generation") or 0),
            condition=None if found is None else tables.CONDITION.read(found, TYPE),
            writer="" if found is None else _writer(metadata),
        )

    def apply(self, name: str, uid: str, condition: Condition, *, force: bool) -> None:
        """PATCH of the status as server-side apply, on condition of the UID."""
        body = {
            **self._kind(),
            "metadata": {"name": name, "uid": uid},
            "status": {"conditions": [tables.CONDITION.write(condition)]},
        }
        query = {"fieldManager": self.MANAGER, "force": "true" if force else "false"}
        self._api.request("PATCH", f"{self._path(name)}/status", query, body, content=APPLY)


def _condition(data: Mapping[str, Any]) -> JSON | None:
    conditions = (data.get("status") or {}).get("conditions") or []
    return next((item for item in conditions if item.get("type") == TYPE), None)


def _writer(metadata: Mapping[str, Any]) -> str:
    """The field manager that owns the condition's status."""
    key = f'k:{{"type":"{TYPE}"}}'
    for entry in metadata.get("managedFields") or []:
        fields = (entry.get("fieldsV1") or {}).get("f:status") or {}
        if "f:status" in ((fields.get("f:conditions") or {}).get(key) or {}):
            return str(entry.get("manager", ""))
    return ""

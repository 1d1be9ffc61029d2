"""Events. See ``Notices`` in :mod:`dra_operator.ports`, ``ClaimNotices`` in ``binding_ports``."""

from __future__ import annotations

import structlog

from dra_core.errors import ApiError
from dra_core.model.claims import ClaimReference
from dra_core.model.usage import ClaimInUse, Pod
from dra_core.wire.versions import GROUP
from dra_operator.adapters.kube import KubeApi, PathOf, api_version
from dra_operator.cluster import CLAIMS, RULES
from dra_operator.ports import Subject
from dra_service.events import Reporter, send

_log = structlog.get_logger(__name__)


class KubeNotices:
    """``action`` is what the operator does to the subjects: ``Evict``, ``Attach``."""

    def __init__(self, api: KubeApi, path: PathOf, instance: str, action: str) -> None:
        self._api = api
        self._path = path
        self._reporter = Reporter("dragoman-operator", instance, action)

    def tell(self, subject: Subject | ClaimReference, kind: str, reason: str, note: str) -> None:
        """POST of an Event in the namespace of the subject, ``default`` if it has none."""
        reference = self._reference(subject)
        event = self._reporter.event(reference, kind, reason, note, name=subject.name)
        try:
            send(self._api, event)
        except ApiError as error:
            _log.warning("event not written", about=str(subject), reason=reason, error=str(error))

    def _reference(self, subject: Subject | ClaimReference) -> dict[str, str]:
        """An ObjectReference."""
        found = {"name": subject.name, "uid": subject.uid}
        if isinstance(subject, Pod):
            return {**found, "apiVersion": "v1", "kind": "Pod", "namespace": subject.namespace}
        if isinstance(subject, ClaimInUse | ClaimReference):
            return {**found, **self._kind(CLAIMS, "ResourceClaim"), "namespace": subject.namespace}
        return {**found, **self._kind(RULES, "DeviceTaintRule")}

    def _kind(self, plural: str, kind: str) -> dict[str, str]:
        path = self._path(plural) or f"/apis/{GROUP}/v1/{plural}"
        return {"apiVersion": api_version(path), "kind": kind}

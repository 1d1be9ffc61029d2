"""What the API server serves of what we watch, what of it we may read, and what is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dra_core.errors import ApiNotFound
from dra_core.wire.versions import GROUP, VERSIONS
from dra_operator.adapters.kube import METADATA_ONLY, KubeApi
from dra_operator.cluster import CLAIMS, PODS, RULES, SLICES
from dra_service.api_server import JSON

#: Kinds by plural, those of ``resource.k8s.io``.
_KINDS: Final[Mapping[str, str]] = {
    CLAIMS: "ResourceClaim",
    SLICES: "ResourceSlice",
    RULES: "DeviceTaintRule",
}
_NAMESPACED: Final = frozenset({PODS, CLAIMS})
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource in one version; ``group`` is empty for the core group."""

    group: str
    version: str
    plural: str

    def path(self, namespace: str = "") -> str:
        """Of the list, of one namespace if one is given."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return (
            f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"
        )


@dataclass(frozen=True, slots=True)
class Survey:
    """What can be watched; ``missing`` has a sentence for each resource that cannot.

    ``minor`` is the second number of the server's version.
    """

    minor: int = 0
    readable: Mapping[str, Resource] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


class Inventory:
    """Asks the API server. ``namespaces`` empty means all."""

    def __init__(self, api: KubeApi, namespaces: tuple[str, ...]) -> None:
        self._api = api
        self._namespaces = namespaces

    def survey(self) -> Survey:
        """The newest version that is served of each resource, if we may list and watch it."""
        readable: dict[str, Resource] = {}
        missing: dict[str, str] = {}
        served = self._served()
        wanted = {PODS: Resource("", "v1", PODS), **served}
        for plural in (PODS, *_KINDS):
            resource = wanted.get(plural)
            if resource is None:
                missing[plural] = f"the API server does not serve {plural} of {GROUP}"
            elif denied := self._denied(resource):
                missing[plural] = f"this service account may not {denied}"
            else:
                readable[plural] = resource
        return Survey(self._api.minor_version(), readable, missing)

    def _served(self) -> dict[str, Resource]:
        try:
            group = self._api.request("GET", f"/apis/{GROUP}")
        except ApiNotFound:
            return {}
        versions = {str(item.get("version")) for item in group.get("versions") or []}
        plurals = {version: self._plurals(version) for version in versions}
        found = {}
        for plural, kind in _KINDS.items():
            for version in VERSIONS[kind]:
                if plural in plurals.get(version, ()):
                    found[plural] = Resource(GROUP, version, plural)
                    break
        return found

    def _plurals(self, version: str) -> set[str]:
        try:
            listed = self._api.request("GET", f"/apis/{GROUP}/{version}")
        except ApiNotFound:
            return set()
        return {str(item.get("name")) for item in listed.get("resources") or []}

    def _denied(self, resource: Resource) -> str:
        for namespace in self._scopes(resource):
            for verb in ("list", "watch"):
                if not self._allowed(resource, verb, namespace):
                    where = f" in namespace {namespace}" if namespace else ""
                    return f"{verb} {resource.plural}{where}"
        return ""

    def _allowed(self, resource: Resource, verb: str, namespace: str) -> bool:
        attributes = {
            "group": resource.group,
            "resource": resource.plural,
            "verb": verb,
            "namespace": namespace,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = self._api.request("POST", _REVIEWS, None, review)
        return bool((answer.get("status") or {}).get("allowed"))

    def _scopes(self, resource: Resource) -> tuple[str, ...]:
        return (self._namespaces or ("",)) if resource.plural in _NAMESPACED else ("",)

    def count(self, resource: Resource) -> int:
        """How many objects there are, without reading them."""
        total = 0
        for namespace in self._scopes(resource):
            page = self._api.request("GET", resource.path(namespace), {"limit": "1"})
            remaining = (page.get("metadata") or {}).get("remainingItemCount") or 0
            total += len(page.get("items") or []) + int(remaining)
        return total

    def there(self, resource: Resource) -> tuple[set[str], int]:
        """The UIDs of all objects, and the highest resourceVersion of one.

        Raises ApiError if they cannot all be read.
        """
        uids, newest = set(), 0
        for item in self._metadata(resource):
            uids.add(str(item["metadata"]["uid"]))
            newest = max(newest, int(item["metadata"].get("resourceVersion") or 0))
        return uids, newest

    def _metadata(self, resource: Resource) -> Iterator[JSON]:
        for namespace in self._scopes(resource):
            for page in self._api.pages(resource.path(namespace), accept=METADATA_ONLY):
                yield from page.get("items") or []

"""What a real API server says about an object: the reference for offline validation.

Typical use, a few thousand times in a test::

    judge = Judge(cluster)                       # from testcluster; one TLS connection, kept open
    verdict = judge.create("/apis/resource.k8s.io/v1/resourceslices", slice_)
    verdict.accepted, verdict.causes, verdict.stored

    judge.plant(old)                             # straight into etcd: no validation, no gates
    judge.update(path_of(old), new)              # what the server says about old -> new
    judge.uproot(old)

    difference(problems, verdict)                # "" or what is missing and what is too much

Requests are dry runs unless asked otherwise: admission, dropping of fields, defaults and validation
all happen, nothing is stored, and one costs about 3 ms.

:meth:`Judge.plant` writes an object into etcd itself, behind the API server's back. That is the
only way to get one that today's rules refuse, or one with fields whose gate is off now (as after a
downgrade), and so the only way to see what an update of such an object may do.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from dra_core.validation.problems import Problem
from dra_core.validation.servers import GATES, Server
from testcluster import versions
from testcluster.cluster import Cluster

JSON = dict[str, Any]

#: Plural and whether namespaced, of the kinds that can be planted.
KINDS = {
    "ResourceSlice": ("resourceslices", False),
    "DeviceClass": ("deviceclasses", False),
    "DeviceTaintRule": ("devicetaintrules", False),
    "ResourceClaim": ("resourceclaims", True),
    "ResourceClaimTemplate": ("resourceclaimtemplates", True),
}
#: The ``status`` where the server closed the connection twice without an answer, as it does after a
#: panic in its own rules.
PANIC = 0
#: A UID for planted objects: an update needs one, which one does not matter.
UID = "6c1c8dd4-7f0e-4a6c-9c51-000000000001"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one write.

    ``causes`` are (field, reason) as in ``status.details.causes``, with reasons such as
    ``FieldValueInvalid`` (the values of ``problems.ErrorType``); empty when accepted, and for
    refusals that are not about fields: 400 for JSON of the wrong type, 409, 404. ``message`` is
    the server's own text, for the report of a difference. ``stored`` is the object as it would
    have been stored, None when refused. ``warnings`` are the texts of Warning headers.
    """

    accepted: bool
    causes: frozenset[tuple[str, str]]
    stored: JSON | None
    warnings: tuple[str, ...]
    status: int
    message: str = ""


def server_of(cluster: Cluster) -> Server:
    """The offline description of a running cluster: its minor version and its gates."""
    version = versions.find(cluster.version)
    chosen = versions.gates(version, cluster.record.options.gates)
    return Server(version.minor, {g: on for g, on in chosen.items() if g in GATES[version.minor]})


def path_of(obj: Mapping[str, Any], *, collection: bool = False) -> str:
    """The URL path of an object, from its apiVersion, kind and metadata."""
    plural, namespaced = KINDS[obj["kind"]]
    namespace = f"/namespaces/{_namespace(obj)}" if namespaced else ""
    tail = "" if collection else f"/{urllib.parse.quote(obj['metadata']['name'], safe='')}"
    return f"/apis/{obj['apiVersion']}{namespace}/{plural}{tail}"


def difference(problems: Iterable[Problem], verdict: Verdict) -> str:
    """Empty where our problems equal the server's causes, else one line per difference."""
    if verdict.status not in {200, 201, 422}:
        return f"the server answered {verdict.status}: {verdict.message}"
    ours = {(p.field, p.type.value): p.detail for p in problems}
    missing = [f"missing {c}" for c in sorted(verdict.causes - ours.keys())]
    more = [f"too much {c}: {ours[c]}" for c in sorted(ours.keys() - verdict.causes)]
    if verdict.accepted == bool(ours):
        more.append(f"accepted by the server: {verdict.accepted}")
    text = "\n".join([*missing, *more])
    return f"{text}\nthe server: {verdict.message}" if text else ""


class Judge:
    """Asks one API server, as administrator, over one connection that stays open.

    Not for several threads. Close it, or use it as a context manager, before the cluster goes.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.server = server_of(cluster)
        pki = cluster.layout.pki
        tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        parts = urllib.parse.urlsplit(cluster.url)
        host = parts.hostname or ""
        self._api = http.client.HTTPSConnection(host, parts.port, context=tls, timeout=60)
        self._etcd = http.client.HTTPConnection("127.0.0.1", cluster.record.ports["etcd"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._api.close()
        self._etcd.close()

    def create(self, path: str, obj: Any, *, dry_run: bool = True) -> Verdict:
        """POST to a collection."""
        return self.ask("POST", path, obj, dry_run=dry_run)

    def update(self, path: str, obj: Any, *, dry_run: bool = True) -> Verdict:
        """PUT to an object, or to ``path + "/status"``.

        Without a resourceVersion the update is unconditional where the kind allows that; of
        ResourceSlices, claims, templates, classes and rules all do.
        """
        return self.ask("PUT", path, obj, dry_run=dry_run)

    def ask(
        self, method: str, path: str, obj: Any, *, dry_run: bool = True, strict: bool = False
    ) -> Verdict:
        """Any write; ``obj`` is JSON data, or bytes to be sent as they are.

        ``strict`` asks as kubectl does: unknown fields and keys that stand twice are refused.
        """
        options = {"dryRun": "All"} if dry_run else {}
        options |= {"fieldValidation": "Strict"} if strict else {}
        query = f"?{urllib.parse.urlencode(options)}" if options else ""
        try:
            status, headers, answer = _exchange(self._api, method, path + query, obj)
        except http.client.RemoteDisconnected:
            self._api.close()
            return Verdict(
                False, frozenset(), None, (), PANIC, "closed the connection: it panicked"
            )
        warnings = tuple(v for k, v in headers if k.lower() == "warning")
        if status < 300:
            return Verdict(True, frozenset(), answer, warnings, status)
        details = answer.get("details") or {}
        causes = frozenset(
            (str(c.get("field", "")), str(c.get("reason", ""))) for c in details.get("causes") or []
        )
        return Verdict(False, causes, None, warnings, status, str(answer.get("message", answer)))

    def plant(self, obj: JSON) -> JSON:
        """Put an object into etcd as it is; returns it with what a stored one always has.

        ``obj`` needs apiVersion (one that the server can read: resource.k8s.io/v1 for most), kind
        and metadata.name. uid and creationTimestamp are added where they lack.
        """
        metadata = {"uid": UID, "creationTimestamp": "2026-01-01T00:00:00Z", **obj["metadata"]}
        if KINDS[obj["kind"]][1]:
            metadata["namespace"] = _namespace(obj)
        stored = {**obj, "metadata": metadata}
        self._kv("put", {"key": _encoded(_key(obj)), "value": _encoded(json.dumps(stored))})
        return stored

    def uproot(self, obj: JSON) -> None:
        """Remove an object from etcd, whatever it is like."""
        self._kv("deleterange", {"key": _encoded(_key(obj))})

    def _kv(self, action: str, body: JSON) -> None:
        status, _, answer = _exchange(self._etcd, "POST", f"/v3/kv/{action}", body)
        if status != 200:
            raise RuntimeError(f"etcd answers {status} to {action}: {answer}")


@contextlib.contextmanager
def nodes(cluster: Cluster, *names: str) -> Iterator[None]:
    """Nodes for devices with nodeAllocatableResources; admission of 1.37 wants such nodes."""
    status = {"declaredFeatures": ["DRANodeAllocatableResources"]}
    for name in names:
        cluster.api("POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": status})
    try:
        yield
    finally:
        for name in names:
            cluster.api("DELETE", f"/api/v1/nodes/{name}")


def create_verdict(judge: Judge, path: str, obj: Any, *, dry_run: bool = True) -> Verdict:
    """:meth:`Judge.create` as a function."""
    return judge.create(path, obj, dry_run=dry_run)


def update_verdict(judge: Judge, old: JSON, new: JSON, *, subresource: str = "") -> Verdict:
    """What the server says to an update from ``old`` to ``new`` (same name): plants and uproots.

    ``old`` need not be valid. ``new`` gets the planted uid where it has none.
    """
    planted = judge.plant(old)
    try:
        body = {**new, "metadata": {"uid": planted["metadata"]["uid"], **new["metadata"]}}
        tail = f"/{subresource}" if subresource else ""
        return judge.update(path_of(old) + tail, body)
    finally:
        judge.uproot(old)


def _exchange(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any
) -> tuple[int, list[tuple[str, str]], Any]:
    """One request; once again on a new connection if the server has closed the idle one."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    try:
        status, got, text = _exchange_once(connection, method, path, data, headers)
    except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
        connection.close()
        status, got, text = _exchange_once(connection, method, path, data, headers)
    decoded: Any = text.decode()
    with contextlib.suppress(ValueError):
        decoded = json.loads(text)
    if not isinstance(decoded, dict):
        decoded = {"message": decoded}
    return status, got, decoded


def _exchange_once(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    data: bytes,
    headers: Mapping[str, str],
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection.request(method, path, data, dict(headers))
    answer = connection.getresponse()
    return answer.status, answer.getheaders(), answer.read()


def _namespace(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"].get("namespace") or "default")


def _key(obj: Mapping[str, Any]) -> str:
    plural, namespaced = KINDS[obj["kind"]]
    namespace = f"{_namespace(obj)}/" if namespaced else ""
    return f"/registry/{plural}/{namespace}{obj['metadata']['name']}"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()

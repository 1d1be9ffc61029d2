"""The Kubernetes API for everything but the watches (those are kopf's)."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import ClassVar, Final

from dra_service.api_server import ApiServer

#: Metadata of objects without the rest.
METADATA_ONLY: Final = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)
STRATEGIC: Final = "application/strategic-merge-patch+json"
#: Server-side apply; JSON is YAML.
APPLY: Final = "application/apply-patch+yaml"


#: Path of a resource of resource.k8s.io in the version that is served; None if it is not.
PathOf = Callable[[str], str | None]


def api_version(path: str) -> str:
    """``resource.k8s.io/v1`` of such a path."""
    return path.removeprefix("/apis/").rpartition("/")[0]


class KubeApi(ApiServer):
    """What kopf's session needs beside the requests."""

    AGENT: ClassVar[str] = "dragoman-operator"

    def tls(self) -> ssl.SSLContext:
        """How to trust the server, and the client certificate if there is one."""
        c = self._configuration
        context = ssl.create_default_context(cafile=c.ssl_ca_cert)
        if c.cert_file:
            context.load_cert_chain(c.cert_file, c.key_file)
        if not c.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

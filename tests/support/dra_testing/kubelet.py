"""The kubelet's side of the gRPC services, for tests that need to say things no kubelet says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc

from dra_protos import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    pluginregistration_v1_pb2,
    pluginregistration_v1_pb2_grpc,
)


@contextlib.contextmanager
def channel(path: Path) -> Iterator[grpc.Channel]:
    """A connection to a unix socket."""
    with grpc.insecure_channel(f"unix:{path}") as opened:
        yield opened


class Kubelet:
    """Calls a driver. Claims are (namespace, name, uid)."""

    def __init__(self, service: Path, registration: Path) -> None:
        self.service = service
        self.registration = registration

    def info(self, timeout: float = 1.0) -> pluginregistration_v1_pb2.PluginInfo:
        with channel(self.registration) as opened:
            stub = pluginregistration_v1_pb2_grpc.RegistrationStub(opened)
            return stub.GetInfo(
                pluginregistration_v1_pb2.InfoRequest(), timeout=timeout, wait_for_ready=True
            )

    def notify(self, registered: bool, error: str = "") -> None:
        with channel(self.registration) as opened:
            stub = pluginregistration_v1_pb2_grpc.RegistrationStub(opened)
            stub.NotifyRegistrationStatus(
                pluginregistration_v1_pb2.RegistrationStatus(
                    plugin_registered=registered, error=error
                ),
                timeout=5.0,
                wait_for_ready=True,
            )

    def prepare(
        self, *claims: tuple[str, str, str], timeout: float = 45.0, version: str = "v1"
    ) -> dict[str, Any]:
        """Answers by UID."""
        messages, stubs = _VERSIONS[version]
        request = messages.NodePrepareResourcesRequest(claims=_claims(messages, claims))
        with channel(self.service) as opened:
            call = stubs.DRAPluginStub(opened).NodePrepareResources
            return dict(call(request, timeout=timeout, wait_for_ready=True).claims)

    def unprepare(
        self, *claims: tuple[str, str, str], timeout: float = 45.0, version: str = "v1"
    ) -> dict[str, Any]:
        """Answers by UID."""
        messages, stubs = _VERSIONS[version]
        request = messages.NodeUnprepareResourcesRequest(claims=_claims(messages, claims))
        with channel(self.service) as opened:
            call = stubs.DRAPluginStub(opened).NodeUnprepareResources
            return dict(call(request, timeout=timeout, wait_for_ready=True).claims)


_VERSIONS: dict[str, tuple[Any, Any]] = {
    "v1": (dra_v1_pb2, dra_v1_pb2_grpc),
    "v1beta1": (dra_v1beta1_pb2, dra_v1beta1_pb2_grpc),
}


def _claims(messages: Any, claims: tuple[tuple[str, str, str], ...]) -> list[Any]:
    return [messages.Claim(namespace=ns, name=name, uid=uid) for ns, name, uid in claims]

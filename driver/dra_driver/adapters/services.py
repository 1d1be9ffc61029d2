"""The gRPC services that the kubelet calls, mapped to the use cases.

``pluginregistration.Registration`` on one socket, ``DRAPlugin`` v1 and v1beta1 on another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import quote

import grpc
import structlog

from dra_core.errors import StorageError
from dra_core.model.claims import ClaimReference
from dra_core.names import ClaimUID, DriverName
from dra_driver.preparer import PreparedDevice, Preparer
from dra_protos import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    pluginregistration_v1_pb2,
    pluginregistration_v1_pb2_grpc,
)

_log = structlog.get_logger(__name__)

#: What the kubelet may choose from; it takes the first that it knows.
VERSIONS: Final = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
#: Seconds: what the kubelet waits for a call if it does not say, and what is kept for the answer.
_DEADLINE, _MARGIN = 45.0, 1.0
#: One call waits in one thread; a node has 110 pods unless told otherwise.
_THREADS: Final = 128

Register = Callable[[grpc.Server], None]


class UnixServer:
    """A gRPC server on one unix socket, whose file it removes when it ends."""

    def __init__(self, path: Path, services: Iterable[Register], threads: int = _THREADS) -> None:
        self.path = path
        self._inode: int | None = None
        self._server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix=path.name),
            options=[("grpc.so_reuseport", 0)],
        )
        for register in services:
            register(self._server)

    def start(self) -> None:
        """Bind and serve; the caller owns the path."""
        try:
            self._server.add_insecure_port(_target(self.path))
            self.path.chmod(0o600)
            self._inode = _inode(self.path)
        except (RuntimeError, OSError) as error:
            raise StorageError(f"cannot listen on {self.path}: {error}") from error
        self._server.start()
        _log.debug("serving", socket=str(self.path))

    def stop(self, grace: float) -> None:
        """Take no new call, wait up to ``grace`` seconds for running ones, remove the socket."""
        intact = self.intact()
        self._server.stop(grace).wait()
        if intact:
            self.path.unlink(missing_ok=True)

    def intact(self) -> bool:
        """Whether the socket at the path is still the one that was bound."""
        return self._inode == _inode(self.path)


class Registration(pluginregistration_v1_pb2_grpc.RegistrationServicer):
    """Tells the kubelet who we are, and hears whether it takes us."""

    def __init__(self, driver: DriverName, endpoint: Path, versions: Sequence[str]) -> None:
        self._info = pluginregistration_v1_pb2.PluginInfo(
            type="DRAPlugin",
            name=driver,
            endpoint=str(endpoint),
            supported_versions=list(versions),
        )
        self.registered = threading.Event()

    def register(self, server: grpc.Server) -> None:
        """Add this service to ``server``."""
        pluginregistration_v1_pb2_grpc.add_RegistrationServicer_to_server(self, server)

    def GetInfo(
        self, request: pluginregistration_v1_pb2.InfoRequest, context: grpc.ServicerContext
    ) -> pluginregistration_v1_pb2.PluginInfo:
        """Answered from memory: the kubelet waits one second."""
        return self._info

    def NotifyRegistrationStatus(
        self, request: pluginregistration_v1_pb2.RegistrationStatus, context: grpc.ServicerContext
    ) -> pluginregistration_v1_pb2.RegistrationStatusResponse:
        """An error in answer to this would deregister us, so there is none."""
        if request.plugin_registered:
            _log.info("registered with the kubelet", driver=self._info.name)
            self.registered.set()
        else:
            _log.error(
                "the kubelet refused the registration and will try again",
                driver=self._info.name,
                error=request.error,
            )
            self.registered.clear()
        return pluginregistration_v1_pb2.RegistrationStatusResponse()


class DraPlugin:
    """``DRAPlugin`` of one version; the versions differ in ``share_id`` only."""

    def __init__(self, preparer: Preparer, messages: ModuleType, *, shares: bool) -> None:
        self._preparer = preparer
        self._messages: Any = messages
        self._shares = shares

    def NodePrepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Every claim is answered for itself; the call as a whole succeeds."""
        outcomes = self._preparer.prepare(_references(request), _time_left(context))
        response = self._messages.NodePrepareResourcesResponse()
        for uid, outcome in outcomes.items():
            answer = response.claims[uid]
            answer.error = _text(outcome.error)
            answer.devices.extend(self._device(device) for device in outcome.value or ())
        return response

    def NodeUnprepareResources(self, request: Any, context: grpc.ServicerContext) -> Any:
        """As :meth:`NodePrepareResources`."""
        outcomes = self._preparer.unprepare(_references(request), _time_left(context))
        response = self._messages.NodeUnprepareResourcesResponse()
        for uid, outcome in outcomes.items():
            response.claims[uid].error = _text(outcome.error)
        return response

    def _device(self, prepared: PreparedDevice) -> Any:
        result = prepared.result
        device = self._messages.Device(
            request_names=[result.main_request],
            pool_name=result.pool,
            device_name=result.device,
            cdi_device_ids=list(prepared.cdi_devices),
        )
        if self._shares and result.share_id is not None:
            device.share_id = result.share_id
        return device


class _V1(DraPlugin, dra_v1_pb2_grpc.DRAPluginServicer):
    """v1."""


class _V1beta1(DraPlugin, dra_v1beta1_pb2_grpc.DRAPluginServicer):
    """v1beta1."""


def dra_services(preparer: Preparer) -> list[Register]:
    """Both versions of the service, to be added to one server."""
    v1 = _V1(preparer, dra_v1_pb2, shares=True)
    v1beta1 = _V1beta1(preparer, dra_v1beta1_pb2, shares=False)
    return [
        lambda server: dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(v1, server),
        lambda server: dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server(v1beta1, server),
    ]


def _target(path: Path) -> str:
    """gRPC takes a URI, in which a '%' of the path would begin an escape."""
    return f"unix:{quote(str(path))}"


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _text(text: str) -> str:
    """What protobuf can carry: a path in an error may hold bytes that are no UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def ask(path: Path, timeout: float = 2.0) -> str:
    """Call the service at ``path`` with no claims; why it does not answer, or ''."""
    with grpc.insecure_channel(_target(path)) as channel:
        stub = dra_v1_pb2_grpc.DRAPluginStub(channel)
        try:
            stub.NodeUnprepareResources(dra_v1_pb2.NodeUnprepareResourcesRequest(), timeout=timeout)
        except grpc.RpcError as error:
            return f"no answer on {path} within {timeout:g} s: {error.code().name}"
    return ""


def _references(request: Any) -> list[ClaimReference]:
    return [ClaimReference(c.namespace, c.name, ClaimUID(c.uid)) for c in request.claims]


def _time_left(context: grpc.ServicerContext) -> float:
    left: float | None = context.time_remaining()  # None without a deadline, whatever its type says
    return max(0.1, (left or _DEADLINE) - _MARGIN)

"""Pods, claims and classes for tests on a real node."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from dra_testing.polling import until

IMAGE = "localhost/busybox:1"
_API = "resource.k8s.io/v1"


class Cluster(Protocol):
    """The part of a test cluster that is used here."""

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002
        check: bool = True,
    ) -> str: ...

    def kubectl_json(self, *arguments: str) -> Any: ...


def request(name: str, device_class: str = "gpu.example.com", **exactly: Any) -> dict[str, Any]:
    """One request of a claim."""
    return {"name": name, "exactly": {"deviceClassName": device_class, **exactly}}


def device_class(name: str, driver: str) -> dict[str, Any]:
    """A class of all devices of one driver."""
    expression = f"device.driver == '{driver}'"
    return {
        "apiVersion": _API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def claim(name: str, *requests: dict[str, Any]) -> dict[str, Any]:
    """A ResourceClaim."""
    return {
        "apiVersion": _API,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": list(requests)}},
    }


def template(name: str, *requests: dict[str, Any]) -> dict[str, Any]:
    """A ResourceClaimTemplate."""
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    return {
        "apiVersion": _API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": spec,
    }


def pod(
    name: str,
    claims: dict[str, dict[str, str]],
    containers: dict[str, Sequence[dict[str, str] | str]],
) -> dict[str, Any]:
    """A pod that sleeps.

    ``claims`` by their name in the pod, as ``{"resourceClaimName": ...}`` or
    ``{"resourceClaimTemplateName": ...}``; ``containers`` with the claims that they reference, by
    name or as ``{"name": ..., "request": ...}``.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "dnsPolicy": "Default",
            "resourceClaims": [{"name": key, **source} for key, source in claims.items()],
            "containers": [
                {
                    "name": container,
                    "image": IMAGE,
                    "imagePullPolicy": "Never",
                    "command": ["sleep", "3600"],
                    "resources": {
                        "claims": [{"name": r} if isinstance(r, str) else r for r in references]
                    },
                }
                for container, references in containers.items()
            ],
        },
    }


class Namespace:
    """A namespace of one test."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        cluster.kubectl("create", "namespace", name)

    def apply(self, *objects: dict[str, Any]) -> None:
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.cluster.kubectl("-n", self.name, "apply", "-f", "-", input=body)

    def get(self, kind: str, name: str = "") -> Any:
        return self.cluster.kubectl_json("-n", self.name, "get", kind, *([name] if name else []))

    def running(self, *names: str, timeout: float = 30.0) -> list[dict[str, Any]]:
        """The pods, once all of their containers run."""
        return [
            until(f"pod {name} runs", lambda name=name: self._running(name), timeout)  # type: ignore[misc]
            for name in names
        ]

    def _running(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get("pod", name)
        statuses = found["status"].get("containerStatuses", [])
        assert statuses, self._why(name)
        assert all("running" in s["state"] for s in statuses), self._why(name)
        return found

    def _why(self, name: str) -> str:
        field = f"involvedObject.name={name}"
        events = self.cluster.kubectl(
            "-n", self.name, "get", "events", f"--field-selector={field}", check=False
        )
        return "\n".join(events.splitlines()[-6:])

    def sh(self, pod_name: str, container: str, script: str) -> str:
        """What a shell script prints to either stream in a container, whatever its status."""
        command = ["exec", pod_name, "-c", container, "--", "sh", "-c", f"{{ {script}; }} 2>&1"]
        return self.cluster.kubectl("-n", self.name, *command, check=False)

    def environment(self, pod_name: str, container: str) -> dict[str, str]:
        """The GPU variables of a container."""
        lines = self.sh(pod_name, container, "env").splitlines()
        pairs = (line.partition("=") for line in lines if line.startswith("GPU_DEVICE_"))
        return {key: value for key, _, value in pairs}

    def allocated(self, claim_name: str) -> list[str]:
        """The devices of a claim."""
        allocation = self.get("resourceclaim", claim_name)["status"]["allocation"]
        return [result["device"] for result in allocation["devices"]["results"]]

    def delete(self, kind: str, *names: str) -> None:
        self.cluster.kubectl("-n", self.name, "delete", kind, *names, "--wait=true")

    def close(self) -> None:
        """Pods first, and gone for good, so that nothing is left on the node."""
        self.cluster.kubectl("-n", self.name, "delete", "pods", "--all", "--wait=true")
        self.cluster.kubectl("delete", "namespace", self.name, "--wait=false")

"""dragoman installed in a test cluster from ``manifests/``, as a user would.

The one difference to a user's cluster are the paths: this node keeps everything in its run folder,
so an overlay is written that says so (as ``manifests/overlays/other-paths`` shows) and that takes
the test images.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from .cluster import Cluster
from .images import BUSYBOX

REPOSITORY = Path(__file__).resolve().parents[3]
MANIFESTS = REPOSITORY / "manifests"
NAMESPACE = "dragoman-system"
DAEMONSET = "dragoman-driver"
DRIVER_IMAGE = "localhost/dragoman:dev"
OPERATOR = "dragoman-operator"
"""The operator's Deployment, and its namespace."""
ROLLOUT = ("-n", NAMESPACE, "rollout", "status", f"daemonset/{DAEMONSET}", "--timeout=90s")


def overlay(cluster: Cluster) -> Path:
    """A kustomization of the driver for the paths of this node."""
    node = cluster.require_node()
    folder = cluster.run / "overlay"
    folder.mkdir(exist_ok=True)
    paths = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "paths",
            "annotations": {"config.kubernetes.io/local-config": "true"},
        },
        "data": {
            "kubeletRoot": str(node.kubelet_root).removeprefix("/"),
            "cdiDir": str(node.cdi_dir).removeprefix("/"),
        },
    }
    (folder / "paths.yaml").write_text(json.dumps(paths))
    _kustomization(
        folder,
        resources=[_relative(MANIFESTS / "base", folder), "paths.yaml"],
        components=[_relative(MANIFESTS / "components" / "paths", folder)],
        images=[_image("dragoman", DRIVER_IMAGE)],
    )
    return folder


def operator_overlay(cluster: Cluster, mode: str | None = None) -> Path:
    """``manifests/overlays/operator`` with the test image and, if given, another ``--mode``."""
    folder = cluster.run / "operator"
    folder.mkdir(exist_ok=True)
    # Of two flags the last one counts.
    argument = {"path": "/spec/template/spec/containers/0/args/-", "value": f"--mode={mode}"}
    patch = {
        "target": {"kind": "Deployment", "name": OPERATOR},
        "patch": json.dumps([{"op": "add", **argument}]),
    }
    _kustomization(
        folder,
        resources=[_relative(MANIFESTS / "overlays" / "operator", folder)],
        images=[_image("localhost/dragoman", DRIVER_IMAGE)],
        patches=[patch] if mode else [],
    )
    return folder


def example(cluster: Cluster, name: str) -> Path:
    """A kustomization of ``manifests/examples/NAME`` with the test image of busybox."""
    folder = cluster.run / "examples" / name
    folder.mkdir(parents=True, exist_ok=True)
    _kustomization(
        folder,
        resources=[_relative(MANIFESTS / "examples" / name, folder)],
        images=[_image("busybox", BUSYBOX)],
    )
    return folder


def _kustomization(folder: Path, **content: object) -> None:
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(json.dumps(head | content))


def _relative(path: Path, start: Path) -> str:
    """kustomize takes relative paths only."""
    return os.path.relpath(path, start.resolve())


def _image(name: str, reference: str) -> dict[str, str]:
    repository, _, tag = reference.rpartition(":")
    return {"name": name, "newName": repository, "newTag": tag}


def apply(cluster: Cluster) -> str:
    """``kubectl apply -k``; what it printed."""
    return cluster.kubectl("apply", "-k", str(overlay(cluster)))


def delete(cluster: Cluster) -> str:
    """``kubectl delete -k``, until everything is gone from the API; what it printed."""
    options = ("--wait=true", "--ignore-not-found=true")
    return cluster.kubectl("delete", "-k", str(overlay(cluster)), *options)


def wait_ready(cluster: Cluster) -> None:
    """Return once the DaemonSet's rollout is complete."""
    cluster.kubectl(*ROLLOUT)

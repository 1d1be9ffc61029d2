"""``make demo CLUSTER=real``: from a ResourceClaimTemplate to a device in a container.

Brings up a one-node Kubernetes, installs the driver from ``manifests/``, runs the example of two
pods, and takes everything down again. Every fact that is shown is read back from the API server or
the container; the demo ends with status 1 at the first step whose component does not do its part.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testcluster import installation, start
from testcluster.cluster import Cluster
from testcluster.driver_image import ensure_driver_image
from testcluster.errors import ClusterError
from testcluster.progress import Progress
from testcluster.record import Options

NAME = "demo"
DRIVER = "gpu.example.com"


class Missing(Exception):
    """Something that should be there is not."""


class Demo:
    """Numbered steps, and the commands that a user would type."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._number = 0
        self._began = time.monotonic()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A heading; an error inside names the step."""
        self._number += 1
        elapsed = time.monotonic() - self._began
        print(f"\n== {self._number}/{self._total} {title}  [{elapsed:.0f} s]", flush=True)
        try:
            yield
        except (Missing, ClusterError) as error:
            raise Missing(f"step {self._number} ({title}): {error}") from error

    def show(self, cluster: Cluster, *arguments: str) -> str:
        """Run kubectl and print command and answer."""
        print(f"$ kubectl {shlex.join(arguments)}")
        printed = cluster.kubectl(*arguments)
        print(printed.rstrip() or "(nothing)", flush=True)
        return printed

    def run(self, cluster: Cluster, *arguments: str) -> None:
        """Run kubectl and let it print as it goes."""
        print(f"$ kubectl {shlex.join(arguments)}", flush=True)
        command = cluster.kubectl_command(*arguments)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise Missing(f"kubectl {arguments[0]} ended with status {done.returncode}")

    def wait(self, what: str, probe: Callable[[], bool], seconds: float) -> None:
        """Until ``probe`` says yes, with a line every few seconds."""
        began = told = time.monotonic()
        while not probe():
            now = time.monotonic()
            if now - began > seconds:
                raise Missing(f"not within {seconds:.0f} s: {what}")
            if now - told > 5:
                print(f"   … waiting for: {what} ({now - began:.0f} s)", flush=True)
                told = now
            time.sleep(0.3)


def main() -> int:
    """The demo; its exit status."""
    demo = Demo(total=8)
    progress = Progress()
    try:
        with demo.step("the driver's image"):
            archive = ensure_driver_image()
            print(f"{archive.name}: {archive.stat().st_size / 2**20:.0f} MiB")
        with demo.step("a one-node Kubernetes: etcd, API server, scheduler, kubelet, containerd"):
            cluster = start.up(Options(name=NAME, node=True), progress)
            demo.show(cluster, "get", "nodes")
        _run(demo, cluster, archive)
    except Missing as error:
        print(f"\ndemo failed at {error}", file=sys.stderr)
        return 1
    finally:
        start.down(NAME, progress)
    print("\ndemo complete: everything that was started is gone again")
    return 0


def _run(demo: Demo, cluster: Cluster, archive: Path) -> None:
    node = cluster.require_node()
    with demo.step("install the driver: kubectl apply -k manifests/…"):
        node.import_image(archive)
        demo.run(cluster, "apply", "-k", str(installation.overlay(cluster)))
        demo.run(cluster, *installation.ROLLOUT)
        demo.show(cluster, "-n", installation.NAMESPACE, "get", "daemonset,pods")
    with demo.step("the node's devices, as published"):
        demo.wait("a ResourceSlice", lambda: bool(_items(cluster, "resourceslices")), 20)
        demo.show(cluster, "get", "resourceslices")
        for published in _items(cluster, "resourceslices"):
            _describe(published)
    with demo.step("a ResourceClaimTemplate and two pods"):
        folder = installation.example(cluster, "two-pods")
        source = installation.MANIFESTS / "examples" / "two-pods" / "example.yaml"
        print(source.read_text().partition("---")[0].rstrip())
        demo.run(cluster, "apply", "-k", str(folder))
        ready = ("wait", "--for=condition=Ready", "--timeout=60s")
        demo.run(cluster, *ready, "pod/pod-1", "pod/pod-2")
        demo.show(cluster, "get", "pods,resourceclaims")
    with demo.step("what was allocated, and what the containers see"):
        _show_devices(demo, cluster)
    with demo.step("delete the example: claims and CDI files go"):
        demo.run(cluster, "delete", "-k", str(folder))
        demo.wait("no claim", lambda: not _items(cluster, "resourceclaims"), 30)
        demo.show(cluster, "get", "resourceclaims")
        demo.wait("no CDI file", lambda: not list(Path(node.cdi_dir).iterdir()), 30)
        print(f"CDI files: {len(list(Path(node.cdi_dir).iterdir()))}")
    with demo.step("uninstall: kubectl delete -k; the kubelet removes the slices 30 s later"):
        demo.run(cluster, "delete", "-k", str(installation.overlay(cluster)))
        demo.wait("no ResourceSlice", lambda: not _items(cluster, "resourceslices"), 60)
        demo.show(cluster, "get", "resourceslices")
        sockets = [p.name for p in Path(node.kubelet_root).rglob(f"*{DRIVER}*.sock")]
        running = json.loads(node.crictl("ps", "-o", "json"))["containers"]
        print(f"sockets: {len(sockets)}, containers: {len(running)}")
        if sockets or running:
            raise Missing(f"left behind: {sockets + [c['id'] for c in running]}")


def _items(cluster: Cluster, kind: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = cluster.kubectl_json("get", kind)["items"]
    return items


def _describe(published: dict[str, Any]) -> None:
    spec = published["spec"]
    pool = spec["pool"]
    print(
        f"pool {pool['name']}, generation {pool['generation']}, "
        f"{pool['resourceSliceCount']} slice(s), {len(spec['devices'])} devices; the first:"
    )
    print(json.dumps(spec["devices"][0], indent=2))


def _show_devices(demo: Demo, cluster: Cluster) -> None:
    given = set()
    for claim in _items(cluster, "resourceclaims"):
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        owner = claim["metadata"]["ownerReferences"][0]["name"]
        print(f"{owner}: {result['device']} of pool {result['pool']}")
        script = f"env | grep ^GPU_DEVICE_; ls -l /dev/sim-{result['device'].replace('-', '')}"
        seen = demo.show(cluster, "exec", owner, "-c", "with-gpu", "--", "sh", "-c", script)
        if f"={result['device']}" not in seen:
            raise Missing(f"{owner} does not see {result['device']}")
        without = demo.show(cluster, "logs", owner, "-c", "without")
        if "no GPU here" not in without:
            raise Missing(f"the container of {owner} without a claim has a GPU: {without}")
        given.add(result["device"])
    if len(given) != 2:
        raise Missing(f"two pods should have two GPUs, not {sorted(given)}")


if __name__ == "__main__":
    sys.exit(main())

"""One real node: containerd, kubelet, kube-proxy.

All that they keep lies in the run folder, and the kubelet's pods in a cgroup tree of their own.
Times are short, for tests wait for them: a failed Prepare is tried again at the next sync.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from . import cgroups, images, kubeconfig, network, versions
from .pki import Authority
from .record import Record

# The usual ports: a node has a network of its own, so nobody else can have them.
KUBELET_PORT = 10250
HEALTH_PORTS = {"kubelet": 10248, "kube-proxy": 10256}
_PROXY_METRICS_PORT = 10249

# Folders that containerd, the kubelet or a CNI plugin make whatever they are told.
HOST_FOLDERS = (
    "/var/lib/kubelet",
    "/var/lib/cni",
    "/var/log/containers",
    "/var/log/pods",
    "/run/containerd",
    "/opt/cni",
    "/opt/containerd",
    "/etc/cni",
)


def prepare(record: Record, authority: Authority) -> dict[str, list[str]]:
    """Write credentials and configuration; returns the command lines in starting order."""
    layout, options = record.layout, record.options
    for folder in (layout.kubelet, layout.cdi, layout.containerd, layout.run / "pod-logs"):
        folder.mkdir(mode=0o755, exist_ok=True)
    name = options.node_name
    _user(record, authority, "kubelet", f"system:node:{name}", ["system:nodes"])
    _user(record, authority, "kube-proxy", "system:kube-proxy", [])
    authority.issue(
        "kubelet-server", user=f"system:node:{name}", addresses=[record.node_address], hosts=[name]
    )
    cgroups.create(options.name)
    (layout.config / "containerd.toml").write_text(_containerd(record))
    _write(layout.run / "cni" / "10-pods.conflist", _pod_network(record))
    (layout.config / "resolv.conf").write_text("")
    _write(layout.config / "kubelet.json", _kubelet(record))
    _write(layout.config / "kube-proxy.json", _proxy(record))
    made = {
        "containerd": [f"--config={layout.config / 'containerd.toml'}"],
        "kubelet": [
            f"--config={layout.config / 'kubelet.json'}",
            f"--kubeconfig={layout.kubeconfigs / 'kubelet'}",
            f"--hostname-override={name}",
            f"--root-dir={layout.kubelet}",
            f"--cert-dir={layout.kubelet / 'pki'}",
            f"--node-ip={record.node_address}",
            "--v=3",
        ],
        "kube-proxy": [f"--config={layout.config / 'kube-proxy.json'}"],
    }
    return {
        component: [
            *network.inside(options.name),
            record.program(component),
            *flags,
            *options.flags.get(component, ()),
        ]
        for component, flags in made.items()
        if component not in options.without
    }


def absent_host_folders() -> list[str]:
    """Those of the folders outside the run folder that are not there yet."""
    return [folder for folder in HOST_FOLDERS if not Path(folder).exists()]


def image_archives() -> list[Path]:
    """The images that every node has."""
    return images.ensure()


def _user(record: Record, authority: Authority, file: str, user: str, groups: list[str]) -> None:
    certificate, key = authority.issue(file, user=user, groups=groups)
    content = kubeconfig.document(
        record.url, authority.certificate, user, certificate=certificate, key=key
    )
    kubeconfig.write(record.layout.kubeconfigs / file, content)


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")


def _containerd(record: Record) -> str:
    layout = record.layout

    def quoted(path: Path | str) -> str:
        return json.dumps(str(path))  # a JSON string is a TOML string

    return f"""\
version = 3
root = {quoted(layout.containerd / "root")}
state = {quoted(layout.containerd / "state")}
disabled_plugins = [
  "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = {quoted(layout.containerd_socket)}
[plugins."io.containerd.internal.v1.opt"]
  path = {quoted(layout.containerd / "opt")}
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{images.PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
  cdi_spec_dirs = [{quoted(layout.cdi)}]
  netns_mounts_under_state_dir = true
  # Without CAP_SYS_RESOURCE nobody may lower a score; each sandbox would die in runc.
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    use_internal_loopback = true
    conf_dir = {quoted(layout.run / "cni")}
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
      Root = {quoted(layout.run / "runc")}
"""


def _pod_network(record: Record) -> dict[str, Any]:
    addresses = {
        "type": "host-local",
        "dataDir": str(record.layout.run / "cni-addresses"),
        "ranges": [[{"subnet": record.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": "pods0",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": addresses,
    }
    return {"cniVersion": "1.0.0", "name": f"drg-{record.options.name}", "plugins": [bridge]}


def _kubelet(record: Record) -> dict[str, Any]:
    layout = record.layout
    gates = versions.gates(versions.find(record.options.version), record.options.gates)
    disks = ("nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree")
    thresholds = ("memory.available", *disks)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "featureGates": gates,
        "address": record.node_address,
        "port": KUBELET_PORT,
        "readOnlyPort": 0,
        "healthzBindAddress": record.node_address,
        "healthzPort": HEALTH_PORTS["kubelet"],
        "tlsCertFile": str(layout.pki / "kubelet-server.crt"),
        "tlsPrivateKeyFile": str(layout.pki / "kubelet-server.key"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroups.root_name(record.options.name),
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
        "podLogsDir": str(layout.run / "pod-logs"),
        "volumePluginDir": str(layout.kubelet / "volume-plugins"),
        "resolvConf": str(layout.config / "resolv.conf"),
        "clusterDNS": [],
        # kube-proxy uses nftables: no iptables rules on the host.
        "makeIPTablesUtilChains": False,
        "maxPods": 250,
        "kubeAPIQPS": 500,
        "kubeAPIBurst": 1000,
        "eventRecordQPS": 0,
        "serializeImagePulls": False,
        "syncFrequency": "5s",
        "nodeStatusUpdateFrequency": "2s",
        "nodeStatusReportFrequency": "10s",
        "crashLoopBackOff": {"maxContainerRestartPeriod": "2s"},
        # Nothing is evicted and no image collected, however full the machine is.
        "evictionHard": dict.fromkeys(thresholds, "0%"),
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def _proxy(record: Record) -> dict[str, Any]:
    address = record.node_address
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(record.layout.kubeconfigs / "kube-proxy")},
        "hostnameOverride": record.options.node_name,
        "bindAddress": address,
        "healthzBindAddress": f"{address}:{HEALTH_PORTS['kube-proxy']}",
        "metricsBindAddress": f"{address}:{_PROXY_METRICS_PORT}",
        "nodePortAddresses": [f"{address}/32"],
        "oomScoreAdj": 0,
        "clusterCIDR": record.pods,
        # Zero leaves the kernel's connection tracking as it is.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def unavailable() -> str | None:
    """Why this machine cannot have a node; None if it can."""
    if os.geteuid() != 0:
        return "needs root for a node: containers, networks and mounts"
    if not Path("/sys/fs/cgroup").is_dir():
        return "needs cgroups for a node: /sys/fs/cgroup is not there"
    return None

"""etcd, API server, controller manager and scheduler: certificates, configuration, command lines.

Everything here is prepared before the first process starts; :mod:`.cluster` runs it.
"""

from __future__ import annotations

import json
from pathlib import Path

from . import kubeconfig, network, packages, versions
from .pki import Authority
from .record import Record

PORTS = ("etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler")

USERS = {
    "admin": ("kubernetes-admin", ("system:masters",)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
}


def write_credentials(record: Record) -> Authority:
    """Make the certificates of the servers and the kubeconfigs of the components."""
    layout = record.layout
    authority = Authority(layout.pki)
    authority.create()
    addresses = dict.fromkeys((network.LOOPBACK, network.FIRST_SERVICE, record.address))
    services = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
    authority.issue(
        "kube-apiserver",
        user="kube-apiserver",
        addresses=addresses,
        hosts=("localhost", *services),
    )
    # Shared by those that only tell their health, on loopback.
    authority.issue("local", user="local", addresses=[network.LOOPBACK])
    authority.issue("kubelet-client", user="kube-apiserver", groups=["system:masters"])
    for name, (user, groups) in USERS.items():
        certificate, key = authority.issue(name, user=user, groups=groups)
        content = kubeconfig.document(
            record.url, authority.certificate, user, certificate=certificate, key=key
        )
        kubeconfig.write(layout.kubeconfigs / name, content)
    return authority


def commands(record: Record) -> dict[str, list[str]]:
    """The command lines of the control plane, in starting order."""
    options = record.options
    gates = versions.gates(versions.find(options.version), options.gates)
    made = {
        "etcd": _etcd(record),
        "kube-apiserver": [*_apiserver(record), *versions.gates_flag(gates)],
        "kube-controller-manager": [*_controllers(record), *versions.gates_flag(gates)],
        "kube-scheduler": [*_scheduler(record), *versions.gates_flag(gates)],
    }
    return {
        name: [record.program(name), *flags, *options.flags.get(name, ())]
        for name, flags in made.items()
        if name not in options.without
    }


def _etcd(record: Record) -> list[str]:
    client = f"http://{network.LOOPBACK}:{record.ports['etcd']}"
    peer = f"http://{network.LOOPBACK}:{record.ports['etcd-peer']}"
    return [
        f"--name={record.options.name}",
        f"--data-dir={record.layout.run / 'etcd'}",
        # The data goes with the cluster: nothing needs to survive a power cut.
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster={record.options.name}={peer}",
        "--log-level=warn",
    ]


def _apiserver(record: Record) -> list[str]:
    pki = record.layout.pki
    advertised = record.address if record.options.node else network.NOWHERE
    return [
        f"--etcd-servers=http://{network.LOOPBACK}:{record.ports['etcd']}",
        f"--bind-address={record.address}",
        f"--secure-port={record.ports['kube-apiserver']}",
        f"--advertise-address={advertised}",
        f"--tls-cert-file={pki / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={pki / 'kube-apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        f"--service-cluster-ip-range={network.SERVICES}",
        "--endpoint-reconciler-type=lease",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
        "--runtime-config=api/all=true",
        "--v=1",
    ]


def _controllers(record: Record) -> list[str]:
    pki = record.layout.pki
    return [
        f"--kubeconfig={record.layout.kubeconfigs / 'kube-controller-manager'}",
        f"--controllers={record.options.controllers}",
        f"--service-account-private-key-file={pki / 'sa.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        # Each controller begins with a few calls; the default of 20 a second takes 5 s for that.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        *_health(record, "kube-controller-manager"),
        "--v=2",
    ]


def _scheduler(record: Record) -> list[str]:
    return [f"--config={_scheduler_file(record)}", *_health(record, "kube-scheduler"), "--v=3"]


def _scheduler_file(record: Record) -> Path:
    return record.layout.config / "kube-scheduler.json"


def write_configuration(record: Record) -> None:
    """Write the configuration files that the command lines name."""
    kubeconfig_file = record.layout.kubeconfigs / "kube-scheduler"
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig_file), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        # Tests wait for pods to be tried again; the default doubles up to 10 s.
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 2,
    }
    _scheduler_file(record).write_text(json.dumps(content, indent=2) + "\n")


def _health(record: Record, component: str) -> list[str]:
    pki = record.layout.pki
    return [
        f"--bind-address={network.LOOPBACK}",
        f"--secure-port={record.ports[component]}",
        f"--tls-cert-file={pki / 'local.crt'}",
        f"--tls-private-key-file={pki / 'local.key'}",
    ]


def search_path(record: Record) -> str:
    """``PATH`` of the components: containerd finds its shim there, runc and nft are system's."""
    return f"{record.binaries['tools']}:{packages.search_path()}"


def modules(version: versions.Version) -> list[str]:
    """The Go modules that a cluster of this version needs built, kubectl's among them."""
    return list(dict.fromkeys(["tools", version.module, versions.find(versions.DEFAULT).module]))

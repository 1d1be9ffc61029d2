"""Kubernetes versions and their feature gates.

Gates are on by default here, since the project is about them; a server that should look like one
out of the box gets the word ``none``. The table is per minor version: a server refuses to start
with a gate that it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ClusterError

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")

# Alpha or off-by-default gates of dynamic resource allocation, with what they depend on.
_GATES_136 = (
    "DRADeviceTaintRules",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAResourcePoolStatus",
    "DRAWorkloadResourceClaims",
    "GenericWorkload",
    "PodLevelResources",
    "ResourceHealthStatus",
)
_GATES_137 = (
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    # Beta, yet off unless set or with --min-compatibility-version=1.37.
    "DRAFractionalCapacityRange",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAOptionalNodeOperations",
    "DRAPartitionableDevicesType",
    "DRAResourcePoolStatus",
    "DRAWorkloadResourceClaims",
    "GenericWorkload",
    "PodLevelResources",
    "ResourceHealthStatus",
)


@dataclass(frozen=True)
class Version:
    """One Kubernetes release that can be built here.

    ``module`` is the folder with its Go module, ``components`` what its binary contains, ``gates``
    what is switched on unless the caller says otherwise.
    """

    number: str
    module: str
    components: tuple[str, ...]
    gates: tuple[str, ...]

    @property
    def minor(self) -> int:
        """The second number: 37 for 1.37.2."""
        return int(self.number.split(".")[1])


DEFAULT = "1.37.2"
VERSIONS = {
    version.number: version
    for version in (
        Version("1.36.3", "kube-1.36", CONTROL_PLANE, _GATES_136),
        Version(
            "1.37.2", "kube-1.37", (*CONTROL_PLANE, "kube-proxy", "kubelet", "kubectl"), _GATES_137
        ),
    )
}


def find(number: str) -> Version:
    """The version called ``number``: ``1.37.2``, ``v1.37.2`` or just ``1.37``.

    Raises :class:`ClusterError` naming those that there are.
    """
    wanted = number.removeprefix("v")
    for version in VERSIONS.values():
        if wanted in {version.number, version.number.rpartition(".")[0]}:
            return version
    raise ClusterError(f"no Kubernetes {number} here: choose from {', '.join(VERSIONS)}")


def gates(version: Version, wanted: str | None = None) -> dict[str, bool]:
    """The feature gates to set, by name.

    ``wanted`` is a comma-separated list in which a later word wins: ``A=true`` or ``B=false``,
    ``all`` for every gate in the table of the version, ``none`` for what the server does by itself.
    Nothing at all means ``all``. Raises :class:`ClusterError` for anything else.
    """
    chosen: dict[str, bool] = {}
    for word in (wanted or "all").split(","):
        name, _, value = word.strip().partition("=")
        if word.strip() == "all":
            chosen.update(dict.fromkeys(version.gates, True))
        elif word.strip() == "none":
            chosen.clear()
        elif name and value.lower() in {"true", "false"}:
            chosen[name] = value.lower() == "true"
        else:
            raise ClusterError(
                f"feature gates {wanted!r}: {word!r} is neither NAME=true, NAME=false, all nor none"
            )
    return dict(sorted(chosen.items()))


def gates_flag(chosen: dict[str, bool]) -> list[str]:
    """The flag that sets them; none when there is nothing to set."""
    if not chosen:
        return []
    return ["--feature-gates=" + ",".join(f"{n}={str(v).lower()}" for n, v in chosen.items())]

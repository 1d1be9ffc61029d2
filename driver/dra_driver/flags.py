"""The flags of ``dra-driver``; :mod:`dra_driver.config` says what they mean together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from dra_service import settings

_FOLDER: Final = click.Path(path_type=Path)

ReadFile = Callable[[click.Context, click.Parameter, Path | None], Path | None]


def parameters(profile: str, read_file: ReadFile) -> list[click.Parameter]:
    """All of them. ``profile`` is the default profile, ``read_file`` takes what --config names."""
    return [
        click.Option(
            ["--config"], type=_FOLDER, is_eager=True, callback=read_file, help="YAML file."
        ),
        click.Option(["--profile"], default=profile, show_default=True, help="Kind of devices."),
        click.Option(["--driver-name"], help="Name of the driver.  [default: the profile's]"),
        settings.kubeconfig(),
        *_of_a_node(),
        *_without_a_node(),
        *_of_publishing(),
        *_of_watching_over_it(),
    ]


def _of_a_node() -> list[click.Parameter]:
    return [
        click.Option(["--node-name"], help="Name of this node's Node object.  [required]"),
        click.Option(
            ["--kubelet-root"],
            type=_FOLDER,
            default="/var/lib/kubelet",
            show_default=True,
            help="The kubelet's --root-dir; sockets are made below it.",
        ),
        click.Option(
            ["--cdi-dir"],
            type=_FOLDER,
            default="/var/run/cdi",
            show_default=True,
            help="Folder of CDI files that the container runtime reads.",
        ),
        click.Option(
            ["--pod-uid"],
            help="UID of this pod: sockets get names of their own, so that two instances can serve "
            "side by side during a rolling update (kubelet 1.33 or newer). With --no-node: Events "
            "are about the pod with this UID.",
        ),
    ]


def _without_a_node() -> list[click.Parameter]:
    return [
        click.Option(
            ["--no-node"],
            is_flag=True,
            help="Publish pools whose devices belong to no node, once for the whole cluster: no "
            "kubelet, no sockets, no claims. Not with --node-name, --kubelet-root, --cdi-dir.",
        ),
        click.Option(
            ["--leader-election/--no-leader-election"],
            default=True,
            show_default=True,
            help="With --no-node: of several instances only the one that holds the Lease writes.",
        ),
        click.Option(
            ["--lease-namespace"],
            help="Namespace of the Lease, and of the pod.  [required with --no-node]",
        ),
        click.Option(
            ["--lease-name"], help="Name of the Lease.  [default: the driver's and '-publisher']"
        ),
        click.Option(
            ["--identity"],
            help="Name of this instance in the Lease: its pod's.  [default: host name and a random "
            "part]",
        ),
    ]


def _of_publishing() -> list[click.Parameter]:
    return [
        click.Option(
            ["--option"],
            multiple=True,
            metavar="NAME=VALUE",
            help="Option of the profile, see below; can be repeated.",
        ),
        click.Option(
            ["--rescan-interval"],
            type=settings.Number(min=0.1, max=86400.0),
            default=60.0,
            show_default=True,
            metavar="SECONDS",
            help="Ask the profile for its devices this often.",
        ),
        click.Option(
            ["--generations"],
            type=click.Choice(["as-needed", "strict"]),
            default="as-needed",
            show_default=True,
            help="strict: every change of a pool is a new generation in all its slices, as the "
            "API's text has it; as-needed: a change of one slice is one write.",
        ),
        click.Option(
            ["--on-stop"],
            type=click.Choice(["keep", "withdraw"]),
            default="keep",
            show_default=True,
            help="withdraw: SIGTERM takes this instance's slices out of the cluster before it "
            "ends, to uninstall it; a restart or an update needs keep.",
        ),
    ]


def _of_watching_over_it() -> list[click.Parameter]:
    return [
        click.Option(
            ["--http-address"],
            metavar="HOST:PORT",
            callback=settings.address,
            help="Answer /healthz, /readyz and /metrics there, e.g. 0.0.0.0:8080 in a pod.  "
            "[default: off]",
        ),
        click.Option(
            ["--log-level"],
            type=click.Choice(["debug", "info", "warning", "error"]),
            default="info",
            show_default=True,
            help="Least important messages to log.",
        ),
        click.Option(
            ["--log-format"],
            type=click.Choice(["auto", "json", "text"]),
            default="auto",
            show_default=True,
            help="auto: text on a terminal, JSON elsewhere.",
        ),
    ]

"""The command line: ``python -m testcluster build|up|down|status|kubectl``."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from . import build, locks, packages, paths, processes, record, start, teardown, versions
from .cluster import Cluster
from .errors import ClusterError
from .progress import Progress
from .record import Options

DEFAULT_NAME = "main"


class Interrupted(BaseException):
    """A signal asked us to end; like KeyboardInterrupt nothing but cleaning up catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    given = _parser().parse_args(arguments)
    try:
        return int(given.run(given))
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except Interrupted as interrupted:
        print(interrupted, file=sys.stderr)
        return 128 + interrupted.number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="testcluster", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser("build", help="build from Go modules into the cache")
    one.add_argument("target", nargs="?", default="all", choices=[*build.TARGETS, "all"])
    one.add_argument("--background", action="store_true", help="return at once, write a log")
    one.set_defaults(run=_build)

    one = commands.add_parser("up", help="start a cluster")
    _add_name(one)
    one.add_argument("--version", default=versions.DEFAULT, help=", ".join(versions.VERSIONS))
    one.add_argument(
        "--gates", default="all", help="A=true,B=false; all (of our table); none (the default ones)"
    )
    one.add_argument(
        "--controllers", default="*", help="as kube-controller-manager's --controllers"
    )
    one.add_argument(
        "--without",
        action="append",
        default=[],
        choices=record.CAN_BE_LEFT_OUT,
        help="leave one out",
    )
    one.add_argument("--node", action="store_true", help="with a real node (root)")
    one.add_argument("--node-name", default="node-1")
    one.set_defaults(run=_up)

    one = commands.add_parser("down", help="take a cluster down, and clear ruins")
    _add_name(one)
    one.add_argument("--all", action="store_true", help="all clusters of this user")
    one.set_defaults(run=_down)

    one = commands.add_parser("status", help="what runs; exit status 0 only if all of it is alive")
    one.add_argument("--name", help="only this one")
    one.add_argument("-o", "--output", choices=["table", "json"], default="table")
    one.set_defaults(run=_status)

    one = commands.add_parser("kubectl", help="run kubectl as administrator")
    _add_name(one)
    one.add_argument("arguments", nargs=argparse.REMAINDER)
    one.set_defaults(run=_kubectl)

    one = commands.add_parser("watch", help="take a cluster down when a process ends")
    _add_name(one)
    one.add_argument("--pid", type=int, required=True)
    one.add_argument("--started", type=int, required=True)
    one.set_defaults(run=_watch)
    return parser


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"which cluster ({DEFAULT_NAME})")


def _build(given: argparse.Namespace) -> int:
    names = list(build.names(given.target))
    if given.background:
        log = build.background_log(given.target)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as stream:
            subprocess.Popen(
                [sys.executable, "-m", "testcluster", "build", given.target],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        print(f"building {given.target} in the background, log {log}")
        return 0
    progress = Progress()
    if os.geteuid() == 0:
        packages.ensure(packages.FOR_EVERYTHING, progress)
    else:
        packages.ensure(packages.FOR_CONTROL_PLANE, progress)
    for name in names:
        print(f"{name}: {build.ensure(name, progress)}")
    return 0


def _up(given: argparse.Namespace) -> int:
    options = Options(
        name=given.name,
        version=given.version,
        gates=given.gates or "all",
        controllers=given.controllers,
        without=tuple(given.without),
        node=given.node,
        node_name=given.node_name,
    )
    progress = Progress()
    cluster = start.up(options, progress)
    progress.say(f"cluster {cluster.name} is up, Kubernetes {cluster.version}")
    print(f"export KUBECONFIG={cluster.kubeconfig}")
    print(f"# kubectl: {cluster.record.program('kubectl')}")
    if cluster.node:
        print(f"# node {cluster.node.name}: plugin sockets in {cluster.node.plugins} and")
        print(f"#   {cluster.node.registry}, CDI specs in {cluster.node.cdi_dir}")
    return 0


def _down(given: argparse.Namespace) -> int:
    progress = Progress()
    failed = []
    for name in paths.names() if given.all else [given.name]:
        try:
            start.down(name, progress)
        except ClusterError as error:
            failed.append(error)
            progress.say(str(error))
    return 1 if failed else 0


def describe(name: str) -> dict[str, Any]:
    """What ``status`` tells of one cluster, as JSON-able values."""
    found = record.load(name)
    if found is None:
        return {"name": name, "state": "ruins", "components": {}}
    cluster = Cluster(found)
    components = {
        component: {"pid": identity.pid if identity else None, "alive": identity is not None}
        for component, identity in cluster.components().items()
    }
    alive = [entry["alive"] for entry in components.values()]
    state = "ruins" if not any(alive) else "ready" if found.ready and all(alive) else "incomplete"
    return {
        "name": name,
        "state": state,
        "version": cluster.version,
        "server": cluster.url,
        "kubeconfig": str(cluster.kubeconfig),
        "node": cluster.node.name if cluster.node else None,
        "components": components,
    }


def _status(given: argparse.Namespace) -> int:
    names = paths.names()
    if given.name:
        names = [name for name in names if name == paths.check_name(given.name)]
    clusters = [describe(name) for name in names]
    if given.output == "json":
        print(json.dumps({"clusters": clusters}, indent=2))
    elif not clusters:
        print("no cluster is up")
    for one in clusters if given.output == "table" else []:
        where = f"{one.get('version', '-'):<8}  {one.get('server', '-')}"
        print(f"{one['name']:<16}  {one['state']:<10}  {where}")
        for component, entry in one["components"].items():
            state = f"pid {entry['pid']}" if entry["alive"] else "dead"
            print(f"  {component:<24}  {state}")
    return 0 if clusters and all(one["state"] == "ready" for one in clusters) else 1


def _kubectl(given: argparse.Namespace) -> int:
    found = record.load(given.name)
    if found is None:
        raise ClusterError(f"no cluster {given.name}: start it first")
    arguments = given.arguments[1:] if given.arguments[:1] == ["--"] else given.arguments
    command = Cluster(found).kubectl_command(*arguments)
    os.execv(command[0], command)  # noqa: S606 - a command line of ours, no shell


def _watch(given: argparse.Namespace) -> int:
    owner = processes.Identity(given.pid, given.started)
    processes.wait_for_end(owner)
    progress = Progress()
    progress.say(f"process {owner.pid} is gone")
    with locks.held(f"cluster-{paths.check_name(given.name)}", seconds=300):
        teardown.remove(given.name, progress)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Settings: flags, over environment, over a file, over defaults.

Every flag ``--some-name`` is also ``DRA_OPERATOR_SOME_NAME`` in the environment and ``some-name``
in the YAML file of ``--config``. Whatever is wrong is one sentence on one line and exit status 2.
docs/operator.md lists them all.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from dra_core import names
from dra_core.errors import InvalidValue
from dra_core.wire.lean import CONFIRMED
from dra_operator.ports import Mode
from dra_service import settings

PROGRAM: Final = "dra-operator"
_SECONDS: Final = "SECONDS"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, checked. ``namespaces`` empty means all; ``delete_after`` None means never."""

    mode: Mode
    namespaces: tuple[str, ...]
    pods_per_second: float
    pool_share: float
    hold_share: float
    delete_after: float | None
    report_unstarted: float
    empty_effect: str
    compare_interval: float
    attachers: Mapping[str, str]
    attacher_options: Mapping[str, Mapping[str, str]]
    attach_deadline: float
    kubeconfig: Path | None
    http_address: tuple[str, int] | None
    leader_election: bool
    lease_namespace: str
    lease_name: str
    identity: str
    log_level: str
    log_format: str
    config: Path | None


#: Settings that can be lists in the file.
_LISTS: Final = ("namespace", "attacher", "attacher-option")


def parse(arguments: Sequence[str]) -> Settings | int:
    """Settings, or 0 if there is nothing to do but what was done: help, version.

    Raises InvalidValue with one sentence.
    """
    result = settings.parsed(_command(), arguments, PROGRAM)
    return result if isinstance(result, Settings) else int(result or 0)


def _parameters() -> list[click.Parameter]:
    path = click.Path(path_type=Path)
    return [
        click.Option(
            ["--config"], type=path, is_eager=True, callback=_read_file, help="YAML file."
        ),
        _choice(
            "--mode",
            tuple(mode.value for mode in (Mode.AUTO, Mode.OBSERVE, Mode.EVICT)),
            "evict: evict pods; observe: say which ones; auto: evict unless the in-tree evictor "
            "does.",
        ),
        click.Option(
            ["--namespace", "namespaces"],
            multiple=True,
            help="Only pods of this namespace; can be repeated.  [default: all]",
        ),
        click.Option(
            ["--pods-per-second"],
            type=settings.Number(min=0.01, max=1000.0),
            default=20.0,
            show_default=True,
            help="At most so many eviction requests a second.",
        ),
        click.Option(
            ["--pool-share"],
            type=settings.Number(min=0.0, max=1.0),
            default=0.25,
            show_default=True,
            help="At most this part of a pool's pods on their way out for one rule (at least one).",
        ),
        click.Option(
            ["--hold-share"],
            type=settings.Number(min=0.0, max=1.0),
            default=0.5,
            show_default=True,
            help="A rule for more than this part of all pods that use devices (and more than 10) "
            f'evicts nobody until it has the annotation {CONFIRMED}: "true".',
        ),
        click.Option(
            ["--delete-after"],
            type=settings.Number(min=0.0, max=1e9),
            metavar=_SECONDS,
            help="Delete a pod whose eviction has not been allowed so long after it was to go, "
            "whatever its PodDisruptionBudget says.  [default: never]",
        ),
        click.Option(
            ["--report-unstarted"],
            type=settings.Number(min=0.0, max=86400.0),
            default=120.0,
            show_default=True,
            metavar=_SECONDS,
            help="Write an Event about a pod that has been starting for so long and whose devices "
            "nobody publishes any more: its driver is not there. 0 is never.",
        ),
        _choice(
            "--empty-effect",
            ("matches-all", "in-tree"),
            "What a toleration without an effect tolerates here: NoExecute like every other effect "
            "(the API's text), or not (the in-tree controller).",
        ),
        click.Option(
            ["--compare-interval"],
            type=settings.Number(min=1.0, max=86400.0),
            default=300.0,
            show_default=True,
            metavar=_SECONDS,
            help="Compare what is in memory with the API server this often.",
        ),
        *_attacher_parameters(),
        settings.kubeconfig(),
        click.Option(
            ["--http-address"],
            metavar="HOST:PORT",
            callback=settings.address,
            help="Answer /healthz, /readyz and /metrics there, e.g. 0.0.0.0:8080.  [default: off]",
        ),
        *_lease_parameters(),
        _choice("--log-level", ("info", "debug", "warning", "error"), "Least important messages."),
        _choice("--log-format", ("auto", "json", "text"), "auto: text on a terminal, else JSON."),
    ]


def _attacher_parameters() -> list[click.Parameter]:
    return [
        click.Option(
            ["--attacher", "attachers"],
            multiple=True,
            metavar="DRIVER=NAME",
            help="Attach the devices of this driver with the attacher of this name; can be "
            "repeated.  [default: none]",
        ),
        click.Option(
            ["--attacher-option", "attacher_options"],
            multiple=True,
            metavar="DRIVER:KEY=VALUE",
            help="An option of the attacher of this driver; can be repeated.",
        ),
        click.Option(
            ["--attach-deadline"],
            type=settings.Number(min=1.0, max=86400.0),
            default=540.0,
            show_default=True,
            metavar=_SECONDS,
            help="A device that is not attached so long after its allocation has failed; less than "
            "the scheduler's bindingTimeout.",
        ),
    ]


def _lease_parameters() -> list[click.Parameter]:
    return [
        click.Option(
            ["--leader-election/--no-leader-election"],
            default=True,
            show_default=True,
            help="Several instances: only the one that holds the Lease evicts.",
        ),
        click.Option(
            ["--lease-namespace"],
            default="dragoman-system",
            show_default=True,
            help="Namespace of the Lease.",
        ),
        click.Option(
            ["--lease-name"],
            default="dragoman-operator",
            show_default=True,
            help="Name of the Lease.",
        ),
        click.Option(
            ["--identity"],
            help="Name of this instance in the Lease.  [default: host name and a random part]",
        ),
    ]


def _choice(flag: str, values: Sequence[str], text: str) -> click.Option:
    """The first value is the default."""
    kind = click.Choice(list(values))
    return click.Option([flag], type=kind, default=values[0], show_default=True, help=text)


def _command() -> click.Command:
    command = click.Command(
        name=PROGRAM,
        params=_parameters(),
        callback=_settings,
        help="Evicts the pods of tainted devices, gently and in order; attaches devices for pods "
        "that wait for them.",
        epilog="Every flag can stand in the environment (--pool-share: DRA_OPERATOR_POOL_SHARE) "
        "and in the YAML file of --config (pool-share: 0.1). Flags win over the environment, that "
        "over the file.",
        context_settings=settings.context_settings("DRA_OPERATOR"),
    )
    return settings.with_version(command, PROGRAM)


def _settings(**values: Any) -> Settings:
    for name in (*values["namespaces"], values["lease_namespace"]):
        names.check_dns_label("namespace", name)
    names.check_dns_subdomain("--lease-name", values["lease_name"])
    values["mode"] = Mode(values["mode"])
    values["namespaces"] = tuple(dict.fromkeys(values["namespaces"]))
    values["attachers"] = dict(_attacher(text) for text in values["attachers"])
    options: dict[str, dict[str, str]] = {}
    for text in values["attacher_options"]:
        driver, key, value = _attacher_option(text)
        options.setdefault(driver, {})[key] = value
    values["attacher_options"] = options
    values["identity"] = values["identity"] or f"{socket.gethostname()}_{os.urandom(4).hex()}"
    return Settings(**values)


def _attacher(text: str) -> tuple[str, str]:
    driver, equals, name = text.partition("=")
    if not equals or not name:
        raise InvalidValue(f"--attacher {text!r} must be DRIVER=NAME")
    names.check_driver_name(driver)
    return driver, name


def _attacher_option(text: str) -> tuple[str, str, str]:
    driver, colon, rest = text.partition(":")
    key, equals, value = rest.partition("=")
    if not (driver and colon and key and equals):
        raise InvalidValue(f"--attacher-option {text!r} must be DRIVER:KEY=VALUE")
    return driver, key, value


def _read_file(
    ctx: click.Context,
    parameter: click.Parameter,  # noqa: ARG001 - click's shape
    path: Path | None,
) -> Path | None:
    """Make the file's content the defaults of all other settings."""
    if path is None:
        return None
    data = settings.read_file(path)
    if not isinstance(data, dict):
        raise InvalidValue(f"settings file {path} must be a YAML mapping")
    known = {_key(p): p for p in ctx.command.params if p.name not in ("config", "version")}
    settings.check_known(path, data, known)
    for key, value in data.items():
        if not isinstance(value, str | int | float | bool | None) and key not in _LISTS:
            raise InvalidValue(f"settings file {path}: {key} must be one value, not {value!r}")
    ctx.default_map = {known[key].name: value for key, value in data.items()}
    return path


def _key(parameter: click.Parameter) -> str:
    return parameter.opts[0].removeprefix("--")

"""Settings: flags, over environment, over a file, over defaults.

Every flag ``--some-name`` is also ``DRA_OPERATOR_SOME_NAME`` in the environment and ``some-name``
in the YAML file of ``--config``. Whatever is wrong is one sentence on one line and exit status 2.
docs/operator.md lists them all.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import yaml

from dra_core import names
from dra_core.errors import InvalidValue

PROGRAM: Final = "dra-operator"
_MAX_FILE: Final = 2**20
_SECONDS: Final = "SECONDS"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, checked. ``namespaces`` empty means all; ``delete_after`` None means never."""

    mode: str
    namespaces: tuple[str, ...]
    pods_per_second: float
    pool_share: float
    delete_after: float | None
    empty_effect: str
    compare_interval: float
    kubeconfig: Path | None
    http_address: tuple[str, int] | None
    leader_election: bool
    lease_namespace: str
    lease_name: str
    identity: str
    log_level: str
    log_format: str
    config: Path | None


class _Number(click.FloatRange):
    """A range that NaN, which compares with nothing, is not in."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """As its base class, but finite."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number.", param, ctx)
        return number


def parse(arguments: Sequence[str]) -> Settings | int:
    """Settings, or 0 if there is nothing to do but what was done: help, version.

    Raises InvalidValue with one sentence.
    """
    try:
        result = _command().main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except click.UsageError as error:
        hint = f"(see {PROGRAM} --help)"
        raise InvalidValue(f"{error.format_message().rstrip('.')} {hint}") from error
    except click.ClickException as error:
        raise InvalidValue(error.format_message()) from error
    return result if isinstance(result, Settings) else int(result or 0)


def _parameters() -> list[click.Parameter]:
    path = click.Path(path_type=Path)
    return [
        click.Option(
            ["--config"], type=path, is_eager=True, callback=_read_file, help="YAML file."
        ),
        _choice("--mode", ("observe", "evict"), "evict: evict pods; observe: say which ones."),
        click.Option(
            ["--namespace", "namespaces"],
            multiple=True,
            help="Only pods of this namespace; can be repeated.  [default: all]",
        ),
        click.Option(
            ["--pods-per-second"],
            type=_Number(min=0.01, max=1000.0),
            default=20.0,
            show_default=True,
            help="At most so many eviction requests a second.",
        ),
        click.Option(
            ["--pool-share"],
            type=_Number(min=0.0, max=1.0),
            default=0.25,
            show_default=True,
            help="At most this part of a pool's pods on their way out for one rule (at least one).",
        ),
        click.Option(
            ["--delete-after"],
            type=_Number(min=0.0, max=1e9),
            metavar=_SECONDS,
            help="Delete a pod whose eviction has not been allowed so long after it was to go, "
            "whatever its PodDisruptionBudget says.  [default: never]",
        ),
        _choice(
            "--empty-effect",
            ("matches-all", "in-tree"),
            "What a toleration without an effect tolerates here: NoExecute like every other effect "
            "(the API's text), or not (the in-tree controller).",
        ),
        click.Option(
            ["--compare-interval"],
            type=_Number(min=1.0, max=86400.0),
            default=300.0,
            show_default=True,
            metavar=_SECONDS,
            help="Compare what is in memory with the API server this often.",
        ),
        click.Option(
            ["--kubeconfig"],
            type=path,
            help="Credentials.  [default: $KUBECONFIG, the pod's service account, ~/.kube/config]",
        ),
        click.Option(
            ["--http-address"],
            metavar="HOST:PORT",
            callback=_address,
            help="Answer /healthz, /readyz and /metrics there, e.g. 0.0.0.0:8080.  [default: off]",
        ),
        *_lease_parameters(),
        _choice("--log-level", ("info", "debug", "warning", "error"), "Least important messages."),
        _choice("--log-format", ("auto", "json", "text"), "auto: text on a terminal, else JSON."),
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
        help="Evicts the pods of tainted devices, gently and in order.",
        epilog="Every flag can stand in the environment (--pool-share: DRA_OPERATOR_POOL_SHARE) "
        "and in the YAML file of --config (pool-share: 0.1). Flags win over the environment, that "
        "over the file.",
        context_settings={
            "auto_envvar_prefix": "DRA_OPERATOR",
            "help_option_names": ["-h", "--help"],
            "max_content_width": 100,
        },
    )
    command = click.version_option(package_name="dragoman", prog_name=PROGRAM)(command)
    for parameter in command.params:
        if parameter.name == "version":
            parameter.allow_from_autoenv = False  # type: ignore[attr-defined]
    return command


def _settings(**values: Any) -> Settings:
    for name in (*values["namespaces"], values["lease_namespace"]):
        names.check_dns_label("namespace", name)
    names.check_dns_subdomain("--lease-name", values["lease_name"])
    values["namespaces"] = tuple(dict.fromkeys(values["namespaces"]))
    values["identity"] = values["identity"] or f"{socket.gethostname()}_{os.urandom(4).hex()}"
    return Settings(**values)


def _address(
    ctx: click.Context,  # noqa: ARG001 - click's shape
    parameter: click.Parameter,  # noqa: ARG001 - click's shape
    value: str | None,
) -> tuple[str, int] | None:
    if not value:
        return None
    host, _, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidValue(f"--http-address {value!r} is not HOST:PORT, e.g. 127.0.0.1:8080")
    return host, int(port)


def _read_file(
    ctx: click.Context,
    parameter: click.Parameter,  # noqa: ARG001 - click's shape
    path: Path | None,
) -> Path | None:
    """Make the file's content the defaults of all other settings."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE + 1)
        data = yaml.safe_load(content) or {}
    except OSError as error:
        raise InvalidValue(f"cannot read the settings file {path}: {error.strerror}") from error
    except (yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidValue(f"settings file {path} is not valid YAML: {reason}") from error
    if len(content) > _MAX_FILE or not isinstance(data, dict):
        raise InvalidValue(f"settings file {path} must be a YAML mapping of at most 1 MiB")
    known = {_key(p): p for p in ctx.command.params if p.name not in ("config", "version")}
    for key, value in data.items():
        if key not in known:
            listed = ", ".join(sorted(known))
            raise InvalidValue(
                f"settings file {path}: unknown setting {key!r}; known are: {listed}"
            )
        if not isinstance(value, str | int | float | bool | None) and key != "namespace":
            raise InvalidValue(f"settings file {path}: {key} must be one value, not {value!r}")
    ctx.default_map = {known[key].name: value for key, value in data.items()}
    return path


def _key(parameter: click.Parameter) -> str:
    return parameter.opts[0].removeprefix("--")

"""Settings of a program: flags, over environment, over a YAML file, over defaults.

Whatever is wrong is ``InvalidValue`` with one sentence on one line.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

import click
import yaml

from dra_core.errors import InvalidValue

_MAX_FILE: Final = 2**20


class Number(click.FloatRange):
    """A range that NaN, which compares with nothing, is not in."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """As its base class, but finite."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number.", param, ctx)
        return number


def kubeconfig() -> click.Option:
    """``--kubeconfig``, as :func:`dra_service.credentials.configuration` takes it."""
    return click.Option(
        ["--kubeconfig"],
        type=click.Path(path_type=Path),
        help="Credentials.  [default: $KUBECONFIG, the pod's service account, ~/.kube/config]",
    )


def context_settings(environment: str) -> dict[str, Any]:
    """For ``click.Command``: a flag is also a variable, ``environment`` before its name."""
    return {
        "auto_envvar_prefix": environment,
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    }


def with_version(command: click.Command, program: str) -> click.Command:
    """The command with ``--version``, which no variable asks for."""
    command = click.version_option(package_name="dragoman", prog_name=program)(command)
    for parameter in command.params:
        if parameter.name == "version":
            parameter.allow_from_autoenv = False  # type: ignore[attr-defined]
    return command


def parsed(command: click.Command, arguments: Sequence[str], program: str) -> Any:
    """What the command's callback gave, or an exit status after help and the version."""
    try:
        return command.main(list(arguments), prog_name=program, standalone_mode=False)
    except click.UsageError as error:
        hint = f"(see {program} --help)"
        raise InvalidValue(f"{error.format_message().rstrip('.')} {hint}") from error
    except click.ClickException as error:
        raise InvalidValue(error.format_message()) from error


def address(
    ctx: click.Context,  # noqa: ARG001 - click's shape
    parameter: click.Parameter,  # noqa: ARG001 - click's shape
    value: str | None,
) -> tuple[str, int] | None:
    """``HOST:PORT``, the callback of ``--http-address``."""
    if not value:
        return None
    host, _, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidValue(f"--http-address {value!r} is not HOST:PORT, e.g. 127.0.0.1:8080")
    return host, int(port)


def read_file(path: Path) -> Any:
    """The content of a settings file, whatever it is; empty is an empty mapping."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE + 1)
        if len(content) > _MAX_FILE:
            raise InvalidValue(f"settings file {path} is larger than {_MAX_FILE} bytes")
        return yaml.safe_load(content) or {}
    except OSError as error:
        raise InvalidValue(f"cannot read the settings file {path}: {error.strerror}") from error
    except (yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidValue(f"settings file {path} is not valid YAML: {reason}") from error


def check_known(path: Path, given: Collection[Any], known: Collection[str]) -> None:
    """Refuse a setting of a file that there is not."""
    unknown = sorted(str(key) for key in given if key not in known)
    if unknown:
        raise InvalidValue(
            f"settings file {path}: unknown setting {unknown[0]!r}; "
            f"known are: {', '.join(sorted(known))}"
        )

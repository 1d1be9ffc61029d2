"""Settings: flags, over environment, over a file, over defaults.

Every flag ``--some-name`` is also ``DRA_DRIVER_SOME_NAME`` in the environment and ``some-name`` in
the YAML file of ``--config``. Whatever is wrong is one sentence on one line and exit status 2.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, cast

import click

from dra_core import names
from dra_core.errors import DraError, InvalidValue
from dra_core.names import DriverName, NodeName, PodUID
from dra_driver.api import Profile
from dra_service import settings

PROGRAM: Final = "dra-driver"
ENTRY_POINTS: Final = "dragoman.profiles"
_OPTION_VARIABLE: Final = "DRA_DRIVER_OPTION"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, checked. ``options`` are those of the profile, defaults filled in."""

    profile: str
    driver_name: DriverName
    node_name: NodeName
    kubeconfig: Path | None
    kubelet_root: Path
    cdi_dir: Path
    pod_uid: PodUID | None
    rescan_interval: float
    http_address: tuple[str, int] | None
    generations: str
    on_stop: str
    options: Mapping[str, str]
    log_level: str
    log_format: str
    config: Path | None

    @property
    def plugin_dir(self) -> Path:
        """The driver's own folder."""
        return self.kubelet_root / "plugins" / self.driver_name

    @property
    def registry_dir(self) -> Path:
        """Where the kubelet looks for plugins."""
        return self.kubelet_root / "plugins_registry"

    def fixed_part(self) -> dict[str, object]:
        """All that a reload cannot change."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "options"}


class _Help(click.Command):
    """``--help`` ends with the profiles and their options."""

    def __init__(self, profiles: Profiles, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._profiles = profiles

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Each profile with the options it takes."""
        for name in self._profiles.known():
            try:
                profile = self._profiles.get(name)
            except InvalidValue as error:
                formatter.write_paragraph()
                formatter.write_text(str(error))
                continue
            with formatter.section(f"Profile {name} ({profile.SUMMARY}), --option NAME=VALUE"):
                options = [(f"{o.name}={o.default}", o.help) for o in profile.OPTIONS]
                if options:
                    formatter.write_dl(options, col_max=34)
                else:
                    formatter.write_text("takes no options")
        formatter.write_paragraph()
        formatter.write_text(
            "Every flag can stand in the environment (--node-name: DRA_DRIVER_NODE_NAME) and in "
            "the YAML file of --config (node-name: worker-1; options: {count: 8}). SIGHUP reads "
            "the profile's options again, SIGTERM stops; slices stay, so that a restart disturbs "
            "nobody. Flags win over the environment, that over the file; options are merged by "
            "name (environment: DRA_DRIVER_OPTION='count=4 model=X')."
        )


class Profiles:
    """Profiles by name: those given by a vendor's program, and those of installed packages."""

    def __init__(self, given: Mapping[str, Profile] | None = None) -> None:
        self._given = dict(given or {})

    @property
    def default(self) -> str:
        """The only profile of a vendor's program, else ``gpu``."""
        return next(iter(self._given)) if len(self._given) == 1 else "gpu"

    def known(self) -> list[str]:
        """All names."""
        installed = {e.name for e in importlib.metadata.entry_points(group=ENTRY_POINTS)}
        return sorted(installed | set(self._given))

    def get(self, name: str) -> Profile:
        """The profile, loaded; raises InvalidValue for a name that is not known."""
        if name in self._given:
            return self._given[name]
        for entry in importlib.metadata.entry_points(group=ENTRY_POINTS, name=name):
            try:
                return cast("Profile", entry.load())
            except Exception as error:  # a package of somebody else may raise anything
                raise InvalidValue(
                    f"profile {name!r} of {entry.value.partition(':')[0]!r} cannot be loaded: "
                    f"{type(error).__name__}: {error}"
                ) from error
        raise InvalidValue(f"unknown profile {name!r}; known are: {', '.join(self.known())}")


def parse(arguments: Sequence[str], profiles: Profiles) -> Settings | int:
    """Settings, or 0 if there is nothing to do but what was done: help, version.

    Raises InvalidValue with one sentence.
    """
    result = settings.parsed(_command(profiles), arguments, PROGRAM)
    return result if isinstance(result, Settings) else int(result or 0)


def _command(profiles: Profiles) -> click.Command:
    def build(**values: Any) -> Settings:
        return _settings(profiles, **values)

    folder = click.Path(path_type=Path)
    parameters: list[click.Parameter] = [
        click.Option(
            ["--config"], type=folder, is_eager=True, callback=_read_file, help="YAML file."
        ),
        click.Option(
            ["--profile"], default=profiles.default, show_default=True, help="Kind of devices."
        ),
        click.Option(["--node-name"], help="Name of this node's Node object.  [required]"),
        click.Option(["--driver-name"], help="Name of the driver.  [default: the profile's]"),
        click.Option(
            ["--kubeconfig"],
            type=folder,
            help="Credentials.  [default: $KUBECONFIG, the pod's service account, ~/.kube/config]",
        ),
        click.Option(
            ["--kubelet-root"],
            type=folder,
            default="/var/lib/kubelet",
            show_default=True,
            help="The kubelet's --root-dir; sockets are made below it.",
        ),
        click.Option(
            ["--cdi-dir"],
            type=folder,
            default="/var/run/cdi",
            show_default=True,
            help="Folder of CDI files that the container runtime reads.",
        ),
        click.Option(
            ["--pod-uid"],
            help="UID of this pod: sockets get names of their own, so that two instances can serve "
            "side by side during a rolling update (kubelet 1.33 or newer).",
        ),
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
            help="withdraw: SIGTERM takes this node's slices out of the cluster before the driver "
            "deregisters, to uninstall it; a restart or an update needs keep.",
        ),
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
    command = _Help(
        profiles,
        name=PROGRAM,
        params=parameters,
        callback=build,
        help="Kubelet plugin for Dynamic Resource Allocation: publishes the devices of a node as "
        "ResourceSlices and prepares claims for the kubelet.",
        context_settings=settings.context_settings("DRA_DRIVER"),
    )
    return settings.with_version(command, PROGRAM)


def _read_file(
    ctx: click.Context,
    parameter: click.Parameter,  # noqa: ARG001 - click's shape
    path: Path | None,
) -> Path | None:
    """Make the file's content the defaults of all other settings."""
    if path is None:
        return None
    data = settings.read_file(path)
    if not isinstance(data, dict) or not isinstance(data.get("options") or {}, dict):
        raise InvalidValue(f"settings file {path}: it and its 'options' must be YAML mappings")
    known = {p.name.replace("_", "-") for p in ctx.command.params if p.name}
    settings.check_known(path, data, known - {"config", "option", "version"} | {"options"})
    given = {k: v for k, v in data.items() if k != "options" and v is not None}
    for key, value in given.items():
        if not isinstance(value, str | int | float):
            raise InvalidValue(f"settings file {path}: {key} must be one value, not {value!r}")
    ctx.default_map = {k.replace("-", "_"): str(v) for k, v in given.items()}
    ctx.obj = {str(k): str(v) for k, v in (data.get("options") or {}).items()}
    return path


def _settings(
    profiles: Profiles,
    *,
    profile: str,
    node_name: str | None,
    driver_name: str | None,
    pod_uid: str | None,
    option: Sequence[str],
    **others: Any,
) -> Settings:
    chosen = profiles.get(profile)
    if not node_name:
        raise InvalidValue(
            "the node name is missing: give --node-name or DRA_DRIVER_NODE_NAME "
            "(in a DaemonSet from spec.nodeName)"
        )
    from_file: dict[str, str] = click.get_current_context().obj or {}
    from_environment = _pairs(os.environ.get(_OPTION_VARIABLE, "").split())
    options = _options(profile, chosen, from_file | from_environment | _pairs(option))
    uid = PodUID(names.check_uid("pod UID", pod_uid)) if pod_uid else None
    for name in ("kubelet_root", "cdi_dir"):
        path = others[name] = others[name].absolute()
        try:
            str(path).encode()
        except UnicodeEncodeError as error:
            flag = f"--{name.replace('_', '-')}"
            raise InvalidValue(f"{flag} {str(path)!r} is not UTF-8; choose another path") from error
    return Settings(
        profile=profile,
        driver_name=names.check_driver_name(driver_name or chosen.DRIVER_NAME),
        node_name=names.check_node_name(node_name),
        pod_uid=uid,
        options=options,
        **others,
    )


def _pairs(items: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidValue(f"--option {item!r} is not NAME=VALUE, e.g. --option count=4")
        pairs[name] = value
    return pairs


def _options(name: str, profile: Profile, given: Mapping[str, str]) -> Mapping[str, str]:
    known = {option.name: option for option in profile.OPTIONS}
    for key in given:
        if key not in known:
            raise InvalidValue(
                f"profile {name!r} has no option {key!r}; it has: {', '.join(known) or 'none'}"
            )
    values = {}
    for key, option in known.items():
        values[key] = given.get(key, option.default)
        try:
            option.check(values[key])
        except (ValueError, DraError) as error:
            raise InvalidValue(
                f"option {key}={values[key]!r} of profile {name!r} is not valid: {error}"
            ) from error
    return values

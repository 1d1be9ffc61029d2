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
from click.core import ParameterSource

from dra_core import names
from dra_core.errors import DraError, InvalidValue
from dra_core.names import DriverName, NodeName, PodUID
from dra_driver import flags
from dra_driver.api import Profile
from dra_service import settings

PROGRAM: Final = "dra-driver"
ENTRY_POINTS: Final = "dragoman.profiles"
_OPTION_VARIABLE: Final = "DRA_DRIVER_OPTION"
#: Settings that only one of the two kinds of instances has.
_OF_A_NODE: Final = ("node_name", "kubelet_root", "cdi_dir")
_OF_A_REPLICA: Final = ("leader_election", "lease_namespace", "lease_name", "identity")
#: Where a setting that nobody remembers may come from.
_SAID_BY: Final = {
    ParameterSource.ENVIRONMENT: " (from the environment)",
    ParameterSource.DEFAULT_MAP: " (from the settings file)",
}


@dataclass(frozen=True, slots=True)
class OnNode:
    """Where an instance on a node lives.

    ``plugin_dir`` is the driver's own folder, ``registry_dir`` the one in which the kubelet looks
    for plugins.
    """

    name: NodeName
    cdi_dir: Path
    plugin_dir: Path
    registry_dir: Path


@dataclass(frozen=True, slots=True)
class Replica:
    """One of the instances of a publisher without a node.

    ``identity`` None: to be made up. ``lease_name`` None: there is no other instance.
    ``namespace`` is that of the Lease and of the pod, None if it is not known.
    """

    identity: str | None
    namespace: str | None
    lease_name: str | None


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, checked. ``options`` are those of the profile, defaults filled in."""

    profile: str
    driver_name: DriverName
    place: OnNode | Replica
    kubeconfig: Path | None
    pod_uid: PodUID | None
    rescan_interval: float
    http_address: tuple[str, int] | None
    generations: str
    on_stop: str
    options: Mapping[str, str]
    log_level: str
    log_format: str
    config: Path | None

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

    command = _Help(
        profiles,
        name=PROGRAM,
        params=flags.parameters(profiles.default, _read_file),
        callback=build,
        help="Kubelet plugin for Dynamic Resource Allocation: publishes the devices of a node as "
        "ResourceSlices and prepares claims for the kubelet. With --no-node it only publishes, "
        "devices of the whole cluster.",
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
    driver_name: str | None,
    pod_uid: str | None,
    option: Sequence[str],
    no_node: bool,
    **others: Any,
) -> Settings:
    chosen = profiles.get(profile)
    driver = names.check_driver_name(driver_name or chosen.DRIVER_NAME)
    of_node = {name: others.pop(name) for name in _OF_A_NODE}
    of_replica = {name: others.pop(name) for name in _OF_A_REPLICA}
    _check_kind(no_node=no_node)
    place = _replica(driver, **of_replica) if no_node else _on_node(driver, **of_node)
    from_file: dict[str, str] = click.get_current_context().obj or {}
    from_environment = _pairs(os.environ.get(_OPTION_VARIABLE, "").split())
    options = _options(profile, chosen, from_file | from_environment | _pairs(option))
    uid = PodUID(names.check_uid("pod UID", pod_uid)) if pod_uid else None
    return Settings(
        profile=profile,
        driver_name=driver,
        place=place,
        pod_uid=uid,
        options=options,
        **others,
    )


def _check_kind(*, no_node: bool) -> None:
    """Settings of the other kind of instance are a mistake, not something to pass over."""
    context = click.get_current_context()
    for name in _OF_A_NODE if no_node else _OF_A_REPLICA:
        source = context.get_parameter_source(name)
        if source in (None, ParameterSource.DEFAULT):
            continue
        flag = f"--{name.replace('_', '-')}{_SAID_BY.get(source, '')}"
        if no_node:
            raise InvalidValue(
                f"--no-node does not go with {flag}: an instance without a node has neither "
                "kubelet nor containers; leave one of the two out"
            )
        raise InvalidValue(
            f"{flag} is for instances without a node: give --no-node as well, or leave it out "
            "(on a node a lock file says which instance publishes)"
        )


def _on_node(
    driver: DriverName, *, node_name: str | None, kubelet_root: Path, cdi_dir: Path
) -> OnNode:
    if not node_name:
        raise InvalidValue(
            "the node name is missing: give --node-name or DRA_DRIVER_NODE_NAME "
            "(in a DaemonSet from spec.nodeName), or --no-node to publish devices of no node"
        )
    root, cdi = (
        _absolute(flag, path)
        for flag, path in (("kubelet-root", kubelet_root), ("cdi-dir", cdi_dir))
    )
    return OnNode(
        names.check_node_name(node_name), cdi, root / "plugins" / driver, root / "plugins_registry"
    )


def _absolute(flag: str, path: Path) -> Path:
    full = path.absolute()
    try:
        str(full).encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(f"--{flag} {str(full)!r} is not UTF-8; choose another path") from error
    return full


def _replica(
    driver: DriverName,
    *,
    leader_election: bool,
    lease_namespace: str | None,
    lease_name: str | None,
    identity: str | None,
) -> Replica:
    if leader_election and not lease_namespace:
        raise InvalidValue(
            "the namespace of the Lease is missing: give --lease-namespace or "
            "DRA_DRIVER_LEASE_NAMESPACE (in a Deployment from metadata.namespace), or "
            "--no-leader-election if there is never a second instance"
        )
    if lease_namespace:
        names.check_dns_label("--lease-namespace", lease_namespace)
    lease = names.check_dns_subdomain("--lease-name", lease_name or f"{driver}-publisher")
    return Replica(identity or None, lease_namespace or None, lease if leader_election else None)


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

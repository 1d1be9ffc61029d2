"""``dra lint``: the API server's verdict, and warnings, without a cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import click

from dra_cli.documents import Document, load
from dra_cli.gates import parsed
from dra_core import lint as rules
from dra_core import pod_lint, selector_lint, wire
from dra_core.cel.deadline import Clock
from dra_core.errors import InvalidObject
from dra_core.validation import objects
from dra_core.validation.servers import GATES, Server, server
from dra_core.wire import JSON
from dra_core.wire.dropped import dropped_fields
from dra_core.wire.versions import GROUP

_POD: Final = ("v1", "Pod")
#: How long selectors are asked about devices, all of them together.
_SELECTOR_SECONDS: Final = 10.0
_NEWEST: Final = f"1.{max(GATES)}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: error or warning; ``type`` is the API's reason or our code."""

    level: str
    source: str
    object: str
    field: str
    type: str
    message: str


@click.command()
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    metavar="FILE|DIR|-",
    help="YAML or JSON; a folder with all files below it; - for standard input. Repeatable.",
)
@click.option(
    "--kubernetes-version",
    default=_NEWEST,
    show_default=True,
    metavar="VERSION",
    help=f"Whose rules: {', '.join(f'1.{minor}' for minor in GATES)}.",
)
@click.option(
    "--feature-gates",
    default="",
    metavar="NAME=true,…",
    help="Gates that the API server has set other than by default.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: an object with 'findings', 'objects' and 'server'.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
def lint(
    files: Sequence[str], kubernetes_version: str, feature_gates: str, output: str, strict: bool
) -> int:
    """Check resource.k8s.io objects as an API server would, and for what is likely wrong.

    Errors have the field paths and types of the API server. Warnings are about what is legal:
    pools that are incomplete or contradictory, names that hide each other, tolerations that
    tolerate nothing, fields that the server drops, pods that request what a claim brings as well.
    Objects of other groups are passed over otherwise.

    Exit status: 0 without errors, 1 with errors, 2 if a file cannot be read.
    """
    target = server(kubernetes_version, parsed(feature_gates))
    documents = [d for name in files for d in load(name)]
    ours = [d for d in documents if str(d.data.get("apiVersion", "")).startswith(f"{GROUP}/")]
    pods = [d.data for d in documents if (d.data.get("apiVersion"), d.data.get("kind")) == _POD]
    findings = _findings(ours, target, pods)
    passed_over = len(documents) - len(ours)
    if output == "json":
        click.echo(_json(findings, len(ours), passed_over, target))
    else:
        _print(findings, len(ours), passed_over, target)
    bad = {"error", "warning"} if strict else {"error"}
    return 1 if any(finding.level in bad for finding in findings) else 0


def _findings(
    documents: Iterable[Document], target: Server, pods: Sequence[Mapping[str, Any]]
) -> list[Finding]:
    findings: list[Finding] = []
    values: list[wire.AnyObject] = []
    for document in documents:
        found, value = _checked(document, target)
        findings += found
        if value is not None:
            values.append(value)
    until = time.monotonic() + _SELECTOR_SECONDS
    warned_of = [
        *rules.warnings(values),
        *selector_lint.warnings(values, lambda: Clock(time.monotonic, until)),
        *pod_lint.warnings(pods, values),
    ]
    for warned in warned_of:
        fields = (warned.subject, warned.field, warned.code, warned.message)
        findings.append(Finding("warning", "", *fields))
    return findings


def _checked(document: Document, target: Server) -> tuple[list[Finding], wire.AnyObject | None]:
    name = _name(document.data)

    def finding(level: str, field: str, kind: str, message: str) -> Finding:
        return Finding(level, document.source, name, field, kind, message)

    try:
        data = wire.to_v1(document.data)
        if wrong := objects.wrong_types(data, target):
            return [finding("error", p.field, "Undecodable", p.detail) for p in wrong], None
        problems = objects.validate_create(data, target)
        kept = objects.drop_disabled(data, target)
    except InvalidObject as error:
        return [finding("error", "", "Undecodable", str(error))], None
    found = [
        finding(
            "warning",
            f"spec.{path}",
            "dropped-field",
            f"an API server of Kubernetes 1.{target.minor} with these feature gates drops it",
        )
        for path in sorted(set(dropped_fields(data.get("spec"), kept.get("spec"))))
    ]
    found += [finding("error", p.field, p.type.value, p.detail) for p in problems]
    value, reason = _value(data, kept)
    if value is None and not problems:
        found.append(finding("error", "", "Undecodable", reason))
    return found, value


def _value(data: JSON, kept: JSON) -> tuple[wire.AnyObject | None, str]:
    """The object for warnings, and else why there is none.

    It is that of the file, so that fields which the server drops are looked at as well; or, where
    a field is missing that the server fills in, that which the server would store.
    """
    try:
        return wire.read(data), ""
    except InvalidObject as error:
        try:
            return wire.read(kept), ""
        except InvalidObject:
            return None, str(error)


def _name(data: Mapping[str, Any]) -> str:
    metadata = data.get("metadata")
    name = (
        metadata.get("name") or metadata.get("generateName")
        if isinstance(metadata, Mapping)
        else None
    )
    return f"{data.get('kind')} {name or '(no name)'}"


def _print(findings: Sequence[Finding], count: int, passed_over: int, target: Server) -> None:
    for f in findings:
        place = ": ".join(part for part in (f.source, f.object, f.field) if part)
        click.echo(f"{f.level}: {place}: {f.message} [{f.type}]")
    errors = sum(f.level == "error" for f in findings)
    others = f", {passed_over} of other API groups passed over" if passed_over else ""
    click.echo(
        f"{count} objects checked against Kubernetes 1.{target.minor}{others}: "
        f"{errors} errors, {len(findings) - errors} warnings",
        err=True,
    )


def _json(findings: Sequence[Finding], count: int, passed_over: int, target: Server) -> str:
    report = {
        "server": {"version": f"1.{target.minor}", "featureGates": dict(target.gates)},
        "objects": {"checked": count, "passedOver": passed_over},
        "findings": [asdict(finding) for finding in findings],
    }
    return json.dumps(report, indent=2)

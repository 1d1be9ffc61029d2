"""Real API servers say of the examples of ``docs/api-fields.md`` what its unit tests expect.

Every example of :mod:`dra_testing.rows` goes to a 1.37 and a 1.36 server with all gates on: what is
accepted, and the exact set of (field, reason) of what is not, are literally those of the table.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dra_core.validation.problems import ErrorType
from dra_core.wire.dropped import dropped_fields
from dra_testing.rows.example import (
    DROPPED,
    MALFORMED,
    TWICE,
    UNREADABLE,
    Case,
    Row,
    cases,
)
from dra_testing.rows.listing import ROWS
from dra_testing.rows.slices import NODE, OTHER_NODE
from dra_testing.verdicts import Judge, Verdict, nodes, path_of, update_verdict
from testcluster.cluster import Cluster

pytestmark = pytest.mark.control_plane

JSON = dict[str, Any]
#: They would write to the objects that are being judged.
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
BAD_REQUEST = 400


def asked(judge: Judge, case: Case, number: int) -> Verdict:
    """The server's answer; updates are of an object that the server has not seen before."""
    row, path = case.row, path_of(case.row.good_object() | {"apiVersion": case.new["apiVersion"]})
    if case.old is not None:
        name = f"row-{number}"
        old, new = (copy.deepcopy(obj) for obj in (case.old, case.new))
        old["metadata"]["name"] = new["metadata"]["name"] = name
        return update_verdict(judge, old, new, subresource=case.subresource)
    collection = path.rpartition("/")[0]
    if "apiVersion" in row.place and not case.good:
        collection = path_of(row.good_object(), collection=True)
    strict = row.problems is TWICE
    body = case.text.encode() if strict else case.new
    return judge.ask("POST", collection, body, strict=strict)


def difference(case: Case, verdict: Verdict, minor: int) -> str:
    """In what the answer is not the expected one; empty if in nothing."""
    row = case.row
    accepted = case.good or bool(row.warned) or row.problems is DROPPED
    status = row.server
    if not status and not accepted and row.problems in (MALFORMED, TWICE, UNREADABLE):
        status = BAD_REQUEST
    if status and not case.good:
        return "" if verdict.status == status else f"{verdict.status}, not {status}"
    if accepted:
        if not verdict.accepted:
            return f"refused: {verdict.status} {verdict.message}"
        dropped = dropped_fields(case.new, verdict.stored)
        return "" if bool(dropped) == (row.problems is DROPPED and not case.good) else f"{dropped}"
    expected = {(path, kind.value) for path, kind in row.expected(minor)}
    if expected and verdict.causes == expected and verdict.status == 422:
        return ""
    return (
        f"{verdict.status}: missing {sorted(verdict.causes - expected)}, "
        f"too much {sorted(expected - verdict.causes)}; {verdict.message[:400]}"
    )


def differences(judge: Judge, rows: Iterator[Row]) -> dict[str, str]:
    """By row, in what the server does not do what the table says."""
    minor, found = judge.server.minor, {}
    numbered = enumerate(case for row in rows for case in cases(row, minor))
    for number, case in numbered:
        text = difference(case, asked(judge, case, number), minor)
        if text:
            found[f"{case.row.name} {'good' if case.good else 'bad'} {number}"] = text
    return found


@pytest.mark.parametrize(("version", "least"), [("1.37.2", 206), ("1.36.3", 192)])
def test_rows(make_control_plane: Callable[..., Cluster], version: str, least: int) -> None:
    """All examples; with another reason or with good and bad exchanged they would differ."""
    cluster = make_control_plane(version=version, without=CONTROLLERS)
    with nodes(cluster, NODE, OTHER_NODE), Judge(cluster) as judge:
        minor = judge.server.minor
        rows = [row for examples in ROWS.values() for row in examples]
        judged = {row.name for row in rows if list(cases(row, minor))}
        assert len(judged) >= least
        assert differences(judge, iter(rows)) == {}
        one = next(row for row in rows if row.name == "Device.taints#max-16")
        wrong = [
            dataclasses.replace(one, good=one.bad),
            dataclasses.replace(one, bad=one.good),
            dataclasses.replace(one, problems={"taints[16]": ErrorType.TOO_MANY}),
        ]
        assert [len(differences(judge, iter([row]))) for row in wrong] == [1, 1, 1]

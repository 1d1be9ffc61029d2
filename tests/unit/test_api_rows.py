"""Every row of ``docs/api-fields.md`` that is modelled or validated, with one place varied.

The examples are in :mod:`dra_testing.rows`; ``tests/contract/test_row_verdicts.py`` puts the same
ones to real API servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes
import pytest

from dra_cli import documents
from dra_core import lint, wire
from dra_core.errors import ApiUnavailable, InvalidObject, InvalidValue
from dra_core.validation import claim_gates, claim_status, objects, slice_gates
from dra_core.validation.problems import ErrorType, Problem
from dra_core.validation.servers import GATES, Server
from dra_core.wire.dropped import dropped_fields
from dra_driver.adapters.kube import KubeApi
from dra_testing.rows.example import (
    DROPPED,
    GONE,
    MALFORMED,
    MINORS,
    NOTHING,
    SAME,
    TWICE,
    UNREADABLE,
    V1,
    Case,
    Found,
    Row,
    at,
    cases,
)
from dra_testing.rows.listing import ROWS

JSON = dict[str, Any]
SERVERS = {minor: Server(minor, dict.fromkeys(GATES[minor], True)) for minor in MINORS}
FIELDS = [name for name in ROWS if "#" not in name]
LIMITS = [name for name in ROWS if "#" in name]


def problems(case: Case, server: Server) -> list[Problem]:
    """The offline verdict."""
    if case.old is None:
        return objects.validate_create(case.new, server)
    if case.row.base.status:
        return claim_status.validate_status_update(case.new, case.old, server)
    return objects.validate_update(case.new, case.old, server)


def found(case: Case, server: Server) -> Found:
    return frozenset((p.field, p.type) for p in problems(case, server))


def kept(case: Case, server: Server) -> JSON:
    """What a server would store."""
    if case.new["kind"] == "ResourceSlice":
        return slice_gates.drop_disabled(case.new, case.old, server)
    sub = case.subresource
    return claim_gates.drop_disabled(case.new["kind"], case.new, case.old, server, subresource=sub)


def warned(row: Row, obj: JSON) -> set[str]:
    return {w.code for w in lint.warnings([wire.read(o) for o in (obj, *row.beside)])}


def place(row: Row) -> str:
    """The place in the whole object."""
    if row.place.startswith("/"):
        return row.place[1:]
    return ".".join(filter(None, (row.base.root, row.place)))


def check_reading(row: Row) -> None:
    """The value is that of the model, comes from this place, and is written back there."""
    assert row.reads is not None
    attribute, value = row.reads
    model = ".".join(filter(None, (row.base.model, attribute)))
    read = wire.read(row.good_object())
    assert at(read, model) == value
    assert type(at(read, model)) is type(value)
    written = row.good if row.written is SAME else row.written
    assert at(wire.write(read), place(row)) == written
    try:
        other = at(wire.read(row.without()), model)
    except InvalidObject:
        return
    assert other != value


def check_refusal(case: Case, server: Server, folders: pytest.TempPathFactory) -> None:
    row = case.row
    if row.problems is MALFORMED and case.new["kind"] == "ResourceSlice":
        with pytest.raises(InvalidObject, match=re.escape(row.base.where)):
            problems(case, server)
    elif row.problems is MALFORMED:
        assert {kind for _, kind in found(case, server)} == {ErrorType.TYPE_INVALID}
    elif row.problems is UNREADABLE:
        with pytest.raises(InvalidObject, match=row.place.rpartition(".")[2]):
            wire.read(case.new)
    elif row.problems is TWICE:
        file = folders.mktemp("twice") / "twice.json"
        file.write_text(case.text)
        with pytest.raises(InvalidValue, match="stands twice"):
            list(documents.load(str(file)))
    elif row.problems is DROPPED:
        assert found(case, server) == frozenset()
        (dropped,) = dropped_fields(case.new, kept(case, server))
        assert dropped.endswith(row.place.rpartition(".")[2])
    elif row.warned:
        assert found(case, server) == frozenset()
        assert row.warned in warned(row, case.new)
        assert row.warned not in warned(row, row.good_object())
    else:
        assert row.expected(server.minor) != frozenset()
        assert found(case, server) == row.expected(server.minor)


def check(row: Row, folders: pytest.TempPathFactory) -> None:
    """The good example is accepted and the bad one refused, as its row says."""
    for minor in row.minors:
        for case in cases(row, minor):
            if case.good:
                assert problems(case, SERVERS[minor]) == []
            else:
                check_refusal(case, SERVERS[minor], folders)


@pytest.mark.parametrize("name", FIELDS)
def test_field(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The field is read, written, and judged."""
    assert any(row.reads for row in ROWS[name])
    for row in ROWS[name]:
        if row.reads:
            check_reading(row)
        check(row, tmp_path_factory)


@pytest.mark.parametrize("name", LIMITS)
def test_limit(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Accepted up to the limit, refused beyond."""
    assert any(row.bad is not NOTHING for row in ROWS[name]) or name in NOT_LIMITED
    for row in ROWS[name]:
        check(row, tmp_path_factory)


#: What a seed rules out and servers accept; the page has a note.
NOT_LIMITED = ["Device#one-field-beside-name"]


ITEM: JSON = {"metadata": {"name": "s"}, "spec": {"driver": "d"}}
WHOLE: JSON = {"apiVersion": V1, "kind": "ResourceSliceList", "metadata": {}, "items": [ITEM, ITEM]}


def loaded(data: JSON, tmp_path: Path) -> list[Mapping[str, Any]]:
    file = tmp_path / "list.json"
    file.write_text(json.dumps(data))
    return [document.data for document in documents.load(str(file))]


class Pages(KubeApi):
    """Answers the pages of a list in turn, and keeps what it was asked."""

    def __init__(self, *pages: JSON) -> None:
        super().__init__(kubernetes.client.Configuration())
        self.answers = list(pages)
        self.asked: list[dict[str, str]] = []

    def request(
        self,
        method: str,  # noqa: ARG002 - that of its base
        path: str,  # noqa: ARG002
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,  # noqa: ARG002
        *,
        content: str = "",  # noqa: ARG002
        accept: str = "",  # noqa: ARG002
    ) -> JSON:
        self.asked.append(dict(query or {}))
        return self.answers.pop(0)


LISTS = ["apiVersion", "items", "kind", "metadata"]


@pytest.mark.parametrize("field", LISTS, ids=[f"ResourceSliceList.{name}" for name in LISTS])
def test_list(field: str, tmp_path: Path) -> None:
    """A list comes apart, its version and kind go to its items, its metadata leads to the rest."""
    items = loaded(WHOLE, tmp_path)
    if field == "metadata":
        api = Pages(
            {**WHOLE, "metadata": {"continue": "there", "resourceVersion": "7"}},
            {**WHOLE, "items": [ITEM], "metadata": {"resourceVersion": "8"}},
        )
        listed = api.list_all("/slices", {})
        assert [query.get("continue") for query in api.asked] == [None, "there"]
        assert (len(listed.items), listed.resource_version) == (3, "8")
    elif field == "items":
        assert [item["spec"] for item in items] == [{"driver": "d"}] * 2
        assert loaded({**WHOLE, "items": [ITEM]}, tmp_path) == items[:1]
    elif field == "kind":
        assert [item["kind"] for item in items] == ["ResourceSlice"] * 2
        assert [i["kind"] for i in loaded({**WHOLE, "kind": "DeviceClassList"}, tmp_path)] == [
            "DeviceClass"
        ] * 2
        assert loaded({**WHOLE, "kind": "ResourceSlice"}, tmp_path)[0]["items"] == [ITEM, ITEM]
    else:
        assert [item["apiVersion"] for item in items] == [V1] * 2
        older = "resource.k8s.io/v1beta2"
        assert loaded({**WHOLE, "apiVersion": older}, tmp_path)[0]["apiVersion"] == older


def test_list_without_items_is_refused(tmp_path: Path) -> None:
    assert loaded({**WHOLE, "items": []}, tmp_path) == []
    wrong: list[Any] = [GONE, None, {}, "text"]
    for items in wrong:
        data = {k: v for k, v in {**WHOLE, "items": items}.items() if v is not GONE}
        with pytest.raises(InvalidValue, match="must have a list of items"):
            loaded(data, tmp_path)


@pytest.mark.parametrize("odd", [{}, {"metadata": None}, {"metadata": {}}, {"items": []}], ids=repr)
def test_an_answer_that_is_no_list_is_no_empty_list(odd: JSON) -> None:
    api = Pages(odd)
    with pytest.raises(ApiUnavailable, match="is no list"):
        api.list_all("/slices", {})

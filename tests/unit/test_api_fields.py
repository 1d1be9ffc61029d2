"""``docs/api-fields.md`` has a well-formed row for everything the seeds name, and nothing else.

The page is checked as text by :func:`dra_testing.api_page.problems`; the tests below also hand it
altered pages, to show that it would notice.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import pytest

from dra_testing import api_page
from dra_testing.api_page import (
    COLUMNS,
    NOTHING,
    PAGE,
    WORK,
    expected_rows,
    parse,
    problems,
)


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_page_has_a_good_row_for_everything_in_the_seeds(
    page: str, record_property: Callable[[str, object], None]
) -> None:
    assert problems(page) == []
    rows = parse(page).rows
    for state, count in sorted(Counter(row.state for row in rows).items()):
        record_property(f"api-fields: {state}", count)
        sys.stdout.write(f"api-fields: {count} of {len(rows)} rows {state}\n")


# --- negative controls: the same page, altered in one place ---

FIELD = "nodeSelector"
PREFIX = f"| field | `{FIELD}` |"
KEY = f"ResourceSliceSpec.{FIELD}"
OWN = f"tests/unit/test_api_rows.py::test_field[{KEY}]"


def lines_of_the_row(page: str) -> str:
    return next(line for line in page.splitlines(keepends=True) if line.startswith(PREFIX))


def replaced(page: str, column: str, cell: str) -> str:
    """The page with one cell of the row for ResourceSliceSpec.nodeSelector replaced."""
    line = lines_of_the_row(page)
    cells = line.strip().strip("|").split("|")
    cells[COLUMNS.index(column)] = f" {cell} "
    return page.replace(line, f"|{'|'.join(cells)}|\n", 1)


@pytest.mark.parametrize("kind", ["field", "limit", "behaviour"])
def test_a_removed_row_is_missed(page: str, kind: str) -> None:
    row = next(
        row for row in parse(page).rows if row.cells["Kind"] == kind and not row.cells["Note"]
    )
    heading = f"## {row.key.type}\n"
    before, after = page.split(heading, 1)
    line = next(x for x in after.splitlines(keepends=True) if f"| `{row.key.row}` |" in x)
    assert problems(before + heading + after.replace(line, "", 1)) == [f"{row.key}: missing"]


def test_every_single_row_is_missed(page: str) -> None:
    lines = page.splitlines(keepends=True)
    rows = [i for i, line in enumerate(lines) if line.startswith(("| f", "| l", "| b"))]
    assert len(rows) == len(expected_rows())
    for i in rows:
        found = problems("".join(lines[:i] + lines[i + 1 :]))
        assert [problem for problem in found if problem.endswith(": missing")], lines[i]


def test_a_row_of_no_seed_is_unknown(page: str) -> None:
    line = lines_of_the_row(page)
    extra = line.replace(f"`{FIELD}`", "`nodeColour`")
    found = problems(page.replace(line, line + extra, 1))
    assert found == ["ResourceSliceSpec.nodeColour: unknown to the seeds"]


def test_a_row_twice_is_reported(page: str) -> None:
    line = lines_of_the_row(page)
    assert problems(page.replace(line, line + line, 1)) == [f"{KEY}: 2 rows"]


def test_a_row_with_a_cell_too_few_is_malformed(page: str) -> None:
    line = lines_of_the_row(page)
    found = problems(page.replace(line, line.replace("| 002 ", ""), 1))
    assert any("not a row of 9 cells" in problem for problem in found)
    assert f"{KEY}: missing" in found


@pytest.mark.parametrize(
    ("column", "cell", "problem"),
    [
        ("Kind", "limit", "Kind: 'limit', the seeds have a field"),
        ("Seed", "000", "Seed: '000' is not 002"),
        ("Says", "", "Says: empty"),
        ("Modelled", "not yet", "Modelled: malformed 'not yet'"),
        ("Modelled", "not yet: step", "Modelled: malformed 'not yet: step'"),
        ("Validated", "not yet: step 0", "Validated: malformed 'not yet: step 0'"),
        ("Validated", "not yet: step 9", "Validated: malformed 'not yet: step 9'"),
        ("Acted on", "not yet: step 12", "Acted on: malformed 'not yet: step 12'"),
        ("Acted on", "yes", "Acted on: malformed 'yes'"),
        ("Acted on", "", "Acted on: malformed ''"),
        ("Modelled", "`core/no_such_file.py`", "Modelled: no file core/no_such_file.py"),
        ("Test", f"{OWN}, not yet", "Test: malformed 'not yet'"),
        ("Test", f"{OWN}, later", "Test: malformed 'later'"),
        ("Test", f"{OWN}, pending-step-2", "Test: malformed 'pending-step-2'"),
        (
            "Test",
            f"{OWN}, tests/unit/test_nowhere.py::test_x",
            "Test: no file tests/unit/test_nowhere.py",
        ),
        (
            "Test",
            f"{OWN}, tests/unit/test_api_fields.py::test_no_such_thing",
            "Test: no test_no_such_thing in tests/unit/test_api_fields.py",
        ),
        (
            "Test",
            f"{OWN}, tests/unit/test_api_rows.py::test_field[Device.colour]",
            "Test: no example Device.colour of test_field",
        ),
        (
            "Test",
            f"{OWN}, tests/unit/test_api_rows.py::test_limit[Device.name]",
            "Test: no example Device.name of test_limit",
        ),
        (
            "Test",
            f"{OWN}, tests/unit/test_wire.py::test_rules_of_older_versions[v1beta2]",
            "Test: no example v1beta2 of test_rules_of_older_versions",
        ),
        ("Test", "tests/unit/test_api_rows.py::test_field", f"Test: {OWN} is not named"),
        ("Note", "D99", "Note: no D99"),
    ],
)
def test_a_bad_cell_is_reported(page: str, column: str, cell: str, problem: str) -> None:
    assert problems(replaced(page, column, cell)) == [f"{KEY}: {problem}"]


def test_a_note_that_no_row_uses_is_reported(page: str) -> None:
    assert problems(page + "* **D99**: nobody asks\n") == ["note D99: used by no row"]


def test_work_done_needs_a_test(page: str) -> None:
    done = page
    for column in WORK:
        done = replaced(done, column, "`tests/unit/test_api_fields.py`")
    assert problems(done) == []
    assert next(row for row in parse(done).rows if str(row.key) == KEY).state == "shown"
    assert problems(replaced(done, "Test", "not yet: step 5")) == [
        f"{KEY}: Test: {OWN} is not named",
        f"{KEY}: Test: all work is done, so a test must be named",
    ]
    begun = replaced(done, "Acted on", "not yet: step 8")
    assert problems(replaced(begun, "Test", "not yet: step 8")) == [
        f"{KEY}: Test: {OWN} is not named"
    ]


@pytest.mark.parametrize("column", ["Modelled", "Validated"])
def test_what_is_done_needs_an_example(
    page: str, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = api_page.EXAMPLES["test_field"]
    monkeypatch.setitem(api_page.EXAMPLES, "test_field", fields - {KEY})
    begun = replaced(page, "Test", "not yet: step 5")
    for other in {"Modelled", "Validated"} - {column}:
        begun = replaced(begun, other, "not yet: step 4")
    assert problems(begun) == [
        f"{KEY}: Test: modelled or validated without an example in dra_testing.rows"
    ]


def test_an_example_of_no_row_is_reported(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = api_page.EXAMPLES["test_limit"]
    monkeypatch.setitem(api_page.EXAMPLES, "test_limit", limits | {"Device#max-5"})
    assert problems(page) == ["examples of Device#max-5: the seeds have no such row"]


def test_a_row_without_any_work_is_reported(page: str) -> None:
    idle = page
    for column in WORK:
        idle = replaced(idle, column, NOTHING)
    assert f"{KEY}: nothing is modelled, validated or acted on" in problems(idle)

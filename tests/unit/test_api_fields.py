"""``docs/api-fields.md`` has a well-formed row for everything the seeds name, and nothing else.

The page is checked as text by ``problems``; the tests below also hand it altered pages, to show
that it would notice.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "api-fields.md"
SEEDS = ROOT / "tests" / "data" / "seed-fields.json"

COLUMNS = ["Kind", "Row", "Says", "Seed", "Modelled", "Validated", "Acted on", "Test", "Note"]
WORK = ("Modelled", "Validated", "Acted on")
NOTES_HEADING = "Notes: where the servers differ"

NOTHING = "—"
NOT_YET = re.compile(r"not yet: step [1-8]")
BEING_BUILT = re.compile(r"step [1-8]")
CODE = re.compile(r"`([\w./-]+\.py)`")
TEST_ID = re.compile(r"`?(tests/[\w/]+\.py)::((?:\w+::)*test_\w+)`?")


class Key(NamedTuple):
    """A row's identity: ``ResourcePool`` and ``name`` or ``name#max-253``."""

    type: str
    row: str

    def __str__(self) -> str:
        joint = "" if self.row.startswith("#") else "."
        return f"{self.type}{joint}{self.row}"


@dataclass(frozen=True)
class Row:
    key: Key
    cells: dict[str, str]

    @property
    def state(self) -> str:
        """``not yet``, ``in part`` (some work begun), ``being built`` (all begun) or ``shown``."""
        work = [self.cells[name] for name in WORK if self.cells[name] != NOTHING]
        late = [cell for cell in (*work, self.cells["Test"]) if NOT_YET.fullmatch(cell)]
        if late:
            return "not yet" if all(NOT_YET.fullmatch(cell) for cell in work) else "in part"
        begun = any(BEING_BUILT.fullmatch(cell) for cell in work)
        return "being built" if begun else "shown"


@dataclass(frozen=True)
class Expected:
    kind: str
    seeds: list[str]


@dataclass(frozen=True)
class Page:
    rows: list[Row]
    notes: list[str]
    malformed: list[str]


def expected_rows() -> dict[Key, Expected]:
    seeds = json.loads(SEEDS.read_text(encoding="utf-8"))
    rows = {
        Key(name, field): Expected("field", origin)
        for name, fields in seeds["fields"].items()
        for field, origin in fields.items()
    }
    for kind, entries in (("limit", seeds["limits"]), ("behaviour", seeds["behaviours"])):
        rows |= {Key(e["type"], e["row"]): Expected(kind, e["seeds"]) for e in entries}
    return rows


def parse(text: str) -> Page:
    rows: list[Row] = []
    malformed: list[str] = []
    heading = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("## "):
            heading = line.removeprefix("## ").strip()
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells == COLUMNS or all(re.fullmatch("-+", cell) for cell in cells):
            continue
        name = re.fullmatch("`(.+)`", cells[1]) if len(cells) == len(COLUMNS) else None
        if name is None:
            malformed.append(f"line {number}: not a row of {len(COLUMNS)} cells with a `name`")
            continue
        rows.append(Row(Key(heading, name[1]), dict(zip(COLUMNS, cells, strict=True))))
    notes = re.findall(r"^\* \*\*(D\d+)\*\*: ", text.partition(NOTES_HEADING)[2], re.MULTILINE)
    return Page(rows, notes, malformed)


@functools.cache
def functions_in(path: Path) -> set[str]:
    """Names of the functions in a file, those in classes as ``Class::test_name``."""
    names: set[str] = set()

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(prefix + node.name)
            elif isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}::")

    visit(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return names


def work_problems(cell: str, root: Path) -> Iterator[str]:
    if cell == NOTHING or NOT_YET.fullmatch(cell) or BEING_BUILT.fullmatch(cell):
        return
    for part in cell.split(", "):
        path = CODE.fullmatch(part)
        if path is None:
            yield f"malformed {part!r}"
        elif not (root / path[1]).is_file():
            yield f"no file {path[1]}"


def shown_by_problems(cell: str, root: Path) -> Iterator[str]:
    if NOT_YET.fullmatch(cell):
        return
    for part in cell.split(", "):
        test_id = TEST_ID.fullmatch(part)
        if test_id is None:
            yield f"malformed {part!r}"
        elif not (root / test_id[1]).is_file():
            yield f"no file {test_id[1]}"
        elif test_id[2] not in functions_in(root / test_id[1]):
            yield f"no {test_id[2]} in {test_id[1]}"


def row_problems(row: Row, expected: Expected, notes: list[str], root: Path) -> Iterator[str]:
    cells = row.cells
    if cells["Kind"] != expected.kind:
        yield f"Kind: {cells['Kind']!r}, the seeds have a {expected.kind}"
    if cells["Seed"].split(", ") != expected.seeds:
        yield f"Seed: {cells['Seed']!r} is not {', '.join(expected.seeds)}"
    if not cells["Says"]:
        yield "Says: empty"
    for name in WORK:
        yield from (f"{name}: {problem}" for problem in work_problems(cells[name], root))
    if all(cells[name] == NOTHING for name in WORK):
        yield "nothing is modelled, validated or acted on"
    yield from (f"Test: {problem}" for problem in shown_by_problems(cells["Test"], root))
    open_work = any(not CODE.search(cells[n]) and cells[n] != NOTHING for n in WORK)
    if not open_work and not TEST_ID.search(cells["Test"]):
        yield "Test: all work is done, so a test must be named"
    yield from (f"Note: no {n}" for n in cells["Note"].split(", ") if n and n not in notes)


def problems(text: str, root: Path = ROOT) -> list[str]:
    """Everything that is wrong with the page, one sentence each."""
    page = parse(text)
    expected = expected_rows()
    found = list(page.malformed)
    counts = Counter(row.key for row in page.rows)
    found += [f"{key}: missing" for key in expected if key not in counts]
    found += [f"{key}: {count} rows" for key, count in counts.items() if count > 1]
    for row in page.rows:
        if row.key not in expected:
            found.append(f"{row.key}: unknown to the seeds")
            continue
        wrong = row_problems(row, expected[row.key], page.notes, root)
        found += [f"{row.key}: {problem}" for problem in wrong]
    used = {note for row in page.rows for note in row.cells["Note"].split(", ")}
    found += [f"note {note}: used by no row" for note in page.notes if note not in used]
    return found


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
        ("Test", "not yet", "Test: malformed 'not yet'"),
        ("Test", "later", "Test: malformed 'later'"),
        ("Test", "pending-step-2", "Test: malformed 'pending-step-2'"),
        ("Test", "tests/unit/test_nowhere.py::test_x", "Test: no file tests/unit/test_nowhere.py"),
        (
            "Test",
            "tests/unit/test_api_fields.py::test_no_such_thing",
            "Test: no test_no_such_thing in tests/unit/test_api_fields.py",
        ),
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
    assert problems(done) == [f"{KEY}: Test: all work is done, so a test must be named"]
    named = "tests/unit/test_api_fields.py::test_work_done_needs_a_test"
    shown = replaced(done, "Test", named)
    assert problems(shown) == []
    assert next(row for row in parse(shown).rows if str(row.key) == KEY).state == "shown"


def test_a_row_without_any_work_is_reported(page: str) -> None:
    idle = page
    for column in WORK:
        idle = replaced(idle, column, NOTHING)
    assert f"{KEY}: nothing is modelled, validated or acted on" in problems(idle)

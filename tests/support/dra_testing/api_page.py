"""``docs/api-fields.md`` as data: its rows, and what is wrong with them."""

from __future__ import annotations

import ast
import functools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from dra_testing.rows.listing import ROWS

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "api-fields.md"
SEEDS = ROOT / "tests" / "data" / "seed-fields.json"

COLUMNS = ["Kind", "Row", "Says", "Seed", "Modelled", "Validated", "Acted on", "Test", "Note"]
WORK = ("Modelled", "Validated", "Acted on")
NOTES_HEADING = "Notes: where the servers differ"

NOTHING = "—"
NOT_YET = re.compile(r"not yet: step [1-8]")
BEING_BUILT = re.compile(r"step [1-8]")
CODE = re.compile(r"`([\w./-]+\.py)`")
TEST_ID = re.compile(r"`?(tests/[\w/]+\.py)::((?:\w+::)*test_\w+)(?:\[(.+)\])?`?")
#: Tests with an example for each row, which is their id in brackets.
ROW_TESTS: Final = "tests/unit/test_api_rows.py"
LISTS: Final = frozenset(
    f"ResourceSliceList.{f}" for f in ("apiVersion", "items", "kind", "metadata")
)
EXAMPLES: Final = {
    "test_field": frozenset(name for name in ROWS if "#" not in name),
    "test_limit": frozenset(name for name in ROWS if "#" in name),
    "test_list": LISTS,
}
#: Rows that one test without examples is all about.
ALONE: Final = {
    "ResourceSliceList.items#required": f"{ROW_TESTS}::test_list_without_items_is_refused"
}


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
        elif test_id[3] and (
            test_id[1] != ROW_TESTS or test_id[3] not in EXAMPLES.get(test_id[2], ())
        ):
            yield f"no example {test_id[3]} of {test_id[2]}"


def own_test(row: Row) -> str:
    """The test that varies what this row is about; empty where there is none yet."""
    name = str(row.key)
    if name in ALONE:
        return ALONE[name]
    test = next((test for test, names in EXAMPLES.items() if name in names), "")
    return f"{ROW_TESTS}::{test}[{name}]" if test else ""


def own_test_problems(row: Row) -> Iterator[str]:
    """What is modelled or validated has a test of its own, and the page names it."""
    mine, named = own_test(row), row.cells["Test"].split(", ")
    if mine:
        if mine not in named:
            yield f"Test: {mine} is not named"
    elif any(CODE.search(row.cells[column]) for column in ("Modelled", "Validated")):
        yield "Test: modelled or validated without an example in dra_testing.rows"


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
    yield from own_test_problems(row)
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
    examples = frozenset().union(*EXAMPLES.values()) - {str(key) for key in expected}
    found += [f"examples of {name}: the seeds have no such row" for name in sorted(examples)]
    used = {note for row in page.rows for note in row.cells["Note"].split(", ")}
    found += [f"note {note}: used by no row" for note in page.notes if note not in used]
    return found

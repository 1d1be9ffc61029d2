"""Forget each rule in turn: every limit of ``docs/api-fields.md`` must be missed by its test.

A rule is a statement that reports a problem, a warning or an object that cannot be read. Each is
taken out by itself, and the tests that the page names for its limits run: a limit whose test never
fails, whatever is forgotten, does not test its limit. Rules that no limit misses are those of other
fields, which have tests of their own; they are counted.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from dra_core.validation import claim_shapes  # noqa: E402
from dra_core.validation.shapes import Field, Leaf  # noqa: E402
from dra_testing import api_page  # noqa: E402
from dra_testing.in_process import failing  # noqa: E402

#: What the servers do not limit, and the page has a note about.
NOT_LIMITED: Final = {"Device#one-field-beside-name"}
#: Where nothing is reported, since the field is not known at all.
UNKNOWN: Final = "DeviceSubRequest#no-admin-access"
REPORTS: Final = {
    *("invalid", "required", "too_many", "too_long", "duplicate", "forbidden", "not_supported"),
    *("Problem", "Warned", "InvalidObject", "InvalidValue", "wrong", "_wrong", "_changed"),
    *("_one_value", "_default_missing", "wrong_types"),
}


def reports(node: ast.AST) -> bool:
    """Whether something is reported within a statement."""
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(getattr(f, "id", getattr(f, "attr", "")) in REPORTS for f in calls)


def forgotten(statement: ast.stmt) -> ast.stmt | None:
    """What is left of a statement that reports; None if it is none, or more than that."""
    text = None
    if isinstance(statement, ast.Expr):
        text = "yield from ()" if isinstance(statement.value, ast.Yield | ast.YieldFrom) else "pass"
    elif isinstance(statement, ast.AugAssign | ast.Raise):
        text = "pass"
    elif isinstance(statement, ast.Return):
        text = "return []"
    elif isinstance(statement, ast.Assign):
        text = f"{ast.unparse(statement.targets[0])} = []"
    elif isinstance(statement, ast.AnnAssign):
        text = f"{ast.unparse(statement.target)} = []"
    if text is None or not reports(statement):
        return None
    return ast.copy_location(ast.parse(text).body[0], statement)


class Forget(ast.NodeTransformer):
    """Takes out the n-th statement that reports."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.line = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        instead = forgotten(node) if isinstance(node, ast.stmt) else None
        if instead is not None:
            self.left -= 1
            if self.left == -1:
                self.line = node.lineno  # type: ignore[attr-defined]
                return instead
        return super().generic_visit(node)


def functions(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of all functions of a module and of its classes, not of those within functions."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_flags & inspect.CO_NEWLOCALS and "<" not in constant.co_name:
                yield constant
            else:
                yield from functions(constant)


def module_without(module: types.ModuleType, number: int) -> tuple[types.CodeType, int]:
    """The module's code without its n-th rule, and the line of that; line 0 if there is none."""
    forget = Forget(number)
    tree = ast.fix_missing_locations(forget.visit(ast.parse(inspect.getsource(module))))
    return compile(tree, str(module.__file__), "exec"), forget.line


def found(module: types.ModuleType, qualified: str) -> Any:
    """A function by its name, in a class or not."""
    value: Any = module
    for part in qualified.split("."):
        value = inspect.getattr_static(value, part, None)
    return getattr(value, "__func__", value)


@contextlib.contextmanager
def put(module: types.ModuleType, code: types.CodeType) -> Iterator[None]:
    """Functions get their new code in place, so that whoever imported them has it too."""
    whole = {}
    for new in functions(code):
        function = found(module, new.co_qualname)
        if isinstance(function, types.FunctionType) and function.__code__ != new:
            whole[function] = function.__code__
            function.__code__ = new
    try:
        yield
    finally:
        for function, old in whole.items():
            function.__code__ = old


@contextlib.contextmanager
def known_after_all() -> Iterator[None]:
    """Alternatives may ask for admin access."""
    sub: Any = claim_shapes.REQUEST.fields["firstAvailable"].shape
    sub.item.fields["adminAccess"] = Field(Leaf.BOOLEAN)
    try:
        yield
    finally:
        del sub.item.fields["adminAccess"]


def main() -> int:
    """Status 1 if the test of a limit never failed."""
    rows = [
        row
        for row in api_page.parse(api_page.PAGE.read_text(encoding="utf-8")).rows
        if row.cells["Kind"] == "limit" and api_page.CODE.search(row.cells["Validated"])
    ]
    tests = {
        str(row.key): test
        for row in rows
        for test in row.cells["Test"].split(", ")
        if test == api_page.own_test(row)
    }
    if failing(tests.values()):
        raise SystemExit("a test that the page names fails on the product as it is")
    files = {path for row in rows for path in api_page.CODE.findall(row.cells["Validated"])}
    files |= {str(p.relative_to(ROOT)) for p in (ROOT / "core/dra_core/validation").glob("*.py")}
    files |= {"core/dra_core/wire/codec.py"}
    red: set[str] = set()
    rules = others = 0
    for file in sorted(files):
        module = importlib.import_module(
            file.partition("/")[2].removesuffix(".py").replace("/", ".")
        )
        code, line = module_without(module, number := 0)
        while line:
            with put(module, code):
                missed = failing(tests.values())
            rules, red = rules + 1, red | missed
            others += not missed
            code, line = module_without(module, number := number + 1)
    with known_after_all():
        red |= failing([tests[UNKNOWN]])
    green = sorted(
        name for name, test in tests.items() if test not in red and name not in NOT_LIMITED
    )
    print(
        f"{rules} rules forgotten in turn, {others} of which no limit of the page misses; "
        f"{len(rows)} limits, {len(rows) - len(tests)} without a test, {len(green)} that missed "
        f"none: {', '.join(green)}"
    )
    return 1 if green or len(tests) != len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())

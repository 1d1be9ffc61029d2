"""What an expression may call: all declarations beside those of the reference."""

from __future__ import annotations

import json
from typing import Any

from dra_core.cel.checker import check
from dra_core.cel.environment import SCHEDULER_1_37, Environment, declarations, overloads
from dra_core.cel.faults import CompileError
from dra_core.cel.parser import parse
from dra_core.cel.signatures import Overload
from dra_testing.cel_named import DECLARATIONS

THEIRS: list[dict[str, Any]] = json.loads(DECLARATIONS.read_text("utf-8"))

#: Old names that the reference still lists; it refuses calls of them as undeclared.
OLD_NAMES = frozenset(("in", "_in_", "__not_strictly_false__"))


def _shown(overload: Overload) -> dict[str, Any]:
    return {
        "function": overload.function,
        "id": overload.id,
        "member": overload.member,
        "args": [str(param) for param in overload.params],
        "result": str(overload.result),
    }


def _ours(environment: Environment = SCHEDULER_1_37) -> list[dict[str, Any]]:
    return [_shown(one) for listed in overloads(environment).values() for one in listed]


def _sorted(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda one: (one["function"], one["id"]))


def test_a_schedulers_overloads_are_those_of_kubernetes() -> None:
    theirs = [one for one in THEIRS if one["function"] not in OLD_NAMES]
    assert _sorted(_ours()) == _sorted(theirs)


def test_old_names_are_listed_but_cannot_be_called() -> None:
    assert {one["function"] for one in THEIRS} >= OLD_NAMES
    for call in ("_in_(1, [1])", "__not_strictly_false__(true)", "in(1, [1])"):
        try:
            check(parse(call), declarations(SCHEDULER_1_37))
        except CompileError:
            continue
        raise AssertionError(call)


def test_new_expressions_have_no_other_overloads_but_includes_of_1_36() -> None:
    known = {one["id"] for one in _ours()}
    for minor in (36, 37):
        new = Environment((1, minor), stored=False)
        more = {one["id"] for one in _ours(new)} - known
        expected = set() if minor == 37 else {"dra_includes_dyn_dyn", "int64_to_duration"}
        assert more == expected

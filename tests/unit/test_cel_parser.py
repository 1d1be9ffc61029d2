"""Expressions as trees: words, operators, macros, faults and limits.

All trees, places and limits here are those of cel-go 0.29.2; contract/test_cel_trees.py compares
many more with it.
"""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from dra_core.cel import lexer
from dra_core.cel.builder import COPIES_MAX
from dra_core.cel.faults import CompileError
from dra_core.cel.parser import CODE_POINTS_MAX, RESERVED, parse
from dra_core.cel.syntax import (
    Call,
    Const,
    Fold,
    Ident,
    ListNode,
    MapNode,
    Node,
    Select,
    StructNode,
    children,
)
from dra_core.cel.values import Uint

T = (
    'device.driver == "gpu.example.com" && '
    'device.attributes["gpu.example.com"].model.matches("^A100") && '
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("10Gi")) >= 0'
)


def shown(node: Node) -> str:
    """A tree as a line: ``f(a)`` is a call, ``a->f(b)`` one with a target, ``a.b?`` a has()."""
    return str(_SHOWN[type(node)](node))


def _listed(parts: Iterable[tuple[bool, str]]) -> str:
    return ", ".join(f"?{part}" if optional else part for optional, part in parts)


_SHOWN: dict[type[Node], Callable[[Any], str]] = {
    Const: lambda node: _literal(node.value),
    Ident: lambda node: node.name,
    Select: lambda node: f"{shown(node.operand)}.{node.field}{'?' if node.test_only else ''}",
    Call: lambda node: (
        f"{shown(node.target) + '->' if node.target else ''}{node.function}"
        f"({', '.join(map(shown, node.args))})"
    ),
    ListNode: lambda node: (
        f"[{_listed((i in node.optional, shown(item)) for i, item in enumerate(node.items))}]"
    ),
    MapNode: lambda node: (
        f"{{{_listed((e.optional, f'{shown(e.key)}: {shown(e.value)}') for e in node.entries)}}}"
    ),
    StructNode: lambda node: (
        f"{node.type_name}"
        f"{{{_listed((f.optional, f'{f.name}: {shown(f.value)}') for f in node.fields)}}}"
    ),
    Fold: lambda node: (
        f"for {node.var}{', ' + node.var2 if node.var2 else ''} in {shown(node.range)} "
        f"| {node.accu} = {shown(node.init)} | while {shown(node.condition)} "
        f"| {shown(node.step)} | {shown(node.result)} end"
    ),
}


def _literal(value: Any) -> str:
    if isinstance(value, Uint | float | bytes):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def nodes(root: Node) -> Iterator[Node]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)


def faults(source: str) -> list[tuple[int, str]]:
    with pytest.raises(CompileError) as caught:
        parse(source)
    return [(fault.offset, fault.text) for fault in caught.value.faults]


# --- trees ---


@pytest.mark.parametrize(
    ("source", "tree"),
    [
        # Precedence and sides.
        ("1 + 2 * 3 - 4", "_-_(_+_(1, _*_(2, 3)), 4)"),
        ("1 * 2 / 3 % 4", "_%_(_/_(_*_(1, 2), 3), 4)"),
        ("1 < 2 == true", "_==_(_<_(1, 2), true)"),
        ("1 + 2 <= 3 in [4]", "@in(_<=_(_+_(1, 2), 3), [4])"),
        ("a || b && c || d", "_||_(_||_(a, _&&_(b, c)), d)"),
        ("a && b != c || d > e", "_||_(_&&_(a, _!=_(b, c)), _>_(d, e))"),
        ("a >= b ? c || d : e ? f : g", "_?_:_(_>=_(a, b), _||_(c, d), _?_:_(e, f, g))"),
        ("a ? (b ? c : d) : e", "_?_:_(a, _?_:_(b, c, d), e)"),
        ("(a ? b : c) ? d : e", "_?_:_(_?_:_(a, b, c), d, e)"),
        ("(1 + 2) * 3", "_*_(_+_(1, 2), 3)"),
        # Chains of && and || are balanced.
        ("a && b", "_&&_(a, b)"),
        ("a && b && c", "_&&_(_&&_(a, b), c)"),
        ("a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))"),
        ("a || b || c || d || e", "_||_(_||_(_||_(a, b), c), _||_(d, e))"),
        ("a && (b && c) && d", "_&&_(_&&_(a, _&&_(b, c)), d)"),
        # Signs in front.
        ("-1", "-1"),
        ("- 1", "-1"),
        ("--1", "1"),
        ("---1", "-_(1)"),
        ("-1u", "-_(1u)"),
        ("-x.y", "-_(x.y)"),
        ("--x", "x"),
        ("-1.size()", "-1->size()"),
        ("-.5", "-0.5"),
        ("-0.0", "-0.0"),
        ("1 - -1", "_-_(1, -1)"),
        ("1-1", "_-_(1, 1)"),
        ("!a", "!_(a)"),
        ("!!a", "a"),
        ("! ! !a.b()", "!_(a->b())"),
        ("!-1", "!_(-1)"),
        ("!(-a)", "!_(-_(a))"),
        ("-(-1)", "-_(-1)"),
        # Members and indexes.
        ("a.b.c", "a.b.c"),
        (".a.b", ".a.b"),
        (" . a ( 1 ) ", ".a(1)"),
        ("a.b(c).d[e].g()", "_[_](a->b(c).d, e)->g()"),
        ("a.?b", '_?._(a, "b")'),
        ("a. ? `b c`.d", '_?._(a, "b c").d'),
        ("a[?b]", "_[?_](a, b)"),
        ("a.`b-c/d.e f`", "a.b-c/d.e f"),
        ("a.for.namespace.as()", "a.for.namespace->as()"),
        ("index-1", "_-_(index, 1)"),
        ("trueish", "trueish"),
        # Lists, maps, objects.
        ("[]", "[]"),
        ("[,]", "[]"),
        ("[1, ?a, 2,]", "[1, ?a, 2]"),
        ("{}", "{}"),
        ("{,}", "{}"),
        ("{'a': 1, ?b: c ? d : e,}", '{"a": 1, ?b: _?_:_(c, d, e)}'),
        ("{a ? b : c: d}", "{_?_:_(a, b, c): d}"),
        ("T{}", "T{}"),
        (".a.for.T{x: 1, ?`y-z`: 2,}", ".a.for.T{x: 1, ?y-z: 2}"),
        ("{1: a.b}", "{1: a.b}"),
        ("f()", "f()"),
        ("f(a, [b], {c: d})", "f(a, [b], {c: d})"),
        # Blanks and comments.
        ("\t\n\f\r a // b\n . // c\r\n b//", "a.b"),
        # What is no macro.
        ("x.existsOne(y, z)", "x->existsOne(y, z)"),
        ("x.bind(a, 1, a)", "x->bind(a, 1, a)"),
        (".cel.bind(a, 1, a)", ".cel->bind(a, 1, a)"),
        ("x.all(y)", "x->all(y)"),
        ("all(x, y)", "all(x, y)"),
        (".has(a.b)", ".has(a.b)"),
        ("a.has(b.c)", "a->has(b.c)"),
        ("has(a.b, c)", "has(a.b, c)"),
    ],
)
def test_tree(source: str, tree: str) -> None:
    assert shown(parse(source).root) == tree


_ALL = "| @result = true | while @not_strictly_false(@result) | _&&_(@result, p) | @result end"
_EXISTS = (
    "| @result = false | while @not_strictly_false(!_(@result)) | _||_(@result, p) | @result end"
)
_ONE = "| @result = 0 | while true | _?_:_(p, _+_(@result, 1), @result) | _==_(@result, 1) end"
_LIST = "| @result = [] | while true | _+_(@result, [p]) | @result end"
_LIST_IF = "| @result = [] | while true | _?_:_(p, _+_(@result, [q]), @result) | @result end"
_MAP = "| @result = {} | while true | cel.@mapInsert(@result, k, p) | @result end"
_MAP_IF = (
    "| @result = {} | while true | _?_:_(p, cel.@mapInsert(@result, k, q), @result) | @result end"
)
_LET = "for #unused in [] | x = a->value() | while false | x | p end"
_IN = "@__sortBy_input__"
_SORTED = (
    f"for #unused in [] | {_IN} = r | while false | {_IN} "
    f"| {_IN}->@sortByAssociatedKeys(for x in {_IN} {_LIST}) end"
)
_ENTRY = "| @result = {} | while true | cel.@mapInsert(@result, p) | @result end"
_ENTRY_IF = (
    "| @result = {} | while true | _?_:_(p, cel.@mapInsert(@result, q), @result) | @result end"
)


@pytest.mark.parametrize(
    ("source", "tree"),
    [
        ("has(a.b.c)", "a.b.c?"),
        ("has(has(a.b))", "a.b?"),
        ("r.all(x, p)", f"for x in r {_ALL}"),
        ("r.exists(x, p)", f"for x in r {_EXISTS}"),
        ("r.exists_one(x, p)", f"for x in r {_ONE}"),
        ("r.map(x, p)", f"for x in r {_LIST}"),
        ("r.map(x, p, q)", f"for x in r {_LIST_IF}"),
        ("r.filter(x, p)", f"for x in r {_LIST_IF}".replace("[q]", "[x]")),
        ("r.all(k, v, p)", f"for k, v in r {_ALL}"),
        ("r.exists(k, v, p)", f"for k, v in r {_EXISTS}"),
        ("r.existsOne(k, v, p)", f"for k, v in r {_ONE}"),
        ("r.exists_one(k, v, p)", f"for k, v in r {_ONE}"),
        ("r.transformList(k, v, p)", f"for k, v in r {_LIST}"),
        ("r.transformList(k, v, p, q)", f"for k, v in r {_LIST_IF}"),
        ("r.transformMap(k, v, p)", f"for k, v in r {_MAP}"),
        ("r.transformMap(k, v, p, q)", f"for k, v in r {_MAP_IF}"),
        ("r.transformMapEntry(k, v, p)", f"for k, v in r {_ENTRY}"),
        ("r.transformMapEntry(k, v, p, q)", f"for k, v in r {_ENTRY_IF}"),
        ("r.all(.x, p)", f"for .x in r {_ALL}"),
        ("cel.bind(x, p, q)", "for #unused in [] | x = p | while false | x | q end"),
        (
            "a.optMap(x, p)",
            f"_?_:_(a->hasValue(), optional.of({_LET}), optional.none())",
        ),
        (
            "a.optFlatMap(x, p)",
            f"_?_:_(a->hasValue(), {_LET}, optional.none())",
        ),
        ("r.sortBy(x, p)", _SORTED),
    ],
)
def test_macro(source: str, tree: str) -> None:
    assert shown(parse(source).root) == tree


def test_the_target_of_opt_map_is_copied_whole() -> None:
    target = '{a: [b, ?c.d], "e": T{f: g.h(has(i.j)), ?k: 1}}.l.?m[?n].exists(o, -o)'
    root = parse(f"{target}.optMap(x, x)").root
    assert isinstance(root, Call)
    has_value, mapped, _ = root.args
    assert isinstance(has_value, Call)
    assert isinstance(mapped, Call)
    fold = mapped.args[0]
    assert isinstance(fold, Fold)
    value = fold.init
    assert isinstance(value, Call)
    assert has_value.target is not None
    assert value.target is not None
    assert shown(value.target) == shown(has_value.target) == shown(parse(target).root)
    ids = [node.id for node in nodes(root)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    "source",
    [T, "[1].sortBy(x, -x).all(y, y.filter(z, has(z.a)).optMap(b, {b: [b]}).hasValue())"],
)
def test_every_node_has_an_identifier_and_a_place_of_its_own(source: str) -> None:
    parsed = parse(source)
    ids = [node.id for node in nodes(parsed.root)]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= parsed.positions.keys()
    assert all(0 <= at < len(source) for at in parsed.positions.values())


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("a.b", [("Select", 1), ("Ident", 0)]),
        (".a", [("Ident", 1)]),
        ("a + b", [("Call", 2), ("Ident", 0), ("Ident", 4)]),
        ("!!! a", [("Call", 0), ("Ident", 4)]),
        ("- 1", [("Const", 0)]),
        ("---1", [("Call", 0), ("Const", 3)]),
        ("a.f(b)", [("Call", 3), ("Ident", 0), ("Ident", 4)]),
        ("f(b)", [("Call", 1), ("Ident", 2)]),
        ("a[?b]", [("Call", 1), ("Ident", 0), ("Ident", 3)]),
        ("a.?`b`", [("Call", 1), ("Ident", 0), ("Const", 3)]),
        ("a ? b : c", [("Call", 2), ("Ident", 0), ("Ident", 4), ("Ident", 8)]),
        (" [a]", [("ListNode", 1), ("Ident", 2)]),
        ("{a: b}", [("MapNode", 0), ("Ident", 1), ("Ident", 4)]),
        (".a.T{b: c}", [("StructNode", 4), ("Ident", 8)]),
        ("has(a.b)", [("Select", 3), ("Ident", 4)]),
        ('"\U0001f600" +\n\r\n x', [("Call", 4), ("Const", 0), ("Ident", 9)]),
        ("a&&b||c", [("Call", 4), ("Call", 1), ("Ident", 0), ("Ident", 3), ("Ident", 6)]),
    ],
)
def test_places(source: str, places: list[tuple[str, int]]) -> None:
    parsed = parse(source)

    def walk(node: Node) -> Iterator[tuple[str, int]]:
        yield type(node).__name__, parsed.positions[node.id]
        for child in children(node):
            yield from walk(child)

    assert list(walk(parsed.root)) == places


def test_a_macro_stands_at_its_bracket_and_so_does_what_it_adds() -> None:
    parsed = parse("  r.filter(x, p)")
    added = [node for node in nodes(parsed.root) if not isinstance(node, Ident)]
    assert {parsed.positions[node.id] for node in added} == {10}


def test_entries_and_fields_stand_at_their_colon() -> None:
    parsed = parse("{a : T{b : c}}")
    assert isinstance(parsed.root, MapNode)
    (entry,) = parsed.root.entries
    assert isinstance(entry.value, StructNode)
    (init,) = entry.value.fields
    assert (parsed.positions[entry.id], parsed.positions[init.id]) == (3, 9)


# --- literals ---


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("0", 0),
        ("007", 7),
        ("0" * 6000 + "1", 1),
        ("0x1F", 31),
        ("-0x8000000000000000", -(2**63)),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775807", 2**63 - 1),
        ("1u", Uint(1)),
        ("0xFfU", Uint(255)),
        ("18446744073709551615u", Uint(2**64 - 1)),
        ("1.5", 1.5),
        (".5e+1", 5.0),
        ("1E3", 1000.0),
        ("1e-999", 0.0),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("true", True),
        ("false", False),
        ("null", None),
        ('""', ""),
        ("'a\"b'", 'a"b'),
        (r'"\a\b\f\n\r\t\v\\\'\"\?\`"', "\a\b\f\n\r\t\v\\'\"?`"),
        (r'"\x41\X61\101\u00e9\U0001F600\377"', "AaAé😀ÿ"),
        ("'''a'b''c\\''''", "a'b''c'"),
        ('"""a\n"b\r\nc\rd"""', 'a\n"b\nc\nd'),
        ('""""""', ""),
        (r'r"\q"', r"\q"),
        ("R'''a\\'''", "a\\"),
        ('"\\\\\\""', '\\"'),
        ("b'é\\xff\\377\\n'", b"\xc3\xa9\xff\xff\n"),
        ("bR'\\xff'", rb"\xff"),
        ('B"""a\r\n\\\\"""', b"a\n\\"),
        ("'\ud800'", "\ufffd"),
    ],
)
def test_literal(source: str, value: Any) -> None:
    root = parse(source).root
    assert isinstance(root, Const)
    assert root.value == value
    assert type(root.value) is type(value)


@pytest.mark.parametrize(
    ("source", "at", "text"),
    [
        ("9223372036854775808", 0, "from -9223372036854775808 to 9223372036854775807"),
        ("1 + -9223372036854775809", 4, "from -9223372036854775808"),
        ("--9223372036854775808", 2, "from -9223372036854775808"),
        ("9" * 6000, 0, "from -9223372036854775808"),
        ("0x8000000000000000", 0, "from -9223372036854775808"),
        ("18446744073709551616u", 0, "at most 18446744073709551615"),
        ("1 < -1e309", 4, "larger than any double"),
        (r"'\ud800'", 0, r"no character \ud800"),
        (r"a + '\U00110000'", 4, r"no character \U00110000"),
        (r"b'\u0041'", 0, r"bytes cannot have the escape \u0041"),
    ],
)
def test_literals_without_a_value(source: str, at: int, text: str) -> None:
    ((offset, said),) = faults(source)
    assert offset == at
    assert text in said


def test_all_literals_without_a_value_are_found() -> None:
    found = faults("[99999999999999999999, 1e999, while, '\\ud800'.all(1, x)]")
    assert [at for at, _ in found] == [1, 23, 30, 37, 50]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1.", ["1", "."]),
        ("1.e5", ["1", ".", "e5"]),
        ("1..5", ["1", ".", ".5"]),
        ("1.5.5", ["1.5", ".5"]),
        ("1e", ["1", "e"]),
        ("1.5u", ["1.5", "u"]),
        ("0x", ["0", "x"]),
        ("0X1", ["0", "X1"]),
        ("0xfuz", ["0xfu", "z"]),
        ("a.5", ["a", ".5"]),
        ("in1 in", ["in1", "in"]),
        ('rb"x"', ["rb", '"x"']),
        ('br"\\"', ['br"\\"']),
        ('"""a""""""b"', ['"""a"""', '""', '"b"']),
        ("a<=b<c", ["a", "<=", "b", "<", "c"]),
        ("`a b`.c", ["`a b`", ".", "c"]),
        ("a//b\n/c", ["a", "/", "c"]),
    ],
)
def test_the_longest_text_is_a_word(source: str, words: list[str]) -> None:
    *found, last = lexer.words(source)
    assert [text for _, text, _ in found] == words
    assert last == (lexer.END, "", len(source))


# --- faults ---


@pytest.mark.parametrize(
    ("source", "at", "text"),
    [
        ("", 0, "the expression ends where a value is expected"),
        ("  // nothing\n", 13, "the expression ends where a value is expected"),
        ("a b", 2, "there is 'b' where an operator or the end is expected"),
        ("a +", 3, "the expression ends where a value is expected"),
        ("(a", 2, "the expression ends where an operator or ')' is expected"),
        ("(a]", 2, "there is ']' where an operator or ')' is expected"),
        ("a)", 1, "there is ')' where an operator or the end is expected"),
        ("()", 1, "there is ')' where a value is expected"),
        ("f(a,)", 4, "there is ')' where a value is expected"),
        ("f(?a)", 2, "there is '?' where a value is expected"),
        ("f(a b)", 4, "there is 'b' where an operator, ',' or ')' is expected"),
        ("f(a]", 3, "there is ']' where an operator, ',' or ')' is expected"),
        ("a(b)(c)", 4, "there is '(' where an operator or the end is expected"),
        ("a[b", 3, "the expression ends where an operator or ']' is expected"),
        ("a[b, c]", 3, "there is ',' where an operator or ']' is expected"),
        ("a[]", 2, "there is ']' where a value is expected"),
        ("[a b]", 3, "there is 'b' where an operator, ',' or ']' is expected"),
        ("[a)", 2, "there is ')' where an operator, ',' or ']' is expected"),
        ("[,a]", 2, "there is 'a' where ']' is expected"),
        ("[a,,]", 3, "there is ',' where a value is expected"),
        ("{a}", 2, "there is '}' where an operator or ':' is expected"),
        ("{a: b: c}", 5, "there is ':' where an operator, ',' or '}' is expected"),
        ("{a: ?b}", 4, "there is '?' where a value is expected"),
        ("{,a}", 2, "there is 'a' where '}' is expected"),
        ("T{1: 2}", 2, "there is '1' where the name of a field is expected"),
        ("T{in: 2}", 2, "there is 'in' where the name of a field is expected"),
        ("T{a}", 3, "there is '}' where ':' is expected"),
        ("T{a: 1 2}", 7, "there is '2' where an operator, ',' or '}' is expected"),
        ("(a).T{}", 5, "there is '{' where an operator or the end is expected"),
        ("a.`b`{}", 5, "there is '{' where an operator or the end is expected"),
        ("a.", 2, "the expression ends where the name of a field is expected"),
        ("a.in", 2, "there is 'in' where the name of a field is expected"),
        ("a.true", 2, "there is 'true' where the name of a field is expected"),
        ("a.1", 1, "there is '.1' where an operator or the end is expected"),
        ("a.`b`(c)", 5, "there is '(' where an operator or the end is expected"),
        ("a.?b(c)", 4, "there is '(' where an operator or the end is expected"),
        (".1.a.(b)", 5, "there is '(' where the name of a field is expected"),
        (".(a)", 1, "there is '(' where a name is expected"),
        (".`a`", 1, "there is '`a`' where a name is expected"),
        ("`a`", 0, "there is '`a`' where a value is expected"),
        ("in", 0, "there is 'in' where a value is expected"),
        ("a ? b", 5, "the expression ends where an operator or ':' is expected"),
        ("a ? b ? c : d : e", 6, "there is '?' where an operator or ':' is expected"),
        ("a ? b : c : d", 10, "there is ':' where an operator or the end is expected"),
        ("[a ? b]", 6, "there is ']' where an operator or ':' is expected"),
        ("!-a", 2, "there is 'a' where a number is expected"),
        ("!-1u", 2, "there is '1u' where a number is expected"),
        ("!--1", 2, "there is '-' where a number is expected"),
        ("-!a", 1, "there is '!' where a value is expected"),
        ("+1", 0, "there is '+' where a value is expected"),
        ("a & b", 2, "'&' does not belong to the language: write &&"),
        ("a = b", 2, "'=' does not belong to the language: write =="),
        ("a | b", 2, "'|' does not belong to the language: write ||"),
        ("a;b", 1, "';' does not belong to the language"),
        ("\u00e9", 0, "'é' does not belong to the language"),
        ("a\u00a0+ b", 1, r"'\xa0' does not belong to the language"),
        ("a == 'b", 5, "this string does not end"),
        ("'a\nb'", 0, "this string does not end"),
        ("'''a", 2, "this string does not end"),
        (r"'a\qb'", 0, r"this string has an escape that does not exist or end: \q"),
        (r"'\400'", 0, r"this string has an escape that does not exist or end: \4"),
        (r"'\u12'", 0, r"this string has an escape that does not exist or end: \u"),
        ("a.`b", 2, "a name between backticks has letters, digits and _ . - / or blanks only"),
        ("a.`é`", 2, "a name between backticks has letters, digits and _ . - / or blanks only"),
        ("for", 0, "for is reserved and cannot be a name"),
        ("1 + .if", 4, "if is reserved and cannot be a name"),
        ("while(1)", 0, "while is reserved and cannot be a name"),
        ("has(a)", 4, "has() asks for a field: has(a.b)"),
        ("has(a.?b)", 5, "has() asks for a field: has(a.b)"),
        ("has(a[b])", 5, "has() asks for a field: has(a.b)"),
        ("r.all(a.b, p)", 7, "the variable of a macro must be a plain name"),
        ("r.map(1, p)", 6, "the variable of a macro must be a plain name"),
        ("r.filter(__result__, p)", 9, "the variable of a macro cannot be called __result__"),
        ("r.all(x, x, p)", 9, "both variables are called x"),
        ("r.all(x, 'y', p)", 9, "the variable of a macro must be a plain name"),
        ("r.exists(x, __result__, p)", 12, "the variable of a macro cannot be called __result__"),
        ("cel.bind(1, p, q)", 9, "the variable of a macro must be a plain name"),
        ("a.optMap(x + y, p)", 11, "the variable of a macro must be a plain name"),
        ("a.optFlatMap(f(), p)", 14, "the variable of a macro must be a plain name"),
        ("1.sortBy(x, p)", 0, "sortBy() sorts a list, not a literal of another kind"),
        ("{}.sortBy(x, p)", 0, "sortBy() sorts a list, not a literal of another kind"),
        ("r.sortBy(1, p)", 9, "the variable of a macro must be a plain name"),
    ],
)
def test_fault(source: str, at: int, text: str) -> None:
    assert faults(source) == [(at, text)]


def test_reserved_names_are_those_of_the_language() -> None:
    for name in RESERVED:
        assert faults(name) == [(0, f"{name} is reserved and cannot be a name")]
        assert shown(parse(f"a.{name}").root) == f"a.{name}"


def test_a_fault_of_the_syntax_hides_neither_what_was_found_before_nor_a_bad_text_after() -> None:
    assert [at for at, _ in faults("for + 1 2 + #")] == [0, 8, 12]


def test_faults_are_shown_with_their_line() -> None:
    with pytest.raises(CompileError) as caught:
        parse("a &&\n  b +* c")
    assert str(caught.value) == (
        "2:6: there is '*' where a value is expected\n |   b +* c\n | .....^"
    )


# --- limits ---

_NESTED: dict[str, tuple[int, Callable[[int], str]]] = {
    "parentheses": (249, lambda n: "(" * n + "1" + ")" * n),
    "lists": (249, lambda n: "[" * n + "1" + "]" * n),
    "maps": (249, lambda n: "{1:" * n + "1" + "}" * n),
    "keys": (249, lambda n: "{" * n + "1" + ":1}" * n),
    "objects": (249, lambda n: "T{a:" * n + "1" + "}" * n),
    "calls": (249, lambda n: "f(" * n + "1" + ")" * n),
    "member calls": (249, lambda n: "a.f(" * n + "1" + ")" * n),
    "chained calls": (250, lambda n: "a" + ".f()" * n),
    "members": (250, lambda n: "a" + ".b" * n),
    "optional members": (250, lambda n: "a" + ".?b" * n),
    "indexes": (250, lambda n: "a" + "[1]" * n),
    "indexes in indexes": (249, lambda n: "a[" * n + "1" + "]" * n),
    "alternatives": (249, lambda n: "true?1:" * n + "1"),
    "choices": (249, lambda n: "true?(" * n + "1" + "):1" * n),
    "conditions": (248, lambda n: "(" * n + "true" + "?true:true)" * n),
    "negations": (249, lambda n: "!(" * n + "true" + ")" * n),
    "and": (249, lambda n: "true&&(" * n + "true" + ")" * n),
    "comparisons": (250, lambda n: "1" + "==1" * n),
    "comparisons on the right": (124, lambda n: "1==(" * n + "1" + ")" * n),
    "sums": (250, lambda n: "1" + "+1" * n),
    "sums on the left": (248, lambda n: "(" * n + "1" + "+1)" * n),
    "sums on the right": (124, lambda n: "1+(" * n + "1" + ")" * n),
    "sums of products": (83, lambda n: "1+1*(" * n + "1" + ")" * n),
    "compared sums of products": (83, lambda n: "1==1+1*(" * n + "1" + ")" * n),
    "has": (249, lambda n: "has(" * n + "a.b" + ")" * n),
    "all": (249, lambda n: "[1].all(x," * n + "true" + ")" * n),
    "bind": (249, lambda n: "cel.bind(x,1," * n + "x" + ")" * n),
}


@pytest.mark.parametrize("kind", _NESTED)
def test_the_deepest_of_each_kind(kind: str) -> None:
    most, make = _NESTED[kind]
    parse(make(most))
    for more in (most + 1, 4000):
        ((at, text),) = faults(make(more))
        assert text == "the expression is nested deeper than 250 levels"
        assert 0 < at < len(make(more))


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("!" * 99_998 + "a", 1),
        ("-" * 99_999 + "a", 2),
        ("a" + "&&a" * 33_000, 66_001),
        ("a" + "||a" * 33_000, 66_001),
        ("[" + "1," * 49_000 + "]", 49_001),
        ("{" + "1:1," * 24_000 + "}", 48_001),
        ("f(" + "1," * 49_000 + "1)", 49_002),
        ("a" + ".b" * 49_000 + "{}", 1),
        ("1" + " " * 99_999, 1),
        ("1//" + "/" * 99_000, 1),
        ("'" + "\\n" * 49_000 + "'", 1),
    ],
    ids=["not", "minus", "and", "or", "list", "map", "call", "type", "blanks", "comment", "string"],
)
def test_length_is_no_depth(source: str, count: int) -> None:
    assert sum(1 for _ in nodes(parse(source).root)) == count


_HIGH = "a" + ".b" * 250  # as high as can be
_LESS = "a" + ".b" * 249


@pytest.mark.parametrize(
    "source",
    [
        *[
            _HIGH,
            f"f({_HIGH})",
            f"f(1, {_HIGH}, 2)",
            f"!{_HIGH}",
            f"-{_HIGH}",
            f"[{_HIGH}, ?{_HIGH}]",
        ],
        *[f"{{{_HIGH}: {_HIGH}}}", f"T{{a: {_HIGH}}}", f"{_HIGH} && {_HIGH} || a && {_HIGH}"],
        *[
            f"(!{_LESS}).b",
            f"(-{_LESS}).b",
            f"({_LESS} && {_LESS}).b",
            f"[{_LESS}][0]",
            f"f([{{1: !f({_HIGH})}}])",
            f"({_HIGH})",
            "[" + "a?b:c," * 300 + "]",
            f"{_HIGH}.b{{}}",
        ],
    ],
)
def test_what_does_not_count_as_height(source: str) -> None:
    parse(source)


@pytest.mark.parametrize(
    "source",
    [
        *[f"{_HIGH}.b", f"{_HIGH}[0]", f"a[{_HIGH}]", f"{_HIGH}.f()", f"a.f(1, {_HIGH}, 2)"],
        *[
            f"{_HIGH} + 1",
            f"1 < {_HIGH}",
            f"{_HIGH} ? 1 : 2",
            f"a ? {_HIGH} : 2",
            f"a ? 1 : {_HIGH}",
        ],
        *[f"f({_HIGH}, 1).b", f"[{_HIGH}, 1].b", f"{{{_HIGH}: 1, 2: 3}}.b", f"T{{a: {_HIGH}}}.b"],
        *[f"({_HIGH} && b).b", f"(b || {_HIGH}).b", f"(!{_HIGH}).b", f"has({_HIGH}.b)"],
        *[f"[].map(x, {_HIGH})", f"{_HIGH}.optMap(x, x)"],
    ],
)
def test_what_counts_as_height(source: str) -> None:
    ((_, text),) = faults(source)
    assert text == "the expression is nested deeper than 250 levels"


def _deep_in_the_stack(work: Callable[[], object], room: int) -> None:
    """Does the work where Python has few frames left."""

    def down(levels: int) -> None:
        if levels:
            down(levels - 1)
        else:
            work()

    down(sys.getrecursionlimit() - len(inspect.stack(0)) - room)


@pytest.mark.parametrize("kind", _NESTED)
def test_depth_takes_no_room_on_the_stack(kind: str) -> None:
    most, make = _NESTED[kind]
    limit = sys.getrecursionlimit()
    _deep_in_the_stack(lambda: parse(make(most)), room=40)
    _deep_in_the_stack(lambda: parse(make(30) + ".optMap(x, x)"), room=40)
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    "source",
    [
        "(" * 100_000,
        "[?" * 50_000,
        "a{b:" * 25_000,
        "a?" * 50_000,
        "a?b:" * 25_000,
        "'" * 99_999,
        "'" + "\\n" * 49_999,
        "'''\"\"\"" * 16_666,
        'r"""' + '"\\' * 49_000,
        "`" + "a" * 99_999,
        "1" * 100_000,
        "0x" + "f" * 99_998,
        "1e" + "9" * 99_998,
        "a" + ".b" * 49_999,
        "1 " * 50_000,
        "[" + "9" * 20 + ",a" * 40_000,
        "x" * (CODE_POINTS_MAX + 1),
        "\U0001f600" * 100_000,
        "a" + ".optMap(x,x)" * 240,
        "[" + "1," * 9_000 + "].optMap(x,x)" + ".optMap(x,x)" * 20,
    ],
    ids=lambda source: source[:6],
)
def test_what_is_hostile_is_refused_in_a_moment(source: str) -> None:
    begin = time.process_time()
    assert faults(source)
    assert time.process_time() - begin < 10


def test_long_texts_are_not_read() -> None:
    parse("x" * CODE_POINTS_MAX)
    with pytest.raises(CompileError) as caught:
        parse("x" * (CODE_POINTS_MAX + 1))
    assert "100001 characters" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_macros_do_not_multiply_the_tree_without_end() -> None:
    parse("a" + ".optMap(x, x)" * 10)
    parse("[" + f"{'a' + '.optMap(x, x)' * 9}, " * 10 + "]")
    for source in (
        "a" + ".optMap(x, x)" * 30,
        "[" + f"{'a' + '.optMap(x, x)' * 9}, " * 40 + "]",
    ):
        ((at, text),) = faults(source)
        assert text == f"the macros of this expression copy more than {COPIES_MAX} nodes"
        assert at > 100


def test_a_hundred_faults_are_enough() -> None:
    assert len(faults("[" + "for," * 300 + "]")) == 100


def test_a_selector_is_read_in_far_less_than_a_millisecond() -> None:
    def once() -> float:
        begin = time.process_time()
        for _ in range(100):
            parse(T)
        return (time.process_time() - begin) / 100

    assert min(once() for _ in range(5)) < 0.0003

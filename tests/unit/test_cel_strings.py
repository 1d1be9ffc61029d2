"""Strings of CEL. What is expected here is what cel-go 0.29.2 gave."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal

import pytest

from dra_core.cel import celtypes
from dra_core.cel.celtypes import Type
from dra_core.cel.faults import CostExceeded, EvalError
from dra_core.cel.library import bounds, strings
from dra_core.cel.library.format_check import format_faults
from dra_core.cel.library.text_format import formatted
from dra_core.cel.syntax import (
    Call,
    Checked,
    Const,
    Entry,
    Ident,
    ListNode,
    MapNode,
    Node,
    Parsed,
)
from dra_core.cel.values import (
    INT_MAX,
    INT_MIN,
    Duration,
    Map,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Value,
)
from dra_testing.cel_dynamic_calls import call

INF, NAN = float("inf"), float("nan")


CALLS: list[tuple[str, tuple[Value, ...], Value]] = [
    ("contains", ("abc", "bc"), True),
    ("contains", ("abc", ""), True),
    ("contains", ("abc", "cb"), False),
    ("startsWith", ("abc", "ab"), True),
    ("startsWith", ("abc", "bc"), False),
    ("endsWith", ("abc", "bc"), True),
    ("endsWith", ("abc", "abcd"), False),
    ("charAt", ("h\u00e9\U0001f600", 2), "\U0001f600"),
    ("charAt", ("abc", 3), ""),
    ("charAt", ("", 0), ""),
    ("indexOf", ("abcabc", "c"), 2),
    ("indexOf", ("abcabc", "c", 3), 5),
    ("indexOf", ("\u00e9b", "b"), 1),
    ("indexOf", ("abc", "x"), -1),
    ("indexOf", ("abc", ""), 0),
    ("indexOf", ("abc", "", 2), 2),
    ("indexOf", ("abc", "", 9), 3),
    ("indexOf", ("abc", "a", 9), -1),
    ("indexOf", ("abc", "a", INT_MAX), -1),
    ("lastIndexOf", ("abcabc", "b"), 4),
    ("lastIndexOf", ("abcabc", "b", 3), 1),
    ("lastIndexOf", ("abcabc", "bc", 4), 4),
    ("lastIndexOf", ("abcabc", "abcabcabc"), -1),
    ("lastIndexOf", ("abc", ""), 3),
    ("lastIndexOf", ("abc", "", 1), 1),
    ("lastIndexOf", ("abc", "", 9), 3),
    ("lastIndexOf", ("abc", "a", 3), -1),
    ("lastIndexOf", ("abc", "a", 2), 0),
    ("lastIndexOf", ("", "a"), -1),
    ("lowerAscii", ("A\u00c6Z\u212a",), "a\u00c6z\u212a"),
    ("upperAscii", ("a\u00e6z\u00df\u017f",), "A\u00e6Z\u00df\u017f"),
    ("replace", ("aaa", "a", "bb"), "bbbbbb"),
    ("replace", ("aaa", "a", "b", 2), "bba"),
    ("replace", ("aaa", "a", "b", 0), "aaa"),
    ("replace", ("aaa", "a", "b", -5), "bbb"),
    ("replace", ("a\u00e9", "", "-"), "-a-\u00e9-"),
    ("replace", ("ab", "", "-", 2), "-a-b"),
    ("replace", ("", "", "-"), "-"),
    ("replace", ("", "", "-", 1), "-"),
    ("split", ("a,b,c", ","), ["a", "b", "c"]),
    ("split", ("a,b,c", ",", 2), ["a", "b,c"]),
    ("split", ("a,b,c", ",", 1), ["a,b,c"]),
    ("split", ("a,b,c", ",", 0), []),
    ("split", ("a,b,c", ",", -7), ["a", "b", "c"]),
    ("split", ("a,b", ",", INT_MAX), ["a", "b"]),
    ("split", ("", ","), [""]),
    ("split", ("", ""), []),
    ("split", ("", "", 1), []),
    ("split", ("a\u00e9\U0001f600", ""), ["a", "\u00e9", "\U0001f600"]),
    ("split", ("abc", "", 2), ["a", "bc"]),
    ("split", ("abc", "", 1), ["abc"]),
    ("split", ("abc", "", 9), ["a", "b", "c"]),
    ("substring", ("\u00e9bc", 1), "bc"),
    ("substring", ("abc", 3), ""),
    ("substring", ("abc", 1, 2), "b"),
    ("substring", ("abc", 2, 2), ""),
    ("substring", ("abc", 0, 3), "abc"),
    ("trim", (" \t\n\x85\u00a0\u2003a b\u3000\r\f\v",), "a b"),
    ("trim", ("\x1c\u200ba\ufeff",), "\x1c\u200ba\ufeff"),
    ("join", ([],), ""),
    ("join", (["a", "b"],), "ab"),
    ("join", (["a", "", "b"], "-"), "a--b"),
    (
        "strings.quote",
        ('\a\b\f\n\r\t\v\\"\0\u00e9\u200b',),
        '"\\a\\b\\f\\n\\r\\t\\v\\\\\\"\0\u00e9\u200b"',
    ),
]


@pytest.mark.parametrize(("function", "args", "expected"), CALLS)
def test_functions(function: str, args: tuple[Value, ...], expected: Value) -> None:
    assert call(function, *args) == expected


@pytest.mark.parametrize(
    ("function", "args", "text"),
    [
        ("charAt", ("abc", -1), "index out of range: -1"),
        ("charAt", ("abc", 4), "index out of range: 4"),
        ("charAt", ("abc", INT_MIN), "index out of range"),
        ("indexOf", ("abc", "", -1), "index out of range: -1"),
        ("lastIndexOf", ("abc", "a", -1), "index out of range: -1"),
        ("substring", ("abc", 4), "index out of range: 4"),
        ("substring", ("abc", -1), "index out of range: -1"),
        ("substring", ("abc", 2, 1), "invalid substring range. start: 2, end: 1"),
        ("substring", ("abc", -1, 1), "index out of range: -1"),
        ("substring", ("abc", 0, 4), "index out of range: 4"),
        ("join", (["a", 1],), "join: invalid input: 1"),
        ("join", ([1, "a"],), "no such overload"),
        ("contains", ("a", 1), "no such overload"),
        ("contains", (["a"], "a"), "no such overload"),
        ("replace", ("a", "b", 1), "no such overload"),
        ("format", ("a", "b"), "no such overload"),
        ("trim", (b"a",), "no such overload"),
    ],
)
def test_errors(function: str, args: tuple[Value, ...], text: str) -> None:
    with pytest.raises(EvalError) as caught:
        call(function, *args)
    assert text in caught.value.text


def test_there_is_no_reverse() -> None:
    assert "reverse" not in {overload.function for overload in strings.OVERLOADS}


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("replace", ("a" * 100_000, "", "b" * 100_000)),
        ("replace", ("a" * 100_000, "a", "b" * 101)),
        ("replace", ("a" * 100_000, "a", "b" * 100_001, 100)),
        ("join", (["a" * 1000] * 20_000,)),
        ("join", ([""] * 20_000, "b" * 1000)),
        ("format", ("%s" * 20, [["a" * 1000] * 600] * 20)),
        ("format", ("%.65535e" * 200, [1.0] * 200)),
    ],
)
def test_long_results_are_refused_before_they_are_made(
    function: str, args: tuple[Value, ...]
) -> None:
    with pytest.raises(CostExceeded, match="cost limit exceeded"):
        call(function, *args)


def test_the_longest_result() -> None:
    longest = call("replace", "a" * 100_000, "a", "b" * 100)
    assert len(longest) == bounds.MAX_TEXT
    assert len(call("replace", "a" * 100_000, "a", "b" * 100_000, 99)) < bounds.MAX_TEXT
    assert len(call("join", ["a" * 10_000] * 1000)) == bounds.MAX_TEXT


def test_lists_that_hold_one_another_stay_small() -> None:
    nested: Value = [1]
    for _ in range(64):
        nested = [nested, nested]
    with pytest.raises(CostExceeded):
        formatted("%s", [nested])


# -- format ----------------------------------------------------------------------------------------
TIME = Timestamp(1_577_829_600_500_000_000, 7200)

FORMATTED: list[tuple[str, list[Value], str]] = [
    ("", [], ""),
    ("100%%", [1], "100%"),
    ("%s and %d%%", ["a", 5], "a and 5%"),
    ("%s%s", ["\u00e9", True], "\u00e9true"),
    ("%s", [1, 2], "1"),
    *[
        ("%s", [value], text)
        for value, text in [
            (1, "1"),
            (Uint(1), "1"),
            (1.0, "1"),
            (1e6, "1e+06"),
            (INF, "+Inf"),
            (b"\xc3\xa9", "\u00e9"),
            (None, "null"),
            (TypeValue("int"), "int"),
            (Duration(1_500_000_000), "1.5s"),
            (TIME, "2020-01-01T00:00:00.5+02:00"),
            ([], "[]"),
            (Map.of([]), "{}"),
            (
                [1, Uint(2), 1.5, "a\n\u00e9\u200b", b"a", None, TypeValue("int"), False],
                '[1, 2, 1.500000, "a\\n\u00e9\\u200b", b"a", null, int, false]',
            ),
            (
                [1e22, -0.0, NAN, INF, -INF],
                '[10000000000000000000000.000000, -0.000000, "NaN", "+Inf", "-Inf"]',
            ),
            (
                [TIME, Duration(-1), [["x"]]],
                '[timestamp("2020-01-01T00:00:00.5+02:00"), duration("-0.000000001s"), [["x"]]]',
            ),
            (
                Map.of([("b", 1), ("a", [2]), (10, "x"), (9, Map.of([(True, None)]))]),
                '{"a":[2], "b":1, 10:"x", 9:{true:null}}',
            ),
            (['"\\\x00\x7f\U000e0001'], r'["\"\\\x00\x7f\U000e0001"]'),
        ]
    ],
    ("%d %d", [INT_MIN, Uint(2**64 - 1)], "-9223372036854775808 18446744073709551615"),
    ("%b %b %b", [-5, Uint(5), True], "-101 101 1"),
    ("%o %o", [-8, Uint(8)], "-10 10"),
    ("%x %X %x", [-255, 255, Uint(255)], "-ff FF ff"),
    ("%x %X", ["h\u00e9", b"\xff\x01"], "68c3a9 FF01"),
    ("%.3d%.2s", [7, "abc"], "7abc"),
    *[
        (pattern, [value], text)
        for pattern, value, text in [
            ("%f", 1234567.891, "1,234,567.891000"),
            ("%f", -1234.5, "-1,234.500000"),
            ("%f", 0.0, "0.000000"),
            ("%f", -0.0, "0.000000"),
            ("%f", -1e-9, "-0.000000"),
            ("%.0f", 1234.5, "1,234"),
            ("%.0f", 1235.5, "1,236"),
            ("%.1f", 0.25, "0.2"),
            ("%.2f", 999999.999, "1,000,000.00"),
            ("%.007f", 1.0, "1.0000000"),
            ("%.255f", 0.5, "0.5" + "0" * 254),
            ("%.256f", 1.1, "1.100000000000000088817841970012523233890533447265625"),
            ("%.258f", 0.5, "0.50"),
            ("%.32768f", 1.1, "1.1"),
            ("%.32768f", 1e21, "1,000,000,000,000,000,000,000"),
            ("%.65536f", 1.5, "2"),
            ("%.10000009f", 0.5, "0.5" + "0" * 136),
            ("%.10000010f", 0.5, "%!(NOVERB)"),
            ("%f", INF, "\u221e"),
            ("%f", -INF, "-\u221e"),
            ("%f", NAN, "NaN"),
            ("%f", "Infinity", "\u221e"),
            ("%.1f", "NaN", "NaN"),
            ("%e", 1234567.891, "1.234568\u00d710\u2070\u2076"),
            ("%.3e", -0.00001234567, "-1.234567\u00d710\u207b\u2070\u2075"),
            ("%e", 0.0, "0.000000\u00d710\u2070\u2070"),
            ("%.15e", 1e100, " 1.000000\u00d710\u00b9\u2070\u2070"),
            ("%.0e", 9.9999996, "1.000000\u00d710\u2070\u00b9"),
            ("%e", INF, "     \u221e"),
            ("%.3e", "-Infinity", " -\u221e"),
            ("%.65536e", 1.0, "1.000000\u00d710\u2070\u2070"),
            ("%.10000010e", 1.0, "%!(NOVERB)"),
        ]
    ],
]


@pytest.mark.parametrize(("pattern", "args", "expected"), FORMATTED)
def test_format(pattern: str, args: list[Value], expected: str) -> None:
    assert call("format", pattern, args) == expected


@pytest.mark.parametrize(
    ("pattern", "args", "text"),
    [
        ("%s %s", [1], "index 1 out of range"),
        ("%", [1], "unexpected end of string"),
        ("%q", [1], 'unrecognized formatting clause "q"'),
        ("%5d", [1], 'unrecognized formatting clause "5"'),
        ("% d", [1], 'unrecognized formatting clause " "'),
        ("%.f", [1.0], "error while parsing precision"),
        ("%.-1f", [1.0], "error while parsing precision"),
        ("%.5", [1.0], "error while parsing precision"),
        ("%.9223372036854775808f", [1.0], "error while parsing precision"),
        ("%.5q", [1.0], "unrecognized formatting clause"),
        ("%d", ["a"], "decimal clause can only be used on integers, was given string"),
        ("%d", [1.0], "was given double"),
        ("%d", [True], "was given bool"),
        ("%f", [1], "fixed-point clause can only be used on doubles, was given int"),
        ("%f", ["abc"], "was given string"),
        ("%e", [Uint(1)], "was given uint"),
        ("%b", ["a"], "only integers and bools can be formatted as binary, was given string"),
        ("%x", [1.5], "was given double"),
        ("%x", [True], "was given bool"),
        ("%o", [True], "octal clause can only be used on integers, was given bool"),
        ("%s", [Optional(has_value=True, value=1)], "was given optional_type"),
        ("%s", [[Optional(has_value=True, value=1)]], "no formatting function for optional_type"),
        ("%s", [Map.of([(1.5, 1)])], "no formatting function for map key of type double"),
        ("%s", [b"\xff"], "invalid UTF-8"),
        ("%s", [[b"\xff"]], "invalid UTF-8"),
    ],
)
def test_format_errors(pattern: str, args: list[Value], text: str) -> None:
    with pytest.raises(EvalError) as caught:
        call("format", pattern, args)
    assert text in caught.value.text


def test_fixed_point_against_exact_decimals() -> None:
    source = random.Random(5)
    for _ in range(1000):
        number = source.choice(
            [source.uniform(-1e9, 1e9), source.uniform(-1, 1) * 10.0 ** source.randint(-20, 20)]
        )
        digits = source.randint(0, 40)
        text = formatted(f"%.{digits}f", [number])
        exact = Decimal(number).quantize(Decimal(1).scaleb(-digits)) if digits < 9 else None
        assert exact is None or Decimal(text.replace(",", "")) == exact
        assert len(text.partition(".")[2]) == digits
        assert text.replace(",", "") == f"{number:.{digits}f}"


# -- literal patterns ------------------------------------------------------------------------------
class _Tree:
    """Trees as the checker makes them; the offset of a node is ten times its identifier."""

    def __init__(self) -> None:
        self.types: dict[int, Type] = {}

    def node(self, of: Type) -> Node:
        return Ident(self._next(of), "x")

    def text(self, value: str) -> Const:
        return Const(self._next(celtypes.STRING), value)

    def items(self, *nodes: Node) -> ListNode:
        return ListNode(self._next(celtypes.LIST), list(nodes))

    def map(self, *pairs: tuple[Node, Node]) -> MapNode:
        entries = [Entry(0, key, value) for key, value in pairs]
        return MapNode(self._next(celtypes.MAP), entries)

    def call(self, function: str, target: Node, *args: Node) -> Call:
        return Call(self._next(celtypes.STRING), function, list(args), target)

    def faults(self, root: Node) -> list[tuple[int, str]]:
        positions = {number: 10 * number for number in self.types}
        found = format_faults(Checked(Parsed("", root, positions), self.types, {}))
        return [(fault.offset // 10, fault.text) for fault in found]

    def _next(self, of: Type) -> int:
        number = len(self.types) + 1
        self.types[number] = of
        return number


KINDS = {
    "s": "list map int uint double bool string google.protobuf.Timestamp bytes "
    "google.protobuf.Duration type null_type",
    "d": "int uint",
    "f": "double string",
    "e": "double string",
    "b": "int uint bool",
    "x": "int uint string bytes",
    "X": "int uint string bytes",
    "o": "int uint",
}
ALL_TYPES: Sequence[Type] = (
    *(celtypes.LIST, celtypes.MAP, celtypes.INT, celtypes.UINT, celtypes.DOUBLE, celtypes.BOOL),
    *(celtypes.STRING, celtypes.TIMESTAMP, celtypes.BYTES, celtypes.DURATION, celtypes.TYPE),
    *(celtypes.NULL, celtypes.ANY, celtypes.QUANTITY, celtypes.optional_of(celtypes.INT)),
)


@pytest.mark.parametrize("verb", KINDS)
def test_types_that_a_clause_takes(verb: str) -> None:
    taken = []
    for of in ALL_TYPES:
        tree = _Tree()
        faults = tree.faults(tree.call("format", tree.text(f"%{verb}"), tree.items(tree.node(of))))
        if not faults:
            taken.append(of.name)
        else:
            assert faults[0][0] == 2
            assert faults[0][1].endswith(f"was given {of.name}")
    assert taken == [name for name in (of.name for of in ALL_TYPES) if name in KINDS[verb].split()]


def test_what_is_not_known_is_left_to_the_evaluation() -> None:
    tree = _Tree()
    args = tree.items(*[tree.node(celtypes.DYN) for _ in range(8)])
    assert tree.faults(tree.call("format", tree.text("%s%d%f%e%b%x%X%o"), args)) == []


@pytest.mark.parametrize(
    ("pattern", "count", "text"),
    [
        ("%s %s", 1, "index 1 out of range"),
        ("%s", 2, "too many arguments supplied to string.format (expected 1, got 2)"),
        ("%%", 1, "too many arguments supplied to string.format (expected 0, got 1)"),
        ("%", 0, "unexpected end of string"),
        ("%q", 1, 'could not parse formatting clause: unrecognized formatting clause "q"'),
    ],
)
def test_patterns_that_do_not_fit_their_arguments(pattern: str, count: int, text: str) -> None:
    tree = _Tree()
    args = tree.items(*[tree.node(celtypes.INT) for _ in range(count)])
    call = tree.call("format", tree.text(pattern), args)
    assert tree.faults(call) == [(call.id, text)]
    nested = tree.call("trim", tree.call("trim", call))
    assert tree.faults(nested) == [(call.id, text)]


def test_literals_inside_of_arguments_are_looked_into() -> None:
    tree = _Tree()
    good, bad = tree.node(celtypes.INT), tree.node(celtypes.QUANTITY)
    args = tree.items(tree.items(good, tree.map((good, tree.items(bad)))))
    found = tree.faults(tree.call("format", tree.text("%s"), args))
    assert [fault[0] for fault in found] == [bad.id]


def test_only_literals_are_checked() -> None:
    tree = _Tree()
    wrong = tree.items(tree.node(celtypes.STRING))
    assert tree.faults(tree.call("format", tree.text("%d"), wrong))
    assert not tree.faults(tree.call("format", tree.node(celtypes.STRING), wrong))
    assert not tree.faults(tree.call("format", tree.text("%d"), tree.node(celtypes.LIST)))
    assert not tree.faults(tree.call("other", tree.text("%d"), wrong))

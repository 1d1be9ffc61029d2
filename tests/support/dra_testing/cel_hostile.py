"""Expressions that try an evaluator's limits: size, depth, growth, odd texts, odd values.

Every one is answered by the reference within its deadline and some hundred megabytes. What is worse
is left out on purpose, see :data:`NOT_ASKED`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

DOMAIN = "gpu.example.com"
_DEVICE = f'device.attributes["{DOMAIN}"]'

#: What nobody should ask the reference: it allocates gigabytes before it counts the cost.
NOT_ASKED = (
    "lists.range(1000000000).size() > 0",
    "'%.1000000000f'.format([1.0]) == ''",
)


def hostile() -> Iterator[tuple[str, str]]:
    """(name, expression)."""
    for name, source in _SOURCES.items():
        for number, expression in enumerate(source()):
            yield f"{name}-{number}", expression


def _deep() -> Iterator[str]:
    for n in (120, 243, 244, 245, 246, 249, 250, 251, 300, 1000):
        yield "(" * n + "true" + ")" * n
    for n in (60, 100, 1000):
        yield "[" * n + "]" * n + " == []"
        yield "[" * n + "1" + "]" * n + " == dyn(1)"
        yield "{1: " * n + "1" + "}" * n + ".size() == 1"
        yield "dyn(" * n + "true" + ")" * n
        yield "!(" * n + "true" + ")" * n
    yield "[" * 180 + "]" * 180 + " == []"  # the reference takes seconds for 250
    for n in (200, 249, 250, 251, 2000, 9000):
        yield "!" * n + "true"
        yield "-" * n + "1 == 1"
        yield " + ".join(["1"] * n) + " > 0"
        yield " - ".join(["1"] * n) + " < 0"
    for n in (250, 251, 1000, 2000):
        yield " && ".join(["true"] * n)
        yield " || ".join(["false"] * n)
        yield " && ".join([f"{_DEVICE}.n == 1"] * min(n, 250))
        yield " == ".join(["true"] * n)
        yield "true ? " * min(n, 1000) + "true" + " : false" * min(n, 1000)
        yield "false ? false : " * min(n, 600) + "true"
    for n in (100, 248, 249, 250, 251, 500):
        yield "device" + ".a" * n + " == 1"
        yield _DEVICE + ".a" * n + " == 1"
        yield _DEVICE + '["a"]' * n + " == 1"
        yield '"a"' + ".trim()" * n + ' == "a"'
        yield "[1]" + ".map(x, x)" * min(n, 40) + " == [1]"
        yield _DEVICE + ".?a" * n + ".hasValue()"
        yield "{'a': 1}" + "[?'a']" * min(n, 3) + ".hasValue()"
    for n in (5, 8, 12, 30, 60):
        names = [f"x{i}" for i in range(n)]
        yield "".join(f"[1].all({x}, " for x in names) + "true" + ")" * n
        yield "".join(f"cel.bind({x}, 1, " for x in names) + " + ".join(names) + " > 0" + ")" * n
        yield "".join(f"optional.of(1).optMap({x}, " for x in names) + "1" + ")" * n + ".hasValue()"


def _long() -> Iterator[str]:
    for n in (10 * 1024, 10 * 1024 + 1, 100_000, 100_001):
        yield '"' + "a" * (n - 12) + '".size() > 0'
        yield '"' + "\u00fc" * ((n - 12) // 2) + '".size() > 0'
        yield "true" + " " * (n - 4)
        yield "true //" + "x" * (n - 7)
    yield "1 in [" + ", ".join(map(str, range(2000))) + "]"
    yield "{" + ", ".join(f"{i}: {i}" for i in range(800)) + "}.size() == 800"
    yield "[" + ", ".join(["1"] * 3000) + "].sum() == 3000"
    yield "a" * 5000 + " == 1"
    yield f"device.{'a' * 5000} == 1"
    yield "0x" + "f" * 5000 + " == 1"
    yield "1" * 5000 + " == 1"
    yield "0." + "1" * 5000 + " > 0.1"
    yield "1e" + "9" * 50 + " > 0.0"
    yield "nosuch(" + ", ".join(["1"] * 2000) + ")"
    yield "(" * 9000
    yield ")" * 3000
    yield '"' * 2999
    yield "1 +" * 3000
    yield "a." * 3000
    yield "\\" * 2000
    yield "[1, " * 2000
    yield "? : " * 1500


_TEN = "[1,2,3,4,5,6,7,8,9,10]"


def _costly() -> Iterator[str]:
    for n in range(2, 8):
        names = "abcdefg"[:n]
        body = "+".join(names) + " > 0"
        yield "".join(f"{_TEN}.all({x}, " for x in names) + body + ")" * n
    grow = ["cel.bind(a1, a0 + a0, "]
    for n in (5, 15, 18, 20, 22, 24):
        grow = [f"cel.bind(a{i + 1}, a{i} + a{i}, " for i in range(n)]
        for first in ('"aaaaaaaa"', "[1, 2, 3]", 'b"xyzw"'):
            yield f"cel.bind(a0, {first}, {''.join(grow)}a{n}.size() > 0{')' * n})"
    for n in (2, 4, 6, 8):
        yield '"aaaaaaaaaa"' + '.replace("", "bbbbbbbbbb")' * n + ".size() > 0"
        yield '"aaaaaaaaaa"' + '.replace("a", "aaaaaaaaaa")' * n + ".size() > 0"
        yield '"x"' + '.split("").map(c, c + c).join("--")' * n + ".size() > 0"
    yield "[" + ",".join(['"ab"'] * 200) + "].join('" + "-" * 200 + "').matches('(a|b|-)*c')"
    yield "lists.range(1000).map(x, lists.range(100)).flatten().size() > 0"
    yield "lists.range(100000).size() == 100000"
    yield "lists.range(1000).exists(x, x == 999)"
    yield "lists.range(20000).sum() > 0"
    yield "lists.range(3000).reverse().sort() == lists.range(3000)"
    yield "lists.range(800).distinct().size() == 800"
    yield "sets.contains(lists.range(900), lists.range(900))"
    yield "sets.equivalent(lists.range(500), lists.range(500).reverse())"
    yield "lists.range(300).map(x, lists.range(300).map(y, x * y)).flatten().max() > 0"
    yield "lists.range(1000).sortBy(x, -x)[0] == 999"
    yield "lists.range(500).transformMap(i, v, v).size() == 500"
    yield "lists.range(500).transformMapEntry(i, v, {v: i}).size() == 500"
    yield "'%s'.format([lists.range(5000)]).size() > 0"
    yield "'%.1000f'.format([1.0]).size() > 0"
    yield f"{_DEVICE}.exists(k, k.matches('(.*)(.*)(.*)(.*)(.*)x'))"
    yield f"'{'a' * 5000}'.matches('^(a+)+$')"
    yield f"'{'a' * 5000}'.matches('^(a|aa)+b$')"
    yield f"'{'a' * 3000}'.find('(a?){{100}}a{{100}}').size() == 200"
    yield f"'{'a' * 8000}'.findAll('a').size() == 8000"
    yield f"'{'ab' * 4000}'.split('').size() == 8000"
    yield f"'a'.matches('{'(' * 300}a{')' * 300}')"
    yield f"'a'.matches('{'(' * 1100}a{')' * 1100}')"
    yield "'a'.matches('(((a{100}){100}){100})')"
    yield "'a'.matches('a{1000}') || 'a'.matches('(a{30}){30}')"
    yield f"'a'.matches('{'a|' * 4000}b')"
    yield "lists.range(100).all(x, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('a*a*a*a*a*b') == false)"


#: Short ones at the edges of values, functions and syntax, one a line.
EDGES = Path(__file__).resolve().parents[2] / "data" / "cel" / "edges.txt"
#: More of them, with characters that a text file had better not have.
_ODD_EDGES = [
    "true\t&&\ttrue\x0d",
    "\xa0true",
    "\ufefftrue",
    "true\x00",
    '"\x00" == "\\000"',
    '"\ufffe\uffff" != ""',
    "\u2028true",
    "true\x0c&& true",
    "true\x0b&& true",
    'device.driver\n==\n"a" // c\n',
]


def edges() -> Iterator[str]:
    """Short expressions at the edges of values, functions and syntax."""
    yield from _lines(EDGES.read_text("utf-8"))
    yield from _ODD_EDGES


def _lines(text: str) -> Iterator[str]:
    """Lines; a triple quote goes on to the next."""
    pending = ""
    for line in text.removesuffix("\n").split("\n"):
        pending += line
        if pending.count("'''") % 2 == 0 and pending.count('"""') % 2 == 0:
            yield pending
            pending = ""
        else:
            pending += "\n"


_PAIRS = (
    "true", "1", "1u", "1.0", '"a"', 'b"a"', "null", "[1]", '{"a": 1}', 'duration("1s")',
    "timestamp(1)", 'quantity("1")', 'semver("1.0.0")', 'ip("::1")', 'cidr("::/0")', 'url("/a")',
    "format.uuid()", "int", "optional.of(1)", "optional.none()",
)  # fmt: skip


def pairs() -> Iterator[str]:
    """Every operator over values of every two types, without a checker in the way."""
    for left, right in itertools.product(_PAIRS, repeat=2):
        yield f"dyn({left}) == dyn({right})"
        yield f"dyn({left}) in [dyn({right})]"
    for left, right in itertools.product(_PAIRS[:13], repeat=2):
        yield f"dyn({left}) < dyn({right})"
        yield f"type(dyn({left}) + dyn({right})) == int"
    for value in _PAIRS:
        for function in (
            "int",
            "uint",
            "double",
            "string",
            "bytes",
            "bool",
            "duration",
            "timestamp",
            "type",
        ):
            yield f"type({function}(dyn({value}))) == {function}"
        for call in ("size()", "trim()", "major()", "ip()", "hasValue()", "getHours()", "max()"):
            yield f"dyn({value}).{call} == dyn(1)"
        yield f"dyn({value})[dyn(0)] == dyn(1)"
        yield f"dyn({value}).a == dyn(1)"
        yield f"has(dyn({value}).a)"
        yield f"dyn({value}).?a.hasValue()"
        yield f"dyn({value}).all(x, true)"
        yield f"dyn({value}).exists(x, y, true)"
        yield f"-dyn({value}) == dyn(1)"
        yield f"!dyn({value})"
        yield f"dyn({value}) ? true : false"
        yield f'"%s".format([dyn({value})]) == "1"'
        yield f'"%d".format([dyn({value})]) == "1"'
        yield f'"%x".format([dyn({value})]) == "1"'
        yield f"[dyn({value}), dyn({value})].distinct().size() == 1"
        yield f"[dyn({value}), dyn({value})].sort().size() == 2"
        yield f"{{dyn({value}): 1}}.size() == 1"
        yield f"optional.ofNonZeroValue(dyn({value})).hasValue()"
        yield f"dyn({value})"


_SOURCES = {"deep": _deep, "long": _long, "costly": _costly, "edge": edges, "pair": pairs}

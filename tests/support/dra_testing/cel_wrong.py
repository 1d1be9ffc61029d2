"""Expressions that are wrong on purpose: for the checker, for the parser, or when they run."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from dra_testing.cel_devices import Device
from dra_testing.cel_selectors import a_selector, about
from dra_testing.cel_types import TERNARY, Template, parse_template
from dra_testing.cel_writer import BOOL, Place, Writer

#: Well formed, and refused by the checker or a validator; a few of them only nearly so.
_REFUSED = """
string: bool = {string}.reverse() == {string}
string: bool = {string} + {int} == ""
string: bool = {string} < {int}
string: bool = {string}.contains({int})
string: bool = {string}.nosuch()
string: bool = {string}.substring("1") == {string}
string: bool = {string}.substring(0, 1, 2) == {string}
string: bool = {string}.startsWith() || {bool}
string: bool = startsWith({string}, {string})
string: bool = {string}["0"] == {string}
string: bool = {string}[0] == {string}
string: bool = {string}.matches("(")
string: bool = {string} * 3 == {string}
string: bool = {#text}.exists($x, {bool})
string: bool = {string}.map($x, $x) == []
string: bool = "%d".format(["a"]) == ""
string: bool = "%y".format([{int}]) == ""
string: bool = "%d %d".format([{int}]) == ""
number: bool = {int} + {double} == {double}
number: bool = {int} == {uint}
number: bool = {int} % {double} == 1
number: bool = -{uint} == 1u
number: bool = {double} % {double} == 1.0
number: bool = !{int}
number: bool = {int} && {bool}
number: bool = {int} ? {bool} : {bool}
number: bool = {int}.size() > 0
number: bool = math.greatest({int}, {int}) > 0
number: bool = {int} in {int}
number: bool = 9223372036854775808 > {int}
number: bool = 18446744073709551616u > {uint}
number: bool = {int} === {int}
number: bool = {int} & {int} == 0
number: bool = bool({int})
quantity: bool = {quantity}.sign() == 1
quantity: bool = {quantity} > {quantity}
quantity: bool = {quantity} + {quantity} == {quantity}
quantity: bool = {quantity}.foo
quantity: bool = {quantity}.add({double}).isInteger()
quantity: bool = {quantity} == {string}
quantity: bool = quantity({int}).isInteger()
quantity: bool = string({quantity}) == "1"
semver: bool = {semver} >= {semver}
semver: bool = {semver}.major == 1
semver: bool = semver({string}, {string}).major() == 1
semver: bool = {semver}.compareTo({string}) == 0
semver: bool = string({semver}) == {string}
device: bool = device.nosuch == 1
device: bool = device.driver.name == {string}
device: bool = device["driver"] == {string}
device: bool = device.driver == {int}
device: bool = device.capacity["a"].x == {int}
device: bool = device.attributes[1].x == {int}
device: bool = device.attributes.x.y.z.nosuch(1)
device: bool = devices.driver == {string}
device: bool = nosuch > {int}
device: bool = object.spec.x == {int}
device: bool = has(device)
device: bool = has(device.nosuch)
device: bool = has(device.attributes["a"])
device: bool = {#attrs} == {int}
device: bool = device.?driver.hasValue() && device.?nosuch.hasValue()
list: bool = [1, "a"].size() == 2
list: bool = [{=int}, {=double}].size() == 2
list: bool = [{#attr:int}, 1].size() == 2
list: bool = [1, [1]].size() == 2
list: bool = {'a': 1, "b": "c"}.size() == 2
list: bool = {'a': 1, 2: 3}.size() == 2
list: bool = {string} in [{=int}]
list: bool = {list(int)} + {list(string)} == []
list: bool = {list(string)}.sum() == ""
list: bool = {list(int)}.join(",") == ""
list: bool = {list(quantity)}.sort() == []
list: bool = {list(semver)}.max() == {semver}
list: bool = sets.contains({list(int)}, {list(string)})
list: bool = {list(int)}[{string}] == 1
list: bool = {list(int)}.flatten() == []
list: bool = {list(A)}.flatten("1") == []
macro: bool = {list(int)}.existsOne($x, {bool})
macro: bool = {list(int)}.all({bool})
macro: bool = {list(int)}.all($x.y, {bool})
macro: bool = {list(int)}.all(1, {bool})
macro: bool = {list(int)}.exists($x, $x)
macro: bool = {list(int)}.filter($x, {int}).size() == 0
macro: bool = {list(int)}.exists($x, $x, {bool})
macro: bool = {list(int)}.exists(__result__, {bool})
macro: bool = {list(int)}.transformMapEntry($i, $x, $x) == {}
macro: bool = {list(int)}.transformMapEntry($i, $x, {1: 2, 3: 4}) == {1: 2}
macro: bool = {int}.all($x, {bool})
macro: bool = cel.bind($x, {int})
macro: bool = cel.bind($x.y, {int}, {bool})
macro: bool = cel.bind($x, {int}, $y == $x)
macro: bool = cel.block([1], {bool})
macro: bool = has({string})
macro: bool = {list(int)}.exists($x, {bool}) && $x == 1
optional: bool = {optional(int)} == {int}
optional: bool = {optional(int)}.orValue({string}) == 1
optional: bool = {optional(int)}.or({int}).hasValue()
optional: bool = {optional(int)} + {int} == 1
optional: bool = {optional(int)}.optMap($x) == 1
optional: bool = [?{=int}].size() == 1
optional: bool = {?"a": 1}.size() == 1
optional: bool = {string}.?a.hasValue()
optional: bool = optional.of().hasValue()
other: bool = {ip} < {ip}
other: bool = ip({int}).isLoopback()
other: bool = {cidr}.containsIP({int})
other: bool = {url} == {string}
other: bool = {url}.getHost == ""
other: bool = {#format}.validate({int}).hasValue()
other: bool = format.nosuch().validate("a").hasValue()
other: bool = {timestamp} + {timestamp} == {timestamp}
other: bool = {duration} - {timestamp} == {duration}
other: bool = {duration} < {int}
other: bool = timestamp("2024-02-30T00:00:00Z") < {timestamp}
other: bool = duration("1 h") < {duration}
other: bool = {bytes} + {string} == {bytes}
other: bool = {bytes}.contains({bytes})
other: bool = authorizer.path("/x").check("get").allowed()
other: bool = {string}.check("get").allowed()
other: bool = type({A}) == nosuchtype
other: bool = kubernetes.Quantity == type({quantity})
other: bool = {A}.nosuch({B})
other: bool = nosuch({A}, {B})
other: bool = google.protobuf.Nosuch{} == {A}
other: bool = kubernetes.DRADevice{driver: "a"}.driver == "a"
result: int = {int} + 1
result: string = {string}
result: list(A) = {list(A)}
result: quantity = {quantity}
result: optional(bool) = {optional(bool)}
result: map(string, A) = {map(string, A)}
result: double = {double}
result: bytes = {bytes}
result: A = null
result: A = type({A})
"""
#: The checker lets these through; what happens when they run is another matter.
_FAILING = """
missing: bool = device.attributes[{#domain}].nosuch == {A}
missing: bool = device.attributes["nosuch.example.com"].model == {string}
missing: bool = device.capacity[{#domain}].nosuch.isLessThan({quantity})
missing: bool = {#attrs}.nosuch
missing: bool = {#attrs}["nosuch"] in {list(A)}
missing: bool = device.attributes["nosuch.example.com"].exists($k, true) || {#attrs}.nosuch
missing: bool = {bool} && {#attrs}.nosuch == 1
missing: bool = {#attrs}.nosuch == 1 || {bool}
missing: bool = {#attrs}.nosuch == 1 || true
missing: bool = {#attrs}.nosuch == 1 && false
missing: bool = {#attrs}.nosuch ? {bool} : {bool}
missing: bool = {list(A)}.exists($x, {#attrs}.nosuch == $x)
missing: bool = {list(A)}.all($x, $x == {A} || {#attrs}.nosuch)
missing: bool = has({#attrs}.nosuch.deeper)
missing: bool = {'a': 1}[{#text}] == 1
missing: bool = {#attrs}[?"nosuch"].value() == {A}
type: bool = {#attr:string} > {int}
type: bool = {#attr:int} + {string} == {string}
type: bool = {#attr:string}.isGreaterThan({semver})
type: bool = {#attr:semver} == {string}
type: bool = {#attr:semver} in [{=string}]
type: bool = {#attr:int}.matches("a")
type: bool = {#attr:string}.exists($x, $x == {string})
type: bool = {#attr:bool} && {#attr:string}
type: bool = {#attr:string} || {bool}
type: bool = !{#attr:string}
type: bool = -{#attr:string} == 1
type: bool = {#attr:int}
type: bool = {#attr:string}
type: bool = {#attr:list(int)}
type: bool = {#attr:semver}.foo == 1
type: bool = {#attr:list(string)}.sum() == 1
type: bool = {#attr:list(string)}["a"] == "b"
type: bool = {#attr:bool} ? {#attr:int} : {#attr:string}
type: bool = {#attr:int} ? {bool} : {bool}
type: bool = {list(int)}.exists($x, {#attr:int})
type: bool = {list(int)}.all($x, {#attr:string})
type: bool = {list(int)}.exists_one($x, {#attr:string})
type: bool = {list(int)}.filter($x, {#attr:string}).size() > 0
type: bool = dyn({A}).size() > 0
type: bool = dyn({A}) < dyn({B})
type: bool = dyn({A}) + dyn({B}) == dyn({A})
authorizer: bool = dyn({A}).check("get").allowed()
authorizer: bool = dyn({A}).serviceAccount("a", "b").path("/x").check("get").reason() == {string}
authorizer: bool = dyn({A}).group("").resource("pods").subresource("status").check("get").errored()
authorizer: bool = dyn({A}).group("").resource("x").namespace("a").name("b").check("").error() == ""
authorizer: bool = dyn({A}).group("").resource("pods").fieldSelector("a=b").check("list").allowed()
authorizer: bool = dyn({A}).group("").resource("x").labelSelector("a in (b)").check("c").allowed()
value: bool = {int} / 0 == 1
value: bool = {int} % 0 == 1 || {bool}
value: bool = {uint} - 18446744073709551615u == 0u
value: bool = 9223372036854775807 + {int} > 0
value: bool = -(-9223372036854775808 - {int}) > 0
value: bool = [{=A}][{#index}] == {A}
value: bool = {list(A)}[-1] == {A}
value: bool = [][0] == {A}
value: bool = quantity({string}).isInteger()
value: bool = semver({string}).major() == 1
value: bool = ip({string}).isLoopback()
value: bool = cidr({string}).prefixLength() == 1
value: bool = url({string}).getHost() == ""
value: bool = int({string}) == 1
value: bool = duration({string} + "") < {duration}
value: bool = timestamp(device.driver) < {timestamp}
value: bool = {string}.matches(device.driver + "(")
value: bool = {string}.substring(3, 1) == ""
value: bool = {string}.charAt(100) == ""
value: bool = {list(int)}.filter($x, false).max() == 1
value: bool = optional.none().value() == {A}
value: bool = {quantity}.add({quantity}).asInteger() == 1
value: bool = {timestamp}.getHours("Nowhere") == 1
value: bool = double({string}) > 0.0
value: bool = int(1e300) > 0
value: bool = {list(A)}.slice(2, 1) == []
value: bool = lists.range(-1).size() == 0
value: bool = format.named("nosuch").value().validate("a").hasValue()
value: bool = quantity("1.5").asInteger() == {int}
value: bool = {A} == {B}.includes({B}) ? {#attrs}.nosuch : false
"""


def _parsed(table: str) -> tuple[Template, ...]:
    return tuple(parse_template(line) for line in table.splitlines() if line.strip())


REFUSED = _parsed(_REFUSED)
FAILING = _parsed(_FAILING)


_INSTEAD = ["'", '"', "(", ")", "]", "..", "=", "@", "`x`", "?", "$", "\\", "#"]
_BETWEEN = [" in ", "null", "?", "!", "-", ",", ".", "1", "&&", "\u00e9", "{"]


def damaged(rng: random.Random, text: str) -> str:
    """``text`` with one token gone, doubled, exchanged or put in."""
    tokens = re.findall(r'"[^"]*"|\w+|\s+|[^\w\s]', text) or [text]
    at = rng.randrange(len(tokens))
    match rng.randrange(6):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, tokens[at])
        case 2:
            tokens[at] = rng.choice(_INSTEAD)
        case 3:
            tokens.insert(at, rng.choice(_BETWEEN))
        case 4:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case _:
            return text[: rng.randrange(len(text) + 1)]
    return "".join(tokens)


#: Where literals break.
_LITERALS = [
    '"abc', "'a\nb'", "\"\\q\"", "\"\\x4\"", "\"\\ud800\"", "\"\\U00110000\"", "\"\\400\"",
    "b\"\\u0041\"", '""" a', "1.", "0x", "1e", "1ee5", "08 == 8", "1_000", "0xZZ", "1u2", "ab c",
    "a.1", "true false", "package == 1", "namespace", "if", "a.in.b", "{1}", "{a: }", "[1,,2]",
    "[,]", "{,}", "f(,)", "()", "[1 2]", "a ? b", "a ? : c", "? a : b", "!", "- ", "a..b", ".a.b",
    ". device.driver", "device.`driver` == 'a'", "device.attributes['a'].`x-y` == 1",
    "true // comment", "true /* no */", "\u2028true", "\ufefftrue", "true\xa0", "`true`", "true;",
    "a = b", "1 <> 2", "not true", "true and false", "x -> y", "@x", "$x", "#", "", " ", "//",
]  # fmt: skip


def nested(rng: random.Random) -> str:
    """Deeply nested, on both sides of the parser's limit."""
    depth = rng.choice([40, 60, 100, 120, 200, 240, 250, 260])
    inner = rng.choice(["true", "1 == 1", "device.driver == 'a'"])
    match rng.randrange(6):
        case 0:
            return "(" * depth + inner + ")" * depth
        case 1:
            return "[" * depth + "1" + "]" * depth + ".size() == 1"
        case 2:
            return "!" * depth + "true"
        case 3:
            return "true ? (" * (depth // 2) + inner + ") : false" * (depth // 2)
        case 4:
            return " + ".join(["1"] * depth) + f" == {depth}"
        case _:
            return "dyn(" * depth + inner + ")" * depth


def refused(rng: random.Random, writer: Writer) -> str:
    template = rng.choice(REFUSED)
    return writer.fill(template, {}, Place(1)).within(TERNARY)


def failing(rng: random.Random, writer: Writer) -> str:
    template = rng.choice(FAILING)
    text = writer.fill(template, {}, Place(1))
    if rng.random() < 0.2:
        other = writer.make(BOOL, 1).within(3)
        return f"{other} && {text.within(4)}"
    return text.within(TERNARY)


def a_wrong_selector(rng: random.Random, device: Device, library: str) -> tuple[str, Writer]:
    """An expression that is wrong, and its writer."""
    kind = rng.choices(
        ["refused", "failing", "damaged", "misfit", "part", "literal", "nested"],
        [36, 20, 16, 10, 8, 8, 2],
    )[0]
    writer = Writer(rng, device, misfit=0.3 if kind == "misfit" else 0.0)
    makers: dict[str, Callable[[], str]] = {
        "refused": lambda: refused(rng, writer),
        "failing": lambda: failing(rng, writer),
        "damaged": lambda: damaged(rng, a_selector(writer, library)),
        "misfit": lambda: a_selector(writer, library),
        "part": lambda: about(writer, library, 1)[0].text,
        "literal": lambda: rng.choice(_LITERALS),
        "nested": lambda: nested(rng),
    }
    return makers[kind](), writer

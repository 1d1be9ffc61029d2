"""Expressions near the cost limit of 1,000,000: by the static estimate, and when they run.

The estimate is a product and sum of sizes, so that only the oracle knows it. :func:`near_limit`
asks for the estimates of random units, repeats each unit as often as it takes in a macro around it,
and keeps what then lies between half and twice the limit, about half on each side.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from dra_testing.cel_devices import DRIVERS, FULL, NAMES, Device
from dra_testing.cel_literals import quoted
from dra_testing.cel_oracle import Oracle
from dra_testing.cel_types import TERNARY, parse_type
from dra_testing.cel_writer import Writer

LIMIT = 1_000_000
LONGEST = 10 * 1024
"""What the API takes, in bytes."""


def _domain(rng: random.Random) -> str:
    return f'"{rng.choice([FULL["driver"]] * 8 + DRIVERS)}"'


def _attribute(rng: random.Random, kind: str) -> str:
    return f"device.attributes[{_domain(rng)}].{rng.choice(NAMES[kind])}"


def _numbers(rng: random.Random, count: int) -> str:
    kind = rng.choice(["int", "string", "double"])
    shown = {"int": "{}", "string": "'s{}'", "double": "{}.5"}[kind]
    return "[" + ", ".join(shown.format(n) for n in range(count)) + "]"


def _body(rng: random.Random, names: list[str]) -> str:
    """True or false, about the variables ``names`` of unknown types."""
    x, y = rng.choice(names), rng.choice(names)
    return rng.choice(
        [
            f"{x} == {y}",
            f"{x} != dyn({y}) || {x} == {x}",
            f"[{x}, {x}].exists(q, q == {y})",
            f"{_attribute(rng, 'string')} == dyn({x})",
            f"{_attribute(rng, 'string')}.matches('^[a-z]+-[0-9]{{{rng.randint(1, 9)}}}')",
            f"string(dyn({x})).size() >= 0",
            f"{_attribute(rng, 'list(string)')}.all(q, q != dyn({x}))",
            f"dyn({x}) in {_attribute(rng, 'list(int)')}",
            f"has(device.attributes[{_domain(rng)}].model)",
            f"'%s'.format([dyn({x})]) != 'a'",
            f"device.driver.startsWith('gpu') || {x} == {y}",
            f"type({x}) == type({y})",
        ]
    )


_ONE = ["all", "exists", "exists_one"]


def _nested_lists(rng: random.Random) -> str:
    names = [f"v{i}" for i in range(rng.randint(1, 4))]
    text = _body(rng, names)
    for name in reversed(names):
        source = _numbers(rng, rng.randint(2, 14))
        match rng.randrange(4):
            case 0:
                text = f"{source}.{rng.choice(['all', 'exists'])}(i{name}, {name}, {text})"
            case 1:
                text = f"{source}.filter({name}, {text}).size() >= 0"
            case _:
                text = f"{source}.{rng.choice(_ONE)}({name}, {text})"
    return text


def _attribute_lists(rng: random.Random) -> str:
    names = [f"v{i}" for i in range(rng.randint(1, 3))]
    text = _body(rng, names)
    for name in reversed(names):
        source = _attribute(rng, rng.choice(["list(string)", "list(int)"]))
        text = f"{source}.{rng.choice(_ONE)}({name}, {text})"
    return text


def _attribute_maps(rng: random.Random) -> str:
    inner = _body(rng, ["k", "d"])
    over = rng.choice(["attributes", "capacity"])
    match rng.randrange(4):
        case 0:
            return f"device.{over}.all(d, device.{over}[d].exists(k, {inner}))"
        case 1:
            return f"device.{over}.exists(d, m, m.all(k, v, {inner} || v == m[k]))"
        case 2:
            sizes = f"device.{over}.transformList(d, m, m.size()).sum() > 3"
            return f"{sizes} || [1].all(d, [2].all(k, {inner}))"
        case _:
            test = f"d.compareTo(quantity('1Gi')) < 0 || {inner}"
            return f"device.capacity[{_domain(rng)}].all(k, d, {test})"


def _regex(rng: random.Random) -> str:
    part = rng.choice(["[a-z]+", "(a|b)*", "[0-9]{1,3}", "\\\\d", "x?"])
    pattern = part * rng.randint(1, 40)
    text = rng.choice(
        ["device.driver", _attribute(rng, "string"), f"'{'ab1-' * rng.randint(1, 60)}'"]
    )
    call = rng.choice([".matches('{}')", ".find('{}').size() > 0", ".findAll('{}').size() > 1"])
    return text + call.format(pattern)


def _growth(rng: random.Random) -> str:
    steps = rng.randint(3, 12)
    first = rng.choice(
        [
            "device.driver",
            "'abcdefgh'",
            "[1, 2, 3]",
            "b'abc'",
            "dyn(['a'])",
            f"string({_attribute(rng, 'string')})",
        ]
    )
    text = rng.choice(
        [f"g{steps}.size() > 0", f"g{steps} == g{steps - 1}", f"g{steps} != g{steps}"]
    )
    for step in range(steps, 0, -1):
        text = f"cel.bind(g{step}, g{step - 1} + g{step - 1}, {text})"
    return f"cel.bind(g0, {first}, {text})"


def _replaced(rng: random.Random) -> str:
    text = rng.choice(["device.driver", "'abcabc'", "'a.b.c.d'"])
    for _ in range(rng.randint(1, 4)):
        text += rng.choice(
            [
                ".replace('a', 'bcdefa')",
                ".split('').join('--')",
                ".upperAscii()",
                ".replace('', 'xy')",
                ".trim()",
            ]
        )
    tests = [".size() > 1", ".contains(device.driver)", ".endsWith(device.driver)"]
    return text + rng.choice(tests)


def _sets(rng: random.Random) -> str:
    function = rng.choice(["contains", "equivalent", "intersects"])
    size = rng.randint(3, 60)
    left = rng.choice(
        [_numbers(rng, size), _attribute(rng, "list(int)"), f"lists.range({size * 3})"]
    )
    right = rng.choice(
        [_attribute(rng, "list(string)"), "dyn([1, 2, 3])", f"dyn({_numbers(rng, size)})"]
    )
    return f"sets.{function}(dyn({left}), {right})"


def _list_calls(rng: random.Random) -> str:
    size = rng.randint(5, 400)
    source = rng.choice(
        [
            f"lists.range({size})",
            _numbers(rng, min(size, 60)),
            f"dyn({_attribute(rng, 'list(int)')})",
        ]
    )
    call = rng.choice(
        [
            ".sort().size() > 0", ".distinct().size() > 0", ".reverse().size() > 0", ".isSorted()",
            ".sortBy(e, e).size() > 0", ".map(e, e).size() > 0",
            ".map(e, [e, e]).flatten().size() > 0",
            ".max() == dyn(1)", ".indexOf(dyn(3)) > 0", ".slice(0, 1).size() == 1",
            ".includes(dyn(2))",
            ".transformMap(i, e, e).size() > 0", ".filter(e, e == dyn(1)).map(e, e).size() == 0",
            ".transformMapEntry(i, e, {i: e}).size() > 0",
            ".map(e, string(dyn(e))).join(',') != ''",
        ]
    )  # fmt: skip
    return source + call


def _checked(rng: random.Random) -> str:
    text = rng.choice(
        ["device.driver", _attribute(rng, "string"), quoted(rng, "a" * rng.randint(1, 200))]
    )
    name = rng.choice(["uri", "uuid", "dns1123Label", "byte", "datetime", "labelValue"])
    return rng.choice(
        [
            f"format.{name}().validate({text}).hasValue()",
            f"isIP({text}) || isCIDR({text}) || isURL({text})",
            f"isQuantity({text}) || isSemver({text}, true)",
            f"{_attribute(rng, 'list(string)')}.exists(s, format.{name}().validate(s).hasValue())",
            f"{_attribute(rng, 'semver')}.isGreaterThan(semver('1.0.0')) || {text}.size() > 3",
        ]
    )


def _chain(rng: random.Random) -> str:
    operator = rng.choice([" && ", " || "])
    return operator.join(f"({_body(rng, ['1', '2'])})" for _ in range(rng.randint(3, 25)))


def _written(rng: random.Random) -> str:
    device: Device = {"driver": rng.choice(DRIVERS), "attributes": {"model": {"string": "a"}}}
    return f"({Writer(rng, device).make(parse_type('bool'), 3).within(TERNARY)})"


SHAPES: dict[str, Callable[[random.Random], str]] = {
    "nested-lists": _nested_lists, "attribute-lists": _attribute_lists, "maps": _attribute_maps,
    "regex": _regex, "growth": _growth, "replace": _replaced, "sets": _sets, "lists": _list_calls,
    "checked": _checked, "chain": _chain, "written": _written,
}  # fmt: skip


def _estimates(oracle: Oracle, expressions: list[str]) -> list[int]:
    """The static estimate of each, 0 where there is none."""
    answers = oracle.estimates([{"expression": text} for text in expressions])
    return [int(answer.get("maxCost", 0)) for answer in answers]


def _runtime_costs(oracle: Oracle, expressions: list[str]) -> list[int]:
    answers = oracle.ask([{"expression": text} for text in expressions])
    return [int(answer.get("cost", 0)) for answer in answers]


def repeated(rng: random.Random, unit: str, times: int) -> str:
    """``unit`` evaluated about ``times`` times by one or two macros around it."""
    if times <= 1:
        return unit
    if times <= 40:
        return f"[{', '.join(map(str, range(times)))}].{rng.choice(['all', 'exists'])}(z, {unit})"
    outer = rng.randint(2, max(2, min(30, times // 8)))
    inner = f"[{', '.join(map(str, range(outer)))}].{rng.choice(_ONE)}(z, {unit})"
    if round(times / outer) > 60:
        return f"lists.range({round(times / outer)}).all(w, {inner})"
    return f"[{', '.join(map(str, range(round(times / outer))))}].all(w, {inner})"


def near_limit(oracle: Oracle, rng: random.Random, count: int) -> Iterator[tuple[str, str, int]]:
    """(shape, expression, estimate) for ``count`` expressions, shapes and sides in turn."""
    sides: dict[bool, list[tuple[str, str, int]]] = {True: [], False: []}
    names = list(SHAPES)
    while min(map(len, sides.values())) < (count + 1) // 2:
        units = [(name, SHAPES[name](rng)) for name in names for _ in range(12)]
        batch = []
        for (name, unit), cost in zip(
            units, _estimates(oracle, [u for _, u in units]), strict=True
        ):
            if 0 < cost < 2 * LIMIT:
                target = LIMIT * 2 ** rng.uniform(-1, 1)
                batch.append((name, repeated(rng, unit, round(target / (cost + 3)))))
        costs = _estimates(oracle, [text for _, text in batch])
        taken: dict[str, int] = dict.fromkeys(names, 0)
        for (name, text), cost in zip(batch, costs, strict=True):
            fits = LIMIT // 2 <= cost <= 2 * LIMIT and len(text.encode()) <= LONGEST
            # At most a few of a shape in each round, so that cheap shapes do not take over.
            if fits and taken[name] < 5:
                taken[name] += 1
                sides[cost <= LIMIT].append((name, text, cost))
    half = count // 2
    yield from sides[True][: count - half]
    yield from sides[False][:half]


def padded(text: str, missing: int) -> str:
    """``text`` and an addition after it that costs ``missing`` more and is true."""
    while missing > 0:
        now = min(missing, 200)
        missing -= now
        text += " && " + " + ".join(["1"] * now) + f" == {now}"
    return text


Measure = Callable[[list[str]], list[int]]


def exactly(measure: Measure, text: str) -> Iterator[tuple[str, int]]:
    """Expressions around ``text`` that cost one less than the limit, the limit, and one more."""

    def filled(size: int) -> str:
        return f"({text}) && lists.range({size}).all(y, y >= 0)"

    few, many = measure([filled(10), filled(110)])
    each = (many - few) // 100
    if few < 1 or each < 1 or many > LIMIT - 500:
        return
    base = filled(110 + (LIMIT - many - 100) // each)
    missing = LIMIT - measure([base])[0]
    if not 1 <= missing <= 400:
        return
    texts = [padded(base, missing + off) for off in (-1, 0, 1)]
    for one, cost in zip(texts, measure(texts), strict=True):
        if abs(cost - LIMIT) <= 1 and len(one.encode()) <= LONGEST:
            yield one, cost


def estimated_exactly(
    oracle: Oracle, found: list[tuple[str, str, int]]
) -> Iterator[tuple[str, str, int]]:
    """(shape, expression, estimate) around the limit, made from one expression of each shape."""
    for shape in SHAPES:
        fitting = [text for name, text, cost in found if name == shape and cost < LIMIT - 1000]
        for text in fitting[:1]:
            for one, cost in exactly(lambda texts: _estimates(oracle, texts), text):
                yield shape, one, cost


def running_exactly(oracle: Oracle) -> Iterator[tuple[str, str, int]]:
    """The same for the cost of running without any device: the last of each is cut off."""
    ten = "[1,2,3,4,5,6,7,8,9,10]"
    for number, body in enumerate(
        ("a+b+c > 0", "a < 11 && b < 11 && c < 11", "[a, b].exists(e, e > 0)", "dyn(a) != 'x'")
    ):
        unit = f"{ten}.all(a, {ten}.all(b, {ten}.all(c, {body})))"
        times = (LIMIT - 2000) // (_runtime_costs(oracle, [unit])[0] + 10)
        text = f"lists.range({times}).all(z, {unit})"
        for one, cost in exactly(lambda texts: _runtime_costs(oracle, texts), text):
            yield f"runs-{number}", one, cost

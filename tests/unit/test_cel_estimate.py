"""The static estimate, and what an expression may use. Expected values are those of Kubernetes."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import pytest

from dra_core.cel import celtypes, device_sizes
from dra_core.cel.checker import check
from dra_core.cel.environment import (
    SCHEDULER_1_37,
    Environment,
    declarations,
    device_fields,
    for_validation,
    overloads,
)
from dra_core.cel.estimate import estimate_cost
from dra_core.cel.estimate_sizes import Path as Way
from dra_core.cel.estimates import MAX, CostEstimate, SizeEstimate, fixed_cost
from dra_core.cel.faults import CompileError
from dra_core.cel.parser import parse
from dra_core.cel.syntax import Checked, Const, Ident, ListNode, Node, Parsed, Select

GOLDEN = Path(__file__).parents[1] / "data" / "cel"
NEW = Environment(stored=False)
PLAIN = Environment((1, 37), stored=False, consumable_capacity=False, list_attributes=False)
TYPICAL = (
    'device.driver == "gpu.example.com" '
    '&& device.attributes["gpu.example.com"].model.matches("^A100") '
    '&& device.capacity["gpu.example.com"].memory.compareTo(quantity("10Gi")) >= 0'
)


def compiled(expression: str, environment: Environment = SCHEDULER_1_37) -> Checked:
    return check(parse(expression), declarations(environment))


def most(expression: str, environment: Environment = SCHEDULER_1_37) -> int:
    return estimate_cost(compiled(expression, environment), environment).max


# -- the estimate --

#: Rule by rule, what the oracle of ``tests/oracle`` says.
RULES = r"""
# names and fields
3 device.driver == "a"
2 device == device
2 device.allowMultipleAllocations
5 device.attributes["a"].b == "x"
5 device.attributes.a.b == "x"
5 device.attributes["a"].b.c == 1
2 dyn(1).a == 1
6 has(device.attributes["a"].x) && !has(device.attributes.a)
17 [1].all(device, .device.driver == "x")
21 [1, 2].all(device, device == 1)
12 cel.bind(device, "abc", device == "x")
1844674407370955266 type(1) == int
# literals
23 ["aaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbb"].all(x, x == "cccccccccccccccccccccccccccccccccccc")
43 {"aaaaaaaaaaaaaaa": 1, "bbbbbbbbbbbbbbb": 2}.all(x, x == "cccccccccccccccccccccccccccccccccccc")
33 {1: "aaaaaaaaaaaaaaa", 2: "bbbbbbbbbbbbbbb"}[1] == "cccccccccccccccccccccccccccccccccccc"
1 1 == 2
1 null == null
1 "\u00fc\u4e00" == "abc"
1 b"\xff\xfe" == b"abc"
3 "aaaaaaaaaaaaaaaaaaaaaaaaa" == "bbbbbbbbbbbbbbbbbbbbb"
0 "" == "a"
20 [] == [1]
21 [1, 2] == [1, 2, 3]
60 {} == {"a": 1}
13 ["a", "bbbbbbbbbbbbbbbbb"][0] == "cccccccccccccccccccccc"
44 {"a": ["xx"]}["a"][0] == "zzzzzzzzzzzzzzzzzzz"
32 {"a": "b", "ccc": "dddd"}["a"] == "xxxxxxxxxxxxxxx"
33 {"k": "a"}.k == "bbbbbbbbbbbbbbbbb"
43 kubernetes.DRADevice{driver: "x" + "y"}.driver == "a"
23 [?device.?driver, "a"].all(x, x == "b")
38 {?"a": device.?driver}.all(x, x == "b")
# loops
22 [].map(x, x).all(y, y == 1)
11 [].all(x, x == 1)
31 {}.all(x, x == 1)
20 [1, 2].exists_one(x, x == 1)
20 [1, 2].existsOne(i, v, v == 1)
68 ["a", "bb"].map(x, x == "a", x + x).exists(y, y == "z")
64 ["a", "bb"].filter(x, x == "a").exists(y, y == "z")
3689348814741910608 [["a"], ["bb"]].map(x, x[0]).exists(y, y.contains("zz"))
31 [["aaa"]].all(l, l.all(x, x == "b"))
43 {"a": "b", "ccc": "dddd"}.exists(k, k == "foo")
45 {"a": "b", "ccc": "dddd"}.exists(k, v, k == v)
62 [1, 2].transformList(i, v, i + v) == [1]
96 {"a": 1}.transformMap(k, v, k + "x") == {}
55 ["a"].transformMap(i, v, v == "a", v + v).all(k, v, v == "b")
125 {"a": "b"}.transformMapEntry(k, v, {v: k}) == {}
90 [2, 1].sortBy(x, -x) == []
750 device.attributes.map(d, device.attributes[d].x).exists(v, v == "a")
686 device.attributes.filter(d, d == "x").exists(v, v == "a")
654 device.attributes.transformList(d, m, m.x).exists(v, v == "a")
1232 device.attributes["a"].list.map(x, x).exists(y, y == "a")
977 device.attributes["a"].list.filter(x, x == 1).size() > 1
159 [1, 2, 3].map(x, [x, x]).map(y, y + y) == []
# loops over parts of the device
164 device.attributes["a"].all(k, k == "foo")
164 device.attributes["a"].all(k, v, k == "foo")
676 device.attributes["a"].all(k, v, k + k == "foo" && v == 1)
164 device.capacity["a"].all(k, k == "foo")
132 device.capacity["a"].all(k, v, k == "foo")
132 device.capacity["a"].all(k, v, k.contains("foo"))
6352 cel.bind(m, device.attributes["a"], m.foo.exists(x, m.exists(k, k == "y")))
303 cel.bind(m, device.attributes["a"], m.exists(k, m.foo == "x" && k == "y"))
6415 cel.bind(m, device.capacity["a"], m.exists(k, m.exists(q, q == "x") && k == "y"))
419 device.attributes.all(d, m, m.foo == d)
419 device.attributes.all(m, d, m == d.x)
430 cel.bind(m, device.attributes, m.all(m, v, m == v.x))
21667 device.attributes.all(d, m, m.all(k, v, k == d || v == d))
5283 device.capacity.all(d, m, m.all(k, v, k == d))
# bound names
32 cel.bind(x, [1, 2, 3], x) == [1]
14 cel.bind(x, "abcd", x + x) == "xxxxxxxxxxxxxxxxxxxx"
13 cel.bind(x, "abcd", x) == "xxxxxxxxxxxxxxxxxxxx"
45 cel.bind(x, cel.bind(y, [1], y + y), x.all(z, z == 1))
50 cel.bind(x, {"a": "bcd"}, x.all(k, x[k] == k))
# operators
6 dyn("aaaaaaaaaaaaaaa") + dyn("bbbbb") == "cccccccccccccccccccccccccccccccccccc"
39 (true ? {"aaaaaaaaaaaaaaa": 1} : {"bbbbbbbbbbbbbbb": 2}).all(x, x == device.driver)
3 true || device.driver == "a"
3 true ? false : device.driver == "a"
21 (true ? [1, 2] : [3]).all(x, x == 1)
16 (true ? ["a"] : ["bbb"]).all(x, x == "zzzz")
36 (true ? {"a": 1} : {"b": 2}).all(x, x == "a")
32 (["a"] + ["bbb"]).all(x, x == "zzzz")
10 (device.driver + "x") == "abc"
13 1 in [1, 2, 3]
14 device.driver in ["a", "b"]
3 "a" in device.attributes
13 dyn(1) in dyn([1])
13 dyn([1, 2])[0] == 1
34 dyn({"a": "bbbbbbbbbbbbbb"})["a"] == "cccccccccccccccccccccc"
6 device.attributes["a"].x[0] == 1
1 -1 < 2
1 1 < 2.0
3 "a" < device.driver
2 b"a" + b"b" >= b"c"
1 !true
7 dyn(dyn(device.driver)) == "aaaaaaaaaaaaaaaaaaaaa"
# texts
36 string(bytes(device.driver)) == "a"
21 "aaaaaaaaaaaaaaaaaaaa".replace(string(bytes("aaaaaaaa")), "bbbbbbbbbbbb").contains("c")
14 "aaaaaaaaaaaaaaaaaaaa".replace(strings.quote("a"), "bbbbbbbbbbbb").contains("c")
1 "aaaaaaaaaaaaaaaaaaaaaaaa".startsWith("a")
1 "aaaaaaaaaaaaaaaaaaaaaaaa".endsWith("a")
14 "aaaaaaaaaaaaaaaaaaaaaaaa%s".format([1]) == "a"
9 device.driver.matches("a.*")
9 matches(device.driver, "a.*")
53 device.driver.contains(device.driver)
11 device.driver.startsWith(device.driver)
12 "%s".format([1]) == "a"
10 bytes(device.driver) == b"abc"
2 string(b"abc") == "ab"
5 string(bytes(string(dyn(1)))) == "a"
23 strings.quote(strings.quote(device.driver)) == "a"
4 strings.quote(string(dyn(1))) == "a"
4 size(device.driver) > 3
4 device.driver.size() > 3
# optionals
5 device.attributes["a"][?"x"].hasValue()
6 device.attributes["a"].?x.orValue("abcd") == "x"
1844674407370955287 device.attributes[?"a"].?x.optMap(y, y + "z").orValue("") == ""
1844674407370955283 optional.of("abc").optFlatMap(x, optional.of(x + x)).value() == "z"
3 optional.of(1) == optional.of(2)
1844674407370955266 optional.of("a") == optional.of("b")
34 optional.of({"a": 1})[?"a"].value() == 1
14 optional.of([1])[?0].value() == 1
# libraries
331 device.driver.split(".").all(x, x == "a")
28 device.driver.replace("a", "bb").matches("b+")
1844674407370955275 ["a", "b"].join(",") == "a"
13 [1, 2].sum() == 3
3689348814741910543 ["a", device.driver].max() == "a"
68 device.attributes["a"].x.includes("a")
38 lists.range(3).slice(0, 2) == [1]
26 sets.contains([1, 2], [device.attributes.size()])
73 [[1], [2]].flatten().distinct() == [1]
7 device.capacity["a"].x.compareTo(quantity("1Gi")) >= 0
6 device.capacity["a"].x == quantity("1Gi")
3 semver("1.0.0") == semver("1.0.1")
3 ip("10.0.0.1") == ip("10.0.0.2")
6 cidr("10.0.0.0/8").containsIP("10.0.0.1")
4 url("https://a/b").getHost() == "a"
1844674407370955267 format.named("uuid") == optional.of(format.uuid())
17 device.driver.find("[a-z]+") == "a"
MAX lists.range(int(dyn(1))) == [1]
"""


@pytest.mark.parametrize("line", [r for r in RULES.splitlines() if r and not r.startswith("# ")])
def test_an_estimate_is_that_of_kubernetes(line: str) -> None:
    expected, _, expression = line.partition(" ")
    assert most(expression) == (MAX if expected == "MAX" else int(expected))


def environment_of(question: dict[str, Any]) -> Environment:
    env = question.get("env")
    if env is None:
        return SCHEDULER_1_37
    stored = env["type"] == "stored"
    return Environment((1, 37), stored, env["consumableCapacity"], env["listTypeAttributes"])


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.jsonl")), ids=lambda file: file.stem)
def test_estimates_of_many_expressions(file: Path) -> None:
    wrong, asked = [], 0
    for line in file.read_text(encoding="utf-8").split("\n"):
        question = json.loads(line or "{}")
        if "maxCost" not in question:
            continue
        asked += 1
        found = most(question["expression"], environment_of(question))
        if found != int(question["maxCost"]):
            wrong.append((question["id"], int(question["maxCost"]), found))
    assert asked > 50
    assert wrong == []


def test_the_least_cost_of_an_expression() -> None:
    assert estimate_cost(compiled("1 == 2 || device.driver == 'a'")) == CostEstimate(1, 4)
    assert estimate_cost(compiled("true ? 1 == 2 : device.driver == 'a'")) == CostEstimate(1, 3)
    assert estimate_cost(compiled("device.attributes.all(d, d == 'a')")) == CostEstimate(3, 163)
    searched = "device.driver.contains(device.driver)"
    assert estimate_cost(compiled(f"{searched} || true")) == CostEstimate(4, 53)


def test_depth_of_an_expression_needs_no_depth_of_the_stack() -> None:
    node: Node = Const(0, 1)
    for identifier in range(1, 50_001):
        node = ListNode(identifier, [node])
    assert estimate_cost(Checked(Parsed("", node), {}, {})) == fixed_cost(500_000)


def test_the_deepest_nesting_of_loops() -> None:
    assert most("[1].exists(x," * 120 + "true" + ")" * 120) == 1800


def test_a_typical_selector_takes_far_less_than_a_millisecond() -> None:
    checked = compiled(TYPICAL)
    estimate_cost(checked)
    best = 1.0
    for _ in range(20):
        begun = time.process_time()
        for _ in range(20):
            estimate_cost(checked)
        best = min(best, (time.process_time() - begun) / 20)
    assert best < 0.0005


def test_a_call_without_overload_is_free() -> None:
    tree = compiled("device.driver == 'a'")
    tree.references.clear()
    assert estimate_cost(tree) == fixed_cost(0)
    assert estimate_cost(Checked(Parsed("", Ident(1, "device")), {}, {})) == fixed_cost(1)
    field = Select(2, Ident(1, "device"), "driver")
    assert estimate_cost(Checked(Parsed("", field), {}, {})) == fixed_cost(1)


def test_functions_of_1_36_cost_what_they_cost_there() -> None:
    old = Environment((1, 36))
    assert most('matches(device.driver, "aaaaaaaa")', old) == 3
    assert most('matches(device.driver, "aaaaaaaa")') == 16
    assert most('device.attributes["a"].b.includes(1)', old) == 52
    assert most('device.attributes["a"].b.includes(1)') == 68


# -- paths and sizes --


def test_paths_from_one_place_can_share_their_end() -> None:
    domain = Way(["device"], 1).to("attributes").to("@values")
    first = domain.to("model")
    assert first.parts() == ("device", "attributes", "@values", "model")
    assert domain.to("@keys").parts()[-1] == "@keys"
    assert first.parts()[-1] == "@keys"
    assert first.to("a").to("b").parts() != first.to("c").parts()
    assert domain.parts() == ("device", "attributes", "@values")


def test_paths_that_are_full_do_not() -> None:
    device = Way(["device"], 1)
    first = device.to("driver")
    assert device.to("attributes").parts() == ("device", "attributes")
    assert first.parts() == ("device", "driver")


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("device", 0),
        ("device driver", 63),
        ("device allowMultipleAllocations", 1),
        ("device attributes", 32),
        ("device attributes @keys", 63),
        ("device attributes @values", 32),
        ("device attributes @values @keys", 32),
        ("device attributes @values @values", 64),
        ("device attributes @values model", 64),
        ("device attributes @items model", 64),
        ("device capacity", 32),
        ("device capacity @keys", 63),
        ("device capacity @values @keys", 32),
        ("device capacity @values @values", 0),
    ],
)
def test_how_large_the_parts_of_a_device_can_be(path: str, size: int) -> None:
    assert device_sizes.estimate_size(path.split()) == SizeEstimate(0, size)


@pytest.mark.parametrize(
    "path",
    [
        *["", "other", "@items", "device nosuch", "device @items", "device driver @keys"],
        *["device attributes model", "device capacity @values memory"],
        *["device attributes @values model @items", "device attributes @values model x"],
    ],
)
def test_no_size_is_known_elsewhere(path: str) -> None:
    assert device_sizes.estimate_size(path.split()) is None


# -- environments --


def test_a_scheduler_knows_all_whatever_its_gates() -> None:
    gated = Environment((1, 37), stored=True, consumable_capacity=False, list_attributes=False)
    assert device_fields(gated) == device_fields(SCHEDULER_1_37)
    assert overloads(gated) == overloads(SCHEDULER_1_37)
    assert gated.selector_types == SCHEDULER_1_37.selector_types == (celtypes.BOOL, celtypes.DYN)
    assert gated.derived_lists


def test_an_api_server_knows_what_its_gates_let_it() -> None:
    assert "allowMultipleAllocations" not in device_fields(PLAIN)
    assert "allowMultipleAllocations" in device_fields(NEW)
    assert "includes" not in overloads(PLAIN)
    assert [o.id for o in overloads(NEW)["includes"]] == ["list_includes_dyn_dyn"]
    assert PLAIN.selector_types == (celtypes.BOOL, celtypes.ANY)
    assert NEW.selector_types == (celtypes.BOOL, celtypes.DYN)
    assert not PLAIN.derived_lists


def test_stored_expressions_of_1_36_follow_the_gate_of_lists() -> None:
    old = Environment((1, 36))
    plain = dataclasses.replace(old, list_attributes=False)
    assert plain.attribute_type == celtypes.ANY
    assert "allowMultipleAllocations" in device_fields(plain)
    assert [o.id for o in overloads(plain)["includes"]] == ["dra_includes_dyn_dyn"]
    assert old.selector_types == (celtypes.BOOL, celtypes.ANY, celtypes.DYN)
    assert plain.selector_types == (celtypes.BOOL, celtypes.ANY)


def test_what_went_and_came_with_1_37() -> None:
    old = Environment((1, 36))
    assert "int64_to_duration" in [o.id for o in overloads(old)["duration"]]
    assert [o.id for o in overloads(SCHEDULER_1_37)["duration"]] == [
        "duration_to_duration",
        "string_to_duration",
    ]
    assert (old.quoted_fields, SCHEDULER_1_37.quoted_fields) == (False, True)


ITEM, TEXT = "list_a_index_of_int", ["string_index_of_string", "string_index_of_string_int"]


@pytest.mark.parametrize(
    ("environment", "listed"),
    [
        (SCHEDULER_1_37, [*TEXT, ITEM]),
        (NEW, [ITEM, *TEXT]),
        (Environment((1, 36)), [ITEM, *TEXT]),
        (Environment((1, 36), stored=False), [ITEM, *TEXT]),
    ],
)
def test_lists_moved_behind_strings(environment: Environment, listed: list[str]) -> None:
    assert [o.id for o in overloads(environment)["indexOf"]] == listed


@pytest.mark.parametrize(
    ("function", "listed"),
    [
        (
            "_[_]",
            ["index_list", "index_map", "optional_list_index_int", "optional_map_index_value"],
        ),
        ("compareTo", ["quantity_compare_to", "semver_compare_to"]),
        ("ip", ["string_to_ip", "cidr_ip"]),
        ("reverse", ["list_reverse"]),
    ],
)
def test_overloads_stand_in_the_order_of_the_libraries(function: str, listed: list[str]) -> None:
    assert [o.id for o in overloads(SCHEDULER_1_37)[function]] == listed


def test_no_overload_is_there_twice() -> None:
    for minor, stored in ((36, True), (36, False), (37, True), (37, False)):
        found = [o.id for os in overloads(Environment((1, minor), stored)).values() for o in os]
        assert len(found) == len(set(found))


def test_what_an_api_server_checks_an_expression_with() -> None:
    gates = {"consumable_capacity": True, "list_attributes": False}
    new = for_validation(37, **gates)
    assert new == Environment((1, 37), stored=False, **gates)
    assert for_validation(37, unchanged=True, **gates) is None
    assert for_validation(36, unchanged=True, **gates) == Environment((1, 36), True, **gates)
    assert for_validation(36, **gates) == Environment((1, 36), stored=False, **gates)


@pytest.mark.parametrize("name", ["kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL"])
def test_types_without_a_name(name: str) -> None:
    with pytest.raises(CompileError, match="undeclared reference to 'kubernetes"):
        compiled(f"type(1) == {name}")
    compiled("type(1) == net.IP || type(1) == net.CIDR || type(1) == optional_type")

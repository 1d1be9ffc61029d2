"""Rows of attributes, consumed counters and taints."""

from __future__ import annotations

from typing import Any, Final

from dra_core.model.devices import Counter, Version
from dra_testing.rows.devices import AMOUNT, CONSUMED, MOMENT, TAINT, WHEN, device_base
from dra_testing.rows.example import (
    GONE,
    INVALID,
    JSON,
    MALFORMED,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    V1,
    Base,
    Row,
    table,
)
from dra_testing.rows.slices import ONE, counters

_ATTRIBUTE_VALUES: Final[list[tuple[str, Any, Any, Any]]] = [
    ("bool", True, "true", True),
    ("int", 2**63 - 1, 2**63, 2**63 - 1),
    ("string", "a", 1, "a"),
    ("version", "1.2.3", 1, Version("1.2.3")),
    ("bools", [True, False], [1], (True, False)),
    ("ints", [1, 2], ["1"], (1, 2)),
    ("strings", ["a", "a"], [1], ("a", "a")),
    ("versions", ["1.2.3"], [1], (Version("1.2.3"),)),
]
_ATTRIBUTE: Final = table(
    device_base(".attributes.a", ".attributes[a]", ".attributes.a", attributes={"a": {}}),
    *(
        Row(f"DeviceAttribute.{kind}", kind, good, bad, MALFORMED, reads=("", value))
        for kind, good, bad, value in _ATTRIBUTE_VALUES
    ),
    *(
        Row("DeviceAttribute#exactly-one", kind, good, GONE, {"": INVALID})
        for kind, good, _, _ in _ATTRIBUTE_VALUES
    ),
    *(
        Row(
            "DeviceAttribute#exactly-one",
            kind,
            good,
            good,
            {"": INVALID},
            bad_more={"string" if kind != "string" else "int": "x" if kind != "string" else 1},
        )
        for kind, good, _, _ in _ATTRIBUTE_VALUES
    ),
    *(
        Row(
            f"DeviceAttribute.{kind}#not-empty",
            kind,
            good,
            [],
            {kind: INVALID, "": INVALID},
            {kind: INVALID},
        )
        for kind, good, _, _ in _ATTRIBUTE_VALUES[4:]
    ),
    Row("DeviceAttribute.string#max-64", "string", "x" * 64, "x" * 65, TOO_LONG),
    Row("DeviceAttribute.string#max-64", "string", "ä" * 32, "ä" * 33, TOO_LONG),
    Row(
        "DeviceAttribute.strings#each-max-64",
        "strings",
        ["a", "x" * 64],
        ["a", "x" * 65],
        {"strings[1]": TOO_LONG},
    ),
    *(
        Row("DeviceAttribute.version#semver", "version", "1.2.3-a.1+b", bad)
        for bad in ("1.2", "v1.2.3", "1.2.3-01", "")
    ),
    Row(
        "DeviceAttribute.version#max-64",
        "version",
        f"1.0.0-{'a' * 58}",
        f"1.0.0-{'a' * 59}",
        TOO_LONG,
    ),
    Row(
        "DeviceAttribute.versions#each-semver",
        "versions",
        ["1.0.0", "1.2.3-a.1"],
        ["1.0.0", "1.2"],
        {"versions[1]": INVALID},
    ),
    Row(
        "DeviceAttribute.versions#each-max-64",
        "versions",
        ["1.0.0", f"1.0.0-{'a' * 58}"],
        ["1.0.0", f"1.0.0-{'a' * 59}"],
        {"versions[1]": TOO_LONG},
    ),
)
_CONSUMPTION: Final = table(
    device_base(
        ".consumesCounters.0",
        ".consumesCounters[0]",
        ".consumes_counters.0",
        consumesCounters=[CONSUMED],
    ),
    Row(
        "DeviceCounterConsumption.counterSet", "counterSet", "t", "t_1", reads=("counter_set", "t")
    ),
    Row(
        "DeviceCounterConsumption.counters",
        "counters",
        {"m": {"value": "2"}},
        {"M": {"value": "2"}},
        reads=("counters", {"m": Counter(AMOUNT("2"))}),
    ),
    Row("DeviceCounterConsumption.counterSet#required", "counterSet", "s", GONE, REQUIRED),
    Row("DeviceCounterConsumption.counters#required", "counters", ONE, GONE, REQUIRED),
    Row(
        "DeviceCounterConsumption.counters#max-32",
        "counters",
        counters(32),
        counters(33),
        TOO_MANY,
    ),
)
RULE: Final[JSON] = {
    "apiVersion": V1,
    "kind": "DeviceTaintRule",
    "metadata": {"name": "row"},
    "spec": {"deviceSelector": {"driver": "gpu.example.com"}, "taint": TAINT},
}
_TAINT: Final = [
    row
    for base in (
        device_base(".taints.0", ".taints[0]", ".taints.0", taints=[TAINT]),
        Base(RULE, "spec.taint", model="spec.taint"),
    )
    for row in table(
        base,
        Row(
            "DeviceTaint.effect",
            "effect",
            "NoExecute",
            "Never",
            NOT_SUPPORTED,
            reads=("effect", "NoExecute"),
        ),
        Row("DeviceTaint.key", "key", "example.com/k", "k k", reads=("key", "example.com/k")),
        Row(
            "DeviceTaint.timeAdded",
            "timeAdded",
            WHEN,
            "yesterday",
            MALFORMED,
            reads=("time_added", MOMENT),
        ),
        Row("DeviceTaint.value", "value", "v", "v v", reads=("value", "v")),
        Row("DeviceTaint.effect#required", "effect", "None", GONE, REQUIRED),
        Row("DeviceTaint.key#required", "key", "k", GONE),
        *(
            Row("DeviceTaint.effect#allowed", "effect", good, bad, NOT_SUPPORTED)
            for good, bad in (
                ("None", "PreferNoSchedule"),
                ("NoSchedule", "noSchedule"),
                ("NoExecute", "none"),
            )
        ),
        Row("DeviceTaint.key#label-name", "key", "k" * 63, "k" * 64),
        Row("DeviceTaint.value#label-value", "value", "v" * 63, "v" * 64),
    )
]
ROWS: Final = [*_ATTRIBUTE, *_CONSUMPTION, *_TAINT]

"""Rows of capacities and of the policies for consuming them."""

from __future__ import annotations

from typing import Any, Final

from dra_core.model.devices import RequestPolicy, RequestRange
from dra_core.quantity import Quantity
from dra_testing.rows.devices import device_base
from dra_testing.rows.example import (
    FORBIDDEN,
    GONE,
    INVALID,
    MALFORMED,
    REQUIRED,
    TOO_MANY,
    UNREADABLE,
    Base,
    Row,
    table,
)

AMOUNT: Final = Quantity.parse
TEN: Final = [str(i) for i in range(1, 11)]


def _policy(**fields: Any) -> Base:
    """A capacity of 20 with a policy."""
    return device_base(
        ".capacity.c.requestPolicy",
        ".capacity[c].requestPolicy",
        ".capacity.c.request_policy",
        allowMultipleAllocations=True,
        capacity={"c": {"value": "20", "requestPolicy": fields}},
    )


_CAPACITY: Final = table(
    device_base(
        ".capacity.c",
        ".capacity[c]",
        ".capacity.c",
        allowMultipleAllocations=True,
        capacity={"c": {"value": "20"}},
    ),
    Row(
        "DeviceCapacity.value", "value", "80Gi", "much", MALFORMED, reads=("value", AMOUNT("80Gi"))
    ),
    Row("DeviceCapacity.value#required", "value", "0", GONE, UNREADABLE, server=201),
    Row(
        "DeviceCapacity.requestPolicy",
        "requestPolicy",
        {"default": "5", "validValues": ["5"]},
        {"validValues": ["5"]},
        {"requestPolicy.default": REQUIRED},
        reads=("request_policy", RequestPolicy(AMOUNT("5"), (AMOUNT("5"),))),
    ),
    Row(
        "DeviceCapacity.requestPolicy#needs-multiple-allocations",
        "/spec.devices.0.allowMultipleAllocations",
        True,
        GONE,
        {"requestPolicy": FORBIDDEN},
        more={"requestPolicy": {"default": "5"}},
    ),
)
_POLICY: Final = [
    *table(
        _policy(default="4"),
        Row(
            "CapacityRequestPolicy.default",
            "default",
            "4",
            "5",
            {"validValues": INVALID},
            reads=("default", AMOUNT("4")),
            more={"validValues": ["4"]},
        ),
        Row(
            "CapacityRequestPolicy.validRange",
            "validRange",
            {"min": "2"},
            {},
            {"validRange.min": REQUIRED},
            reads=("valid_range", RequestRange(AMOUNT("2"))),
        ),
        Row(
            "CapacityRequestPolicy.validValues",
            "validValues",
            ["2", "4"],
            ["4", "21"],
            {"validValues[1]": INVALID},
            reads=("valid_values", (AMOUNT("2"), AMOUNT("4"))),
        ),
        Row(
            "CapacityRequestPolicy#one-rule",
            "validRange",
            GONE,
            {"min": "2"},
            {"": FORBIDDEN},
            more={"validValues": ["4"]},
        ),
        Row(
            "CapacityRequestPolicy.validRange#needs-default",
            "default",
            "4",
            GONE,
            REQUIRED,
            more={"validRange": {"min": "2"}},
        ),
        Row(
            "CapacityRequestPolicy.validRange#default-inside",
            "default",
            "2",
            "1",
            {"validRange.default": INVALID},
            {"validRange.min": INVALID},
            more={"validRange": {"min": "2", "max": "6"}},
        ),
        Row(
            "CapacityRequestPolicy.validRange#default-inside",
            "default",
            "6",
            "7",
            {"validRange.default": INVALID},
            {"validRange.max": INVALID},
            more={"validRange": {"min": "2", "max": "6"}},
        ),
        Row(
            "CapacityRequestPolicy.validValues#needs-default",
            "default",
            "4",
            GONE,
            REQUIRED,
            more={"validValues": ["4"]},
        ),
        Row(
            "CapacityRequestPolicy.validValues#default-inside",
            "validValues",
            ["2", "4", "6"],
            ["2", "6"],
            INVALID,
        ),
        Row(
            "CapacityRequestPolicy.validValues#max-10",
            "validValues",
            TEN,
            [*TEN, "11"],
            {"validValues": (TOO_MANY, INVALID)},
        ),
        Row(
            "CapacityRequestPolicy.validValues#ascending",
            "validValues",
            ["2", "4"],
            ["4", "2"],
            {"validValues[1]": INVALID},
        ),
    ),
]
_RANGE: Final = [
    *table(
        _policy(default="4", validRange={"min": "2"}),
        Row(
            "CapacityRequestPolicyRange.max",
            "validRange.max",
            "20",
            "21",
            reads=("valid_range.maximum", AMOUNT("20")),
        ),
        Row(
            "CapacityRequestPolicyRange.min",
            "validRange.min",
            "4",
            "5",
            {"validRange.default": INVALID},
            {"validRange.min": INVALID},
            reads=("valid_range.minimum", AMOUNT("4")),
        ),
        Row(
            "CapacityRequestPolicyRange.step",
            "validRange.step",
            "2",
            "3",
            reads=("valid_range.step", AMOUNT("2")),
        ),
        Row(
            "CapacityRequestPolicyRange.min#required",
            "validRange",
            {"min": "2", "max": "6"},
            {"max": "6"},
            {"validRange.min": REQUIRED},
        ),
        Row("CapacityRequestPolicyRange.max#at-most-value", "validRange.max", "20", "21"),
        Row(
            "CapacityRequestPolicyRange.max#not-below-min",
            "validRange.max",
            "4",
            "3",
            {"validRange.max": INVALID, "validRange.default": INVALID},
            {"validRange.max": INVALID},
            more={"validRange.min": "4"},
        ),
        Row(
            "CapacityRequestPolicyRange.max#not-below-default",
            "validRange.max",
            "4",
            "3",
            {"validRange.default": INVALID},
            {"validRange.max": INVALID},
        ),
        Row(
            "CapacityRequestPolicyRange.min#not-negative",
            "validRange.min",
            "0",
            "-1",
            warned="negative-minimum",
        ),
        Row(
            "CapacityRequestPolicyRange.min#not-negative",
            "validRange.min",
            "0",
            "-1",
            more={"validRange.step": "1"},
            minors=(37,),
        ),
        Row(
            "CapacityRequestPolicyRange.min#at-most-value",
            "validRange.min",
            "20",
            "21",
            more={"default": "20"},
            bad_more={"default": "21"},
        ),
        Row(
            "CapacityRequestPolicyRange.min#not-above-default",
            "validRange.min",
            "4",
            "5",
            {"validRange.default": INVALID},
            {"validRange.min": INVALID},
        ),
        Row(
            "CapacityRequestPolicyRange.step#divides-max",
            "validRange.step",
            "3",
            "4",
            more={"default": "2", "validRange.max": "20"},
        ),
        Row("CapacityRequestPolicyRange.step#divides-default", "validRange.step", "2", "3"),
        Row(
            "CapacityRequestPolicyRange.step#first-step-fits",
            "validRange.step",
            "18",
            "19",
            more={"default": "2"},
        ),
    ),
]

ROWS: Final = [*_CAPACITY, *_POLICY, *_RANGE]

"""Rows of tolerations, constraints and the status of a claim."""

from __future__ import annotations

from typing import Any, Final

from dra_core.model.objects import Condition
from dra_core.model.requests import DerivedAttribute, ExactRequest
from dra_testing.rows.devices import MOMENT, WHEN
from dra_testing.rows.example import (
    DROPPED,
    DUPLICATE,
    GONE,
    INVALID,
    JSON,
    MALFORMED,
    NOT_SUPPORTED,
    REQUIRED,
    Base,
    Row,
    table,
)
from dra_testing.rows.requests import DERIVED, GIB, NUMA, SUB, claim
from dra_testing.rows.slices import READ_SELECTOR, SELECTOR


def _toleration(**fields: Any) -> Base:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "tolerations": [fields]}}
    place = "spec.devices.requests.0.exactly.tolerations.0"
    return Base(claim(request), place, model=place)


_TOLERATION: Final = table(
    _toleration(key="k"),
    Row(
        "DeviceToleration.effect",
        "effect",
        "NoExecute",
        "Never",
        NOT_SUPPORTED,
        reads=("effect", "NoExecute"),
    ),
    Row("DeviceToleration.key", "key", "example.com/k", "k k", reads=("key", "example.com/k")),
    Row(
        "DeviceToleration.operator",
        "operator",
        "Exists",
        "In",
        NOT_SUPPORTED,
        reads=("operator", "Exists"),
    ),
    Row(
        "DeviceToleration.tolerationSeconds",
        "tolerationSeconds",
        30,
        "30",
        MALFORMED,
        reads=("toleration_seconds", 30),
        more={"effect": "NoExecute"},
    ),
    Row("DeviceToleration.value", "value", "v", "v v", reads=("value", "v")),
    *(
        Row("DeviceToleration.effect#allowed", "effect", good, bad, NOT_SUPPORTED)
        for good, bad in (("NoSchedule", "PreferNoSchedule"), ("NoExecute", "noExecute"))
    ),
    Row("DeviceToleration.effect#allowed", "effect", GONE, "None", warned="no-effect"),
    Row("DeviceToleration.key#label-name", "key", "k" * 63, "k" * 64),
    Row(
        "DeviceToleration.key#empty-needs-exists",
        "operator",
        "Exists",
        "Equal",
        warned="empty-key",
        more={"key": GONE},
    ),
    *(
        Row("DeviceToleration.operator#allowed", "operator", good, bad, NOT_SUPPORTED)
        for good, bad in (("Exists", "exists"), ("Equal", "Equals"))
    ),
    Row(
        "DeviceToleration.value#empty-with-exists",
        "value",
        "",
        "v",
        more={"operator": "Exists"},
    ),
    Row(
        "DeviceToleration.value#label-value",
        "value",
        "v" * 63,
        "v" * 64,
        more={"operator": "Equal"},
    ),
)
EXACTLY: Final[JSON] = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
_CLAIM: Final = [
    *table(
        Base(claim({"name": "r"}), "spec.devices.requests.0", model="spec.devices.requests.0"),
        Row(
            "ResourceClaim.spec.devices.requests[].firstAvailable",
            "firstAvailable",
            [SUB],
            [SUB, SUB],
            {"firstAvailable[1]": DUPLICATE},
            reads=("first_available", (ExactRequest("gpu", name="s"),)),
        ),
    ),
    *table(
        Base(claim(EXACTLY), "spec.devices", model="spec.devices"),
        Row(
            "ResourceClaim.spec.devices.requests[].derivedAttributes",
            "requests.0.exactly.derivedAttributes",
            [DERIVED],
            [{**DERIVED, "name": "numa"}],
            {"requests[0].exactly.derivedAttributes[0].name": INVALID},
            reads=("requests.0.exactly.derived_attributes", (DerivedAttribute(NUMA, "1"),)),
            more={"constraints": [{"matchAttribute": NUMA}]},
            minors=(37,),
        ),
        *(
            Row(
                f"ResourceClaim.spec.devices.constraints[].{kind}",
                f"constraints.0.{kind}",
                NUMA,
                "numa",
                reads=(f"constraints.0.{name}", NUMA),
                more={"constraints": [{"requests": ["r"]}]},
            )
            for kind, name in (
                ("matchAttribute", "match_attribute"),
                ("distinctAttribute", "distinct_attribute"),
            )
        ),
    ),
]
RESULT: Final[JSON] = {"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}
REPORT: Final[JSON] = {"driver": "d", "pool": "p", "device": "gpu-0"}
CONDITION: Final[JSON] = {
    "type": "Ready",
    "status": "True",
    "lastTransitionTime": WHEN,
    "reason": "Done",
    "message": "ready to use",
}
_STATUS: Final = table(
    Base(
        claim(
            EXACTLY, status={"allocation": {"devices": {"results": [RESULT]}}, "devices": [REPORT]}
        ),
        "status",
        model="status",
        status=True,
    ),
    Row(
        "ResourceClaim.status.allocation.nodeSelector",
        "allocation.nodeSelector",
        SELECTOR,
        {"nodeSelectorTerms": []},
        {"allocation.nodeSelector.nodeSelectorTerms": REQUIRED},
        reads=("allocation.node_selector", READ_SELECTOR),
    ),
    Row(
        "ResourceClaim.status.allocation.devices.results[].consumedCapacity",
        "allocation.devices.results.0.consumedCapacity",
        {"memory": "1Gi"},
        {"memory": "much"},
        MALFORMED,
        reads=("allocation.devices.results.0.consumed_capacity", GIB),
    ),
    Row(
        "ResourceClaim.status.devices[].consumedCapacity",
        "devices.0.consumedCapacity",
        {"memory": "1Gi"},
        reads=("devices.0.consumed_capacity", GIB),
        judged=False,
    ),
    Row(
        "ResourceClaim.status.devices[].consumedCapacity",
        "devices.0.consumedCapacity",
        GONE,
        {"memory": "1Gi"},
        DROPPED,
    ),
    Row(
        "ResourceClaim.status.devices[].conditions",
        "devices.0.conditions",
        [CONDITION],
        [CONDITION, CONDITION],
        {"devices[0].conditions[1]": DUPLICATE},
        {"devices[0].conditions[1].type": DUPLICATE},
        reads=(
            "devices.0.conditions",
            (Condition("Ready", "True", "Done", "ready to use", MOMENT),),
        ),
    ),
)

ROWS: Final = [*_TOLERATION, *_CLAIM, *_STATUS]

"""Rows of alternatives in requests, their selectors and derived attributes."""

from __future__ import annotations

from typing import Any, Final

from dra_core.model.requests import CapacityRequirements, DerivedAttribute, DeviceSelector
from dra_core.model.taints import DeviceToleration
from dra_core.quantity import Quantity
from dra_testing.rows.example import (
    DROPPED,
    DUPLICATE,
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

LONG: Final = 10 * 1024
NUMA: Final = "example.com/numa"
DERIVED: Final[JSON] = {"name": NUMA, "expression": "1"}
SUB: Final[JSON] = {"name": "s", "deviceClassName": "gpu"}
CONSTRAINTS: Final = "/spec.devices.constraints"
GIB: Final = {"memory": Quantity.parse("1Gi")}


def claim(*requests: JSON, status: JSON | None = None, **devices: Any) -> JSON:
    """A claim with these requests."""
    made: JSON = {
        "apiVersion": V1,
        "kind": "ResourceClaim",
        "metadata": {"name": "row", "namespace": "default"},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }
    return made if status is None else {**made, "status": status}


def _sub(root: str = "", path: str = "", model: str = "", **fields: Any) -> Base:
    """An alternative of the only request."""
    return Base(
        claim({"name": "r", "firstAvailable": [{**SUB, **fields}]}),
        f"spec.devices.requests.0.firstAvailable.0{root}",
        f"spec.devices.requests[0].firstAvailable[0]{path}",
        f"spec.devices.requests.0.first_available.0{model}",
    )


def _derived(count: int) -> list[JSON]:
    return [{"name": f"example.com/a{i}", "expression": "1"} for i in range(count)]


_SUBREQUEST: Final = table(
    _sub(),
    Row(
        "DeviceSubRequest.allocationMode",
        "allocationMode",
        "All",
        "Some",
        NOT_SUPPORTED,
        reads=("allocation_mode", "All"),
    ),
    Row(
        "DeviceSubRequest.capacity",
        "capacity",
        {"requests": {"memory": "1Gi"}},
        {"requests": {"memory": "much"}},
        MALFORMED,
        reads=("capacity", CapacityRequirements(GIB)),
    ),
    Row("DeviceSubRequest.count", "count", 3, -3, reads=("count", 3)),
    Row(
        "DeviceSubRequest.derivedAttributes",
        "derivedAttributes",
        [DERIVED],
        [DERIVED, DERIVED],
        {"derivedAttributes[1]": DUPLICATE},
        reads=("derived_attributes", (DerivedAttribute(NUMA, "1"),)),
        more={CONSTRAINTS: [{"matchAttribute": NUMA}]},
        minors=(37,),
    ),
    Row(
        "DeviceSubRequest.deviceClassName",
        "deviceClassName",
        "gpu.example.com",
        "GPU",
        reads=("device_class_name", "gpu.example.com"),
    ),
    Row("DeviceSubRequest.name", "name", "small-1", "small_1", reads=("name", "small-1")),
    Row(
        "DeviceSubRequest.selectors",
        "selectors",
        [{"cel": {"expression": "true"}}],
        [{"cel": {"expression": "true"}}] * 33,
        TOO_MANY,
        reads=("selectors", (DeviceSelector("true"),)),
    ),
    Row(
        "DeviceSubRequest.tolerations",
        "tolerations",
        [{"operator": "Exists"}],
        [{"operator": "In"}],
        {"tolerations[0].operator": NOT_SUPPORTED},
        reads=("tolerations", (DeviceToleration(operator="Exists"),)),
    ),
    Row("DeviceSubRequest.deviceClassName#required", "deviceClassName", "gpu", GONE, REQUIRED),
    Row("DeviceSubRequest.name#required", "name", "s", GONE),
    Row("DeviceSubRequest#no-admin-access", "adminAccess", GONE, True, DROPPED),
    Row(
        "DeviceSubRequest.allocationMode#known",
        "allocationMode",
        "ExactCount",
        "exactcount",
        NOT_SUPPORTED,
    ),
    Row("DeviceSubRequest.allocationMode#known", "allocationMode", "All", "Any", NOT_SUPPORTED),
    Row("DeviceSubRequest.count#positive", "count", 1, -1),
    Row("DeviceSubRequest.count#positive", "count", 0),
    Row(
        "DeviceSubRequest.count#exact-count-only",
        "allocationMode",
        "ExactCount",
        "All",
        {"count": INVALID},
        more={"count": 2},
    ),
    Row(
        "DeviceSubRequest.derivedAttributes#max-32",
        "derivedAttributes",
        _derived(32),
        _derived(33),
        {"derivedAttributes": TOO_MANY, "derivedAttributes[32].name": INVALID},
        more={CONSTRAINTS: [{"matchAttribute": d["name"]} for d in _derived(32)]},
        minors=(37,),
    ),
    Row("DeviceSubRequest.name#dns-label", "name", "s" * 63, "s" * 64),
    Row("DeviceSubRequest.name#dns-label", "name", "0-s", "s.s"),
    Row(
        "DeviceSubRequest.tolerations#max-16",
        "tolerations",
        [{"operator": "Exists"}] * 16,
        [{"operator": "Exists"}] * 17,
        warned="many-tolerations",
    ),
    Row(
        "CapacityRequirements.requests",
        "capacity.requests",
        {"memory": "1Gi"},
        {"memory": "much"},
        MALFORMED,
        reads=("capacity.requests", GIB),
    ),
)
_SELECTOR: Final = table(
    _sub(
        ".selectors.0",
        ".selectors[0]",
        ".selectors.0",
        selectors=[{"cel": {"expression": "true"}}],
    ),
    Row(
        "DeviceSelector.cel",
        "cel",
        {"expression": "1 == 1"},
        GONE,
        REQUIRED,
        reads=("expression", "1 == 1"),
    ),
    Row(
        "CELDeviceSelector.expression",
        "cel.expression",
        "1 == 1",
        " ",
        reads=("expression", "1 == 1"),
    ),
    Row("CELDeviceSelector.expression#required", "cel.expression", "true", GONE),
    Row(
        "CELDeviceSelector.expression#max-10-ki",
        "cel.expression",
        "true" + " " * (LONG - 4),
        "true" + " " * (LONG - 3),
        TOO_LONG,
    ),
)
_DERIVED: Final = table(
    Base(
        claim(
            {"name": "r", "exactly": {"deviceClassName": "gpu", "derivedAttributes": [DERIVED]}},
            constraints=[{"matchAttribute": NUMA}],
        ),
        "spec.devices.requests.0.exactly.derivedAttributes.0",
        model="spec.devices.requests.0.exactly.derived_attributes.0",
    ),
    Row(
        "DeviceDerivedAttribute.expression",
        "expression",
        "2",
        "",
        REQUIRED,
        reads=("expression", "2"),
        minors=(37,),
    ),
    Row(
        "DeviceDerivedAttribute.name",
        "name",
        "example.com/other",
        "example.com/unused",
        reads=("name", "example.com/other"),
        more={f"{CONSTRAINTS}.0.matchAttribute": "example.com/other"},
        minors=(37,),
    ),
    Row(
        "DeviceDerivedAttribute.expression#required",
        "expression",
        "1",
        GONE,
        REQUIRED,
        minors=(37,),
    ),
    Row("DeviceDerivedAttribute.name#required", "name", NUMA, GONE, REQUIRED, minors=(37,)),
    *(
        Row(
            "DeviceDerivedAttribute.name#form",
            "name",
            NUMA,
            bad,
            {"name": kind, f"{CONSTRAINTS}[0].matchAttribute": kind},
            bad_more={f"{CONSTRAINTS}.0.matchAttribute": bad},
            minors=(37,),
        )
        for bad, kind in (
            ("numa", INVALID),
            ("example.com/nu-ma", INVALID),
            ("example..com/numa", INVALID),
            (f"example.com/{'n' * 33}", TOO_LONG),
        )
    ),
    Row(
        "DeviceDerivedAttribute.name#used-in-constraint",
        "name",
        NUMA,
        "example.com/unused",
        minors=(37,),
    ),
    Row(
        "DeviceDerivedAttribute.expression#max-10-ki",
        "expression",
        "1" + " " * (LONG - 1),
        "1" + " " * LONG,
        TOO_LONG,
        minors=(37,),
    ),
)


ROWS: Final = [*_SUBREQUEST, *_SELECTOR, *_DERIVED]

"""Field names of resource.k8s.io/v1, one table for each type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_core.model import claims, devices, nodes, objects, requests, slices, taints
from dra_core.model.devices import AttributeValue, Device, RawAttribute, Version
from dra_core.wire.codec import (
    ANYTHING,
    BOOL,
    INT,
    JSON,
    QUANTITY,
    STRING,
    TIME,
    Field,
    ListOf,
    MapOf,
    Record,
    wrong,
)

STRINGS: Final = ListOf(STRING)

METADATA: Final = Record(
    objects.Metadata,
    Field("name", "name", STRING),
    Field("namespace", "namespace", STRING),
    Field("generate_name", "generateName", STRING),
    Field("uid", "uid", STRING),
    Field("resource_version", "resourceVersion", STRING),
    Field("generation", "generation", INT),
    Field("creation_timestamp", "creationTimestamp", TIME),
    Field("deletion_timestamp", "deletionTimestamp", TIME),
    Field("labels", "labels", MapOf(STRING)),
    Field("annotations", "annotations", MapOf(STRING)),
    Field("finalizers", "finalizers", STRINGS),
)
CONDITION: Final = Record(
    objects.Condition,
    Field("type", "type", STRING, required=True),
    Field("status", "status", STRING, required=True),
    Field("observed_generation", "observedGeneration", INT),
    Field("last_transition_time", "lastTransitionTime", TIME),
    Field("reason", "reason", STRING),
    Field("message", "message", STRING),
)

_REQUIREMENT: Final = Record(
    nodes.NodeSelectorRequirement,
    Field("key", "key", STRING, required=True),
    Field("operator", "operator", STRING, required=True),
    Field("values", "values", STRINGS),
)
_TERM: Final = Record(
    nodes.NodeSelectorTerm,
    Field("match_expressions", "matchExpressions", ListOf(_REQUIREMENT)),
    Field("match_fields", "matchFields", ListOf(_REQUIREMENT)),
)
NODE_SELECTOR: Final = Record(
    nodes.NodeSelector, Field("terms", "nodeSelectorTerms", ListOf(_TERM), required=True)
)

TAINT: Final = Record(
    taints.DeviceTaint,
    Field("key", "key", STRING, required=True),
    Field("value", "value", STRING),
    Field("effect", "effect", STRING, required=True),
    Field("time_added", "timeAdded", TIME),
)
TOLERATION: Final = Record(
    taints.DeviceToleration,
    Field("key", "key", STRING),
    Field("operator", "operator", STRING),
    Field("value", "value", STRING),
    Field("effect", "effect", STRING),
    Field("toleration_seconds", "tolerationSeconds", INT),
)
TAINT_SELECTOR: Final = Record(
    taints.DeviceTaintSelector,
    Field("driver", "driver", STRING),
    Field("pool", "pool", STRING),
    Field("device", "device", STRING),
)

_SCALARS: Final[Mapping[str, type]] = {"string": str, "int": int, "bool": bool, "version": str}


class _Attribute:
    """``DeviceAttribute``: one key says the type."""

    def read(self, data: object, where: str) -> AttributeValue:
        """Raw unless there is exactly one known key; raises if its value is of another type."""
        if not isinstance(data, Mapping):
            raise wrong(where, data, "an attribute")
        key = next(iter(data), "")
        kind = key if key in _SCALARS else key.removesuffix("s")
        if len(data) != 1 or kind not in _SCALARS or data[key] == []:
            return RawAttribute(data)
        values = [data[key]] if key == kind else data[key]
        if not isinstance(values, list) or any(type(v) is not _SCALARS[kind] for v in values):
            raise wrong(where, data[key], f"what {key!r} stands for")
        found: Any = tuple(Version(v) if kind == "version" else v for v in values)
        value: AttributeValue = found[0] if key == kind else found
        return value

    def write(self, value: AttributeValue) -> JSON:
        """``{"string": "x"}``, ``{"ints": [1, 2]}``."""
        if isinstance(value, RawAttribute):
            return dict(value.data)
        if isinstance(value, tuple):
            return {f"{_key(value[0])}s": [_text(item) for item in value]}
        return {_key(value): _text(value)}


_KINDS: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int",
    str: "string",
    Version: "version",
}


def _key(value: object) -> str:
    return _KINDS[type(value)]


def _text(value: object) -> object:
    return value.text if isinstance(value, Version) else value


ATTRIBUTE: Final = _Attribute()

_RANGE: Final = Record(
    devices.RequestRange,
    Field("minimum", "min", QUANTITY),
    Field("maximum", "max", QUANTITY),
    Field("step", "step", QUANTITY),
)
_POLICY: Final = Record(
    devices.RequestPolicy,
    Field("default", "default", QUANTITY),
    Field("valid_values", "validValues", ListOf(QUANTITY)),
    Field("valid_range", "validRange", _RANGE),
)
CAPACITY: Final = Record(
    devices.Capacity,
    Field("value", "value", QUANTITY, required=True),
    Field("request_policy", "requestPolicy", _POLICY),
)
COUNTER: Final = Record(devices.Counter, Field("value", "value", QUANTITY, required=True))
_CONSUMPTION: Final = Record(
    devices.CounterConsumption,
    Field("counter_set", "counterSet", STRING, required=True),
    Field("counters", "counters", MapOf(COUNTER)),
    Field("compatibility_groups", "compatibilityGroups", STRINGS),
)
_ALLOCATABLE: Final = Record(
    devices.NodeAllocatable,
    Field(
        "mapping",
        "mapping",
        Record(
            devices.AllocatableMapping,
            Field("capacity_key", "capacityKey", STRING),
            Field("capacity_multiplier", "capacityMultiplier", QUANTITY),
            Field("device_multiplier", "deviceMultiplier", QUANTITY),
        ),
    ),
    Field(
        "overhead",
        "overhead",
        Record(
            devices.AllocatableOverhead,
            Field("per_pod", "perPod", QUANTITY),
            Field("per_container", "perContainer", QUANTITY),
        ),
    ),
)
_ALLOCATABLE_136: Final = Record(
    devices.NodeAllocatableMapping136,
    Field("capacity_key", "capacityKey", STRING),
    Field("allocation_multiplier", "allocationMultiplier", QUANTITY),
)
DEVICE: Final = Record(
    Device,
    Field("name", "name", STRING, required=True),
    Field("attributes", "attributes", MapOf(ATTRIBUTE)),
    Field("capacity", "capacity", MapOf(CAPACITY)),
    Field("consumes_counters", "consumesCounters", ListOf(_CONSUMPTION)),
    Field("node_name", "nodeName", STRING),
    Field("node_selector", "nodeSelector", NODE_SELECTOR),
    Field("all_nodes", "allNodes", BOOL),
    Field("taints", "taints", ListOf(TAINT)),
    Field("binds_to_node", "bindsToNode", BOOL),
    Field("binding_conditions", "bindingConditions", STRINGS),
    Field("binding_failure_conditions", "bindingFailureConditions", STRINGS),
    Field("allow_multiple_allocations", "allowMultipleAllocations", BOOL),
    Field("node_allocatable", "nodeAllocatableResources", MapOf(_ALLOCATABLE)),
    Field("node_allocatable_136", "nodeAllocatableResourceMappings", MapOf(_ALLOCATABLE_136)),
)

POOL: Final = Record(
    slices.ResourcePool,
    Field("name", "name", STRING, required=True),
    Field("generation", "generation", INT, required=True),
    Field("slice_count", "resourceSliceCount", INT, required=True),
)
_COUNTER_SET: Final = Record(
    slices.CounterSet,
    Field("name", "name", STRING, required=True),
    Field("counters", "counters", MapOf(COUNTER)),
)
_SLICE_SPEC: Final = Record(
    slices.SliceSpec,
    Field("driver", "driver", STRING, required=True),
    Field("pool", "pool", POOL, required=True),
    Field("node_name", "nodeName", STRING),
    Field("node_selector", "nodeSelector", NODE_SELECTOR),
    Field("all_nodes", "allNodes", BOOL),
    Field("devices", "devices", ListOf(DEVICE)),
    Field("per_device_node_selection", "perDeviceNodeSelection", BOOL),
    Field("shared_counters", "sharedCounters", ListOf(_COUNTER_SET)),
    Field("partition_type_attribute", "partitionTypeAttribute", STRING),
    Field("skip_node_operations", "skipNodeOperations", STRINGS),
)


class _Selector:
    """``DeviceSelector`` with its only kind, ``cel``."""

    _record: Final = Record(
        requests.DeviceSelector, Field("expression", "expression", STRING, required=True)
    )

    def read(self, data: object, where: str) -> requests.DeviceSelector:
        """Without ``cel``: no expression, and everything kept."""
        if not isinstance(data, Mapping):
            raise wrong(where, data, "an object")
        others = {k: v for k, v in data.items() if k != "cel"}
        if data.get("cel") is None:
            return requests.DeviceSelector(None, others)
        cel = self._record.read(data["cel"], f"{where}.cel")
        kept = {"cel": cel.unknown, **others} if cel.unknown else others
        return requests.DeviceSelector(cel.expression, kept)

    def write(self, value: requests.DeviceSelector) -> JSON:
        """The inverse."""
        others = dict(value.unknown)
        cel = dict(others.pop("cel", {}))
        return (
            {"cel": {"expression": value.expression, **cel}, **others}
            if (value.expression is not None)
            else others
        )


SELECTORS: Final = ListOf(_Selector())
_EXACT: Final = (
    Field("device_class_name", "deviceClassName", STRING, required=True),
    Field("selectors", "selectors", SELECTORS),
    Field("allocation_mode", "allocationMode", STRING),
    Field("count", "count", INT),
    Field("admin_access", "adminAccess", BOOL),
    Field("tolerations", "tolerations", ListOf(TOLERATION)),
    Field(
        "capacity",
        "capacity",
        Record(requests.CapacityRequirements, Field("requests", "requests", MapOf(QUANTITY))),
    ),
    Field(
        "derived_attributes",
        "derivedAttributes",
        ListOf(
            Record(
                requests.DerivedAttribute,
                Field("name", "name", STRING, required=True),
                Field("expression", "expression", STRING, required=True),
            )
        ),
    ),
)
EXACT_REQUEST: Final = Record(requests.ExactRequest, *_EXACT)
SUBREQUEST: Final = Record(
    requests.ExactRequest,
    Field("name", "name", STRING, required=True),
    *(field for field in _EXACT if field.name != "admin_access"),
)
REQUEST: Final = Record(
    requests.DeviceRequest,
    Field("name", "name", STRING, required=True),
    Field("exactly", "exactly", EXACT_REQUEST),
    Field("first_available", "firstAvailable", ListOf(SUBREQUEST)),
)
CONSTRAINT: Final = Record(
    requests.DeviceConstraint,
    Field("requests", "requests", STRINGS),
    Field("match_attribute", "matchAttribute", STRING),
    Field("distinct_attribute", "distinctAttribute", STRING),
)
CONFIGURATION: Final = Record(
    requests.DeviceConfiguration,
    Field("source", "source", STRING),
    Field("requests", "requests", STRINGS),
    Field(
        "opaque",
        "opaque",
        Record(
            requests.OpaqueConfiguration,
            Field("driver", "driver", STRING, required=True),
            Field("parameters", "parameters", ANYTHING, required=True),
        ),
    ),
)
_DEVICE_CLAIM: Final = Record(
    requests.DeviceClaim,
    Field("requests", "requests", ListOf(REQUEST)),
    Field("constraints", "constraints", ListOf(CONSTRAINT)),
    Field("config", "config", ListOf(CONFIGURATION)),
)
_CLASS_SPEC: Final = Record(
    requests.ClassSpec,
    Field("selectors", "selectors", SELECTORS),
    Field("config", "config", ListOf(CONFIGURATION)),
    Field("extended_resource_name", "extendedResourceName", STRING),
)

RESULT: Final = Record(
    claims.AllocationResult,
    Field("request", "request", STRING, required=True),
    Field("driver", "driver", STRING, required=True),
    Field("pool", "pool", STRING, required=True),
    Field("device", "device", STRING, required=True),
    Field("admin_access", "adminAccess", BOOL),
    Field("tolerations", "tolerations", ListOf(TOLERATION)),
    Field("binding_conditions", "bindingConditions", STRINGS),
    Field("binding_failure_conditions", "bindingFailureConditions", STRINGS),
    Field("share_id", "shareID", STRING),
    Field("consumed_capacity", "consumedCapacity", MapOf(QUANTITY)),
    Field("skip_node_operations", "skipNodeOperations", STRINGS),
)
ALLOCATION: Final = Record(
    claims.Allocation,
    Field(
        "devices",
        "devices",
        Record(
            claims.DeviceAllocation,
            Field("results", "results", ListOf(RESULT)),
            Field("config", "config", ListOf(CONFIGURATION)),
        ),
        required=False,
    ),
    Field("node_selector", "nodeSelector", NODE_SELECTOR),
    Field("allocation_timestamp", "allocationTimestamp", TIME),
)
DEVICE_STATUS: Final = Record(
    claims.DeviceStatus,
    Field("driver", "driver", STRING, required=True),
    Field("pool", "pool", STRING, required=True),
    Field("device", "device", STRING, required=True),
    Field("share_id", "shareID", STRING),
    Field("conditions", "conditions", ListOf(CONDITION)),
    Field("data", "data", ANYTHING),
    Field(
        "network_data",
        "networkData",
        Record(
            claims.NetworkData,
            Field("interface_name", "interfaceName", STRING),
            Field("ips", "ips", STRINGS),
            Field("hardware_address", "hardwareAddress", STRING),
        ),
    ),
    Field("consumed_capacity", "consumedCapacity", MapOf(QUANTITY)),
)
_CLAIM_STATUS: Final = Record(
    claims.ClaimStatus,
    Field("allocation", "allocation", ALLOCATION),
    Field(
        "reserved_for",
        "reservedFor",
        ListOf(
            Record(
                claims.Consumer,
                Field("api_group", "apiGroup", STRING),
                Field("resource", "resource", STRING, required=True),
                Field("name", "name", STRING, required=True),
                Field("uid", "uid", STRING, required=True),
            )
        ),
    ),
    Field(
        "devices",
        "devices",
        ListOf(DEVICE_STATUS),
    ),
)

_CLAIM_SPEC: Final = Record(
    requests.ClaimSpec, Field("devices", "devices", _DEVICE_CLAIM, required=True)
)
_TEMPLATE_SPEC: Final = Record(
    claims.TemplateSpec,
    Field("metadata", "metadata", METADATA),
    Field("spec", "spec", _CLAIM_SPEC, required=True),
)
_RULE_SPEC: Final = Record(
    taints.RuleSpec,
    Field("selector", "deviceSelector", TAINT_SELECTOR),
    Field("taint", "taint", TAINT, required=True),
)
_RULE_STATUS: Final = Record(
    taints.RuleStatus, Field("conditions", "conditions", ListOf(CONDITION))
)
_METADATA: Final = Field("metadata", "metadata", METADATA, required=True)

#: The objects of the API group, by kind.
OBJECTS: Final[Mapping[str, Record[Any]]] = {
    "DeviceClass": Record(
        requests.DeviceClass, _METADATA, Field("spec", "spec", _CLASS_SPEC, required=True)
    ),
    "DeviceTaintRule": Record(
        taints.DeviceTaintRule,
        _METADATA,
        Field("spec", "spec", _RULE_SPEC, required=True),
        Field("status", "status", _RULE_STATUS),
    ),
    "ResourceClaim": Record(
        claims.Claim,
        _METADATA,
        Field("spec", "spec", _CLAIM_SPEC, required=True),
        Field("status", "status", _CLAIM_STATUS),
    ),
    "ResourceClaimTemplate": Record(
        claims.ClaimTemplate, _METADATA, Field("spec", "spec", _TEMPLATE_SPEC, required=True)
    ),
    "ResourceSlice": Record(
        slices.ResourceSlice, _METADATA, Field("spec", "spec", _SLICE_SPEC, required=True)
    ),
}

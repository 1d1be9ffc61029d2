"""Rules for one device of a ResourceSlice.

The server has two sets of rules. The older one (:func:`device`) is complete, skips unchanged taints
(1.37: capacity, too) on update, and is not asked at all where there are too many devices. 1.37 adds
the declarative one (:func:`declared_device`): it repeats some rules with small differences and is
asked for every device unless the whole list is unchanged. The verdict is what either finds.
"""

from __future__ import annotations

from typing import Any, Final

from dra_core import semver
from dra_core.quantity import Quantity
from dra_core.validation import capacity as capacities
from dra_core.validation import counters, device_parts, field_rules, names, node_selectors
from dra_core.validation.problems import (
    ErrorType,
    Path,
    Problem,
    invalid,
    required,
    too_long,
)
from dra_core.validation.servers import Server
from dra_core.validation.slice_fields import SPEC, Node, equal, field_of

JSON = dict[str, Any]

ATTRIBUTES_AND_CAPACITIES_MAX: Final = 32
ATTRIBUTE_VALUES_MAX: Final = 48
VALUE_MAX: Final = 64
TAINTS_MAX: Final = 16

SCALARS: Final = ("int", "bool", "string", "version")
_WAYS: Final = ("nodeName", "nodeSelector", "allNodes")
LISTS: Final = ("ints", "bools", "strings", "versions")


def device(
    value: JSON, old: JSON | None, path: Path, *, per_device: bool, server: Server
) -> list[Problem]:
    """The older rules; ``per_device`` is the slice's perDeviceNodeSelection."""
    found = names.dns_label(value["name"], path.child("name"))
    found += _size(value, path)
    found += _attributes(value.get("attributes", {}), path.child("attributes"))
    if old is None or server.minor < 37 or not _same("capacity", value, old, server):
        found += _capacity(value, path.child("capacity"), server)
    if old is None or not _same("taints", value, old, server):
        found += _taints(value.get("taints", []), path.child("taints"))
    found += counters.consumptions(
        value.get("consumesCounters", []), path.child("consumesCounters")
    )
    found += _node_selection(value, path) if per_device else _no_node_selection(value, path)
    found += device_parts.binding_conditions(value, path)
    return found + _node_allocatable(value, path)


def declared_device(value: JSON, path: Path) -> list[Problem]:
    """The declarative rules of 1.37; field paths have map keys in full."""
    found: list[Problem] = []
    where = path.child("attributes")
    for key, attribute in value.get("attributes", {}).items():
        count = sum(1 for k in (*SCALARS, *LISTS) if attribute.get(k) not in (None, []))
        if count != 1:
            found.append(_one_value(where.key(key), count))
    where = path.child("consumesCounters")
    found += counters.declared_consumptions(value.get("consumesCounters", []), where)
    for field in device_parts.CONDITIONS:
        conditions, limit = value.get(field, []), device_parts.CONDITIONS_MAX
        found += field_rules.at_most(conditions, path.child(field), limit)
    where = path.child("taints")
    for i, taint in enumerate(value.get("taints", [])):
        found += device_parts.effect(taint["effect"], where.index(i).child("effect"))
    where = path.child("nodeAllocatableResources")
    for key, resource in value.get("nodeAllocatableResources", {}).items():
        if "mapping" in resource:
            found += _one_multiplier(resource["mapping"], where.key(key).child("mapping"))
    return found


def _same(field: str, value: JSON, old: JSON, server: Server) -> bool:
    node: Node = field_of(field_of(field_of(SPEC[server.minor], "devices"), ""), field)
    return equal(old.get(field), value.get(field), node)


def _size(value: JSON, path: Path) -> list[Problem]:
    """Attributes and capacities together, and the values of all attributes."""
    attributes = value.get("attributes", {})
    count = len(attributes) + len(value.get("capacity", {}))
    entries = sum(max(1, sum(len(a.get(k, [])) for k in LISTS)) for a in attributes.values())
    found: list[Problem] = []
    if count > ATTRIBUTES_AND_CAPACITIES_MAX:
        limit = f"at most {ATTRIBUTES_AND_CAPACITIES_MAX} are allowed together"
        found.append(invalid(path, count, f"attributes and capacities: {limit}"))
    if entries > ATTRIBUTE_VALUES_MAX:
        limit = f"at most {ATTRIBUTE_VALUES_MAX} are allowed, items of lists counted one by one"
        found.append(invalid(path, entries, f"values of attributes: {limit}"))
    return found


def _attributes(attributes: JSON, path: Path) -> list[Problem]:
    found: list[Problem] = []
    for key, attribute in attributes.items():
        found += names.qualified_name(key, path)
        found += _attribute(attribute, path.key(names.shown_key(key, names.KEY_MAX)))
    return found


def _attribute(attribute: JSON, path: Path) -> list[Problem]:
    """Exactly one value of one of eight kinds; lists not empty."""
    found: list[Problem] = []
    if "string" in attribute:
        found += string_value(attribute["string"], path.child("string"))
    if "version" in attribute:
        found += version_value(attribute["version"], path.child("version"))
    for kind in LISTS:
        if kind in attribute and not attribute[kind]:
            found.append(invalid(path.child(kind), [], "is empty: add a value or remove the list"))
    for i, text in enumerate(attribute.get("strings", [])):
        found += string_value(text, path.child("strings").index(i))
    for i, text in enumerate(attribute.get("versions", [])):
        found += version_value(text, path.child("versions").index(i))
    count = sum(1 for kind in (*SCALARS, *LISTS) if kind in attribute)
    return found if count == 1 else [*found, _one_value(path, count)]


def _one_value(path: Path, count: int) -> Problem:
    kinds = ", ".join((*SCALARS, *LISTS))
    detail = f"has {count} values, exactly one must be set: one of {kinds}"
    return Problem(str(path), ErrorType.INVALID, detail)


def string_value(text: str, path: Path) -> list[Problem]:
    """Of an attribute."""
    return [too_long(path, VALUE_MAX)] if names.size(text) > VALUE_MAX else []


def version_value(text: str, path: Path) -> list[Problem]:
    """Of an attribute."""
    found = string_value(text, path)
    if not semver.has_syntax(text):
        found.append(invalid(path, text, "is no semantic version 2.0.0: use e.g. '1.2.3'"))
    return found


def _capacity(value: JSON, path: Path, server: Server) -> list[Problem]:
    shared = value.get("allowMultipleAllocations") is True
    found: list[Problem] = []
    for key, one in value.get("capacity", {}).items():
        where = path.key(names.shown_key(key, names.KEY_MAX))
        found += names.qualified_name(key, path)
        found += capacities.capacity(one, where, shared=shared, server=server)
    return found


def _taints(taints: list[JSON], path: Path) -> list[Problem]:
    return list(field_rules.each(taints, path, device_parts.taint, TAINTS_MAX))


def _node_selection(value: JSON, path: Path) -> list[Problem]:
    """With perDeviceNodeSelection each device says where it is, in one of three ways."""
    return node_selectors.node_choice(
        value, path, _WAYS, node_selectors.node_selector, ", as perDeviceNodeSelection is true"
    )


def _no_node_selection(value: JSON, path: Path) -> list[Problem]:
    chosen = [f for f in _WAYS if value.get(f) is not None]
    if not chosen:
        return []
    rule = "need perDeviceNodeSelection: true in the spec: set it or remove them"
    return [invalid(path, ", ".join(chosen), rule)]


def _node_allocatable(value: JSON, path: Path) -> list[Problem]:
    capacity = value.get("capacity", {})
    found: list[Problem] = []
    where = path.child("nodeAllocatableResourceMappings")
    for key, mapping in value.get("nodeAllocatableResourceMappings", {}).items():
        found += _mapping_36(key, mapping, capacity, where.key(key))
    where = path.child("nodeAllocatableResources")
    for key, resource in value.get("nodeAllocatableResources", {}).items():
        found += _resource_37(key, resource, capacity, where.key(key))
    return found


def _mapping_36(key: str, mapping: JSON, capacity: JSON, path: Path) -> list[Problem]:
    """``nodeAllocatableResourceMappings`` of 1.36: any resource of Kubernetes itself."""
    found: list[Problem] = []
    if "/" in key and "kubernetes.io/" not in key:
        found.append(invalid(path, key, "is no resource of a node: use e.g. cpu or memory"))
    multiplier, capacity_key = mapping.get("allocationMultiplier"), mapping.get("capacityKey")
    if multiplier is None and capacity_key is None:
        detail = "needs allocationMultiplier or capacityKey or both"
        return [*found, Problem(str(path), ErrorType.INVALID, detail)]
    found += _positive(multiplier, path.child("allocationMultiplier"))
    return found + _capacity_key(capacity_key, capacity, path.child("capacityKey"))


def _resource_37(key: str, resource: JSON, capacity: JSON, path: Path) -> list[Problem]:
    """``nodeAllocatableResources`` of 1.37: cpu, memory, hugepages-*."""
    found: list[Problem] = []
    if key not in ("cpu", "memory") and not key.startswith("hugepages-"):
        found.append(invalid(path, key, "is not mapped: use cpu, memory or hugepages-<size>"))
    mapping, overhead = resource.get("mapping"), resource.get("overhead")
    if mapping is None and overhead is None:
        found.append(required(path, "needs mapping or overhead or both"))
    if mapping is not None:
        found += _mapping_37(mapping, capacity, path.child("mapping"))
    if overhead is not None:
        found += _overhead(overhead, path.child("overhead"))
    return found


def _mapping_37(mapping: JSON, capacity: JSON, path: Path) -> list[Problem]:
    """The amount is so much per capacity, or so much per device."""
    key, factor = mapping.get("capacityKey"), mapping.get("capacityMultiplier")
    found = _capacity_key(key, capacity, path.child("capacityKey"))
    where = path.child("capacityMultiplier")
    if key is not None:
        found += _positive(factor, where)
        if factor is None:
            found.append(required(where, "must be set along with capacityKey"))
    elif factor is not None:
        detail = "must be set along with capacityMultiplier"
        found.append(required(path.child("capacityKey"), detail))
    return found + _positive(mapping.get("deviceMultiplier"), path.child("deviceMultiplier"))


def _one_multiplier(mapping: JSON, path: Path) -> list[Problem]:
    chosen = [f for f in ("capacityKey", "deviceMultiplier") if mapping.get(f) is not None]
    if len(chosen) == 1:
        return []
    detail = f"has {len(chosen)} of capacityKey and deviceMultiplier, exactly one must be set"
    return [Problem(str(path), ErrorType.INVALID, detail)]


def _overhead(overhead: JSON, path: Path) -> list[Problem]:
    if not overhead:
        return [Problem(str(path), ErrorType.INVALID, "needs perPod or perContainer or both")]
    return [
        invalid(path.child(name), text, "must be 0 or more")
        for name, text in overhead.items()
        if Quantity.parse(text).nanos < 0
    ]


def _capacity_key(key: str | None, capacity: JSON, path: Path) -> list[Problem]:
    if key is None:
        return []
    if not key:
        return [invalid(path, key, "is empty: name a capacity of the device")]
    if key in capacity:
        return []
    detail = (
        f"{key!r} is no capacity of the device; it has: {', '.join(sorted(capacity)) or 'none'}"
    )
    return [Problem(str(path), ErrorType.NOT_FOUND, detail)]


def _positive(text: str | None, path: Path) -> list[Problem]:
    if text is None or Quantity.parse(text).nanos > 0:
        return []
    return [invalid(path, text, "must be more than 0")]

"""Feature gates that a ResourceSlice may depend on, and what to publish where one is off.

An API server drops the fields of a gate that is off without a word. What it dropped is found by
comparing what came back with what was sent (:func:`dropped`); :func:`adapt` then says what to
publish instead, so that neither a device with another meaning is offered nor the same write made
for ever. Gates and their fields: the strategy of resourceslices in kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dra_core import snapshots
from dra_core.model.devices import Device, is_list
from dra_core.model.slices import Fallback, Nodes, Pool, PublishedSlice
from dra_core.model.taints import Effect

TAINTS: Final = "DRADeviceTaints"
PARTITIONS: Final = "DRAPartitionableDevices"
PARTITION_TYPE: Final = "DRAPartitionableDevicesType"
COMPATIBILITY: Final = "DRADeviceCompatibilityGroups"
BINDING: Final = "DRADeviceBindingConditions"
SHARING: Final = "DRAConsumableCapacity"
NODE_ALLOCATABLE: Final = "DRANodeAllocatableResources"
LISTS: Final = "DRAListTypeAttributes"
NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"


@dataclass(frozen=True, slots=True)
class Feature:
    """Fields of a device that need a gate.

    ``matters`` says whether the device, without these fields, would be taken for something it is
    not: it is withheld then, unless the vendor's pool has a fallback. ``fields`` names them for
    people.
    """

    fields: str
    uses: Callable[[Device], bool]
    without: Callable[[Device], Device]
    matters: Callable[[Device], bool]


def _never(device: Device) -> bool:  # noqa: ARG001 - one of many
    return False


def _taints_matter(device: Device) -> bool:
    return any(taint.known_effect is not Effect.NONE for taint in device.taints)


def _partition(device: Device) -> bool:
    return bool(
        device.consumes_counters
        or device.node_name is not None
        or device.node_selector is not None
        or device.all_nodes is not None
    )


def _without_partition(device: Device) -> Device:
    return replace(device, consumes_counters=(), node_name=None, node_selector=None, all_nodes=None)


def _grouped(device: Device) -> bool:
    return any(c.compatibility_groups for c in device.consumes_counters)


def _without_groups(device: Device) -> Device:
    plain = tuple(replace(c, compatibility_groups=()) for c in device.consumes_counters)
    return replace(device, consumes_counters=plain)


def _binding(device: Device) -> bool:
    return bool(
        device.binding_conditions
        or device.binding_failure_conditions
        or device.binds_to_node is not None
    )


def _without_binding(device: Device) -> Device:
    return replace(device, binding_conditions=(), binding_failure_conditions=(), binds_to_node=None)


def _binding_matters(device: Device) -> bool:
    return bool(device.binding_conditions or device.binds_to_node)


def _shared(device: Device) -> bool:
    policies = any(c.request_policy is not None for c in device.capacity.values())
    return device.allow_multiple_allocations is not None or policies


def _without_sharing(device: Device) -> Device:
    capacity = {k: replace(c, request_policy=None) for k, c in device.capacity.items()}
    return replace(device, allow_multiple_allocations=None, capacity=capacity)


def _mapped(device: Device) -> bool:
    return bool(device.node_allocatable or device.node_allocatable_136)


def _without_mapping(device: Device) -> Device:
    return replace(device, node_allocatable={}, node_allocatable_136={})


def _listed(device: Device) -> bool:
    return any(is_list(value) for value in device.attributes.values())


def _without_lists(device: Device) -> Device:
    """A list of one value is that value (to constraints they are the same); others go."""
    kept = {}
    for name, value in device.attributes.items():
        if not is_list(value):
            kept[name] = value
        elif isinstance(value, tuple) and len(value) == 1:
            kept[name] = value[0]
    return replace(device, attributes=kept)


#: By feature gate, in the order in which they are taken out.
FEATURES: Final[Mapping[str, Feature]] = {
    TAINTS: Feature(
        "taints", lambda d: bool(d.taints), lambda d: replace(d, taints=()), _taints_matter
    ),
    COMPATIBILITY: Feature("compatibilityGroups", _grouped, _without_groups, _grouped),
    PARTITIONS: Feature(
        "consumesCounters, sharedCounters, perDeviceNodeSelection",
        _partition,
        _without_partition,
        _partition,
    ),
    BINDING: Feature(
        "bindingConditions, bindingFailureConditions, bindsToNode",
        _binding,
        _without_binding,
        _binding_matters,
    ),
    SHARING: Feature(
        "allowMultipleAllocations, requestPolicy",
        _shared,
        _without_sharing,
        lambda d: d.allow_multiple_allocations is True,
    ),
    NODE_ALLOCATABLE: Feature(
        "nodeAllocatableResources, nodeAllocatableResourceMappings",
        _mapped,
        _without_mapping,
        _never,
    ),
    LISTS: Feature("attributes of type list", _listed, _without_lists, _never),
}
#: Gates of fields of the slice itself.
_OF_SLICES: Final[Mapping[str, tuple[str, Callable[[PublishedSlice], bool]]]] = {
    PARTITIONS: (
        "sharedCounters, perDeviceNodeSelection",
        lambda s: bool(s.shared_counters) or s.nodes is Nodes.EACH_DEVICE,
    ),
    PARTITION_TYPE: ("partitionTypeAttribute", lambda s: s.partition_type_attribute is not None),
    NODE_OPERATIONS: ("skipNodeOperations", lambda s: bool(s.skip_node_operations)),
}


def fields_of(gate: str) -> str:
    """The fields that need the gate, for people."""
    if gate in FEATURES:
        return FEATURES[gate].fields
    return _OF_SLICES[gate][0]


def used(published: PublishedSlice) -> frozenset[str]:
    """The gates that a slice depends on."""
    found = {gate for gate, (_, uses) in _OF_SLICES.items() if uses(published)}
    found |= {gate for gate, f in FEATURES.items() if any(map(f.uses, published.devices))}
    return frozenset(found)


def dropped(sent: PublishedSlice, stored: PublishedSlice) -> frozenset[str]:
    """The gates whose fields were sent and are not there."""
    return frozenset(gate for gate in used(sent) if _users(gate, sent) - _users(gate, stored))


def _users(gate: str, published: PublishedSlice) -> set[str]:
    """What uses the gate: names of devices, and "" for the slice."""
    found: set[str] = set()
    if gate in FEATURES:
        uses = FEATURES[gate].uses
        found = {str(d.name) for d in published.devices if uses(d)}
    if gate in _OF_SLICES and _OF_SLICES[gate][1](published):
        found.add("")
    return found


@dataclass(frozen=True, slots=True)
class Adapted:
    """What to publish of a pool: ``pool``, or nothing where that is None.

    ``withheld`` has the gate for each device that is left out, ``without`` the number of devices
    published without the fields of a gate (0 if only the slice itself lacks something).
    """

    pool: Pool | None
    withheld: Mapping[str, str]
    without: Mapping[str, int]


def adapt(pool: Pool, missing: Collection[str]) -> Adapted:
    """The pool for a cluster that does not have the gates ``missing``."""
    withheld: dict[str, str] = {}
    without: dict[str, int] = {}
    devices = list(pool.devices)
    for gate in (g for g in FEATURES if g in missing):
        devices = list(_adapted(devices, gate, pool.fallbacks.get(gate), withheld, without))
    changed = replace(pool, devices=tuple(devices))
    if PARTITIONS in missing and (pool.shared_counters or pool.nodes is Nodes.EACH_DEVICE):
        without.setdefault(PARTITIONS, 0)
        changed = replace(changed, shared_counters=(), partition_type_attribute=None)
    if PARTITION_TYPE in missing and pool.partition_type_attribute is not None:
        without[PARTITION_TYPE] = 0
        changed = replace(changed, partition_type_attribute=None)
    if NODE_OPERATIONS in missing and pool.skip_node_operations:
        without[NODE_OPERATIONS] = 0
        changed = replace(changed, skip_node_operations=())
    # Such a pool cannot be said in another way: nothing else tells where its devices are.
    nowhere = PARTITIONS in missing and pool.nodes is Nodes.EACH_DEVICE
    return Adapted(None if nowhere else changed, withheld, without)


def _adapted(
    devices: Iterable[Device],
    gate: str,
    fallback: object,
    withheld: dict[str, str],
    without: dict[str, int],
) -> Iterable[Device]:
    feature = FEATURES[gate]
    for device in devices:
        if not feature.uses(device):
            yield device
            continue
        instead = _instead(device, feature, fallback)
        if instead is None:
            withheld[device.name] = gate
            continue
        without[gate] = without.get(gate, 0) + 1
        yield feature.without(instead) if feature.uses(instead) else instead


def _instead(device: Device, feature: Feature, fallback: object) -> Device | None:
    if callable(fallback):
        found = fallback(snapshots.of_device(device))
        return None if found is None else snapshots.of_device(found)
    if fallback is None:
        fallback = Fallback.WITHHOLD if feature.matters(device) else Fallback.PUBLISH_WITHOUT
    return None if fallback is Fallback.WITHHOLD else device

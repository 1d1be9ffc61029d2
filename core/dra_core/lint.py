"""Things that are legal and likely wrong: warnings about a set of objects looked at together.

What depends on other objects (a class without devices, a toleration that tolerates nothing) is said
only if such objects were given: a folder with a claim alone says nothing about devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dra_core.model.claims import Claim, ClaimTemplate
from dra_core.model.devices import Device
from dra_core.model.requests import DeviceClaim, DeviceClass, ExactRequest
from dra_core.model.slices import ResourceSlice
from dra_core.model.taints import DeviceTaint, DeviceTaintRule, DeviceToleration, Effect
from dra_core.pools import PoolState, pools
from dra_core.taints import tolerates
from dra_core.wire import AnyObject


@dataclass(frozen=True, slots=True)
class Warned:
    """One warning. ``code`` names the rule; ``subject`` is the object, as ``Kind name``."""

    code: str
    subject: str
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class _Around:
    """What a claim is looked at together with."""

    classes: Mapping[str, DeviceClass]
    taints: Sequence[DeviceTaint]
    published: frozenset[str]


#: ``DeviceTolerationsMaxLength`` of the API.
MAX_TOLERATIONS: Final = 16
#: The usual selector of a class, of which the driver can be told without evaluating CEL.
DRIVER_ONLY: Final = re.compile(r"""\s*device\.driver\s*==\s*(['"])([a-z0-9.-]+)\1\s*""")


def warnings(objects: Sequence[AnyObject]) -> Iterator[Warned]:
    """All warnings about these objects."""
    slices = [o for o in objects if isinstance(o, ResourceSlice)]
    states = pools(slices)
    for state in states:
        yield from _pool(state)
    for driver in sorted(drivers_of := {state.driver for state in states}):
        yield from _driver(driver)
    for item in slices:
        for index, device in enumerate(item.spec.devices):
            where = f"spec.devices[{index}]"
            yield from _device(f"ResourceSlice {item.metadata.name}", where, device, item)
    classes = {o.metadata.name: o for o in objects if isinstance(o, DeviceClass)}
    drivers: set[str] = set(drivers_of)
    if drivers:
        for found in classes.values():
            yield from _class(found, drivers)
    around = _Around(classes, _all_taints(objects), _published(slices))
    for item_ in objects:
        if isinstance(item_, Claim):
            subject, spec = f"ResourceClaim {item_.metadata.name}", item_.spec.devices
            yield from _claim(subject, "spec.devices", spec, around)
        elif isinstance(item_, ClaimTemplate):
            subject, spec = f"ResourceClaimTemplate {item_.metadata.name}", item_.spec.spec.devices
            yield from _claim(subject, "spec.spec.devices", spec, around)


def _pool(state: PoolState) -> Iterator[Warned]:
    subject = f"pool {state.name} of driver {state.driver}"
    for trouble in state.troubles:
        yield Warned("pool", subject, "spec.pool", trouble)


def _driver(name: str) -> Iterator[Warned]:
    subject = f"driver {name}"
    if "." not in name:
        yield Warned(
            "vendor-domain",
            subject,
            "spec.driver",
            "has no dot; the name should end in a DNS domain of its vendor, e.g. 'gpu.example.com'",
        )
    if name != name.lower():
        yield Warned(
            "lower-case",
            subject,
            "spec.driver",
            "should be in lower case; the API server takes it, CDI and file names may not",
        )


def _ranges(subject: str, where: str, device: Device) -> Iterator[Warned]:
    """The API text asks for a minimum of zero or more; servers look only beside a step."""
    for name, capacity in device.capacity.items():
        policy = capacity.request_policy
        span = policy.valid_range if policy else None
        if span and span.minimum is not None and span.minimum.sign() < 0:
            yield Warned(
                "negative-minimum",
                subject,
                f"{where}.capacity[{name}].requestPolicy.validRange.min",
                f"{span.minimum} is below zero, which the API's text rules out",
            )


def _terms(subject: str, where: str, device: Device) -> Iterator[Warned]:
    """The API text asks for exactly one term; servers look at that in the slice's spec only."""
    terms = device.node_selector.terms if device.node_selector else ()
    if len(terms) > 1:
        yield Warned(
            "several-terms",
            subject,
            f"{where}.nodeSelector.nodeSelectorTerms",
            f"has {len(terms)} terms, the API's text allows one; servers up to 1.37 do not look, "
            "later ones may",
        )


def _device(subject: str, where: str, device: Device, item: ResourceSlice) -> Iterator[Warned]:
    prefix = f"{item.spec.driver}/"
    for kind, named in (("attributes", device.attributes), ("capacity", device.capacity)):
        for name in named:
            if name.startswith(prefix) and name.removeprefix(prefix) in named:
                short = name.removeprefix(prefix)
                yield Warned(
                    "shadowed-name",
                    subject,
                    f"{where}.{kind}[{name}]",
                    f"{name!r} and {short!r} mean the same, since names without a domain get that "
                    "of the driver; one hides the other",
                )
    yield from _ranges(subject, where, device)
    yield from _terms(subject, where, device)
    for resource in device.node_allocatable:
        if resource in device.node_allocatable_136:
            yield Warned(
                "counted-twice",
                subject,
                f"{where}.nodeAllocatableResources[{resource}]",
                f"{resource} is also in nodeAllocatableResourceMappings, the shape of 1.36; each "
                "server knows one of them and drops the other, publish the one it knows",
            )


def _class(found: DeviceClass, drivers: set[str]) -> Iterator[Warned]:
    for index, selector in enumerate(found.spec.selectors):
        match = DRIVER_ONLY.fullmatch(selector.expression or "")
        if match and match[2] not in drivers:
            yield Warned(
                "class-without-devices",
                f"DeviceClass {found.metadata.name}",
                f"spec.selectors[{index}].cel.expression",
                f"no slice that was given is of driver {match[2]!r}; there are: "
                f"{', '.join(sorted(drivers))}",
            )


def _all_taints(objects: Iterable[AnyObject]) -> list[DeviceTaint]:
    found: list[DeviceTaint] = []
    for item in objects:
        if isinstance(item, ResourceSlice):
            found += [taint for device in item.spec.devices for taint in device.taints]
        elif isinstance(item, DeviceTaintRule):
            found.append(item.spec.taint)
    return found


def _published(slices: Iterable[ResourceSlice]) -> frozenset[str]:
    """Names of all attributes, with their domains."""
    return frozenset(
        name if "/" in name else f"{item.spec.driver}/{name}"
        for item in slices
        for device in item.spec.devices
        for name in device.attributes
    )


def _claim(subject: str, where: str, spec: DeviceClaim, around: _Around) -> Iterator[Warned]:
    classes, published = around.classes, around.published
    for place, request in requests_of(where, spec):
        if classes and request.device_class_name not in classes:
            yield Warned(
                "unknown-class",
                subject,
                f"{place}.deviceClassName",
                f"there is no DeviceClass {request.device_class_name!r} among the objects given; "
                f"there are: {', '.join(sorted(classes))}",
            )
        if len(request.tolerations) > MAX_TOLERATIONS:
            yield Warned(
                "many-tolerations",
                subject,
                f"{place}.tolerations",
                f"has {len(request.tolerations)}, the API's text allows {MAX_TOLERATIONS}; servers "
                "up to 1.37 do not look, later ones may",
            )
        for index, toleration in enumerate(request.tolerations):
            yield from _toleration(
                subject, f"{place}.tolerations[{index}]", toleration, around.taints
            )
        for index, derived in enumerate(request.derived_attributes):
            if derived.name in published:
                yield Warned(
                    "shadowed-name",
                    subject,
                    f"{place}.derivedAttributes[{index}].name",
                    f"{derived.name!r} is also published by devices; constraints see the derived "
                    "value only. Use a domain that no driver has, e.g. 'derived/…'",
                )


def requests_of(where: str, spec: DeviceClaim) -> Iterator[tuple[str, ExactRequest]]:
    """Each request and subrequest, with its place below ``where``."""
    for index, request in enumerate(spec.requests):
        place = f"{where}.requests[{index}]"
        if request.exactly is not None:
            yield f"{place}.exactly", request.exactly
        for number, sub in enumerate(request.first_available):
            yield f"{place}.firstAvailable[{number}]", sub


def _toleration(
    subject: str, where: str, toleration: DeviceToleration, taints: Sequence[DeviceTaint]
) -> Iterator[Warned]:
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield Warned(
            "ignored-seconds",
            subject,
            f"{where}.tolerationSeconds",
            "is ignored unless effect is NoExecute",
        )
    if toleration.effect == Effect.NONE.value:
        yield Warned(
            "no-effect",
            subject,
            f"{where}.effect",
            "None tolerates taints that do nothing: write NoSchedule or NoExecute, or leave it out",
        )
    if not toleration.key and toleration.operator != "Exists":
        yield Warned(
            "empty-key",
            subject,
            where,
            "an empty key tolerates something only with operator Exists",
        )
    elif taints and not any(tolerates(toleration, taint) for taint in taints):
        known = sorted({f"{t.key}={t.value}:{t.effect}" for t in taints})
        yield Warned(
            "tolerates-nothing",
            subject,
            where,
            f"matches none of the taints given: {', '.join(known)}",
        )

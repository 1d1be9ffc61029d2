"""Pods that ask for a resource of the node twice: by themselves, and through a claim.

A device may be mapped to cpu, memory or hugepages of its node (``nodeAllocatableResources``); what
a claim takes of it is added to what the pod's containers request. Whoever moves a workload to such
devices and leaves the requests as they were reserves the same CPUs twice.

Only what can be told from the objects is told: the class must be there and select by driver, and
slices of that driver must be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dra_core.lint import DRIVER_ONLY, Warned, requests_of
from dra_core.model.claims import Claim, ClaimTemplate
from dra_core.model.requests import DeviceClass
from dra_core.model.slices import ResourceSlice
from dra_core.wire import AnyObject


def warnings(pods: Iterable[Mapping[str, Any]], objects: Sequence[AnyObject]) -> Iterator[Warned]:
    """For each container that requests what a claim it references brings as well."""
    mapped = _mapped_by_claim(objects)
    for pod in pods:
        spec = _mapping(pod.get("spec"))
        brought: dict[str, frozenset[str]] = {}
        for entry in _mappings(spec.get("resourceClaims")):
            source = entry.get("resourceClaimName"), entry.get("resourceClaimTemplateName")
            brought[str(entry.get("name"))] = mapped.get(source, frozenset())
        for number, container in enumerate(_mappings(spec.get("containers"))):
            subject = f"Pod {_mapping(pod.get('metadata')).get('name')}"
            yield from _container(subject, f"spec.containers[{number}]", container, brought)


def _container(
    subject: str,
    where: str,
    container: Mapping[str, Any],
    brought: Mapping[str, frozenset[str]],
) -> Iterator[Warned]:
    resources = _mapping(container.get("resources"))
    wanted = {*_mapping(resources.get("requests")), *_mapping(resources.get("limits"))}
    for reference in _mappings(resources.get("claims")):
        name = str(reference.get("name"))
        for resource in sorted(brought.get(name, frozenset()) & wanted):
            yield Warned(
                "counted-twice",
                subject,
                f"{where}.resources.requests[{resource}]",
                f"claim {name!r} brings {resource} of the node as well, and both are added up; "
                "request here only what the container needs besides",
            )


def _mapped_by_class(objects: Sequence[AnyObject]) -> Mapping[str, set[str]]:
    """The same by class; a class that does not select by driver is left out."""
    by_driver: dict[str, set[str]] = {}
    for item in objects:
        if isinstance(item, ResourceSlice):
            found = by_driver.setdefault(item.spec.driver, set())
            for device in item.spec.devices:
                found |= set(device.node_allocatable) | set(device.node_allocatable_136)
    by_class: dict[str, set[str]] = {}
    for item in objects:
        if isinstance(item, DeviceClass):
            for selector in item.spec.selectors:
                if match := DRIVER_ONLY.fullmatch(selector.expression or ""):
                    by_class[item.metadata.name] = by_driver.get(match[2], set())
    return by_class


def _mapped_by_claim(
    objects: Sequence[AnyObject],
) -> dict[tuple[Any, Any], frozenset[str]]:
    """Resources of the node that a claim, or one from a template, brings: by (claim, template)."""
    by_class = _mapped_by_class(objects)
    mapped = {}
    for item in objects:
        if isinstance(item, Claim):
            key: tuple[Any, Any] = (item.metadata.name, None)
            devices = item.spec.devices
        elif isinstance(item, ClaimTemplate):
            key, devices = (None, item.metadata.name), item.spec.spec.devices
        else:
            continue
        classes = [request.device_class_name for _, request in requests_of("", devices)]
        mapped[key] = frozenset(r for name in classes for r in by_class.get(name, ()))
    return mapped


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []

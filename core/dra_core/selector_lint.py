"""Warnings about selectors beside the devices they are to select from.

An error in a selector is not "no match": the scheduler gives up on the whole claim, everywhere. So
each selector is asked about the devices that reach it, as the scheduler does: those of the class
first, for every device of every driver, then those of the request.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dra_core.cel.deadline import Clock
from dra_core.cel.devices import DeviceInput, device_input
from dra_core.cel.faults import CompileError, DeadlineExceeded, EvaluationFailed
from dra_core.cel.program import Program, compile_selector
from dra_core.cel.references import Named
from dra_core.cel.tracker import LIMIT
from dra_core.cel.values import Map
from dra_core.lint import Warned, requests_of
from dra_core.model.claims import Claim, ClaimTemplate
from dra_core.model.requests import DeviceClass, DeviceSelector, ExactRequest
from dra_core.model.slices import ResourceSlice
from dra_core.wire import AnyObject


@dataclass(frozen=True, slots=True)
class _Device:
    name: str
    input: DeviceInput


@dataclass(slots=True)
class _Tally:
    """A selector and what came of asking it."""

    subject: str
    field: str
    program: Program
    asked: list[_Device] = dataclasses.field(default_factory=list)
    matched: int = 0
    failed: list[tuple[_Device, EvaluationFailed]] = dataclasses.field(default_factory=list)


def warnings(objects: Sequence[AnyObject], clock: Callable[[], Clock] = Clock) -> Iterator[Warned]:
    """Warnings about the selectors of these classes, claims and templates, beside these slices.

    Without a device there are none. Selectors that do not compile, or cost too much, are errors
    and not looked at here. ``clock`` makes the clock of one evaluation; once the time is over,
    nothing more is asked, and of a selector for which it did not suffice only that is said.
    """
    devices = list(_devices(objects))
    if not devices:
        return
    classes = {o.metadata.name: o for o in objects if isinstance(o, DeviceClass)}
    for found in classes.values():
        yield from _about(_class_chain(found), devices, clock)
    for subject, where, request in _requests(objects):
        own = _chain(subject, where, request.selectors)
        of_class = classes.get(request.device_class_name)
        before = _class_chain(of_class) if of_class else []
        if own:
            yield from _about([*before, *own], devices, clock, len(before))


def _devices(objects: Iterable[AnyObject]) -> Iterator[_Device]:
    for item in objects:
        if isinstance(item, ResourceSlice):
            spec = item.spec
            for device in spec.devices:
                name = f"{spec.driver}/{spec.pool.name}/{device.name}"
                yield _Device(name, device_input(spec.driver, device))


def _requests(objects: Iterable[AnyObject]) -> Iterator[tuple[str, str, ExactRequest]]:
    for item in objects:
        if isinstance(item, Claim):
            subject, where, claim = "ResourceClaim", "spec.devices", item.spec.devices
        elif isinstance(item, ClaimTemplate):
            subject, where = "ResourceClaimTemplate", "spec.spec.devices"
            claim = item.spec.spec.devices
        else:
            continue
        for place, request in requests_of(where, claim):
            yield f"{subject} {item.metadata.name}", place, request


def _class_chain(found: DeviceClass) -> list[_Tally]:
    return _chain(f"DeviceClass {found.metadata.name}", "spec", found.spec.selectors)


def _chain(subject: str, where: str, selectors: Sequence[DeviceSelector]) -> list[_Tally]:
    chain = []
    for place, selector in enumerate(selectors):
        try:
            program = compile_selector(selector.expression or "")
        except CompileError:
            continue
        if program.max_cost <= LIMIT:
            at = f"{where}.selectors[{place}].cel.expression"
            chain.append(_Tally(subject, at, program))
    return chain


def _about(
    chain: Sequence[_Tally],
    devices: Sequence[_Device],
    clock: Callable[[], Clock],
    start: int = 0,
) -> Iterator[Warned]:
    """Ask a chain of selectors about devices; warnings about those from ``start`` on."""
    asked = _asked(chain, devices, clock)
    for tally in chain[start:]:
        for code, text in _said(tally, asked, len(devices)):
            yield Warned(code, tally.subject, tally.field, text)


def _asked(chain: Sequence[_Tally], devices: Sequence[_Device], clock: Callable[[], Clock]) -> int:
    """For how many of the devices there was time."""
    for number, device in enumerate(devices):
        try:
            _ask(chain, device, clock())
        except DeadlineExceeded:
            return number
    return len(devices)


def _ask(chain: Iterable[_Tally], device: _Device, clock: Clock) -> None:
    for tally in chain:
        clock.check()
        tally.asked.append(device)
        try:
            matches = tally.program.matches(device.input, clock)
        except DeadlineExceeded:
            raise
        except EvaluationFailed as error:
            tally.failed.append((device, error))
            return
        if not matches:
            return
        tally.matched += 1


def _said(tally: _Tally, asked: int, devices: int) -> Iterator[tuple[str, str]]:
    """Code and text of warnings about one selector."""
    if tally.failed:
        yield "selector-error", _failure(tally)
    elif asked < devices:
        text = f"asked about {asked} of {devices} devices only: the time was over"
        yield "selector-undecided", text
    elif tally.asked and not tally.matched:
        count = len(tally.asked)
        which = "the only device" if count == 1 else f"any of the {count} devices"
        text = f"does not match {which} that it is asked about{_hints(tally)}"
        yield "selector-matches-nothing", text


def _failure(tally: _Tally) -> str:
    device, error = tally.failed[0]
    return (
        f"fails on {len(tally.failed)} of {len(tally.asked)} devices, on {device.name} with "
        f"{error.text!r}: the scheduler then gives up on the claim; ask with has(…), .?…orValue(…) "
        f"or for the driver first{_hints(tally)}"
    )


def _hints(tally: _Tally) -> str:
    """Names that few of the devices have, with the nearest that they do have."""
    parts = []
    for named in tally.program.names_used:
        having = sum(_has(device, named) for device in tally.asked)
        if having == len(tally.asked):
            continue
        part = f"{having} of {len(tally.asked)} devices have {named}"
        near = None if having else _nearest(tally.asked, named)
        parts.append(f"{part}, did you mean {near}?" if near else part)
    return "".join(f"; {part}" for part in parts)


def _has(device: _Device, named: Named) -> bool:
    return named.identifier in _domains(device, named.field).get(named.domain, ())


def _domains(device: _Device, of: str) -> Mapping[str, Sequence[str]]:
    found = device.input.value.find(of)
    domains: Map = found[1] if found else Map({})
    return {domain: list(entries.keys()) for domain, entries in domains.items()}


def _nearest(devices: Sequence[_Device], named: Named) -> str | None:
    domains: dict[str, set[str]] = {}
    for device in devices:
        for domain, identifiers in _domains(device, named.field).items():
            domains.setdefault(domain, set()).update(identifiers)
    if named.domain in domains:
        near = difflib.get_close_matches(named.identifier, sorted(domains[named.domain]), 1)
        return repr(near[0]) if near else None
    near = difflib.get_close_matches(named.domain, sorted(domains), 1)
    return f"the domain {near[0]!r}" if near else None

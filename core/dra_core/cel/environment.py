"""What an expression may use, by version and feature gates of Kubernetes.

A scheduler runs what is stored: it knows all there is, whatever its gates. An API server checks
what is new: fields and functions of gates that are off are not there, so that nothing is stored
that the version before could not read. Apart from what stands here, the environments of 1.36 and
1.37 are the same: all other libraries and all macros were in Kubernetes 1.34.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import Type
from dra_core.cel.declarations import TYPE_NAMES, Declarations
from dra_core.cel.library import (
    addresses,
    arithmetic,
    authorization,
    comparisons,
    conversions,
    lists,
    named_formats,
    optionals,
    quantities,
    regex,
    sets,
    standard,
    strings,
    times,
    two_variable,
    urls,
    versions,
)
from dra_core.cel.objects import MESSAGES, Message
from dra_core.cel.signatures import Overload

#: The type of the variable ``device``.
DEVICE: Final = celtypes.struct("kubernetes.DRADevice")

#: Libraries whose types have no name in an expression.
_NAMELESS: Final = frozenset(
    {celtypes.QUANTITY, celtypes.SEMVER, celtypes.URL, celtypes.NAMED_FORMAT}
)


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment; ``consumable_capacity`` and ``list_attributes`` are the feature gates
    ``DRAConsumableCapacity`` and ``DRAListTypeAttributes``, ``version`` is (1, 36) or (1, 37).
    """

    version: tuple[int, int] = (1, 37)
    stored: bool = True
    consumable_capacity: bool = True
    list_attributes: bool = True

    @property
    def attribute_type(self) -> Type:
        """The type of an attribute's value: unknown, and with lists also something to loop over.

        Kubernetes 1.36 takes stored expressions as its gate says, 1.37 always with lists.
        """
        lists = self.list_attributes or (self.stored and self.version >= (1, 37))
        return celtypes.DYN if lists else celtypes.ANY

    @property
    def selector_types(self) -> tuple[Type, ...]:
        """The types that a selector may have: ``bool``, or that of an attribute."""
        if self.version < (1, 37) and self.list_attributes:
            return (celtypes.BOOL, celtypes.ANY, celtypes.DYN)
        return (celtypes.BOOL, self.attribute_type)

    @property
    def derived_lists(self) -> bool:
        """Whether a derived attribute may be a list."""
        return self.stored or self.list_attributes

    @property
    def includes_overload(self) -> str:
        """The overload of ``includes``, empty if there is none.

        That of 1.36 fails for lists of more than 48 items and is estimated at 48.
        """
        if not self.stored and not self.list_attributes:
            return ""
        return "list_includes_dyn_dyn" if self.version >= (1, 37) else "dra_includes_dyn_dyn"

    @property
    def quoted_fields(self) -> bool:
        """Whether a field may be written as ``a.`b```; the parser of 1.36 refuses it."""
        return self.version >= (1, 37)

    @property
    def durations_of_int(self) -> bool:
        """Whether there is ``duration(int)``; it went away with 1.37."""
        return self.version < (1, 37)

    @property
    def costly_matches(self) -> bool:
        """Whether ``matches(a, b)`` is estimated as ``a.matches(b)`` is; in 1.36 it costs 1."""
        return self.version >= (1, 37)


#: Where a scheduler of Kubernetes 1.37 compiles and evaluates.
SCHEDULER_1_37: Final = Environment()


def for_validation(
    minor: int, *, consumable_capacity: bool, list_attributes: bool, unchanged: bool = False
) -> Environment | None:
    """The environment in which an API server of Kubernetes 1.``minor`` checks an expression.

    ``unchanged`` selectors are those of a class whose list of selectors is exactly as it was before
    the update; claims and templates cannot be changed, and are not checked again. None: nothing is
    checked at all, which is what 1.37 does with an unchanged expression.
    """
    if unchanged and minor >= 37:
        return None
    return Environment((1, minor), unchanged, consumable_capacity, list_attributes)


@functools.lru_cache(maxsize=16)
def device_fields(environment: Environment) -> Mapping[str, Type]:
    """The fields of ``device`` with their types."""
    attributes = celtypes.map_of(celtypes.STRING, environment.attribute_type)
    capacity = celtypes.map_of(celtypes.STRING, celtypes.QUANTITY)
    fields = {
        "driver": celtypes.STRING,
        "attributes": celtypes.map_of(celtypes.STRING, attributes),
        "capacity": celtypes.map_of(celtypes.STRING, capacity),
    }
    if environment.stored or environment.consumable_capacity:
        fields["allowMultipleAllocations"] = celtypes.BOOL
    return fields


@functools.lru_cache(maxsize=16)
def overloads(environment: Environment) -> Mapping[str, tuple[Overload, ...]]:
    """The overloads of all functions, in the order in which they are tried."""
    found: dict[str, list[Overload]] = {}
    for library in _libraries(environment):
        for overload in library:
            found.setdefault(overload.function, []).append(overload)
    if not environment.durations_of_int:
        found["duration"] = [o for o in found["duration"] if o.id != "int64_to_duration"]
    return {function: tuple(listed) for function, listed in found.items()}


def _libraries(environment: Environment) -> Iterator[tuple[Overload, ...]]:
    """The libraries in their order. With 1.37 the lists of Kubernetes got a version 1 and moved to
    the end; new expressions still get version 0, without ``includes``.
    """
    moved = environment.stored and environment.version >= (1, 37)
    yield standard.OVERLOADS
    yield arithmetic.OVERLOADS
    yield comparisons.OVERLOADS
    yield conversions.OVERLOADS
    yield times.OVERLOADS
    yield urls.OVERLOADS
    yield regex.OVERLOADS
    if not moved:
        yield lists.KUBERNETES
    yield authorization.OVERLOADS
    yield optionals.OVERLOADS
    yield quantities.OVERLOADS
    yield strings.OVERLOADS
    yield sets.OVERLOADS
    yield addresses.OVERLOADS
    yield named_formats.OVERLOADS
    yield two_variable.OVERLOADS
    yield versions.OVERLOADS
    yield lists.LANGUAGE
    if moved:
        yield lists.KUBERNETES
    includes = (*lists.INCLUDES, *lists.INCLUDES_1_36)
    yield tuple(o for o in includes if o.id == environment.includes_overload)


@functools.lru_cache(maxsize=16)
def declarations(environment: Environment) -> Declarations:
    """All that an expression may name."""
    return Declarations(
        variables={"device": DEVICE},
        functions=overloads(environment),
        messages={**MESSAGES, DEVICE.name: Message(DEVICE, device_fields(environment))},
        types={name: of for name, of in TYPE_NAMES.items() if of not in _NAMELESS},
    )

"""How large the parts of a device can be: what its declaration tells the static estimate.

The limits are those of resource.k8s.io: without them every string, list and map of a device would
have no bound, and no expression that looks at one could be accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dra_core.cel.estimates import SizeEstimate

#: The greatest length of a domain, of a name within one, and of a driver's name, in characters.
MAX_DOMAIN: Final = 63
MAX_ID: Final = 32
MAX_DRIVER_NAME: Final = 63
#: The greatest length of a string or version, in characters, and the most values in a list.
MAX_ATTRIBUTE_LENGTH: Final = 64
MAX_LIST_VALUES: Final = 48
#: The most attributes and capacities that a device can have together.
MAX_ATTRIBUTES_AND_CAPACITIES: Final = 32


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a device: its size, and its keys, items and fields where it has some."""

    size: SizeEstimate
    keys: _Part | None = None
    items: _Part | None = None
    fields: Mapping[str, _Part] = field(default_factory=dict)


def _up_to(size: int) -> SizeEstimate:
    return SizeEstimate(0, size)


def _domains(item: _Part) -> _Part:
    """Items by name, by domain."""
    most = _up_to(MAX_ATTRIBUTES_AND_CAPACITIES)
    names = _Part(most, keys=_Part(_up_to(MAX_ID)), items=item)
    return _Part(most, keys=_Part(_up_to(MAX_DOMAIN)), items=names)


#: A value may be a string or a list of strings; the longer of the two counts.
_ATTRIBUTE: Final = _Part(_up_to(max(MAX_ATTRIBUTE_LENGTH, MAX_LIST_VALUES)))
#: Quantities and the device itself are declared without a size, which counts as 0.
_QUANTITY: Final = _Part(_up_to(0))
_DEVICE: Final = _Part(
    _up_to(0),
    fields={
        "driver": _Part(_up_to(MAX_DRIVER_NAME)),
        "allowMultipleAllocations": _Part(_up_to(1)),
        "attributes": _domains(_ATTRIBUTE),
        "capacity": _domains(_QUANTITY),
    },
)


def estimate_size(path: Sequence[str]) -> SizeEstimate | None:
    """The size of what stands at a path such as ``device, attributes, @values, model``.

    Parts of a path are names of fields, ``@keys``, ``@items`` and ``@values``. None where nothing
    is declared: other variables, parts of attributes, fields of a map. The attributes of one domain
    are an exception: as all have the same limit, ``m.name`` is as good as ``m["name"]`` there.
    """
    if not path or path[0] != "device":
        return None
    part: _Part | None = _DEVICE
    for name in path[1:]:
        if part is None:
            return None
        if name in {"@items", "@values"}:
            part = part.items
        elif name == "@keys":
            part = part.keys
        elif part.items is _ATTRIBUTE:
            part = _ATTRIBUTE
        else:
            part = part.fields.get(name)
    return None if part is None else part.size

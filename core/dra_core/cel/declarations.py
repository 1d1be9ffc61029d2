"""What an expression may name: variables, types, fields of objects, functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import Type
from dra_core.cel.objects import CONSTANTS, MESSAGES, OBJECT_TYPES, Message
from dra_core.cel.signatures import Overload
from dra_core.cel.values import Value

#: Types that an expression can name, as in ``type(x) == int``.
TYPE_NAMES: Final[Mapping[str, Type]] = {
    **{
        known.name: known
        for known in (
            celtypes.BOOL,
            celtypes.BYTES,
            celtypes.DOUBLE,
            celtypes.DURATION,
            celtypes.INT,
            celtypes.LIST,
            celtypes.MAP,
            celtypes.NULL,
            celtypes.STRING,
            celtypes.TIMESTAMP,
            celtypes.TYPE,
            celtypes.UINT,
            celtypes.QUANTITY,
            celtypes.SEMVER,
            celtypes.URL,
            celtypes.IP,
            celtypes.CIDR,
            celtypes.NAMED_FORMAT,
        )
    },
    "optional_type": celtypes.optional_of(celtypes.DYN),
    **OBJECT_TYPES,
}


@dataclass(frozen=True)
class Declarations:
    """The names of one environment.

    ``messages`` are what objects can be made of by name; not all of these are among ``types``,
    which values can be compared with. ``functions`` keep the order of their overloads: it decides
    which one is tried first.
    """

    variables: Mapping[str, Type]
    functions: Mapping[str, tuple[Overload, ...]]
    messages: Mapping[str, Message] = field(default_factory=lambda: MESSAGES)
    types: Mapping[str, Type] = field(default_factory=lambda: TYPE_NAMES)
    constants: Mapping[str, Value] = field(default_factory=lambda: CONSTANTS)

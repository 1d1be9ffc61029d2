"""The types that an expression is checked with.

A type has a kind, a name and parameters; two types are the same when these are. ``DYN`` stands for
what is known only when an expression runs, ``Kind.PARAM`` for a parameter of a function's signature
or a variable of the checker. Nullable types are the protobuf wrappers, ``wrapper(int)``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final


class Kind(enum.Enum):
    """What sort of type it is."""

    ANY = "any"
    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    DYN = "dyn"
    ERROR = "error"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    PARAM = "param"
    STRING = "string"
    STRUCT = "struct"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    UINT = "uint"


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its kind, its name at run time, its parameters, and whether it also takes null; two
    that differ in that alone count as the same.
    """

    kind: Kind
    name: str
    params: tuple[Type, ...] = ()
    nullable: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        name = f"wrapper({self.name})" if self.nullable else self.name
        if self.kind is Kind.PARAM:
            return f"<{name}>"
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name

    @property
    def is_dyn(self) -> bool:
        """Whether anything fits, with the check left to the evaluation."""
        return self.kind is Kind.DYN or self.kind is Kind.ANY

    @property
    def is_optional(self) -> bool:
        """Whether it is ``optional_type(T)``."""
        return self.kind is Kind.OPAQUE and self.name == "optional_type"


ANY: Final = Type(Kind.ANY, "google.protobuf.Any")
BOOL: Final = Type(Kind.BOOL, "bool")
BYTES: Final = Type(Kind.BYTES, "bytes")
DOUBLE: Final = Type(Kind.DOUBLE, "double")
DURATION: Final = Type(Kind.DURATION, "google.protobuf.Duration")
DYN: Final = Type(Kind.DYN, "dyn")
ERROR: Final = Type(Kind.ERROR, "error")
INT: Final = Type(Kind.INT, "int")
NULL: Final = Type(Kind.NULL, "null_type")
STRING: Final = Type(Kind.STRING, "string")
TIMESTAMP: Final = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE: Final = Type(Kind.TYPE, "type")
UINT: Final = Type(Kind.UINT, "uint")


def list_of(item: Type) -> Type:
    """``list(item)``."""
    return Type(Kind.LIST, "list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type(Kind.MAP, "map", (key, value))


def optional_of(item: Type) -> Type:
    """``optional_type(item)``."""
    return opaque("optional_type", item)


def opaque(name: str, *params: Type) -> Type:
    """A type without fields that only its functions know."""
    return Type(Kind.OPAQUE, name, params)


def struct(name: str) -> Type:
    """An object type with declared fields."""
    return Type(Kind.STRUCT, name)


def param(name: str) -> Type:
    """A type parameter."""
    return Type(Kind.PARAM, name)


def type_of(item: Type) -> Type:
    """``type(item)``: the type of a type."""
    return Type(Kind.TYPE, "type", (item,))


LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)

# Opaque and object types of the Kubernetes libraries.
QUANTITY: Final = opaque("kubernetes.Quantity")
SEMVER: Final = opaque("kubernetes.Semver")
URL: Final = opaque("kubernetes.URL")
IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")
NAMED_FORMAT: Final = opaque("kubernetes.NamedFormat")

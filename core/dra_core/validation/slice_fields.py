"""The fields of a ResourceSlice as an API server of a given minor version knows them, as data.

From this follow decoding (what the server reads, what it ignores, where it refuses the JSON as of
the wrong type), semantic equality (ratcheting compares with it), and the stored form: canonical
quantities and times, empty optional fields left out. Source: the JSON tags of ``resource/v1`` in
k8s.io/api.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from dra_core.errors import InvalidObject, InvalidQuantity
from dra_core.quantity import Quantity

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, number, truth value, quantity or time.

    ``zero`` stands for an absent or null value of a field that is no pointer in the API; None where
    the API tells absent from empty. ``always`` says that the stored form has the field even so.
    """

    kind: str
    zero: Any = None
    always: bool = False


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; None and an empty one are stored alike (not at all)."""

    item: Node


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from text."""

    value: Node


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with known fields."""

    fields: Mapping[str, Node]


Node = Scalar | ListOf | MapOf | Struct

TEXT: Final = Scalar("text")
NAME: Final = Scalar("text", zero="", always=True)
PLAIN: Final = Scalar("text", zero="")
BOOL: Final = Scalar("bool")
INT: Final = Scalar("int")
COUNT: Final = Scalar("int", zero=0, always=True)
QUANTITY: Final = Scalar("quantity")
AMOUNT: Final = Scalar("quantity", zero="0", always=True)
TIME: Final = Scalar("time")


def _struct(**fields: Node) -> Struct:
    return Struct(MappingProxyType(fields))


_REQUIREMENT: Final = _struct(key=NAME, operator=NAME, values=ListOf(PLAIN))
_TERM: Final = _struct(matchExpressions=ListOf(_REQUIREMENT), matchFields=ListOf(_REQUIREMENT))
_NODE_SELECTOR: Final = _struct(nodeSelectorTerms=ListOf(_TERM))
_COUNTERS: Final = MapOf(_struct(value=AMOUNT))
_ATTRIBUTE: Final = _struct(
    int=INT,
    bool=BOOL,
    string=TEXT,
    version=TEXT,
    ints=ListOf(COUNT),
    bools=ListOf(Scalar("bool", zero=False)),
    strings=ListOf(PLAIN),
    versions=ListOf(PLAIN),
)
_RANGE: Final = _struct(min=QUANTITY, max=QUANTITY, step=QUANTITY)
_POLICY: Final = _struct(
    default=Scalar("quantity", always=True), validValues=ListOf(AMOUNT), validRange=_RANGE
)
_TAINT: Final = _struct(key=NAME, value=PLAIN, effect=NAME, timeAdded=TIME)
_MAPPING: Final = _struct(capacityKey=TEXT, capacityMultiplier=QUANTITY, deviceMultiplier=QUANTITY)
_OVERHEAD: Final = _struct(perPod=QUANTITY, perContainer=QUANTITY)


def _spec(consumption: dict[str, Node], device: dict[str, Node], spec: dict[str, Node]) -> Struct:
    """What every version has, and what this one has besides."""
    consumes = _struct(counterSet=NAME, counters=_COUNTERS, **consumption)
    each = _struct(
        name=NAME,
        attributes=MapOf(_ATTRIBUTE),
        capacity=MapOf(_struct(value=AMOUNT, requestPolicy=_POLICY)),
        consumesCounters=ListOf(consumes),
        nodeName=TEXT,
        nodeSelector=_NODE_SELECTOR,
        allNodes=BOOL,
        taints=ListOf(_TAINT),
        bindsToNode=BOOL,
        bindingConditions=ListOf(PLAIN),
        bindingFailureConditions=ListOf(PLAIN),
        allowMultipleAllocations=BOOL,
        **device,
    )
    return _struct(
        driver=NAME,
        pool=_struct(name=NAME, generation=COUNT, resourceSliceCount=COUNT),
        nodeName=TEXT,
        nodeSelector=_NODE_SELECTOR,
        allNodes=BOOL,
        devices=ListOf(each),
        perDeviceNodeSelection=BOOL,
        sharedCounters=ListOf(_struct(name=NAME, counters=_COUNTERS)),
        **spec,
    )


_SPEC_36: Final = _spec(
    {},
    {
        "nodeAllocatableResourceMappings": MapOf(
            _struct(
                capacityKey=TEXT, allocationMultiplier=Scalar("quantity", zero="1", always=True)
            )
        )
    },
    {},
)
_SPEC_37: Final = _spec(
    {"compatibilityGroups": ListOf(PLAIN)},
    {"nodeAllocatableResources": MapOf(_struct(mapping=_MAPPING, overhead=_OVERHEAD))},
    {"partitionTypeAttribute": TEXT, "skipNodeOperations": ListOf(PLAIN)},
)
#: ``spec`` of a ResourceSlice by minor version of Kubernetes 1.
SPEC: Final[Mapping[int, Struct]] = MappingProxyType({36: _SPEC_36, 37: _SPEC_37})


def field_of(node: Node, name: str) -> Node:
    """The field of a struct, or what a list or map holds."""
    if isinstance(node, Struct):
        return node.fields[name]
    return node.item if isinstance(node, ListOf) else node.value  # type: ignore[union-attr]


def decode(value: Any, node: Node, path: str) -> Any:
    """What the server makes of JSON: unknown fields and nulls gone, zero values filled in.

    Raises InvalidObject where the server answers 400 because a value has the wrong type. Quantities
    and times stay as written (their text decides some verdicts).
    """
    if isinstance(node, Scalar):
        return node.zero if value is None else _CHECKS[node.kind](value, path)
    if value is None:  # in a list or map; null fields are absent
        value = [] if isinstance(node, ListOf) else {}
    if isinstance(node, ListOf):
        _expect(isinstance(value, list), value, path, "a list")
        return [decode(item, node.item, f"{path}[{i}]") for i, item in enumerate(value)]
    _expect(isinstance(value, dict), value, path, "an object")
    if isinstance(node, MapOf):
        return {k: decode(v, node.value, f"{path}[{k}]") for k, v in value.items()}
    return _decoded_fields(value, node, path)


def _decoded_fields(value: JSON, node: Struct, path: str) -> JSON:
    result: JSON = {}
    for name, inner in node.fields.items():
        given = value.get(name)
        if given is not None:
            result[name] = decode(given, inner, f"{path}.{name}")
        elif isinstance(inner, Scalar) and inner.zero is not None:
            result[name] = inner.zero
        elif name == "pool":
            result[name] = decode({}, inner, f"{path}.{name}")
    return result


def encode(value: Any, node: Node) -> Any:
    """The stored form of what :func:`decode` gave."""
    if isinstance(node, Scalar):
        return _WRITERS.get(node.kind, _unchanged)(value)
    if isinstance(node, ListOf):
        return [encode(item, node.item) for item in value]
    if isinstance(node, MapOf):
        return {key: encode(item, node.value) for key, item in value.items()}
    result: JSON = {}
    for name, inner in node.fields.items():
        given = value.get(name)
        if isinstance(inner, Scalar) and inner.always:
            result[name] = encode(given, inner) if given is not None else None
        elif _stored(given, inner):
            result[name] = encode(given, inner)
    return result


def _stored(value: Any, node: Node) -> bool:
    """Whether an optional field is written at all."""
    if isinstance(node, ListOf | MapOf):
        return bool(value)
    return value is not None and not (isinstance(node, Scalar) and value == node.zero)


def equal(one: Any, other: Any, node: Node) -> bool:
    """Semantic equality of decoded values: by amount and instant; absent equals empty for lists."""
    if isinstance(node, Struct) and (one is None or other is None):
        return one is other
    one_stored = None if one is None else encode(one, node)
    other_stored = None if other is None else encode(other, node)
    if isinstance(node, ListOf | MapOf):
        return (one_stored or None) == (other_stored or None)
    return bool(one_stored == other_stored)


def _expect(fits: bool, value: Any, path: str, what: str) -> None:
    if not fits:
        shown = repr(value)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        raise InvalidObject(f"{path}: {shown} has the wrong type: write {what}")


def _text(value: Any, path: str) -> str:
    _expect(isinstance(value, str), value, path, "text in quotes")
    return str(value)


def _bool(value: Any, path: str) -> bool:
    _expect(isinstance(value, bool), value, path, "true or false")
    return bool(value)


def _int(value: Any, path: str) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    _expect(fits, value, path, "a whole number of at most 64 bits")
    return int(value)


def _quantity(value: Any, path: str) -> str:
    """A quantity may also be written as a number without quotes."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    _expect(number or isinstance(value, str), value, path, "a quantity such as '80Gi'")
    text = str(value).strip() if number else value
    try:
        Quantity.parse(text)
    except InvalidQuantity as error:
        raise InvalidObject(f"{path}: {error}") from error
    return str(text)


def _time(value: Any, path: str) -> str:
    text = _text(value, path)
    try:
        _instant(text)
    except ValueError as error:
        rule = "is no time: write RFC 3339, e.g. 2026-01-31T12:00:00Z"
        raise InvalidObject(f"{path}: {text[:80]!r} {rule}") from error
    return text


def _instant(text: str) -> dt.datetime:
    instant = dt.datetime.fromisoformat(text)
    if instant.tzinfo is None or "T" not in text:
        raise ValueError(text)
    return instant


def _canonical_time(text: str) -> str:
    instant = _instant(text).astimezone(dt.UTC).replace(microsecond=0, tzinfo=None)
    return f"{instant.isoformat()}Z"


def _canonical_quantity(text: str) -> str:
    return str(Quantity.parse(text))


def _unchanged(value: Any) -> Any:
    return value


_CHECKS: Final[Mapping[str, Callable[[Any, str], Any]]] = MappingProxyType(
    {"text": _text, "bool": _bool, "int": _int, "quantity": _quantity, "time": _time}
)
_WRITERS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {"quantity": _canonical_quantity, "time": _canonical_time}
)

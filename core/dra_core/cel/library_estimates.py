"""What a call of a library's function costs at most, and how large its result is, before it runs.

Lists and sets are estimated by the overload, the functions of Kubernetes by their name; nothing is
said about all others (None), for which the language has its own table. Sizes that are not known are
without bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dra_core.cel import device_sizes
from dra_core.cel.call_costs import (
    CHARACTER,
    CHECK,
    NEW_LIST,
    PATTERN,
    REQUIREMENT,
    REQUIREMENTS,
)
from dra_core.cel.celtypes import BYTES, CIDR, IP, NAMED_FORMAT, QUANTITY, SEMVER, STRING, URL
from dra_core.cel.estimates import (
    MAX,
    UNKNOWN_SIZE,
    CallEstimate,
    CostEstimate,
    Operand,
    SizeEstimate,
    fixed_cost,
    fixed_size,
)
from dra_core.cel.library import authorization
from dra_core.cel.list_estimates import BY_OVERLOAD, Call, Estimate, size_of
from dra_core.cel.syntax import Const

#: The longest pattern that a format is assumed to have, and the longest name of one.
_FORMAT_PATTERN: Final = 128
_FORMAT_NAME: Final = 64
#: Bytes of an address.
_ADDRESS: Final = SizeEstimate(4, 16)
_ONE: Final = CallEstimate(fixed_cost(1))


def estimate_call(
    function: str, overload: str, target: Operand | None, args: Sequence[Operand]
) -> CallEstimate | None:
    """The estimate of one overload, without the cost of its target and arguments."""
    call = Call(overload, target, args)
    by_overload = BY_OVERLOAD.get(overload)
    if by_overload is not None and (found := by_overload(call)) is not None:
        return found
    by_function = _BY_FUNCTION.get(function)
    return None if by_function is None else by_function(call)


def _read(size: SizeEstimate) -> CostEstimate:
    return size.multiply_by_cost_factor(CHARACTER)


def _read_twice(size: SizeEstimate) -> CostEstimate:
    return size.multiply_by_cost_factor(2 * CHARACTER)


def _one(_: Call) -> CallEstimate:
    return _ONE


def _traversal(call: Call) -> CallEstimate | None:
    """A unit for each item, and more for strings; of a string itself its characters."""
    if call.target is None:
        return None
    size = size_of(call.target)
    if not call.target.type.params:
        return CallEstimate(_read(size))
    return CallEstimate(size.multiply_by_cost(_item(call.target)))


def _includes(call: Call) -> CallEstimate | None:
    """As above, and what may be a list is one."""
    if call.target is None:
        return None
    item = _item(call.target) if call.target.type.params else fixed_cost(1)
    return CallEstimate(size_of(call.target).multiply_by_cost(item))


def _item(items: Operand) -> CostEstimate:
    if items.type.params[0] not in (STRING, BYTES):
        return fixed_cost(1)
    return fixed_cost(1).add(_read(_item_size(items)))


def _item_size(items: Operand) -> SizeEstimate:
    size = device_sizes.estimate_size((*items.path, "@items")) if items.path else None
    return size or UNKNOWN_SIZE


def _read_argument(call: Call) -> CallEstimate | None:
    return CallEstimate(_read(size_of(call.args[0]))) if call.args else None


def _read_argument_twice(call: Call) -> CallEstimate | None:
    return CallEstimate(_read_twice(size_of(call.args[0]))) if call.args else None


def _url(call: Call) -> CallEstimate | None:
    if len(call.args) != 1:
        return None
    size = size_of(call.args[0])
    return CallEstimate(_read(size), size)


def _same_size(call: Call) -> CallEstimate | None:
    if call.target is None:
        return None
    size = size_of(call.target)
    return CallEstimate(_read(size), size)


def _replace(call: Call) -> CallEstimate | None:
    if call.target is None or len(call.args) < 2:
        return None
    text, old, new = size_of(call.target), size_of(call.args[0]), size_of(call.args[1])
    most, kept_most = _replacements(text.max, old.min, grows=new.max > old.min)
    least, kept_least = _replacements(text.min, old.max, grows=new.min < old.max)
    replaced = SizeEstimate(least, most).multiply(new)
    return CallEstimate(_read_twice(text), replaced.add(SizeEstimate(kept_least, kept_most)))


def _replacements(text: int, old: int, *, grows: bool) -> tuple[int, int]:
    """How often something is replaced, and how much stays: an extreme of the two.

    What is empty is found around every character. ``grows`` is whether replacing changes the size
    towards the extreme; if it does not, nothing is replaced.
    """
    if old == 0:
        return min(text + 1, MAX), text
    if not grows:
        return 0, text
    return math.ceil(float(text) / float(old)), 0


def _split(call: Call) -> CallEstimate | None:
    if call.target is None:
        return None
    size = size_of(call.target)
    most = size.max
    if len(call.args) > 1:
        node = call.args[1].node
        if isinstance(node, Const) and type(node.value) is int:
            most = node.value & MAX
    return CallEstimate(_read_twice(size), SizeEstimate(0, most))


def _join(call: Call) -> CallEstimate | None:
    if call.target is None:
        return None
    items = size_of(call.target)
    size = fixed_size(0)
    if call.target.type.params:
        size = items.multiply(_item_size(call.target))
    if call.args:
        between = SizeEstimate(max(items.min - 1, 0), max(items.max - 1, 0))
        size = size.add(size_of(call.args[0]).multiply(between))
    return CallEstimate(_read(size), size)


def _find(call: Call) -> CallEstimate | None:
    """An empty text costs too, as its pattern has to be read."""
    if call.target is None or not call.args:
        return None
    text = size_of(call.target)
    pattern = size_of(call.args[0]).multiply_by_cost_factor(PATTERN)
    cost = _read(text.add(fixed_size(1))).multiply(pattern)
    return CallEstimate(cost, SizeEstimate(0, text.max))


def _ip(call: Call) -> CallEstimate | None:
    return _ONE if call.overload == "cidr_ip" else _read_argument(call)


def _contains_ip(call: Call) -> CallEstimate | None:
    if not call.args:
        return None
    cost = _read(_ADDRESS.add(_ADDRESS))
    if call.overload == "cidr_contains_ip_string":
        cost = cost.add(_read(size_of(call.args[0])))
    return CallEstimate(cost)


def _contains_cidr(call: Call) -> CallEstimate | None:
    if not call.args:
        return None
    cost = _read(_ADDRESS.add(_ADDRESS)).add(_read(_ADDRESS)).add(fixed_cost(1))
    if call.overload == "cidr_contains_cidr_string":
        cost = cost.add(_read(size_of(call.args[0])))
    return CallEstimate(cost)


def _check(_: Call) -> CallEstimate:
    return CallEstimate(fixed_cost(CHECK))


def _selector(call: Call) -> CallEstimate | None:
    if len(call.args) != 1:
        return None
    size = size_of(call.args[0])
    requirements = size.multiply_by_cost_factor(REQUIREMENTS).multiply_by_cost_factor(REQUIREMENT)
    return CallEstimate(fixed_cost(NEW_LIST).add(_read(size)).add(requirements))


def _validate(call: Call) -> CallEstimate | None:
    if not call.args:
        return None
    text = _read(size_of(call.args[0]))
    return CallEstimate(text.multiply_by_cost_factor(_FORMAT_PATTERN * PATTERN))


def _equal(call: Call) -> CallEstimate | None:
    if len(call.args) != 2:
        return None
    left, right = call.args
    if left.type != right.type:
        return None
    if left.type == URL:
        size = right.computed_size or fixed_size(1)
        return CallEstimate(_read(SizeEstimate(1, size.max)))
    return _EQUALITIES.get(left.type)


_EQUALITIES: Final = {
    **dict.fromkeys((IP, CIDR, QUANTITY, SEMVER, *authorization.TYPES), _ONE),
    NAMED_FORMAT: CallEstimate(_read(SizeEstimate(1, _FORMAT_NAME))),
}

_BY_FUNCTION: Final[dict[str, Estimate]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    "includes": _includes,
    "url": _url,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity"), _read_argument),
    **dict.fromkeys(("semver", "isSemver"), _read_argument),
    "ip": _ip,
    "ip.isCanonical": _read_argument_twice,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "format.named": _one,
    **dict.fromkeys(("masked", "prefixLength", "family", "isUnspecified", "isLoopback"), _one),
    **dict.fromkeys(("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"), _one),
    **dict.fromkeys(("sign", "asInteger", "isInteger", "asApproximateFloat"), _one),
    **dict.fromkeys(("isGreaterThan", "isLessThan", "compareTo", "add", "sub"), _one),
    **dict.fromkeys(("major", "minor", "patch"), _one),
    **dict.fromkeys(("getScheme", "getHostname", "getHost"), _one),
    **dict.fromkeys(("getPort", "getEscapedPath", "getQuery"), _one),
    "check": _check,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    **dict.fromkeys(("serviceAccount", "path", "group", "resource", "subresource"), _one),
    **dict.fromkeys(("namespace", "name", "allowed", "reason", "error", "errored"), _one),
    "_==_": _equal,
}

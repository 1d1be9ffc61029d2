"""IP addresses and networks, as Go's ``net/netip`` reads and writes them.

Kubernetes refuses zones (``fe80::1%eth0``) and IPv4 addresses mapped to IPv6 (``::ffff:1.2.3.4``)
everywhere. An address is not masked when it is part of a network: ``cidr("10.0.0.1/8").ip()`` is
``10.0.0.1``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import BOOL, CIDR, INT, IP, STRING, Type
from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.signatures import Overload, member
from dra_core.cel.values import Value, register_equality

_BITS: Final = {4: 32, 6: 128}
_MAPPED: Final = 0xFFFF
_PREFIX_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class IpValue:
    """An address: its family, 4 or 6, and its number."""

    cel_type: ClassVar[Type] = celtypes.IP
    family: int
    number: int

    @property
    def cel_size(self) -> int:
        """What costs count as its size: bytes."""
        return _BITS[self.family] // 8

    def __str__(self) -> str:
        return str(_python(self))


@dataclass(frozen=True, slots=True)
class CidrValue:
    """A network: an address, which need not be its first, and the length of the prefix in bits."""

    cel_type: ClassVar[Type] = celtypes.CIDR
    address: IpValue
    length: int

    @property
    def cel_size(self) -> int:
        """What costs count as its size: bytes of the prefix."""
        return (self.length + 7) // 8

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    def network(self, address: IpValue) -> int:
        """The part of an address that the prefix covers."""
        return address.number >> (_BITS[self.address.family] - self.length)


def _python(value: IpValue) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if value.family == 4:
        return ipaddress.IPv4Address(value.number)
    return ipaddress.IPv6Address(value.number)


def parse_ip(text: str) -> IpValue:
    """Read an address. Errors: ``EvalError``."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise EvalError(f"IP Address {text!r} parse error during conversion from string") from error
    if "%" in text:
        raise EvalError(f"IP address {text!r} with zone value is not allowed")
    number = int(address)
    if address.version == 6 and number >> 32 == _MAPPED:
        raise EvalError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return IpValue(address.version, number)


def parse_cidr(text: str) -> CidrValue:
    """Read ``address/length``. Errors: ``EvalError``."""
    host, slash, length = text.rpartition("/")
    if not slash or _PREFIX_LENGTH.fullmatch(length) is None:
        raise EvalError(f"network address {text!r} parse error during conversion from string")
    address = parse_ip(host)
    if int(length) > _BITS[address.family]:
        raise EvalError(f"network address {text!r} parse error: prefix length out of range")
    return CidrValue(address, int(length))


def _reads(parse: Callable[[str], Value]) -> Callable[[str], bool]:
    def reads(text: str) -> bool:
        try:
            parse(text)
        except EvalError:
            return False
        return True

    return reads


def _is_canonical(text: str) -> bool:
    return str(parse_ip(text)) == text


# -- what an address is --


def _starts(address: IpValue, *prefixes: tuple[int, int, int]) -> bool:
    """Whether an address has one of the prefixes: family, length in bits, value."""
    return any(
        address.family == family and address.number >> (_BITS[family] - length) == value
        for family, length, value in prefixes
    )


def _is_unspecified(address: IpValue) -> bool:
    return address.number == 0


def _is_loopback(address: IpValue) -> bool:
    return _starts(address, (4, 8, 127), (6, 128, 1))


def _is_multicast(address: IpValue) -> bool:
    return _starts(address, (4, 4, 0xE), (6, 8, 0xFF))


def _is_link_local_multicast(address: IpValue) -> bool:
    """224.0.0.0/24, and of IPv6 the scope 2 whatever the flags are."""
    if address.family == 4:
        return _starts(address, (4, 24, 0xE00000))
    return _is_multicast(address) and address.number >> 112 & 0xF == 2


def _is_link_local_unicast(address: IpValue) -> bool:
    return _starts(address, (4, 16, 0xA9FE), (6, 10, 0x3FA))


def _is_global_unicast(address: IpValue) -> bool:
    """All that is none of the above nor 255.255.255.255; private addresses count as global."""
    if _is_unspecified(address) or address == _BROADCAST:
        return False
    return not (_is_loopback(address) or _is_multicast(address) or _is_link_local_unicast(address))


_BROADCAST: Final = IpValue(4, 0xFFFFFFFF)


# -- what a network holds --


def _contains_ip(network: CidrValue, address: IpValue) -> bool:
    if network.address.family != address.family:
        return False
    return network.network(network.address) == network.network(address)


def _contains_cidr(network: CidrValue, other: CidrValue) -> bool:
    return network.length <= other.length and _contains_ip(network, other.address)


def _masked(network: CidrValue) -> CidrValue:
    free = _BITS[network.address.family] - network.length
    number = network.address.number >> free << free
    return CidrValue(IpValue(network.address.family, number), network.length)


# -- equality --


def _equal_ips(left: IpValue, right: Value) -> bool:
    if type(right) is not IpValue:
        raise no_such_overload()
    return left == right


def _equal_cidrs(left: CidrValue, right: Value) -> bool:
    if type(right) is not CidrValue:
        raise no_such_overload()
    return left == right


register_equality(IpValue, _equal_ips)
register_equality(CidrValue, _equal_cidrs)


def _function(
    identifier: str, function: str, of: Type, result: Type, call: Callable[..., Value]
) -> Overload:
    return Overload(identifier, function, (of,), result, call)


IPS: Final[tuple[Overload, ...]] = (
    _function("string_to_ip", "ip", STRING, IP, parse_ip),
    member("ip_family", "family", (IP,), INT, lambda address: address.family),
    _function("ip_is_canonical", "ip.isCanonical", STRING, BOOL, _is_canonical),
    member("ip_is_unspecified", "isUnspecified", (IP,), BOOL, _is_unspecified),
    member("ip_is_loopback", "isLoopback", (IP,), BOOL, _is_loopback),
    member(
        "ip_is_link_local_multicast", "isLinkLocalMulticast", (IP,), BOOL, _is_link_local_multicast
    ),
    member("ip_is_link_local_unicast", "isLinkLocalUnicast", (IP,), BOOL, _is_link_local_unicast),
    member("ip_is_global_unicast", "isGlobalUnicast", (IP,), BOOL, _is_global_unicast),
    _function("is_ip", "isIP", STRING, BOOL, _reads(parse_ip)),
    _function("ip_to_string", "string", IP, STRING, str),
)

CIDRS: Final[tuple[Overload, ...]] = (
    _function("string_to_cidr", "cidr", STRING, CIDR, parse_cidr),
    member(
        "cidr_contains_ip_string",
        "containsIP",
        (CIDR, STRING),
        BOOL,
        lambda network, text: _contains_ip(network, parse_ip(text)),
    ),
    member("cidr_contains_ip_ip", "containsIP", (CIDR, IP), BOOL, _contains_ip),
    member(
        "cidr_contains_cidr_string",
        "containsCIDR",
        (CIDR, STRING),
        BOOL,
        lambda network, text: _contains_cidr(network, parse_cidr(text)),
    ),
    member("cidr_contains_cidr", "containsCIDR", (CIDR, CIDR), BOOL, _contains_cidr),
    member("cidr_ip", "ip", (CIDR,), IP, lambda network: network.address),
    member("cidr_prefix_length", "prefixLength", (CIDR,), INT, lambda network: network.length),
    member("cidr_masked", "masked", (CIDR,), CIDR, _masked),
    _function("is_cidr", "isCIDR", STRING, BOOL, _reads(parse_cidr)),
    _function("cidr_to_string", "string", CIDR, STRING, str),
)

OVERLOADS: Final[tuple[Overload, ...]] = (*IPS, *CIDRS)

"""Names inside resource.k8s.io objects: checks that give the server's problems.

Lengths are in bytes, as the server counts. Several broken rules of one kind at one path are one
problem here: the server repeats itself, the set of (field, reason) is the same.
"""

from __future__ import annotations

import re
from typing import Final

from dra_core.formats import (
    is_c_identifier,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
)
from dra_core.validation.problems import Path, Problem, invalid, required, too_long

DRIVER_MAX: Final = 63
ID_MAX: Final = 32
POOL_MAX: Final = 253
#: domain, '/' and identifier; longer keys are cut in the middle in field paths.
KEY_MAX: Final = DRIVER_MAX + 1 + ID_MAX

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LABEL_RULE: Final = "is no DNS label: use at most 63 of a-z, 0-9 and '-', e.g. 'gpu-0'"
_SUBDOMAIN_RULE: Final = "is no DNS subdomain: use labels joined by dots, e.g. 'node-1.example'"
_KEY_RULE: Final = "is no label key: use a name of at most 63, perhaps after 'domain/'"


def size(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text.encode(errors="surrogatepass"))


def dns_label(value: str, path: Path) -> list[Problem]:
    """Device and counter names."""
    return [] if is_dns_label(value) else [invalid(path, value, _LABEL_RULE)]


def dns_subdomain(value: str, path: Path) -> list[Problem]:
    """Names of nodes and of most objects."""
    return [] if is_dns_subdomain(value) else [invalid(path, value, _SUBDOMAIN_RULE)]


def class_name(value: str, path: Path) -> list[Problem]:
    """``deviceClassName``: the name of a DeviceClass."""
    return dns_subdomain(value, path) if value else [required(path, "must name a DeviceClass")]


def share_id(value: str, path: Path) -> list[Problem]:
    """``shareID``: a UUID in its normal form."""
    rule = "is not a UUID in lower case, 8-4-4-4-12 hexadecimal digits"
    return [] if _UUID.fullmatch(value) else [invalid(path, value, rule)]


def driver_name(value: str, path: Path) -> list[Problem]:
    """A DNS subdomain of at most 63 in either case (as CSI drivers are named)."""
    if not value:
        return [required(path, "must be set to the driver's name, e.g. 'gpu.example.com'")]
    found = [too_long(path, DRIVER_MAX)] if size(value) > DRIVER_MAX else []
    return [*found, *_caseless_subdomain(value, path)]


def _caseless_subdomain(value: str, path: Path) -> list[Problem]:
    return [] if is_dns_subdomain(value.lower()) else [invalid(path, value, _SUBDOMAIN_RULE)]


def pool_name(value: str, path: Path) -> list[Problem]:
    """DNS subdomains joined by '/', at most 253 bytes together."""
    if not value:
        return [required(path, "must be set to the name of the pool")]
    found = [too_long(path, POOL_MAX)] if size(value) > POOL_MAX else []
    if not all(is_dns_subdomain(part) for part in value.split("/")):
        found.append(invalid(path, value, "is no pool name: use DNS subdomains joined by '/'"))
    return found


def label_key(value: str, path: Path) -> list[Problem]:
    """Keys of labels, taints and conditions."""
    return [] if is_label_key(value) else [invalid(path, value, _KEY_RULE)]


def label_value(value: str, path: Path) -> list[Problem]:
    """Empty, or at most 63 of letters, digits, '-', '_' and '.'."""
    rule = "is no label value: use at most 63 of letters, digits, '-', '_' and '.', or nothing"
    return [] if is_label_value(value) else [invalid(path, value, rule)]


def c_identifier(value: str, path: Path) -> list[Problem]:
    """The part of an attribute or capacity name after the domain."""
    found = [too_long(path, ID_MAX)] if size(value) > ID_MAX else []
    if not is_c_identifier(value):
        rule = "is no C identifier: use letters, digits and '_', no digit first"
        found.append(invalid(path, value, rule))
    return found


def qualified_name(value: str, path: Path) -> list[Problem]:
    """``identifier`` or ``domain/identifier``.

    More than one '/' is not checked at all by the server (1.36 and 1.37).
    """
    parts = value.split("/")
    if len(parts) == 1:
        return c_identifier(value, path)
    if len(parts) > 2:
        return []
    domain, name = parts
    found = driver_name(domain, path) if domain else [invalid(path, value, "lacks the domain")]
    return [*found, *(c_identifier(name, path) if name else [invalid(path, value, "lacks a name")])]


def fully_qualified_name(value: str, path: Path) -> list[Problem]:
    """``domain/identifier``, the domain in either case."""
    found = qualified_name(value, path)
    if "/" not in value:
        found.append(invalid(path, value, "lacks a domain: write 'domain/name'"))
    return found


def lower_case_qualified_name(value: str, path: Path) -> list[Problem]:
    """The same with the domain in lower case, as the newer, declarative rules have it."""
    found = fully_qualified_name(value, path)
    domain, slash, _ = value.partition("/")
    if slash and value.count("/") == 1 and domain and domain != domain.lower():
        found.append(invalid(path, value, "needs its domain in lower case"))
    return found


def shown_key(key: str, limit: int) -> str:
    """A map key as it stands in a field path: more bytes than ``limit`` are cut in the middle."""
    raw = key.encode(errors="surrogatepass")
    if len(raw) <= limit:
        return key
    room = limit - 3
    cut = raw[: (room + 1) // 2] + b"..." + raw[len(raw) - room // 2 :]
    return cut.decode(errors="replace")

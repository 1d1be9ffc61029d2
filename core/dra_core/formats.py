"""Syntax of names and values as apimachinery checks it; each function says yes or no."""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_C_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_dns_label(value: str) -> bool:
    """RFC 1123 label: at most 63 of a-z, 0-9 and '-'."""
    return len(value) <= 63 and _LABEL.fullmatch(value) is not None


def is_dns_subdomain(value: str, limit: int = 253) -> bool:
    """RFC 1123 subdomain: labels (of any length) joined by dots."""
    return 0 < len(value) <= limit and all(_LABEL.fullmatch(p) for p in value.split("."))


def is_c_identifier(value: str) -> bool:
    """Letters, digits and '_', no digit first."""
    return _C_IDENTIFIER.fullmatch(value) is not None


def is_label_key(value: str) -> bool:
    """A qualified name: an optional DNS subdomain and '/', then a name of at most 63."""
    domain, slash, name = value.rpartition("/")
    if slash and ("/" in domain or not is_dns_subdomain(domain)):
        return False
    return 0 < len(name) <= 63 and _QUALIFIED.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    """Empty, or at most 63 characters as in the name of a label key."""
    return value == "" or (len(value) <= 63 and _QUALIFIED.fullmatch(value) is not None)

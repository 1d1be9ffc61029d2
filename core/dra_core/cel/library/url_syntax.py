"""The syntax of URLs in Go's ``net/url`` (Go 1.26), over strings with one character for each byte.

It is that of RFC 3986 with liberties of its own: hosts may hold ``<>"``, spaces and what not in a
path are escaped, a repeated ``:`` in the host is allowed except for http and https, a bad ``%`` in
the query is no error of the URL.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from dra_core.cel.library.quoting import quoted


class BadUrl(ValueError):
    """The text is no URL."""


_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
#: Characters that stand for themselves in a part of a URL; all others are escaped.
_PATH: Final = _UNRESERVED | set("$&+,/:;=@")
_HOST: Final = _UNRESERVED | set("!\"$&'()*+,:;<=>[]")
_USER: Final = _UNRESERVED | set("$&+,;=")
_FRAGMENT: Final = _UNRESERVED | set("!$&()*+,/:;=?@")
#: What a path or fragment may hold as it was written.
_WRITTEN: Final = set("!$&'()*+,;=:@[]%")

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)?:")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})?")
_PORT: Final = re.compile(r"(:[0-9]*)?")
_USERINFO: Final = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_MAX_PARAMETERS: Final = 10_000

#: Whether an escape, and the byte it stands for, may be in a part of the host.
_Allowed = Callable[[str, int], bool]


@dataclass(frozen=True)
class Url:
    """The parts of a URL; ``raw_`` parts are as they were written, the others unescaped."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    raw_query: str = ""
    fragment: str = ""
    raw_fragment: str = ""
    force_query: bool = False
    omit_host: bool = False

    @cached_property
    def host_and_port(self) -> tuple[str, str]:
        """The host without brackets, and the port; empty where there is none."""
        host, colon, port = self.host.rpartition(":")
        if not colon or _PORT.fullmatch(":" + port) is None:
            host, port = self.host, ""
        return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), port

    @cached_property
    def escaped_path(self) -> str:
        """The path as it was written where that is a valid way to write it, else escaped."""
        if self.path == "*" and not self.raw_path:
            return "*"
        return _escaped(self.path, self.raw_path, _PATH)

    def __str__(self) -> str:
        return f"{self._before_query()}{self._query()}{self._fragment()}"

    def _before_query(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            return text + self.opaque
        text += self._authority()
        path = self.escaped_path
        if path and path[0] != "/" and self.host:
            text += "/"
        if not text and ":" in path.partition("/")[0]:
            text = "./"
        return text + path

    def _authority(self) -> str:
        has_user = self.user is not None
        if not (self.scheme or self.host or has_user):
            return ""
        if self.omit_host and not self.host and not has_user:
            return ""
        text = "//" if self.host or self.path or has_user else ""
        if has_user:
            text += f"{self.user}@"
        return text + escape(self.host, _HOST)

    def _query(self) -> str:
        return f"?{self.raw_query}" if self.force_query or self.raw_query else ""

    def _fragment(self) -> str:
        if not self.fragment:
            return ""
        return "#" + _escaped(self.fragment, self.raw_fragment, _FRAGMENT)


def shown(text: str) -> str:
    """One character for each code point; U+FFFD for each byte that is none."""
    if text.isascii():
        return text
    decoded = text.encode("latin-1").decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", "\ufffd", decoded)


def parse_with_fragment(text: str) -> Url:
    """Read a URL with what comes after ``#``; a relative one will do. Raises ``BadUrl``."""
    before, _, fragment = text.partition("#")
    url = parse(before, absolute=False)
    if not fragment:
        return url
    unescaped = unescape(fragment)
    written = "" if escape(unescaped, _FRAGMENT) == fragment else fragment
    return replace(url, fragment=unescaped, raw_fragment=written)


def parse(text: str, *, absolute: bool) -> Url:
    """Read a URL without a fragment; ``absolute`` asks for a scheme or a leading ``/``.

    Raises ``BadUrl``.
    """
    if _CONTROL.search(text):
        raise BadUrl("net/url: invalid control character in URL")
    if not text and absolute:
        raise BadUrl("empty url")
    if text == "*":
        return Url(path="*")
    scheme, rest = _split_scheme(text)
    rest, query, force_query = _split_query(rest)
    url = Url(scheme=scheme, raw_query=query, force_query=force_query)
    if not rest.startswith("/"):
        if scheme:
            return replace(url, opaque=rest)
        if absolute:
            raise BadUrl("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise BadUrl("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or (not absolute and not rest.startswith("///"))):
        authority, slash, rest = rest[2:].partition("/")
        user, host = _authority(scheme, authority)
        url, rest = replace(url, user=user, host=host), slash + rest
    elif scheme and rest.startswith("/"):
        url = replace(url, omit_host=True)
    path = unescape(rest)
    return replace(url, path=path, raw_path="" if escape(path, _PATH) == rest else rest)


def _split_scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match is None:
        return "", text
    if not match[1]:
        raise BadUrl("missing protocol scheme")
    return match[1].lower(), text[match.end() :]


def _split_query(rest: str) -> tuple[str, str, bool]:
    if rest.endswith("?") and rest.count("?") == 1:
        return rest[:-1], "", True
    before, _, query = rest.partition("?")
    return before, query, False


# -- the part behind // --


def _authority(scheme: str, authority: str) -> tuple[str | None, str]:
    """The user in the form in which it is written, and the host."""
    userinfo, at, host = authority.rpartition("@")
    host = _host(scheme, host)
    if not at:
        return None, host
    if _USERINFO.fullmatch(userinfo) is None:
        raise BadUrl("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(":")
    written = escape(unescape(name), _USER)
    return (f"{written}:{escape(unescape(password), _USER)}" if colon else written), host


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise BadUrl("invalid IP-literal")
    if bracket == 0:
        return _ip_literal(host)
    first, last = host.find(":"), host.rfind(":")
    if first >= 0:
        _check_port(host[first if scheme in ("http", "https") else last :])
    return _unescape_host(host)


def _ip_literal(host: str) -> str:
    """``[address]``, ``[address%25zone]``, perhaps with a port."""
    inside, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise BadUrl("missing ']' in host")
    _check_port(port)
    address, zone_mark, zone = inside.partition("%25")
    address = _unescape_host(address)
    if zone_mark:
        address += _unescape_zone(zone_mark + zone)
    _check_ipv6(address)
    return f"[{address}]{port}"


def _check_ipv6(address: str) -> None:
    bare, percent, zone = address.partition("%")
    try:
        ipaddress.IPv6Address(bare)
    except ValueError as error:
        text = f"ParseAddr({quoted(shown(address))}): unable to parse IP"
        raise BadUrl(f"invalid host: {text}") from error
    if percent and not zone:
        raise BadUrl("invalid host: zone must be a non-empty string")


def _check_port(text: str) -> None:
    if _PORT.fullmatch(text) is None:
        raise BadUrl(f"invalid port {quoted(shown(text))} after host")


# -- escapes --


def unescape(text: str) -> str:
    """Replace ``%xx``. Raises ``BadUrl`` for ``%`` before anything else."""
    return _ESCAPE.sub(_byte, text) if "%" in text else text


def _byte(match: re.Match[str]) -> str:
    if match[1] is None:
        raise _bad_escape(match)
    return chr(int(match[1], 16))


def _bad_escape(match: re.Match[str]) -> BadUrl:
    start = match.start()
    return BadUrl(f"invalid URL escape {quoted(shown(match.string[start : start + 3]))}")


def _unescape_host(text: str) -> str:
    """In a host only bytes beyond ASCII may be escaped, and ``%``."""
    return _unescaped(text, lambda escaped, code: escaped == "%25" or code >= 0x80)


def _unescape_zone(text: str) -> str:
    """In a zone also what a host may hold, and a space."""
    return _unescaped(
        text,
        lambda escaped, code: escaped == "%25" or code == 0x20 or chr(code) in _HOST,
    )


def _unescaped(text: str, allowed: _Allowed) -> str:
    for match in _ESCAPE.finditer(text):
        if match[1] is None or not allowed(match[0], int(match[1], 16)):
            raise _bad_escape(match)
    for character in text:
        if character < "\x80" and character != "%" and character not in _HOST:
            raise BadUrl(f"invalid character {quoted(character)} in host name")
    return unescape(text)


def escape(text: str, plain: frozenset[str] | set[str]) -> str:
    """Write what is not plain as ``%XX``."""
    return "".join(c if c in plain else f"%{ord(c):02X}" for c in text)


def _escaped(text: str, written: str, plain: frozenset[str]) -> str:
    if written and all(c in plain or c in _WRITTEN for c in written) and unescape(written) == text:
        return written
    return escape(text, plain)


# -- the query --


def query(text: str) -> Iterator[tuple[str, str]]:
    """Keys and values in order; what cannot be read is left out."""
    parameters = text.split("&")
    if len(parameters) > _MAX_PARAMETERS:
        return
    for parameter in parameters:
        if not parameter or ";" in parameter:
            continue
        key, _, value = parameter.partition("=")
        try:
            yield unescape(key.replace("+", " ")), unescape(value.replace("+", " "))
        except BadUrl:
            continue

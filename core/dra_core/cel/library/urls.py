"""URLs, as Go's ``net/url`` reads them: absolute ones, or absolute paths.

A part of a URL that is no UTF-8 once it is unescaped (``%ff``) keeps its bytes in Go; here each
such byte becomes U+FFFD in the value that a function gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import BOOL, STRING, URL, Type, list_of, map_of
from dra_core.cel.faults import EvalError, no_such_overload
from dra_core.cel.library import url_syntax
from dra_core.cel.library.url_syntax import BadUrl, Url, shown
from dra_core.cel.signatures import Overload
from dra_core.cel.values import Map, Value, register_equality


@dataclass(frozen=True, eq=False)
class UrlValue:
    """A URL."""

    cel_type: ClassVar[Type] = celtypes.URL
    url: Url

    @cached_property
    def query(self) -> Map:
        """The parameters, made once: however often they are asked for, that costs a unit."""
        found: dict[str, list[str]] = {}
        for key, item in url_syntax.query(self.url.raw_query):
            found.setdefault(key, []).append(shown(item))
        return Map.of((shown(key), items) for key, items in found.items())


def parse_request(text: str) -> Url:
    """Read a URL as a request has it: no fragment, ``#`` is a character. Raises ``BadUrl``."""
    return url_syntax.parse(_bytes(text), absolute=True)


def _url(text: str) -> UrlValue:
    try:
        parse_request(text)
        return UrlValue(url_syntax.parse_with_fragment(_bytes(text)))
    except BadUrl as error:
        raise EvalError(f"URL parse error during conversion from string: {error}") from error


def _is_url(text: str) -> bool:
    try:
        parse_request(text)
    except BadUrl:
        return False
    return True


def _bytes(text: str) -> str:
    """A string with one character for each byte."""
    return text.encode().decode("latin-1")


def _query(value: UrlValue) -> Map:
    return value.query


def _equal_urls(left: UrlValue, right: Value) -> bool:
    if type(right) is not UrlValue:
        raise no_such_overload()
    return str(left.url) == str(right.url)


register_equality(UrlValue, _equal_urls)


def _part(identifier: str, function: str, part: Callable[[Url], str]) -> Overload:
    def of(value: UrlValue) -> str:
        return shown(part(value.url))

    return Overload(identifier, function, (URL,), STRING, of, member=True)


OVERLOADS: Final[tuple[Overload, ...]] = (
    Overload("string_to_url", "url", (STRING,), URL, _url),
    _part("url_get_scheme", "getScheme", lambda url: url.scheme),
    _part("url_get_host", "getHost", lambda url: url.host),
    _part("url_get_hostname", "getHostname", lambda url: url.host_and_port[0]),
    _part("url_get_port", "getPort", lambda url: url.host_and_port[1]),
    _part("url_get_escaped_path", "getEscapedPath", lambda url: url.escaped_path),
    Overload(
        "url_get_query", "getQuery", (URL,), map_of(STRING, list_of(STRING)), _query, member=True
    ),
    Overload("is_url_string", "isURL", (STRING,), BOOL, _is_url),
)

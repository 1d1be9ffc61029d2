"""Functions of texts, quantities and versions. Expected values are those of Kubernetes 1.37."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

from dra_core.cel import regexps
from dra_core.cel.faults import EvalError
from dra_core.cel.library.named_formats import FormatValue
from dra_core.cel.library.urls import UrlValue
from dra_core.cel.values import NONE, Map, Optional, QuantityValue, equal
from dra_core.quantity import Quantity
from dra_testing.cel_calls import call, quantity, semver


def url(text: str) -> UrlValue:
    value: UrlValue = call("string_to_url", text)
    return value


# -- regular expressions --


@pytest.mark.parametrize(
    ("text", "pattern", "first", "found"),
    [
        ("abc 123", "[0-9]*", "", ["", "", "", "", "123"]),
        ("123 abc 456", "[0-9]+", "123", ["123", "456"]),
        ("abc", "xyz", None, []),
        ("", "", "", [""]),
        ("aaa", "a*", "aaa", ["aaa"]),
        ("baaac", "a*", "", ["", "aaa", ""]),
        ("ab", "", "", ["", "", ""]),
        ("h\u00e9\U0001f600", ".", "h", ["h", "\u00e9", "\U0001f600"]),
        ("h\u00e9", "x*", "", ["", "", ""]),
        ("a\u00e9b", r"\B", None, []),
        ("a\u00e9\u00e9b", r"\B|b$", "", ["", "b"]),
        ("a.b", r"\Q.\E", ".", ["."]),
        ("foo bar", "^foo|bar", "foo", ["foo", "bar"]),
        ("foofoo", "^foo", "foo", ["foo"]),
        ("A1", "(?i)a(?P<n>[0-9])", "A1", ["A1"]),
        ("k", "(?i)\u212a", "k", ["k"]),
        ("a\nb", "a.b", None, []),
        ("a\nb", "(?s)a.b", "a\nb", ["a\nb"]),
        ("aXb", r"\p{lu}", "X", ["X"]),
        ("aXb", r"\p{Uppercase_Letter}", "X", ["X"]),
        ("aX1", r"[\p{LC}_]+", "aX", ["aX"]),
        ("aX1", r"\P{LC}", "1", ["1"]),
        ("\u0378", r"\pC", "\u0378", ["\u0378"]),
        ("\u0378a", r"\p{^Cn}", "a", ["a"]),
        ("\u00e9a", r"\p{ascii}", "a", ["a"]),
        ("\u00e9a", r"[^\P{ASCII}x]", "a", ["a"]),
    ],
)
def test_searches(text: str, pattern: str, first: str | None, found: list[str]) -> None:
    assert call("matches", text, pattern) is (first is not None)
    assert call("matches_string", text, pattern) is (first is not None)
    assert call("string_find_string", text, pattern) == (first or "")
    assert call("string_find_all_string", text, pattern) == found


@pytest.mark.parametrize(
    ("limit", "found"), [(-1, ["1", "2", "3"]), (0, []), (2, ["1", "2"]), (9, ["1", "2", "3"])]
)
def test_a_search_for_all_has_a_limit(limit: int, found: list[str]) -> None:
    assert call("string_find_all_string_int", "1a2b3", "[0-9]", limit) == found


@pytest.mark.parametrize(
    "pattern",
    [
        *["(", ")", "[", "a**", "*", "a{2}{3}", "a{1001}", "(a{100}){11}", "(?=a)", "(?P=n)", "\\"],
        *[r"\1", r"\8", r"\C", r"\Z", r"\q", r"\x{110000}", r"[a-\d]", "[z-a]", "[[:foo:]]"],
        *[r"\p{Old_Italic}", r"\p{Foo}", r"\p{", r"\p", "(?<\u00e9>a)"],
        "(" * 1000 + ")" * 1000,
    ],
)
def test_patterns_that_go_refuses(pattern: str) -> None:
    for overload in ("matches", "string_find_string", "string_find_all_string"):
        with pytest.raises(EvalError, match=r"regular expression .* is not valid"):
            call(overload, "a", pattern)


@pytest.mark.parametrize(
    "pattern", [r"[\p{L}]", "[]a]", "a{,2}", r"\Qp\C", "(?<n>a)(?P<n>b)", "(" * 999 + ")" * 999]
)
def test_patterns_that_go_takes(pattern: str) -> None:
    assert isinstance(call("matches", "a", pattern), bool)


def test_constant_patterns_are_checked_beforehand() -> None:
    search = regexps.precompiled("matches", "matches_string", [None, ("a+",)])
    assert search is not None
    assert search("baa", "a+") is True
    find_all = regexps.precompiled("findAll", "", [None, ("a",), None])
    assert find_all is not None
    assert find_all("aaa", "a", 2) == ["a", "a"]
    with pytest.raises(EvalError):
        regexps.precompiled("find", "string_find_string", [None, ("(",)])
    for wrong in ((1, "a"), ("aaa", "a", 2.0)):
        with pytest.raises(EvalError, match="no such overload"):
            find_all(*wrong)


def test_other_calls_are_not_searches() -> None:
    assert regexps.precompiled("matches", "matches_string", [("a",), None]) is None
    assert regexps.precompiled("matches", "", [None, (1,)]) is None
    assert regexps.precompiled("contains", "contains_string", [None, ("(",)]) is None


def test_a_long_search_takes_time_linear_to_the_text() -> None:
    assert len(call("string_find_all_string", "ab" * 100_000, "a")) == 100_000
    assert call("matches", "a" * 5_000 + "!", "^(a|a)*$") is False


def test_without_google_re2_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    regexps._re2.cache_clear()
    regexps.compiled.cache_clear()
    with pytest.raises(regexps.RegexpsMissing, match=r"dragoman\[cel\]"):
        call("matches", "a", "a")
    monkeypatch.undo()
    assert call("matches", "a", "a")


# -- URLs --


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("https://example.com:80/", ("https", "example.com:80", "example.com", "80", "/")),
        ("HTTP://[::1]:80/a b", ("http", "[::1]:80", "::1", "80", "/a%20b")),
        ("/path", ("", "", "", "", "/path")),
        ("https://u:p@h/%2f?x#y", ("https", "h", "h", "", "/%2f")),
        ("https://example.com", ("https", "example.com", "example.com", "", "")),
        ("mailto:a@b", ("mailto", "", "", "", "")),
        ("*", ("", "", "", "", "*")),
        ("ftp://a:b:1/", ("ftp", "a:b:1", "a:b", "1", "/")),
        ("x://[fe80::1%25eth0]/", ("x", "[fe80::1%eth0]", "fe80::1%eth0", "", "/")),
        ("//host/path", ("", "host", "host", "", "/path")),
        ("http://a:/", ("http", "a:", "a", "", "/")),
        ("http://%C3%A9/\u00e9", ("http", "\u00e9", "\u00e9", "", "/%C3%A9")),
    ],
)
def test_parts_of_urls(text: str, parts: tuple[str, ...]) -> None:
    names = ("scheme", "host", "hostname", "port", "escaped_path")
    assert tuple(call(f"url_get_{name}", url(text)) for name in names) == parts
    assert call("is_url_string", text)


@pytest.mark.parametrize(
    "text",
    [
        *["", "path", "../x", "https://a:b:c/", ":", "http://[::1", "http://[1.2.3.4]/", "1a:b"],
        *["http://a:8a/", "http://a b/", "/%zz", "/\x7f", "http://u r@h/", "http://%41/", "#"],
        *["http://a[::1]/", "ftp://a[::1]:80/", "http://[::1%25]/", "http://a:1:2/"],
    ],
)
def test_texts_that_are_no_urls(text: str) -> None:
    assert not call("is_url_string", text)
    with pytest.raises(EvalError, match="URL parse error"):
        url(text)


def test_a_fragment_is_read_by_url_alone() -> None:
    assert call("is_url_string", "/a?b#%zz")
    with pytest.raises(EvalError, match="invalid URL escape"):
        url("/a?b#%zz")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/?k1=a&k2=b&k2=c", {"k1": ["a"], "k2": ["b", "c"]}),
        ("/?a+b=c%20d&e", {"a b": ["c d"], "e": [""]}),
        ("/?a;b=1&c=%zz&&d=2", {"d": ["2"]}),
        ("/?", {}),
        ("/?=x", {"": ["x"]}),
        ("/?a=%ff", {"a": ["\ufffd"]}),
        ("/?" + "&".join("a" for _ in range(10_001)), {}),
    ],
)
def test_queries(text: str, expected: dict[str, list[str]]) -> None:
    found = call("url_get_query", url(text))
    assert isinstance(found, Map)
    assert dict(found.items()) == expected


def test_equality_of_urls() -> None:
    assert equal(url("HTTP://a/%41"), url("http://a/%41"))
    assert equal(url("/a?#f"), url("/a?#f"))
    assert not equal(url("/a?"), url("/a"))
    assert not equal(url("/%41"), url("/A"))
    assert not equal(url("/a"), None)
    assert not equal("/a", url("/a"))
    with pytest.raises(EvalError, match="no such overload"):
        equal(url("/a"), "/a")


# -- formats --


LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def complaints(name: str, text: str) -> list[str]:
    result: Optional = call("format-validate", call(f"format.{name}"), text)
    return result.value if result.has_value else []


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("dns1123Label", ["a", "0-a", "a" * 63], ["", "a.b", "A", "-a", "a" * 64, "a\n"]),
        ("dns1123Subdomain", ["a.b", "a" * 253], ["", "a..b", "a.", "a" * 254, "\u00e9"]),
        ("dns1035Label", ["a-1"], ["1a", "a-", "a.b", ""]),
        ("qualifiedName", ["a/B", "A_b.c"], ["", "/a", "a/", "a/b/c", "A/b", "a/" + "b" * 64]),
        ("dns1123LabelPrefix", ["ab-", "a", "a-", "--", "A-"], ["-", "a--b.", "a.-b-", "Ab-"]),
        ("dns1123SubdomainPrefix", ["a.b-", "a.b.-", "a" * 253 + "-"], ["a..-b", "a" * 254]),
        ("dns1035LabelPrefix", ["a1-", "1-"], ["1a-", "-"]),
        ("labelValue", ["", "a", "A_b.c", "a" * 63], ["-a", "a-", "a" * 64, "a/b"]),
        ("uri", ["http://a", "/a"], ["a", "http://a b/"]),
        (
            "uuid",
            ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
            ["", "123e4567-e89b-12d3-a456-42661417400", "g23e4567-e89b-12d3-a456-426614174000"],
        ),
        ("byte", ["aGVsbG8=", "AAAA", "AA=="], ["", "aGVsbG8", "====", "AA-_", "AAAA\n"]),
        (
            "date",
            ["2021-01-01", "2020-02-29", "0000-02-29"],
            ["2021-02-29", "2021-1-1", "21-01-01"],
        ),
        (
            "datetime",
            ["2021-01-01T00:00:00Z", "2021-01-01t23:59:59.1+99:99", "2021-01-01T00:00:00zTx"],
            ["2021-01-01", "2021-01-01T24:00:00Z", "2021-01-01T00:00:60Z", "2021-01-01T00:00:00"],
        ),
    ],
)
def test_formats(name: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if complaints(name, text)] == []
    assert [text for text in bad if not complaints(name, text)] == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("dns1123Label", "a.b", ["must not contain dots"]),
        ("dns1123Label", "a" * 64, ["must be no more than 63 characters"]),
        ("dns1123Label", "\u00e9" * 32, ["must be no more than 63 characters", LABEL]),
        ("labelValue", "a" * 64, ["must be no more than 63 bytes"]),
        (
            "qualifiedName",
            "/",
            ["prefix part must be non-empty", "name part must be non-empty", KEY],
        ),
        ("uri", 'a"\u00e9', ['parse "a\\"\u00e9": invalid URI for request']),
        ("uri", "http://a b/", ['parse "http://a b/": invalid character " " in host name']),
        ("uri", "/%z", ['parse "/%z": invalid URL escape "%z"']),
        ("uuid", "x", ["does not match the UUID format"]),
        ("byte", "x", ["invalid base64"]),
        ("date", "x", ["invalid date"]),
        ("datetime", "x", ["invalid datetime"]),
    ],
)
def test_complaints(name: str, text: str, expected: list[str]) -> None:
    assert complaints(name, text) == expected


def test_formats_by_name() -> None:
    found: Optional = call("format-named", "dns1123Label")
    assert isinstance(found.value, FormatValue)
    assert call("format-named", "DNS1123Label") == NONE
    assert equal(found.value, call("format.dns1123Label"))
    assert not equal(found.value, call("format.uri"))
    with pytest.raises(EvalError, match="no such overload"):
        equal(found.value, "DNS1123Label")


# -- quantities --


@pytest.mark.parametrize(
    ("text", "is_integer", "as_float"),
    [
        ("1Gi", True, 1073741824.0),
        ("1.5", False, 1.5),
        ("1500m", False, 1.5),
        ("1000m", False, 1.0),
        ("1.5Gi", False, 1610612736.0),
        ("100Ti", False, 109951162777600.0),
        ("50k", True, 50000.0),
        ("-3", True, -3.0),
        ("Gi", True, 0.0),
        (".", True, 0.0),
        ("9223372036854775807", False, 9223372036854775807.0),
        ("1e400", False, math.inf),
        ("-1e400", False, -math.inf),
        ("1n", False, 1e-09),
        ("3.3", False, 3.3000000000000003),
    ],
)
def test_numbers_of_quantities(text: str, is_integer: bool, as_float: float) -> None:
    value = quantity(text)
    assert call("quantity_is_integer", value) is is_integer
    assert call("quantity_get_float", value) == as_float
    if not is_integer:
        with pytest.raises(EvalError, match="cannot convert value to integer"):
            call("quantity_get_int", value)


def test_order_of_quantities() -> None:
    assert call("quantity_compare_to", quantity("200Mi"), quantity("0.1Gi")) == 1
    assert call("quantity_is_greater_than", quantity("50k"), quantity("49.9e3"))
    assert call("quantity_is_less_than", quantity("-1"), quantity("0"))
    assert not call("quantity_is_less_than", quantity("1"), quantity("1000m"))
    assert [call("quantity_sign", quantity(text)) for text in ("-3", "0", "1m")] == [-1, 0, 1]
    assert call("quantity_get_int", quantity("50k")) == 50_000


@pytest.mark.parametrize(
    ("overload", "left", "right", "expected"),
    [
        ("quantity_add", "1Gi", quantity("1Mi"), "1025Mi"),
        ("quantity_add_int", "50k", 20, "50020"),
        ("quantity_sub", "1", quantity("1m"), "999m"),
        ("quantity_sub_int", "50k", 50_000, "0"),
    ],
)
def test_arithmetic_of_quantities(overload: str, left: str, right: Any, expected: str) -> None:
    value = call(overload, quantity(left), right)
    assert str(value.quantity) == expected
    assert value.computed


def test_a_sum_is_not_the_right_side_of_an_equality() -> None:
    total = call("quantity_add_int", quantity("1"), 1)
    assert equal(total, quantity("2"))
    for left in (quantity("2"), total):
        with pytest.raises(EvalError, match="no such overload"):
            equal(left, total)
    with pytest.raises(EvalError, match="no such overload"):
        equal(quantity("1"), "1")
    assert not equal(quantity("1"), None)
    assert not equal("1", quantity("1"))


@pytest.mark.parametrize(
    ("text", "fits"), [("1", True), ("", False), ("1 Gi", False), ("Ei", False), ("+", True)]
)
def test_texts_of_quantities(text: str, fits: bool) -> None:
    assert call("is_quantity_string", text) is fits
    if not fits:
        with pytest.raises(EvalError):
            quantity(text)


def test_sums_with_too_many_digits_are_refused() -> None:
    huge = QuantityValue(Quantity.parse("1e5000"))
    with pytest.raises(EvalError):
        call("quantity_add", huge, quantity("1"))


# -- semantic versions --


@pytest.mark.parametrize(
    ("text", "plain", "normalized"),
    [
        ("1.2.3", True, True),
        ("1.2.3-rc.1+b", True, True),
        ("v1.2.3", False, True),
        ("1.2", False, True),
        ("v1", False, True),
        ("01.02.03", False, True),
        ("01.02.03-01", False, False),
        ("00.0.000", False, True),
        ("1.2-rc.1", False, False),
        ("1.2+b", False, False),
        ("1-rc", False, False),
        ("vv1.2.3", False, False),
        ("1.2.3.4", False, False),
        ("", False, False),
        ("v", False, False),
        ("1..2", False, False),
        ("1.0rc.2", False, False),
        ("18446744073709551615.0.0", True, True),
        ("18446744073709551616.0.0", False, False),
        ("00018446744073709551615", False, True),
        ("1.2.\u0663", False, False),
    ],
)
def test_texts_of_versions(text: str, plain: bool, normalized: bool) -> None:
    assert call("is_semver_string", text) is plain
    assert call("is_semver_string_bool", text, False) is plain
    assert call("is_semver_string_bool", text, True) is normalized
    if not normalized:
        with pytest.raises(EvalError):
            call("string_bool_to_semver", text, True)


def test_what_a_text_is_normalized_to() -> None:
    assert str(call("string_bool_to_semver", "v01.2", True).version) == "1.2.0"
    assert str(call("string_bool_to_semver", "v00001", True).version) == "1.0.0"
    assert str(call("string_bool_to_semver", "1.2.003-rc", True).version) == "1.2.3-rc"
    assert str(call("string_bool_to_semver", "1.2.0-rc", True).version) == "1.2.0-rc"


def test_order_and_parts_of_versions() -> None:
    assert call("semver_compare_to", semver("1.2.3"), semver("1.2.3-rc.1")) == 1
    assert call("semver_compare_to", semver("1.0.0+b1"), semver("1.0.0+b2")) == 0
    assert call("semver_is_less_than", semver("1.0.0-2"), semver("1.0.0-10"))
    assert call("semver_is_greater_than", semver("10.0.0"), semver("9.0.0"))
    parts = [call(f"semver_{part}", semver("1.2.3")) for part in ("major", "minor", "patch")]
    assert parts == [1, 2, 3]
    assert call("semver_major", semver(f"{2**63}.0.0")) == -(2**63)


def test_equality_of_versions() -> None:
    assert equal(semver("1.0.0+b1"), semver("1.0.0+b2"))
    assert not equal("1.0.0", semver("1.0.0"))
    with pytest.raises(EvalError, match="no such overload"):
        equal(semver("1.0.0"), "1.0.0")

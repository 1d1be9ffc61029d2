"""Formats with a name: ``format.dns1123Label().validate(text)`` and ``format.named(name)``.

``validate`` gives no value for a text that is fine, else the sentences with which Kubernetes
complains. What is read there byte by byte is a string with one character for each byte here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from dra_core.cel import celtypes
from dra_core.cel.celtypes import NAMED_FORMAT, STRING, Type, list_of, optional_of
from dra_core.cel.faults import no_such_overload
from dra_core.cel.library.quoting import quoted
from dra_core.cel.library.url_syntax import BadUrl
from dra_core.cel.library.urls import parse_request
from dra_core.cel.signatures import Overload
from dra_core.cel.values import NONE, Optional, Value, register_equality

#: What is wrong with a text; nothing if it is fine.
Validate = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True, eq=False)
class FormatValue:
    """A format. ``regex_size`` is the length of the pattern that costs assume."""

    cel_type: ClassVar[Type] = celtypes.NAMED_FORMAT
    name: str
    validate: Validate
    regex_size: int


def _equal_formats(left: FormatValue, right: Value) -> bool:
    if type(right) is not FormatValue:
        raise no_such_overload()
    return left.name == right.name


register_equality(FormatValue, _equal_formats, is_key=False)


@dataclass(frozen=True, slots=True)
class _Syntax:
    """A pattern with the sentence about it."""

    pattern: str
    sentence: str
    examples: tuple[str, ...]

    def fits(self, text: str) -> bool:
        return re.fullmatch(self.pattern, text) is not None

    def complaint(self) -> str:
        examples = " or ".join(f"'{example}', " for example in self.examples)
        return f"{self.sentence} (e.g. {examples}regex used for validation is '{self.pattern}')"


_ENDS: Final = "must start and end with an alphanumeric character"
_LOWER: Final = "must consist of lower case alphanumeric characters"
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL: Final = _Syntax(
    _DNS_LABEL,
    f"a lowercase RFC 1123 label {_LOWER} or '-', and {_ENDS}",
    ("my-name", "123-abc"),
)
_SUBDOMAIN: Final = _Syntax(
    rf"{_DNS_LABEL}(\.{_DNS_LABEL})*",
    f"a lowercase RFC 1123 subdomain {_LOWER}, '-' or '.', and {_ENDS}",
    ("example.com",),
)
_OLD_LABEL: Final = _Syntax(
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    f"a DNS-1035 label {_LOWER} or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    ("my-name", "abc-123"),
)
_KEY: Final = _Syntax(
    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    ("MyName", "my.name", "123-abc"),
)
_LABEL_VALUE: Final = _Syntax(
    f"({_KEY.pattern})?",
    "a valid label must be an empty string or consist of alphanumeric characters, "
    f"'-', '_' or '.', and {_ENDS}",
    ("MyValue", "my_value", "12345"),
)


def _too_long(text: str, limit: int, unit: str = "characters") -> list[str]:
    return [f"must be no more than {limit} {unit}"] if len(text) > limit else []


def _dns_label(text: str) -> list[str]:
    found = _too_long(text, 63)
    if _LABEL.fits(text):
        return found
    dots = "must not contain dots"
    return [*found, dots if _SUBDOMAIN.fits(text) else _LABEL.complaint()]


def _dns_subdomain(text: str, unit: str = "characters") -> list[str]:
    found = _too_long(text, 253, unit)
    return found if _SUBDOMAIN.fits(text) else [*found, _SUBDOMAIN.complaint()]


def _old_dns_label(text: str) -> list[str]:
    found = _too_long(text, 63)
    return found if _OLD_LABEL.fits(text) else [*found, _OLD_LABEL.complaint()]


def _label_value(text: str) -> list[str]:
    found = _too_long(text, 63, "bytes")
    return found if _LABEL_VALUE.fits(text) else [*found, _LABEL_VALUE.complaint()]


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        with_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_KEY.complaint()} {with_prefix}"]
    found: list[str] = []
    if len(parts) == 2:
        complaints = _dns_subdomain(parts[0], "bytes") if parts[0] else ["must be non-empty"]
        found = [f"prefix part {complaint}" for complaint in complaints]
    name = parts[-1]
    about = _too_long(name, 63, "bytes") if name else ["must be non-empty"]
    if not _KEY.fits(name):
        about.append(_KEY.complaint())
    return found + [f"name part {complaint}" for complaint in about]


def _prefix(validate: Validate) -> Validate:
    """A name to which something will be added may end in ``-``, as if it were shorter."""

    def validated(text: str) -> list[str]:
        return validate(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)

    return validated


def _bytes(validate: Validate) -> Validate:
    def validated(text: str) -> list[str]:
        return validate(text.encode().decode("latin-1"))

    return validated


def _uri(text: str) -> list[str]:
    try:
        parse_request(text)
    except BadUrl as error:
        return [f"parse {quoted(text)}: {error}"]
    return []


def _either(fits: Callable[[str], bool], sentence: str) -> Validate:
    def validated(text: str) -> list[str]:
        return [] if fits(text) else [sentence]

    return validated


def _matching(pattern: str, sentence: str) -> Validate:
    expression = re.compile(pattern)
    return _either(lambda text: expression.fullmatch(text) is not None, sentence)


_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})"
)
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    if not 1 <= month <= 12:
        return False
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _MONTH_DAYS[month - 1] + leap


def _is_datetime(text: str) -> bool:
    """A date, ``T`` and a time; a second ``T`` ends it, and what follows does not matter."""
    date, *rest = text.lower().split("t")
    if not rest or not _is_date(date):
        return False
    match = _TIME.fullmatch(rest[0])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


#: Names, names in the values, checks, and lengths of patterns for the cost.
_FORMATS: Final = {
    name: FormatValue(shown, validate, regex_size)
    for name, shown, validate, regex_size in (
        ("dns1123Label", "DNS1123Label", _bytes(_dns_label), 30),
        ("dns1123Subdomain", "DNS1123Subdomain", _bytes(_dns_subdomain), 60),
        ("dns1035Label", "DNS1035Label", _bytes(_old_dns_label), 30),
        ("qualifiedName", "QualifiedName", _bytes(_qualified_name), 60),
        ("dns1123LabelPrefix", "DNS1123LabelPrefix", _bytes(_prefix(_dns_label)), 30),
        ("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", _bytes(_prefix(_dns_subdomain)), 60),
        ("dns1035LabelPrefix", "DNS1035LabelPrefix", _bytes(_prefix(_old_dns_label)), 30),
        ("labelValue", "LabelValue", _bytes(_label_value), 40),
        ("uri", "URI", _uri, 1103),
        (
            "uuid",
            "uuid",
            _matching(
                r"[0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}",
                "does not match the UUID format",
            ),
            70,
        ),
        (
            "byte",
            "byte",
            _matching(
                r"(?:[A-Za-z0-9+/]{4})*"
                r"(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
                "invalid base64",
            ),
            84,
        ),
        ("date", "date", _either(_is_date, "invalid date"), 71),
        ("datetime", "datetime", _either(_is_datetime, "invalid datetime"), 71),
    )
}


def _named(name: str) -> Optional:
    found = _FORMATS.get(name)
    return NONE if found is None else Optional(True, found)


def _validated(of: FormatValue, text: str) -> Optional:
    complaints = of.validate(text)
    return Optional(True, complaints) if complaints else NONE


def _constant(of: FormatValue) -> FormatValue:
    return of


def _declared() -> Iterator[Overload]:
    result = optional_of(list_of(STRING))
    params = (NAMED_FORMAT, STRING)
    yield Overload("format-validate", "validate", params, result, _validated, member=True)
    yield Overload("format-named", "format.named", (STRING,), optional_of(NAMED_FORMAT), _named)
    for name, of in _FORMATS.items():
        call = functools.partial(_constant, of)
        yield Overload(f"format.{name}", f"format.{name}", (), NAMED_FORMAT, call)


OVERLOADS: Final[tuple[Overload, ...]] = tuple(_declared())

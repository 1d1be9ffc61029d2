"""Semantic versions. The comparison with Go is in contract/test_values.py."""

from __future__ import annotations

import itertools
import time

import pytest

from dra_core.errors import InvalidValue, InvalidVersion
from dra_core.semver import SemVer, has_syntax


@pytest.mark.parametrize(
    "text",
    ["0.0.0", "1.2.3", "1.2.3-rc.1+build.005", "1.2.3--", "1.2.3-0a.00b", f"{2**64 - 1}.0.0"],
)
def test_a_version_is_written_as_it_was_read(text: str) -> None:
    assert str(SemVer.parse(text)) == text
    assert has_syntax(text)


def test_the_parts() -> None:
    version = SemVer.parse("1.2.3-rc.10+b.01")
    assert version.pre == ("rc", 10)
    assert version.build == ("b", "01")
    assert (version.major, version.minor, version.patch) == (1, 2, 3)


@pytest.mark.parametrize(
    "text",
    [
        *["", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.03", "1.2.3-", "1.2.3+", "1.2.3-01"],
        *["1.2.3-a..b", "1.2.3+a+b", " 1.2.3", "1.2.3\n", "1.\u0663.3", "1.2.3-\u00e9", "-1.0.0"],
    ],
)
def test_anything_looser_is_refused_with_the_form_to_write(text: str) -> None:
    assert not has_syntax(text)
    with pytest.raises(InvalidVersion, match=r"write MAJOR\.MINOR\.PATCH"):
        SemVer.parse(text)


@pytest.mark.parametrize(
    "text",
    [f"{2**64}.0.0", "0.0." + "9" * 5000, f"1.0.0-{2**64}"],
    ids=["major", "patch of 5000 digits", "pre"],
)
def test_a_number_beyond_64_bits_has_the_syntax_but_cannot_be_used(text: str) -> None:
    assert has_syntax(text)
    with pytest.raises(InvalidVersion, match="larger than 18446744073709551615") as caught:
        SemVer.parse(text)
    assert isinstance(caught.value, InvalidValue)
    assert len(str(caught.value)) < 200


def test_precedence_is_that_of_the_standard() -> None:
    texts = """0.9.9 1.0.0-0 1.0.0-2 1.0.0-11 1.0.0-A 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta
               1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1-a 1.0.1 1.1.0 2.0.0"""
    versions = [SemVer.parse(text) for text in texts.split()]
    for left, right in itertools.pairwise(versions):
        assert left < right
        assert (left.compare(right), right.compare(left)) == (-1, 1)
    versions.reverse()
    assert list(map(str, sorted(versions))) == texts.split()


def test_build_metadata_does_not_count() -> None:
    one, other = SemVer.parse("1.0.0+a"), SemVer.parse("1.0.0+b")
    assert one == other
    assert one.compare(other) == 0
    assert len({one, other}) == 1
    assert one != "1.0.0+a"


@pytest.mark.parametrize(
    "text", ["1.0.0-" + "1" * 10**5 + "!", "1.0.0-" + "a." * 10**5], ids=["digits", "parts"]
)
def test_long_garbage_is_refused_in_no_time(text: str) -> None:
    started = time.process_time()
    with pytest.raises(InvalidVersion):
        SemVer.parse(text)
    assert time.process_time() - started < 0.5

"""Quantities: exact, canonical."""

from __future__ import annotations

import pytest

from dra_core.errors import InvalidQuantity
from dra_core.quantity import Quantity


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("1024Mi", "1Gi"),
        ("1000Ki", "1000Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("512", "512"),
        ("1Ki", "1Ki"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("100m", "100m"),
        (".5", "500m"),
        ("5.", "5"),
        ("+5", "5"),
        ("-5", "-5"),
        ("1000", "1k"),
        ("1000000", "1M"),
        ("12e6", "12e6"),
        ("1E3", "1e3"),
        ("1E", "1E"),
        ("9e30", "9223372036854775807"),
        ("0.0000000001", "1n"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical
    assert Quantity.parse(canonical) == Quantity.parse(text)


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1 ", "Gi", ".", "1.2.3", "1gi", "1KI", "0x10", "1e", "--1", "1_0", "٣", "9" * 300],
)
def test_what_is_no_quantity_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidQuantity, match="write a number with an optional suffix"):
        Quantity.parse(text)


def test_values_compare_whatever_they_are_written_in() -> None:
    assert Quantity.parse("1Ki") == Quantity.parse("1024")
    assert Quantity.parse("1k") < Quantity.parse("1Ki")
    assert len({Quantity.parse("1"), Quantity.parse("1000m")}) == 1

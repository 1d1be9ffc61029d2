"""``@case("REG-01")``: this test shows part of a rule in tests/data/failure-cases.txt."""

from __future__ import annotations

import pytest


def case(identifier: str) -> pytest.MarkDecorator:
    """Mark a test with the id of a failure case."""
    return pytest.mark.case(identifier)

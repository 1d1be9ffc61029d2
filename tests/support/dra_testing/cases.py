"""``@case("REG-01")``: this test shows a rule of docs/failure-cases.md through a real edge."""

from __future__ import annotations

import pytest


def case(identifier: str) -> pytest.MarkDecorator:
    """Mark a test with the id of a failure case."""
    return pytest.mark.case(identifier)

"""Fixtures for tests of expressions."""

from __future__ import annotations

import pytest

from dra_testing.cel_oracle import Oracle
from testcluster.errors import Unavailable


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """The reference for CEL; a test that asks for it is skipped where there is no Go."""
    try:
        return Oracle.build()
    except Unavailable as reason:
        pytest.skip(str(reason))

"""Fixtures and rules for all tests."""

from __future__ import annotations

pytest_plugins = [
    "testcluster.fixtures",
    "dra_testing.rules",
    "dra_testing.fixtures",
    "dra_testing.cel_fixtures",
]

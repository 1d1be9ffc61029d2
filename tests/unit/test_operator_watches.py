"""When watches are begun anew; kopf itself is in tests/contract."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from dra_operator.adapters.watches import LIMIT, Watches


@pytest.fixture
def watches() -> Watches:
    nothing = cast("Any", None)
    return Watches(nothing, nothing, nothing, nothing, ())


def test_watches_that_are_still_being_started_are_waited_for(watches: Watches) -> None:
    began = time.monotonic()
    assert not watches.lost(["pods"], began)
    assert not watches.lost([], began - LIMIT)


def test_a_watch_that_was_there_is_not_waited_for(watches: Watches) -> None:
    began = time.monotonic() - 2.0
    watches.status.up = {"pods": began + 1.0, "resourceclaims": began - 1.0}
    assert watches.lost(["pods"], began)
    assert not watches.lost(["resourceclaims"], began), "that was before they were begun anew"


def test_a_watch_that_never_comes_is_given_half_a_minute(watches: Watches) -> None:
    assert watches.lost(["pods"], time.monotonic() - LIMIT / 2 - 1.0)

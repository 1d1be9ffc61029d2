"""confirmation: conditions that the node's side sets, on condition of what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dra_core.errors import ApiConflict, ApiNotFound, ClaimGone, InvalidValue
from dra_core.model.claims import (
    Allocation,
    AllocationResult,
    Claim,
    ClaimReference,
    ClaimStatus,
    DeviceAllocation,
    DeviceStatus,
)
from dra_core.model.objects import Metadata
from dra_core.model.requests import ClaimSpec
from dra_core.names import ClaimUID, DeviceName, DriverName, PoolName
from dra_driver.api import Confirmation
from dra_driver.confirmation import Confirmations
from dra_testing.cases import case

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DRIVER, POOL = DriverName("d.example.com"), PoolName("p")
RESULT = AllocationResult("r", DRIVER, POOL, DeviceName("x"), binding_conditions=("Seen",))
CLAIM = ClaimReference("ns", "c", ClaimUID("u"))
SEEN = Confirmation(CLAIM, POOL, DeviceName("x"), "Seen", True, "Found", "on the bus")


class Claims:
    """One claim, and conflicts to come."""

    def __init__(self) -> None:
        allocation = Allocation(DeviceAllocation((RESULT,)))
        metadata = Metadata(name="c", namespace="ns", uid="u", resource_version="1")
        self.claim: Claim | None = Claim(metadata, ClaimSpec(), ClaimStatus(allocation))
        self.conflicts = 0
        self.written: list[tuple[tuple[str, ...], Sequence[DeviceStatus]]] = []

    def read(self, reference: ClaimReference) -> Claim:
        if self.claim is None:
            raise ApiNotFound(str(reference))
        return self.claim

    def apply(self, claim: Claim, of: Sequence[str], entries: Sequence[DeviceStatus]) -> None:
        if self.conflicts:
            self.conflicts -= 1
            raise ApiConflict("changed")
        assert self.claim == claim
        assert self.claim is not None
        assert self.claim.status is not None
        status = replace(self.claim.status, devices=tuple(entries))
        self.claim = replace(self.claim, status=status)
        self.written.append((tuple(of), entries))


@pytest.fixture
def claims() -> Claims:
    return Claims()


@pytest.fixture
def confirmations(claims: Claims) -> Confirmations:
    return Confirmations(DRIVER, claims, lambda: NOW)


@case("BIND-01")
def test_a_condition_is_applied_for_itself_and_once(
    claims: Claims, confirmations: Confirmations
) -> None:
    assert confirmations.set(SEEN)
    ((of, (entry,)),) = claims.written
    assert of == (DRIVER, "p", "x", "Seen")
    (condition,) = entry.conditions
    assert (condition.type, condition.status, condition.reason) == ("Seen", "True", "Found")
    assert not confirmations.set(SEEN)
    assert confirmations.set(replace(SEEN, met=False, reason="Lost"))
    assert len(claims.written) == 2


def test_a_conflict_leads_to_another_look(claims: Claims, confirmations: Confirmations) -> None:
    claims.conflicts = 4
    assert confirmations.set(SEEN)
    claims.conflicts = 5
    with pytest.raises(ApiConflict):
        confirmations.set(replace(SEEN, met=False))


def test_a_claim_that_is_gone_or_another_one_is_not_written(
    claims: Claims, confirmations: Confirmations
) -> None:
    other = replace(CLAIM, uid=ClaimUID("v"))
    with pytest.raises(ClaimGone, match="another one has its name"):
        confirmations.set(replace(SEEN, claim=other))
    claims.claim = None
    with pytest.raises(ClaimGone, match="does not exist"):
        confirmations.set(SEEN)
    assert claims.written == []


def test_what_the_claim_does_not_wait_for_is_refused(
    claims: Claims, confirmations: Confirmations
) -> None:
    with pytest.raises(InvalidValue, match="does not wait for condition 'Odd'"):
        confirmations.set(replace(SEEN, condition="Odd"))
    assert claims.written == []

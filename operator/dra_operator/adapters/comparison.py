"""Compares what is in memory with the API server.

A watch that had to list again never says what was deleted in between, and one that says nothing at
all may have been forgotten by the other end.
"""

from __future__ import annotations

import time
from typing import Protocol

import structlog

from dra_core.errors import ApiError
from dra_operator.adapters.inventory import Inventory
from dra_operator.adapters.watches import Status
from dra_operator.ports import Measures

_log = structlog.get_logger(__name__)


class View(Protocol):
    """The part of :class:`dra_operator.evictions.Evictions` that is needed here."""

    def known(self, kind: str) -> frozenset[str]:
        """The UIDs of all objects of a kind."""

    def forget(self, kind: str, uids: frozenset[str]) -> None:
        """Objects that are gone."""


class Comparison:
    """See the module."""

    def __init__(
        self, inventory: Inventory, view: View, status: Status, measures: Measures
    ) -> None:
        self._inventory = inventory
        self._view = view
        self._status = status
        self._measures = measures

    def run(self) -> bool:
        """Forget what is not there any more; whether all could be compared."""
        survey = self._status.survey
        if survey is None:
            return False
        good = True
        for plural, resource in survey.readable.items():
            # What comes in while the list is being read is in neither set.
            known = self._view.known(plural)
            try:
                there, newest = self._inventory.there(resource)
            except ApiError as error:
                _log.info("a comparison was not possible", resource=plural, error=str(error))
                good = False
                continue
            # The newest object of a while ago may be gone since, unseen.
            before, seen = self._status.behind.get(plural, (newest, time.monotonic()))
            self._status.behind[plural] = min(before, newest), seen
            strays = known - there
            self._measures.set("objects", float(len(known)), resource=plural)
            if strays:
                _log.info("forgetting what is gone", resource=plural, count=len(strays))
                self._measures.add("strays_total", float(len(strays)), resource=plural)
                self._view.forget(plural, frozenset(strays))
        self._measures.add("compared_total", result="complete" if good else "incomplete")
        return good

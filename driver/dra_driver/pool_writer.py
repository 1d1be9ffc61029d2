"""Brings one pool after the other to what is wanted: plans, dry runs, writes and their answers.

Between a pool of the driver and its plan stand, in this order: node-allocatable resources get the
shape of the server's version; features that the server does not have are taken out
(:mod:`dra_driver.capabilities`); devices that it refused are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import structlog

from dra_core import publishing, taint_times
from dra_core.errors import ApiError, ApiForbidden, ApiInvalid, ApiUnavailable
from dra_core.model.slices import Pool, PublishedSlice
from dra_core.names import PoolName
from dra_driver.capabilities import Capabilities
from dra_driver.news import News
from dra_driver.offer import Offer
from dra_driver.pacing import Pace, Patience
from dra_driver.ports import Measures
from dra_driver.slice_store import SliceStore
from dra_driver.slice_writer import SliceWriter

_log = structlog.get_logger(__name__)

#: Plans for a pool in one go, and one more for each device: a feature that is found missing leads
#: to another one, and so does a slice with devices that the server refuses.
_PLANS: Final = 10


class PoolWriter:
    """Used by the publishing thread."""

    def __init__(
        self,
        store: SliceStore,
        writer: SliceWriter,
        offer: Offer,
        capabilities: Capabilities,
        *,
        pace: Pace,
        patience: Patience,
        measures: Measures,
        news: News,
        strict: bool,
    ) -> None:
        self._store = store
        self._writer = writer
        self._offer = offer
        self._capabilities = capabilities
        self._pace = pace
        self._patience = patience
        self._measures = measures
        self._news = news
        self._strict = strict
        self._generations: dict[PoolName, int] = {}
        self._times: dict[PoolName, taint_times.Times] = {}

    def published(self) -> list[PublishedSlice]:
        """What is in the cluster."""
        return [self._writer.read(item) for item in self._store.items()]

    def publish(self, pool: Pool) -> None:
        """Until the plan is empty of surprises: what is found missing changes the plan."""
        for _ in range(_PLANS + len(pool.devices)):
            adapted = self._offer.adapted(pool, self._capabilities.missing)
            if adapted is None:
                self.remove(pool.name)
                self._measures.set("pool_devices", 0, pool=pool.name)
            if adapted is None or self._carry_out(adapted):
                self._offer.done(pool.name)
                return
        raise ApiInvalid(f"pool {pool.name!r}: each answer of the API server leads to another plan")

    def remove(self, pool: PoolName) -> None:
        """Delete its slices."""
        self._delete(lambda name: name == pool)

    def remove_others(self, wanted: Collection[PoolName] = ()) -> None:
        """Delete the slices of all pools but these."""
        self._delete(lambda name: name not in wanted)

    def _delete(self, unwanted: Callable[[PoolName], bool]) -> None:
        """Slices of pools; one that the server does not delete holds up no other."""
        failed: ApiError | None = None
        for item in self._store.items():
            pool = PoolName(item["spec"]["pool"]["name"])
            if not unwanted(pool):
                continue
            self._times.pop(pool, None)
            try:
                self._writer.delete(item["metadata"]["name"])
            except ApiUnavailable:
                raise
            except ApiError as error:
                failed = failed or error
        if failed:
            raise failed

    def _carry_out(self, pool: Pool) -> bool:
        """Make the writes of a plan; False if another plan is needed."""
        known = [self._writer.as_sent(item) for item in self._store.items()]
        found = publishing.plan(
            pool,
            known,
            lambda index: self._writer.name(pool.name, index),
            last_generation=self._generations.get(pool.name, 0),
            strict=self._strict,
            taint_memory=self._times.get(pool.name),
        )
        writes = (*found.writes, *self._ownerless(pool, known, found))
        self._pace.begin(pool.name, len(writes))
        for write in writes:
            if not isinstance(write, publishing.Delete) and self._surprising(write.slice):
                return False
        for write in writes:
            if not self._write(write):
                return False
        self._generations[pool.name] = found.generation
        mine = (s for s in self.published() if s.pool == pool.name)
        self._times[pool.name] = taint_times.times(d for s in mine for d in s.devices)
        self._measures.set("pool_devices", len(pool.devices), pool=pool.name)
        self._measures.set("pool_generation", found.generation, pool=pool.name)
        if writes:
            self._patience.written()
            self._pace.end(pool.name)
            _log.info(
                "pool published",
                pool=pool.name,
                devices=len(pool.devices),
                generation=found.generation,
                writes=len(writes),
            )
        return True

    def _ownerless(
        self, pool: Pool, known: Collection[PublishedSlice], found: publishing.Plan
    ) -> list[publishing.Update]:
        """Slices of the pool that are right, but would not go with their Node."""
        touched = {
            w.name if isinstance(w, publishing.Delete) else w.slice.name for w in found.writes
        }
        return [
            publishing.Update(published)
            for published in known
            if published.pool == pool.name
            and published.name not in touched
            and not self._writer.owned(published.name)
        ]

    def _surprising(self, wanted: PublishedSlice) -> bool:
        """Whether a dry run says that the server will not take it as it is."""
        if self._offer.refusals.doubtful(wanted):
            try:
                self._writer.try_out(wanted)
            except (ApiInvalid, ApiForbidden) as error:
                causes = error.causes if isinstance(error, ApiInvalid) else ()
                if not self._offer.refusals.add(wanted, causes):
                    self._offer.refusals.put_off(wanted)
                return True
            self._offer.taken(wanted)
        return self._capabilities.explore(wanted, self._writer.try_out)

    def _write(self, write: publishing.Write) -> bool:
        """Make one write; False if its answer makes for another plan."""
        if isinstance(write, publishing.Delete):
            self._writer.delete(write.name)
            return True
        try:
            stored = self._writer.store(write)
        except ApiInvalid as error:
            if not self._offer.refusals.add(write.slice, error.causes):
                raise
            return False
        if self._capabilities.learn(write.slice, stored):
            return False
        unknown = self._writer.dropped(stored.name, write.slice)
        if unknown:  # no feature explains it: fields that the server does not know
            fields = ", ".join(unknown)
            _log.warning("the API server dropped fields", fields=unknown)
            self._news.tell("FieldsDropped", fields, f"the API server dropped {fields}")
        return True

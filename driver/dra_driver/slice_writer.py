"""Makes writes of slices, and remembers what came back.

The answer to a write may lack what the server does not keep. What was sent and what came back are
remembered together, so that the difference is not taken for someone else's change and written for
ever. What came back as it was sent is not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from dra_core import names, publishing, taint_times, wire
from dra_core.errors import (
    ApiBusy,
    ApiConflict,
    ApiError,
    ApiNotFound,
    ApiUnavailable,
    InvalidObject,
)
from dra_core.model.slices import PublishedSlice
from dra_core.names import DriverName, NodeName, PoolName
from dra_core.wire.dropped import dropped_fields
from dra_driver.pacing import NotOurTurn, WriteLimit
from dra_driver.ports import Measures, Scope, SliceApi
from dra_driver.slice_store import SliceStore, owners

_log = structlog.get_logger(__name__)

#: What others keep in the metadata of a slice, and an update would take away.
_OF_OTHERS: Final = ("labels", "annotations", "finalizers")


@dataclass(frozen=True, slots=True)
class _Echo:
    """What was sent in the last write of a slice, and another spec that came back."""

    sent: PublishedSlice
    returned: Mapping[str, Any]


class SliceWriter:
    """Reads and writes the slices of ``store``. Used by the publishing thread."""

    def __init__(
        self,
        driver: DriverName,
        node: NodeName | None,
        api: SliceApi,
        store: SliceStore,
        *,
        scopes: Collection[Scope],
        turn: Callable[[], bool],
        limit: WriteLimit,
        measures: Measures,
        unreadable: Callable[[str, str, str], None],
    ) -> None:
        self._driver = driver
        self._node = node
        self._api = api
        self._store = store
        self._scopes = scopes
        self._turn = turn
        self._limit = limit
        self._measures = measures
        self._unreadable = unreadable
        self._echoes: dict[str, _Echo] = {}
        self._known: dict[str, tuple[object, PublishedSlice]] = {}  # a spec, and what it says
        self._taken: dict[tuple[PoolName, int], int] = {}
        self._owner: Mapping[str, Any] | None = None
        self._owner_known = False
        self._dropped: set[str] = set()
        self._without_owner: set[str] = set()  # slices whose last write came back so
        self._unsure = False  # whether a write may have been made without our knowing
        #: Writes that were made.
        self.made = 0

    def forget_owner(self) -> None:
        """The Node may be another one under the same name."""
        self._owner_known = False

    def owner(self) -> Mapping[str, Any] | None:
        """The Node; None where there is none."""
        if not self._owner_known:
            self._owner = self._api.owner()
            self._owner_known = True
        return self._owner

    def _may_write(self) -> None:
        """Wait until another write may be made; raises NotOurTurn."""
        self._limit.wait()
        if not self._turn():
            raise NotOurTurn

    def make_sure(self) -> None:
        """Read what is there, if a write had no answer: it may have been made all the same.

        The watch may be as broken. A plan that does not know may find nothing to do where a change
        was taken back, or use the generation of a slice for something else.
        """
        if self._unsure:
            self._relist()
            self._unsure = False

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
            self.made += 1
        except ApiError as error:
            no_answer = isinstance(error, ApiUnavailable) and not isinstance(error, ApiBusy)
            self._unsure = self._unsure or no_answer
            raise
        except Exception:
            self._unsure = True  # the answer could not be understood
            raise

    def name(self, pool: PoolName, index: int) -> str:
        """Of the slice with this index; another one where somebody else has that."""
        attempt = self._taken.get((pool, index), 0)
        return names.slice_name(index, self._node or "", self._driver, pool, attempt)

    def owned(self, name: str) -> bool:
        """Whether the slice goes with a Node, if there is one; its UID is the business of others.

        Where the server takes the owner away, there is nothing to be done about it.
        Slices of a Node of that name which is gone are deleted by the garbage collector.
        """
        item = self._store.get(name)
        if self._node is None or item is None or name in self._without_owner:
            return True
        return bool(owners(item))

    def read(self, item: Mapping[str, Any]) -> PublishedSlice:
        """The slice as the cluster has it."""
        name = item["metadata"]["name"]
        known = self._known.get(name)
        if known is not None and known[0] is item["spec"]:
            return known[1]
        try:
            found = wire.published_slice(item)
        except InvalidObject as error:
            subject = f"slice {name}"
            self._unreadable(subject, "slice cannot be read and is replaced", str(error))
            pool = item["spec"]["pool"]
            found = PublishedSlice(
                name, pool["name"], pool["generation"], pool["resourceSliceCount"]
            )
        self._known[name] = (item["spec"], found)
        return found

    def as_sent(self, item: Mapping[str, Any]) -> PublishedSlice:
        """As we sent it, where all that differs is what the server did not keep."""
        published = self.read(item)
        echo, spec = self._echoes.get(published.name), item["spec"]
        if echo is None or (echo.returned is not spec and echo.returned != spec):
            return published
        known = taint_times.times(published.devices)
        return replace(echo.sent, devices=taint_times.kept(echo.sent.devices, known))

    def _body(self, wanted: PublishedSlice) -> dict[str, Any]:
        return wire.slice_to_json(wanted, self._driver, self._node, self.owner())

    def try_out(self, wanted: PublishedSlice) -> PublishedSlice:
        """What the server would store; nothing is stored."""
        self._may_write()
        self._measures.add("writes_total", verb="try-out")
        return wire.published_slice(self._api.try_out(self._body(wanted)))

    def delete(self, name: str) -> None:
        """Gone already is success; raises ApiConflict if others were faster."""
        item = self._store.get(name)
        if item is None:
            return
        self._may_write()
        self._measures.add("writes_total", verb="delete")
        with self._writing():
            try:
                self._api.delete(name, item["metadata"]["uid"])
            except ApiConflict:
                self._relist()  # another one by now, or not deleted: who knows
                raise
        self._store.deleted(name)
        self._known.pop(name, None)
        self._echoes.pop(name, None)
        self._without_owner.discard(name)

    def store(self, write: publishing.Create | publishing.Update) -> PublishedSlice:
        """The slice as the server has stored it, the one that was sent if it came back as it is.

        Raises ApiConflict if others were faster, NotOurTurn if another instance publishes now.
        """
        self._may_write()
        self._measures.add("writes_total", verb=type(write).__name__.lower())
        wanted = write.slice
        body = self._body(wanted)
        with self._writing():
            if isinstance(write, publishing.Create):
                stored = self._create(wanted, body)
            else:
                stored = self._update(wanted.name, body)
            self._store.written(stored)
        if owners(stored):
            self._without_owner.discard(wanted.name)
        else:
            self._without_owner.add(wanted.name)
        if stored["spec"] == body["spec"]:
            self._echoes.pop(wanted.name, None)
            self._known[wanted.name] = (stored["spec"], wanted)
        else:
            self._echoes[wanted.name] = _Echo(wanted, stored["spec"])
        return self.read(stored)

    def dropped(self, name: str, sent: PublishedSlice) -> list[str]:
        """Fields of the last write of a slice that did not come back, each named once."""
        if name not in self._echoes:
            return []
        item = self._store.get(name)
        found = set(dropped_fields(self._body(sent)["spec"], (item or {}).get("spec")))
        fresh = found - self._dropped
        self._dropped |= fresh
        return sorted(fresh)

    def _create(self, wanted: PublishedSlice, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._api.create(body)
        except ApiConflict:
            # Ours, when the answer to an earlier create got lost. If the name is somebody else's,
            # another name is tried.
            self._relist()
            if self._store.get(wanted.name) is None:
                at = (wanted.pool, names.slice_index(wanted.name) or 0)
                self._taken[at] = self._taken.get(at, 0) + 1
            raise

    def _update(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        known = self._store.get(name)
        try:
            if known is None:
                raise ApiNotFound(name)  # noqa: TRY301 - deleted while the plan was carried out
            old = known["metadata"]
            body["metadata"] |= {key: old[key] for key in _OF_OTHERS if key in old}
            body["metadata"] |= {"resourceVersion": old["resourceVersion"], "uid": old["uid"]}
            return self._api.update(body)
        except (ApiNotFound, ApiConflict):
            self._relist()  # deleted or changed a moment ago: do not wait for the watch
            raise ApiConflict(f"ResourceSlice {name!r} was changed by someone else") from None

    def _relist(self) -> None:
        for scope in self._scopes:
            self._store.relist(scope, self._api.list(scope).items)

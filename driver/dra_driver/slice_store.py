"""What is known of our slices in the cluster: lists, watch events, and the answers to our writes.

Nothing is read again for a change. Two traps: an event that is older than the answer to a write,
and a slice that we deleted and the watch still shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dra_driver.ports import Changed, Scope

Item = dict[str, Any]


class SliceStore:
    """Slices by name, of ``scopes``. Used by one thread."""

    def __init__(self, scopes: Collection[Scope] = tuple(Scope)) -> None:
        self._scopes = frozenset(scopes)
        self._items: dict[str, Item] = {}
        self._listed: set[Scope] = set()
        self._deleted: set[str] = set()  # UIDs we deleted and the watch has not confirmed

    @property
    def complete(self) -> bool:
        """Whether every scope has been listed."""
        return self._listed == self._scopes

    def items(self) -> list[Item]:
        """All of them."""
        return list(self._items.values())

    def get(self, name: str) -> Item | None:
        """The slice with this name."""
        return self._items.get(name)

    def relist(self, scope: Scope, items: tuple[Item, ...]) -> bool:
        """Take over a list; whether it differs from what was known."""
        for item in items:
            _check(item)
        known = {n: i for n, i in self._items.items() if scope_of(i) is scope}
        fresh = {item["metadata"]["name"]: _as_known(item, known) for item in items}
        differs = scope not in self._listed or _versions(fresh) != _versions(known)
        others = {n: i for n, i in self._items.items() if scope_of(i) is not scope}
        self._items = others | fresh
        self._listed.add(scope)
        self._deleted.clear()
        return differs

    def take(self, event: Changed) -> bool:
        """Take over a change; whether it is someone else's and concerns spec or owners."""
        metadata = event.object["metadata"]
        name, uid = metadata["name"], metadata["uid"]
        _check(event.object)
        known = self._items.get(name)
        if event.kind == "DELETED":
            self._deleted.discard(uid)
            if known is None or known["metadata"]["uid"] != uid:
                return False
            del self._items[name]
            return True
        if uid in self._deleted or (known is not None and not _newer(event.object, known)):
            return False
        self._items[name] = event.object
        if known is None or known["spec"] != event.object["spec"]:
            return True
        return owners(known) != owners(event.object)

    def written(self, item: Item) -> None:
        """The answer to a create or an update."""
        _check(item)
        self._items[item["metadata"]["name"]] = item

    def deleted(self, name: str) -> None:
        """We deleted it."""
        self._deleted.add(self._items.pop(name)["metadata"]["uid"])


def owners(item: Mapping[str, Any]) -> list[str]:
    """Names of the Nodes with which a slice goes."""
    found = item.get("metadata", {}).get("ownerReferences") or []
    return [str(o.get("name")) for o in found if o.get("kind") == "Node"]


def _check(item: Mapping[str, Any]) -> None:
    """KeyError or TypeError for what is no slice."""
    _ = _identity(item), item["metadata"]["name"], item["spec"]["pool"]["name"]


def scope_of(item: Mapping[str, Any]) -> Scope:
    """Where a slice belongs."""
    return Scope.NODE if item["spec"].get("nodeName") else Scope.SHARED


def _as_known(item: Item, known: Mapping[str, Item]) -> Item:
    """The object that is known where it says the same: nobody has to read it again."""
    before = known.get(item["metadata"]["name"])
    return item if before is None or _identity(before) != _identity(item) else before


def _identity(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["metadata"]["uid"], item["metadata"]["resourceVersion"]


def _versions(items: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {name: item["metadata"]["resourceVersion"] for name, item in items.items()}


def _newer(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether a has a higher resourceVersion (KEP-5504: comparable within one resource)."""
    first, second = a["metadata"]["resourceVersion"], b["metadata"]["resourceVersion"]
    return int(first) > int(second) if first.isdigit() and second.isdigit() else first != second

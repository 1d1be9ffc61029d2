"""slice_watch: what it tells, and how soon it lists again; with an API in memory and no waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from dra_core.errors import ApiExpired, ApiUnavailable
from dra_driver import slice_watch
from dra_driver.ports import Changed, Listed, Scope, SliceApi
from dra_driver.slice_watch import Relisted, SliceWatch

Stream = Callable[[], Iterator[Changed]]


def event(version: int, kind: str = "MODIFIED") -> Changed:
    return Changed(kind, {"metadata": {"name": "s", "resourceVersion": str(version)}})


class Api:
    """Lists nothing; each watch is the next of ``streams``, and after the last one all ends."""

    def __init__(self) -> None:
        self.streams: list[Stream] = []
        self.now = 0.0
        self.lists = 0
        self.versions: list[str] = []
        self.told: list[Relisted | Changed] = []
        self.watch_of = SliceWatch(
            cast("SliceApi", self), Scope.NODE, self.told.append, clock=lambda: self.now
        )

    def list(self, scope: Scope) -> Listed:
        assert scope is Scope.NODE
        self.lists += 1
        return Listed((), str(self.lists * 100))

    def watch(self, scope: Scope, resource_version: str) -> Iterator[Changed]:
        assert scope is Scope.NODE
        self.versions.append(resource_version)
        if not self.streams:
            self.watch_of.stop()
            self.now += 120.0
            return
        yield from self.streams.pop(0)()

    def broken_off(
        self, *events: Changed, after: float = 0.1, by: type[Any] = ApiUnavailable
    ) -> Stream:
        def stream() -> Iterator[Changed]:
            yield from events
            self.now += after
            raise by("broken off")

        return stream

    def ended(self, *events: Changed, after: float = 120.0) -> Stream:
        def stream() -> Iterator[Changed]:
            yield from events
            self.now += after

        return stream


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many in a row each pause was for; nobody waits."""
    seen: list[int] = []

    def backoff(count: int) -> float:
        seen.append(count)
        return 0.0

    monkeypatch.setattr(slice_watch, "backoff", backoff)
    return seen


def test_a_stream_that_the_server_ends_goes_on_from_its_last_version(
    api: Api, failures: list[int]
) -> None:
    api.streams = [
        api.ended(event(101), event(107, "BOOKMARK")),
        api.ended(),
        api.ended(event(109)),
    ]
    api.watch_of.run()
    assert api.lists == 1
    assert api.versions == ["100", "107", "107", "109"]
    assert [t.kind for t in api.told if isinstance(t, Changed)] == ["MODIFIED", "MODIFIED"]
    assert failures == []


def test_failures_in_a_row_wait_longer_and_longer(api: Api, failures: list[int]) -> None:
    api.streams = [api.broken_off() for _ in range(4)]
    api.streams += [api.broken_off(by=ApiExpired), api.broken_off(by=RuntimeError)]
    api.watch_of.run()
    assert failures == [1, 2, 3, 4, 5, 6]
    assert api.lists == 7


@pytest.mark.parametrize("after", [0.1, 30.0])
def test_a_watch_that_worked_ends_the_row(api: Api, failures: list[int], after: float) -> None:
    """Else a driver that has lost ten watches in a year is blind for half a minute at the next."""
    working = api.broken_off(*([event(101)] if after < 1 else []), after=after)
    api.streams = [api.broken_off(), api.broken_off(), *[working] * 20, api.broken_off()]
    api.watch_of.run()
    assert failures == [1, 2, *[1] * 20, 2]


def test_a_stream_that_ends_as_it_begins_is_a_failure(api: Api, failures: list[int]) -> None:
    api.streams = [api.ended(after=0.2)] * 3
    api.watch_of.run()
    assert failures == [1, 2, 3]

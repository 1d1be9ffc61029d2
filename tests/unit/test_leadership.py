"""leadership: one holder at a time, on clocks that differ, through pauses and failures."""

from __future__ import annotations

import itertools

import pytest

from dra_core.errors import ApiConflict, ApiForbidden, ApiUnavailable
from dra_service.leadership import Leadership, LeaseRecord


class Server:
    """One Lease, and the time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.lease: LeaseRecord | None = None
        self.error: Exception | None = None
        self._versions = itertools.count(1)

    def read(self) -> LeaseRecord | None:
        if self.error:
            raise self.error
        return self.lease

    def write(self, holder: str, last: LeaseRecord | None, seconds: int) -> LeaseRecord:
        if self.error:
            raise self.error
        if (last.version if last else None) != (self.lease.version if self.lease else None):
            raise ApiConflict("409")
        version = str(next(self._versions))
        self.lease = LeaseRecord(holder, f"{self.seconds}+{seconds}", version)
        return self.lease


class Instance:
    def __init__(self, server: Server, name: str, ahead: float) -> None:
        self.measured: dict[str, float] = {}
        self.changes = 0
        self.leadership = Leadership(
            server, name, self, lambda: server.seconds + ahead, self._changed
        )

    def _changed(self) -> None:
        self.changes += 1

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        raise AssertionError((name, amount, labels))

    def set(self, name: str, value: float, **labels: str) -> None:
        self.measured["/".join([name, *labels.values()])] = value

    @property
    def leads(self) -> bool:
        return self.leadership.leading


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def a(server: Server) -> Instance:
    return Instance(server, "a", 5000.0)


@pytest.fixture
def b(server: Server) -> Instance:
    return Instance(server, "b", -300.0)


def run(server: Server, seconds: float, *instances: Instance) -> None:
    end = server.seconds + seconds
    while server.seconds < end:
        for instance in instances:
            pause = instance.leadership.tick()
            assert pause == 2.0
        server.seconds += 2.0
        assert sum(instance.leads for instance in instances) <= 1


def test_the_first_one_leads_and_keeps_leading(server: Server, a: Instance, b: Instance) -> None:
    run(server, 120, a, b)
    assert [a.leads, b.leads] == [True, False]
    assert (a.changes, b.changes) == (1, 0)
    assert b.leadership.holder == "a"
    assert (a.measured["leading"], b.measured["leading"]) == (1.0, 0.0)


def test_a_holder_that_is_stopped_stops_leading_before_another_one_starts(
    server: Server, a: Instance, b: Instance
) -> None:
    run(server, 20, a, b)
    leading: list[str] = []
    for _ in range(40):
        b.leadership.tick()
        server.seconds += 0.5
        leading.append("a" * a.leads + "b" * b.leads)
    spans = {who: leading.count(who) * 0.5 for who in ("a", "", "b")}
    assert "".join(leading) == "".join(sorted(leading)), "first a, then b, never both"
    assert spans["a"] <= 10.0
    assert 3.0 <= spans[""] <= 10.0
    assert spans["b"] > 0.0
    a.leadership.tick()
    assert [a.leads, b.leads] == [False, True]


@pytest.mark.parametrize("error", [ApiUnavailable("no answer"), ApiForbidden("403")])
def test_without_the_server_nobody_leads_for_long(
    server: Server, a: Instance, b: Instance, error: Exception
) -> None:
    run(server, 20, a, b)
    server.error = error
    run(server, 60, a, b)
    assert (a.leads, b.leads) == (False, False)
    server.error = None
    run(server, 20, a, b)
    assert a.leads != b.leads


def test_a_released_lease_is_taken_at_once(server: Server, a: Instance, b: Instance) -> None:
    run(server, 20, a, b)
    b.leadership.release()
    assert server.read() == a.leadership._seen, "not b's to release"
    a.leadership.release()
    assert not a.leads
    b.leadership.tick()
    assert b.leads
    a.leadership.release()
    assert b.leadership.holder == "b"


def test_of_two_that_are_equally_fast_one_wins(server: Server, a: Instance, b: Instance) -> None:
    seen = server.read()
    a.leadership.tick()
    with pytest.raises(ApiConflict):
        server.write("b", seen, 15)
    b.leadership.tick()
    assert (a.leads, b.leads) == (True, False)

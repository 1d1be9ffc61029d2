"""binding, whatever happens in whichever order: restarts, errors of the API, faults of the fabric,
claims that are deleted, schedulers that give up.

Nothing stays attached without a claim, no claim waits for ever, no condition of another writer is
touched, and ready is said only of what is attached.
"""

from __future__ import annotations

import logging
import os
from datetime import datetime

import structlog
from hypothesis import Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from dra_core.model.objects import Condition
from dra_core.taints import DeviceId
from dra_operator.binding import Limits
from dra_testing.binding_world import CONFIRMED, FAILED, READY, T0, Stand, device, result
from dra_testing.cases import case

NAMES, DEVICES, NODES = ("a", "b", "c"), ("gpu-0", "gpu-1", "gpu-2"), ("node-1", "node-2")
THEIRS = (CONFIRMED, "example.com/other")
DEADLINE, SCHEDULER = 540.0, 600.0
#: Trouble that lasts must leave room for what works.
_RARELY = st.sampled_from([False, False, False, True])
Theirs = dict[tuple[str, DeviceId, str], Condition]


class Machine(RuleBasedStateMachine):
    """An operator, its cluster and its fabric."""

    def __init__(self) -> None:
        super().__init__()
        # Thousands of tracebacks would take most of the time.
        quiet = structlog.make_filtering_bound_logger(logging.CRITICAL)
        structlog.configure(wrapper_class=quiet)
        self.stand = Stand(Limits(deadline=DEADLINE))
        self.theirs: Theirs = {}
        self.wrong: list[str] = []
        self.ready = self.steps = 0

    @initialize(latency=st.sampled_from([0.0, 3.0, 3.0, 50.0, 700.0]), rules=st.booleans())
    def begin(self, latency: float, rules: bool) -> None:
        self.stand.fabric.latency = latency
        self.stand.server.rules_served = rules
        self.stand.server.after_report = self._written
        self.stand.server.allocate(NAMES[0], result(DEVICES[0], CONFIRMED), node=NODES[0])
        self.stand.run(5.0)

    def _written(self, uid: str, where: DeviceId, said: dict[str, str]) -> None:
        """Runs inside the operator, which would take an error of ours for trouble of the fabric."""
        if set(said) & set(THEIRS):
            self.wrong.append(f"wrote {said}")
        if said.get(READY) == "True":
            self.ready += 1
            node = self.stand.server.claims[uid].claim.node
            if self.stand.fabric.attached(where) != [(uid, node)]:
                self.wrong.append(f"ready without being attached: {uid} {where}")
            late = self.stand.clock.now() - self._allocated_at(uid)
            if late.total_seconds() >= DEADLINE:
                self.wrong.append(f"ready after {late}")

    def _allocated_at(self, uid: str) -> datetime:
        found = self.stand.server.claims[uid].claim.allocated_at
        assert found is not None
        return found

    # -- the scheduler, users, the claim controller

    def _allocated(self) -> dict[str, str]:
        """UIDs by name."""
        stored = self.stand.server.claims.values()
        return {s.claim.name: s.claim.uid for s in stored if s.claim.results}

    def _free(self) -> list[str]:
        server = self.stand.server
        used = {r.device for s in server.claims.values() for r in s.claim.results}
        held = {hold.device.device for hold in server.rules.values()}
        return [name for name in DEVICES if name not in used and name not in held]

    @precondition(lambda self: self._free() and len(self._allocated()) < len(NAMES))
    @rule(data=st.data(), node=st.sampled_from(NODES), confirmed=st.booleans())
    def allocate(self, data: st.DataObject, node: str, confirmed: bool) -> None:
        name = data.draw(st.sampled_from([n for n in NAMES if n not in self._allocated()]))
        free = self._free()
        count = data.draw(st.integers(1, len(free)))
        more = (CONFIRMED,) if confirmed else ()
        self.stand.server.allocate(name, *(result(d, *more) for d in free[:count]), node=node)
        self.stand.run(data.draw(st.sampled_from([0.0, 0.5, 5.0, 60.0])))

    @precondition(lambda self: self._allocated())
    @rule(data=st.data())
    def deallocate(self, data: st.DataObject) -> None:
        self._drop(data.draw(st.sampled_from(sorted(self._allocated().values()))))

    @precondition(lambda self: self.stand.server.claims)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.stand.server.claims)))
        self._forget_theirs(uid)
        self.stand.server.delete(uid)

    @rule()
    def scheduler_looks(self) -> None:
        """It takes back what failed, and what took too long."""
        for uid in self._allocated().values():
            claim = self.stand.server.claims[uid].claim
            waited = (self.stand.clock.now() - (claim.allocated_at or T0)).total_seconds()
            said = [self.stand.server.status(uid, _of(r.device), FAILED) for r in claim.results]
            if "True" in said or (waited > SCHEDULER and not self._ready(uid)):
                self._drop(uid)

    def _drop(self, uid: str) -> None:
        self._forget_theirs(uid)
        self.stand.server.deallocate(uid)

    def _forget_theirs(self, uid: str) -> None:
        self.theirs = {key: c for key, c in self.theirs.items() if key[0] != uid}

    @precondition(lambda self: self._allocated())
    @rule(data=st.data(), kind=st.sampled_from(THEIRS), status=st.sampled_from(["True", "False"]))
    def another_writer(self, data: st.DataObject, kind: str, status: str) -> None:
        uid = data.draw(st.sampled_from(sorted(self._allocated().values())))
        where = _of(self.stand.server.claims[uid].claim.results[0].device)
        self.stand.server.set(uid, where, kind, status)
        self.theirs[uid, where, kind] = self.stand.server.claims[uid].conditions[where, None, kind][
            0
        ]

    @precondition(lambda self: self._allocated())
    @rule(data=st.data())
    def our_condition_is_set_by_somebody(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self._allocated().values())))
        where = _of(self.stand.server.claims[uid].claim.results[0].device)
        if not self.stand.server.status(uid, where, READY):
            self.stand.server.set(uid, where, READY, "Unknown")
            found = self.stand.server.claims[uid].conditions[where, None, READY][0]
            self.theirs[uid, where, READY] = found

    # -- what goes wrong

    @rule(down=_RARELY)
    def api_server(self, down: bool) -> None:
        self.stand.server.down = down

    @rule(count=st.integers(1, 3))
    def answers_get_lost(self, count: int) -> None:
        self.stand.server.lose_answers = count

    @rule(faults=st.lists(st.sampled_from(["lose", "late", "twice", "crash", "fail"]), max_size=4))
    def fabric_misbehaves(self, faults: list[str]) -> None:
        self.stand.fabric.faults.extend(faults)

    @rule(name=st.sampled_from(DEVICES), broken=_RARELY)
    def device_breaks(self, name: str, broken: bool) -> None:
        change = self.stand.fabric.broken.add if broken else self.stand.fabric.broken.discard
        change(device(name))

    @rule(unverified=_RARELY)
    def verification(self, unverified: bool) -> None:
        self.stand.fabric.unverified = unverified

    @rule()
    def fabric_forgets(self) -> None:
        """What is attached falls off; rarely of use, so only one."""
        if self.stand.fabric.items:
            self.stand.fabric.items.pop()

    @rule()
    def operator_starts_anew(self) -> None:
        self.stand.restart()

    @precondition(lambda self: self._allocated())
    @rule(data=st.data(), deleted=st.booleans())
    def claim_goes_while_the_operator_is_down(self, data: st.DataObject, deleted: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self._allocated().values())))
        self._forget_theirs(uid)
        if deleted:
            self.stand.server.delete(uid)
        else:
            self.stand.server.deallocate(uid)
        self.stand.restart()

    @rule()
    def half_a_turn(self) -> None:
        """Work is begun; a restart now cuts it off."""
        self.stand.deliver()
        self.stand.bindings.run_due()

    @precondition(lambda self: self._allocated())
    @rule(data=st.data(), at=st.sampled_from(["verify", "report", "attach"]))
    def in_the_middle_of_a_call(self, data: st.DataObject, at: str) -> None:
        """The claim is deallocated, deleted or allocated anew, and the operator cannot know yet."""
        uid = data.draw(st.sampled_from(sorted(self._allocated().values())))
        what = data.draw(st.sampled_from(["deallocate", "delete", "move", "nothing"]))
        stand, claim = self.stand, self.stand.server.claims[uid].claim

        def happens() -> None:
            self._quiet()
            if not stand.server.claims.get(uid) or not stand.server.claims[uid].claim.results:
                return
            if what == "nothing":
                stand.server.touch(uid)
                return
            self._forget_theirs(uid)
            if what == "delete":
                stand.server.delete(uid)
                return
            stand.server.deallocate(uid)
            if what == "move":
                node = NODES[claim.node == NODES[0]]
                stand.server.allocate(claim.name, *claim.results, node=node)

        if at == "verify":
            stand.fabric.while_verifying = happens
        elif at == "report":
            stand.server.before_report = happens
        else:
            stand.fabric.while_attaching = happens

    def _quiet(self) -> None:
        self.stand.fabric.while_verifying = self.stand.fabric.while_attaching = _nothing
        self.stand.server.before_report = _nothing

    @rule(waits=_RARELY)
    def leadership(self, waits: bool) -> None:
        self.stand.leads = not waits

    @rule(seconds=st.sampled_from([0.0, 1.0, 5.0, 30.0, 100.0, 550.0]))
    def time_passes(self, seconds: float) -> None:
        self.stand.run(seconds)

    @invariant()
    def there_is_always_something_to_do(self) -> None:
        """Rules are left out at random, whole histories long: those two are never."""
        self.steps += 1
        free = [n for n in NAMES if n not in self._allocated()]
        if self.steps % 4 == 0 and len(free) == len(NAMES) and self._free():
            self.stand.server.allocate(free[0], result(self._free()[0]), node=NODES[0])
        if self.steps % 3 == 0:
            self.stand.run(2.0)

    # -- what holds

    @invariant()
    def nothing_wrong_was_written(self) -> None:
        assert self.wrong == []

    @invariant()
    def never_both(self) -> None:
        for uid, stored in self.stand.server.claims.items():
            for where in {key[0] for key in stored.conditions}:
                said = [self.stand.server.status(uid, where, kind) for kind in (READY, FAILED)]
                assert said != ["True", "True"]

    @invariant()
    def others_are_left_alone(self) -> None:
        for (uid, where, kind), condition in self.theirs.items():
            found = self.stand.server.claims[uid].conditions[where, None, kind]
            assert found == (condition, "agent")

    def _ready(self, uid: str) -> bool:
        claim = self.stand.server.claims[uid].claim
        return all(
            self.stand.server.status(uid, _of(r.device), READY) == "True" for r in claim.results
        )

    def teardown(self) -> None:
        """All is well again; after a while everything is in order."""
        try:
            self._in_order()
        finally:
            structlog.reset_defaults()

    def _in_order(self) -> None:
        event(f"said to be ready: {min(self.ready, 5)}")
        stand = self.stand
        stand.server.down, stand.server.lose_answers, stand.leads = False, 0, True
        stand.fabric.faults.clear()
        stand.fabric.broken.clear()
        stand.fabric.unverified = False
        self._quiet()
        stand.run(SCHEDULER + 200.0)
        wanted = {
            (uid, _of(r.device), s.claim.node)
            for uid, s in stand.server.claims.items()
            for r in s.claim.results
        }
        ready = {key for key in wanted if stand.server.status(key[0], key[1], READY) == "True"}
        failed = {key for key in wanted if stand.server.status(key[0], key[1], FAILED) == "True"}
        attached = [(i.tag.uid, i.device, i.node) for i in stand.fabric.items]
        assert wanted == ready | failed, "a claim waits for ever"
        assert sorted(attached) == sorted(ready), "attached and ready are not the same"
        assert not stand.server.rules, "a device is held back for ever"


def _nothing() -> None:
    """Happens most of the time."""


def _of(name: str) -> DeviceId:
    return device(name)


TestMachine = case("BIND-04")(Machine.TestCase)
_SOAK = os.environ.get("DRAGOMAN_SOAK")
TestMachine.settings = settings(
    max_examples=int(_SOAK or "100"),
    stateful_step_count=40,
    deadline=None,
    database=None,
    # Making a failure smaller takes minutes: only where there is time for it.
    phases=tuple(Phase) if _SOAK else (Phase.generate,),
    report_multiple_bugs=bool(_SOAK),
    print_blob=True,
)

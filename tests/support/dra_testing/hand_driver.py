"""A vendor's own program for tests: ``python -m dra_testing.hand_driver``.

Its devices say by their names what preparing them does, see :meth:`HandDriver._edits`. Profile
``hand`` needs the option ``folder``, where it takes its orders from and keeps its diary; ``plain``
is another profile of the same program with other options.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dra_driver import api, commands
from dra_driver.app import main

#: What a program must not tell: it stands in exceptions, in locals and in arguments of commands.
SECRET = "token-5f2c"

#: Device -> (argv, seconds). ``{folder}`` is the option of that name.
COMMANDS: Mapping[str, tuple[tuple[str, ...], float]] = {
    "cat": (("cat",), 30.0),
    "absent": (("no-such-program", SECRET), 30.0),
    "failing": (("sh", "-c", "echo first >&2; echo the disk is full >&2; exit 3", SECRET), 30.0),
    "noisy": (("sh", "-c", "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero"), 30.0),
    # It has a child that is in its way, too, and tells who they are.
    "endless": (
        ("sh", "-c", 'sleep 600 & echo $$ $! > "$0.new"; mv "$0.new" "$0"; wait', "{folder}/pids"),
        1.0,
    ),
}


class HandDriver:
    """Does by hand what a test wants to see."""

    SUMMARY: ClassVar[str] = "for tests"
    DRIVER_NAME: ClassVar[str] = "hand.example.com"
    OPTIONS: ClassVar[Sequence[api.Option]] = (
        api.Option("folder", "/", "where orders come from"),
        api.Option("count", "1", "number of devices", int),
    )

    def __init__(self, context: api.Context) -> None:
        self._context = context

    @property
    def _folder(self) -> Path:
        return Path(self._context.options()["folder"])

    def pools(self) -> Sequence[api.Pool]:
        count = int(self._context.options()["count"])
        devices = tuple(api.Device(api.DeviceName(f"plain-{i}")) for i in range(count))
        return [api.Pool(api.PoolName(self._context.node_name), devices)]

    def prepare(
        self, claim: api.Claim, results: Sequence[api.AllocationResult]
    ) -> Any:  # now and then not what the framework asks for
        self._diary("prepare", claim.reference.uid)
        answers = [self._edits(claim, result) for result in results]
        return None if None in answers else [edits for edits in answers if edits != "drop"]

    def unprepare(self, claim: api.ClaimReference) -> None:
        self._diary("unprepare", claim.uid)

    def _diary(self, verb: str, uid: str) -> None:
        with (self._folder / "diary").open("a") as file:
            file.write(f"{verb} {uid}\n")

    def _edits(self, claim: api.Claim, result: api.AllocationResult) -> Any:
        kind, _, rest = result.device.partition("-")
        secret = SECRET + rest
        match kind:
            case "plain":
                return api.ContainerEdits(env={"HAND": result.device})
            case "slow":  # until the test opens the FIFO for writing
                (self._folder / f"gate-{rest}").read_bytes()
                return api.ContainerEdits(env={"HAND": result.device})
            case "bug":
                raise ValueError(f"cannot log in with {secret}")
            case "exit":
                sys.exit(f"cannot log in with {secret}")
            case "surrogate":  # as in the name of a file that is not UTF-8
                raise api.PreparationFailed(f"cannot read {os.fsdecode(b'/dev/x-%cy' % 0xFF)}")
            case "none":
                return None
            case "few":
                return "drop"
            case "odd":
                return 17
        argv, seconds = COMMANDS[kind]
        given = [part.replace("{folder}", str(self._folder)) for part in argv]
        stdin = str(claim.reference.uid).encode()
        output = commands.run(given, timeout=seconds, stdin=stdin)
        if kind == "cat" and output != stdin:
            raise api.PreparationFailed(f"cat answered {output!r}")
        return api.ContainerEdits(env={"HAND": result.device})


class PlainDriver(HandDriver):
    """The same, with an option that only this profile has."""

    OPTIONS: ClassVar[Sequence[api.Option]] = (api.Option("colour", "red", "of the paint"),)


if __name__ == "__main__":
    raise SystemExit(main(profiles={"hand": HandDriver, "plain": PlainDriver}))

"""The reference for CEL: the Go program of ``tests/oracle``, built when it is missing.

Typical use::

    oracle = Oracle.build()                       # raises testcluster.errors.Unavailable without Go
    for answer in oracle.ask([{"kind": "selector", "expression": "true", "device": {}}]):
        answer["match"], answer["cost"], answer["outputType"], answer["maxCost"]
    oracle.trees(["1 + 1 == 2"])                  # checked trees, node by node

Tests, marked ``go``, take the fixture ``oracle`` of :mod:`dra_testing.cel_fixtures`.
``tests/oracle/README.md`` describes questions, answers and trees.

The program lies in the cache beside the builds of the test cluster, under a name made of its
sources, module files, flags and the Go version. ``python -m dra_testing.cel_oracle`` builds it if
need be and prints its path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testcluster import build, locks, paths
from testcluster.errors import BuildFailed, ClusterError
from testcluster.progress import Progress

SOURCE = Path(__file__).resolve().parents[2] / "oracle"
#: The version of k8s.io/dynamic-resource-allocation that answers.
VERSION = "0.37.2"

JSON = dict[str, Any]


class _Target(build.Target):
    @property
    def source(self) -> Path:
        return SOURCE


_TARGET = _Target("cel-oracle", (), ())
#: The name that ``build.command`` gives a program.
_PROGRAM = "kube"


class OracleFailed(ClusterError):
    """The program ended with an error or left questions without an answer."""


def path() -> Path:
    """Where the program is or will be; raises ``Unavailable`` without a fitting Go."""
    key = build.key(_TARGET, build.go_version(_TARGET))
    return paths.cache() / "bin" / f"{_TARGET.name}-{key}" / "oracle"


def provide(progress: Progress | None = None) -> Path:
    """The program, built first if need be. Raises ``Unavailable`` or ``BuildFailed``."""
    program = path()
    if program.exists():
        return program
    with locks.held(f"build-{_TARGET.name}"):
        if not program.exists():
            progress = progress or Progress()
            progress.say(f"{_TARGET.name}: building, some 2 minutes if nothing is cached")
            _build(program, progress)
    return program


def _build(program: Path, progress: Progress) -> None:
    folder = program.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{_TARGET.name}-") as temporary:
        output = Path(temporary) / "bin"
        output.mkdir()
        done = subprocess.run(
            build.command(_TARGET, output),
            cwd=SOURCE,
            env={
                **os.environ,
                "CGO_ENABLED": "0",
                "GOTOOLCHAIN": "local",
                "GOFLAGS": "",
                "GOWORK": "off",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if " " in line.strip()]
            raise BuildFailed(f"{_TARGET.name}: go build failed:\n" + "\n".join(said[-12:]))
        (output / _PROGRAM).rename(output / program.name)
        output.rename(folder)
    for old in folder.parent.glob(f"{_TARGET.name}-*"):
        if old != folder:
            build._forget(old, progress)


@dataclass(frozen=True, slots=True)
class Oracle:
    """The built program."""

    program: Path

    @classmethod
    def build(cls, progress: Progress | None = None) -> Oracle:
        return cls(provide(progress))

    def ask(
        self,
        questions: Iterable[Mapping[str, Any]],
        *,
        repeat: int = 1,
        deadline: float = 10,
        seconds: float = 600,
    ) -> list[JSON]:
        """The answers, in order. With ``repeat`` an answer lists what else came out in ``others``.

        ``deadline`` is for one evaluation, ``seconds`` for all.
        """
        flags = ["-repeat", str(repeat), "-deadline", f"{deadline}s"]
        return self._run(flags, list(questions), seconds)

    def estimates(
        self, questions: Iterable[Mapping[str, Any]], *, seconds: float = 600
    ) -> list[JSON]:
        """As :meth:`ask`, but nothing is evaluated."""
        return self._run(["-estimate"], list(questions), seconds)

    def trees(
        self,
        expressions: Iterable[str],
        *,
        env: Mapping[str, Any] | None = None,
        seconds: float = 600,
    ) -> list[JSON]:
        """The checked tree of each expression, or its error and what was parsed."""
        common = {} if env is None else {"env": env}
        return self._run(["-ast"], [{"expression": e, **common} for e in expressions], seconds)

    def bench(
        self,
        devices: Sequence[JSON],
        expressions: Sequence[str | JSON],
        *,
        rounds: int = 10,
        seconds: float = 600,
    ) -> JSON:
        """Time to compile and evaluations a second, one thread."""
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump({"devices": list(devices), "expressions": list(expressions)}, file)
            file.flush()
            result: JSON = json.loads(self._start(["-bench", str(rounds), file.name], "", seconds))
        return result

    def _run(
        self, flags: list[str], questions: list[Mapping[str, Any]], seconds: float
    ) -> list[JSON]:
        text = "".join(json.dumps(question) + "\n" for question in questions)
        answers = [
            json.loads(line) for line in self._start(flags, text, seconds).split("\n") if line
        ]
        if len(answers) != len(questions):
            raise OracleFailed(f"{len(answers)} answers to {len(questions)} questions")
        return answers

    def _start(self, flags: list[str], text: str, seconds: float) -> str:
        done = subprocess.run(
            [str(self.program), *flags],
            input=text,
            capture_output=True,
            encoding="utf-8",
            timeout=seconds,
            check=False,
        )
        if done.returncode != 0:
            raise OracleFailed(
                f"{self.program} ended with {done.returncode}: {done.stderr[-2000:]}"
            )
        return done.stdout


def main() -> int:
    try:
        print(provide())  # noqa: T201
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

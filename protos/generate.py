"""Generates the stubs in ``dra_protos`` from the ``.proto`` files beside them.

Run ``python protos/generate.py`` after a change to a ``.proto`` file and commit the result, or with
``--check`` to compare without writing (exit code 1 and a diff when something differs, 2 when the
tools are missing or of another version).

The versions are pinned because they end up in the generated code: a stub refuses to be imported
with a grpcio or a protobuf older than the one it was generated for. The pin is therefore the lowest
grpcio that the project supports, and its gencode (6.31.1) is older than every protobuf allowed.

All files are compiled in one run below one root, so that each has a file name of its own. The
kubelet's own copies share a name, and protobuf refuses the second file of one name in a process.
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parent
PACKAGE = "dra_protos"
SUFFIXES = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi")
PINNED = {"grpcio-tools": "1.80.0", "mypy-protobuf": "5.1.0"}


class ToolError(Exception):
    """A pinned tool is missing, of another version, or has failed; the message says which."""


def check_tools(pinned: Mapping[str, str]) -> None:
    """Raise ToolError unless every tool is installed in exactly the version it is pinned to."""
    wrong = []
    for name, wanted in pinned.items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = "none"
        if found != wanted:
            wrong.append(f"{name} {wanted} is needed, installed is {found}")
    if wrong:
        install = " ".join(f"{name}=={version}" for name, version in pinned.items())
        raise ToolError(f"{'; '.join(wrong)}. Install with: pip install {install}")


def generate(target: Path) -> None:
    """Write all stubs to ``target/dra_protos``."""
    sources = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / PACKAGE).glob("*.proto"))
    plugin = Path(sysconfig.get_path("scripts")) / "protoc-gen-mypy_grpc"
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"--proto_path={ROOT}",
            f"--plugin=protoc-gen-mypy_grpc={plugin}",
            f"--python_out={target}",
            f"--pyi_out={target}",
            f"--grpc_python_out={target}",
            f"--mypy_grpc_out=quiet:{target}",
            *sources,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise ToolError(f"protoc failed with exit code {result.returncode}:\n{result.stderr}")


def stubs(folder: Path) -> dict[str, str]:
    """Text of each generated file in the folder, by file name."""
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(folder.iterdir())
        if path.name.endswith(SUFFIXES)
    }


def differences(committed: dict[str, str], generated: dict[str, str]) -> str:
    """A unified diff of both sets of files; empty if they are equal."""
    lines: list[str] = []
    for name in sorted(committed.keys() | generated.keys()):
        if name not in committed or name not in generated:
            lines.append(f"only {'generated' if name in generated else 'committed'}: {name}\n")
        lines += difflib.unified_diff(
            committed.get(name, "").splitlines(keepends=True),
            generated.get(name, "").splitlines(keepends=True),
            f"committed/{name}",
            f"generated/{name}",
        )
    return "".join(lines)


def write(folder: Path, generated: dict[str, str]) -> None:
    """Make the folder hold exactly the generated files, leaving everything else in it alone."""
    for name in stubs(folder).keys() - generated.keys():
        (folder / name).unlink()
    for name, text in generated.items():
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Generate, or compare with ``--check``; returns the exit code."""
    parser = argparse.ArgumentParser(prog="generate.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    options = parser.parse_args(arguments)
    try:
        check_tools(PINNED)
        with tempfile.TemporaryDirectory() as scratch:
            generate(Path(scratch))
            generated = stubs(Path(scratch) / PACKAGE)
    except ToolError as error:
        sys.stderr.write(f"generate.py: {error}\n")
        return 2
    if not options.check:
        write(ROOT / PACKAGE, generated)
        return 0
    diff = differences(stubs(ROOT / PACKAGE), generated)
    sys.stdout.write(diff)
    return 1 if diff else 0


if __name__ == "__main__":
    sys.exit(main())

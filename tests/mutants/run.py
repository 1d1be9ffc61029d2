"""Break the product on purpose and see the tests turn red.

``python tests/mutants/run.py [--part i/n] [--only TEXT]``; status 0 if every mutant was noticed by
every one of its tests. Each mutant is made in a copy of the tree, so nothing here is touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Folders with packages: each must come from the copy, not from where it is installed.
SOURCES = ("cli", "core", "driver", "operator", "protos", "service")
#: pytest: all passed, some failed, and collection went wrong or nothing was run.
PASSED, FAILED = 0, 1


def main() -> int:
    """Run the mutants of one part; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="1/1", help="i/n: the i-th of n parts")
    parser.add_argument("--only", default="", help="mutants whose name has this text")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    everything = tomllib.loads((Path(__file__).parent / "mutants.toml").read_text())["mutant"]
    chosen = [m for m in everything[part - 1 :: parts] if options.only in m["name"]]
    survivors = 0
    for number, mutant in enumerate(chosen, start=1):
        began = time.monotonic()
        print(f"[{number}/{len(chosen)}] {mutant['name']}", flush=True)
        for test, noticed in _tried(mutant).items():
            survivors += not noticed
            print(f"    {'noticed' if noticed else 'SURVIVED'}: {test}", flush=True)
        print(f"    {time.monotonic() - began:.0f} s", flush=True)
    print(f"{len(chosen)} mutants, {survivors} tests that did not notice")
    return 1 if survivors or not chosen else 0


def _tried(mutant: dict[str, Any]) -> dict[str, bool]:
    """Whether each test of the mutant failed, run by itself."""
    with tempfile.TemporaryDirectory(prefix="mut") as name:
        copy = Path(name) / "tree"
        ignored = shutil.ignore_patterns(".git", ".venv", "dist", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, copy, ignore=ignored)
        file = copy / mutant["file"]
        text = file.read_text()
        if text.count(mutant["find"]) != 1:
            count = text.count(mutant["find"])
            raise SystemExit(f"{mutant['name']}: {mutant['find']!r} stands {count} times, not once")
        file.write_text(text.replace(mutant["find"], mutant["replace"]))
        return {test: _run(copy, test) == FAILED for test in mutant["tests"]}


def _run(copy: Path, test: str) -> int:
    project = tomllib.loads((copy / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    sources = os.pathsep.join(str((copy / package).parent) for package in packages)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    done = subprocess.run(
        command,
        cwd=copy,
        env=os.environ | {"PYTHONPATH": sources},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (PASSED, FAILED):
        print(done.stdout[-2000:], done.stderr[-2000:])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

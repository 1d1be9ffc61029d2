"""``dra`` and ``python -m dra_cli``; as ``kubectl-dra`` on the PATH also ``kubectl dra``."""

from __future__ import annotations

import sys


def main() -> int:
    """Start the program, or say which extra is missing."""
    try:
        from dra_cli.app import main as run  # noqa: PLC0415 - its imports are the question
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"dra: the package {error.name!r} is missing; "
            "install the extra: pip install 'dragoman[cli]'\n"
        )
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())

"""``dra-operator`` and ``python -m dra_operator``."""

from __future__ import annotations

import sys


def main() -> int:
    """Start the program, or say which extra is missing."""
    try:
        from dra_operator.app import main as run  # noqa: PLC0415 - its imports are the question
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"dra-operator: the package {error.name!r} is missing; "
            "install the extra: pip install 'dragoman[operator]'\n"
        )
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())

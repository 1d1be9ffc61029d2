"""The command line: ``dra cel``, ``dra lint``.

Exit status: 0 if all is well, 1 if something is wrong with what was looked at, 2 if the call or an
input cannot be understood.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from dra_cli import cel, lint
from dra_core.errors import DraError

PROGRAM = "dra"
_USAGE = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit status."""
    try:
        result = cli.main(
            list(sys.argv[1:] if arguments is None else arguments),
            prog_name=PROGRAM,
            standalone_mode=False,
        )
    except click.UsageError as error:
        return _refuse(f"{error.format_message().rstrip('.')} (see {PROGRAM} --help)")
    except click.ClickException as error:
        return _refuse(error.format_message())
    except DraError as error:
        return _refuse(str(error))
    except click.Abort:
        return _INTERRUPTED
    return int(result or 0)


def _refuse(sentence: str) -> int:
    click.echo(f"{PROGRAM}: {' '.join(sentence.split())}", err=True)
    return _USAGE


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="dragoman", prog_name=PROGRAM)
def cli() -> None:
    """Dynamic Resource Allocation for Kubernetes, offline.

    Completion: eval "$(_DRA_COMPLETE=bash_source dra)", or zsh_source, fish_source.
    """


cli.add_command(cel.cel)
cli.add_command(lint.lint)

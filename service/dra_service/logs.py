"""Logs: structured, JSON where a machine reads them, readable on a terminal.

debug    what helps to follow a single call
info     something happened that an admin may look for: published, prepared, evicted, leading
warning  it did not work and will be tried again, or works with less than was asked for
error    it did not work and someone has to do something
"""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import threading
from typing import Final, Literal

import structlog
import structlog.tracebacks

LogFormat = Literal["auto", "json", "text"]
LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

# Tracebacks without the values of variables: one may hold a credential.
_TRACEBACKS: Final = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)
_CONSOLE: Final = functools.partial(
    structlog.dev.ConsoleRenderer, exception_formatter=structlog.dev.plain_traceback
)


class _Lines:
    """Writes lines to standard error; a log that cannot be written is no reason to fail."""

    def __init__(self, *_: object) -> None:
        self._lock = threading.Lock()

    def msg(self, message: str) -> None:
        """One line."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            sys.stderr.write(message + "\n")
            sys.stderr.flush()

    log = debug = info = warn = warning = msg
    fatal = failure = err = error = critical = exception = msg


def configure(level: str, log_format: LogFormat) -> None:
    """Set up structlog for the process; logs go to standard error."""
    text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.typing.Processor] = (
        [_CONSOLE(colors=sys.stderr.isatty())]
        if text
        else [_TRACEBACKS, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=_Lines,
        cache_logger_on_first_use=True,
    )


class _Bridge(logging.Handler):
    """Hands records of libraries (kopf, asyncio) on; their text is all there is to them."""

    def emit(self, record: logging.LogRecord) -> None:
        """One record."""
        if "OS signals are ignored" in record.getMessage():
            return  # kopf runs in a thread of its own; signals are handled by the program
        # kopf calls an error what it tries again, as every request that fails.
        level = record.levelno if record.exc_info else min(record.levelno, logging.WARNING)
        log = structlog.get_logger(record.name)
        log.log(level, record.getMessage(), exc_info=record.exc_info or None)


def bridge(*names: str) -> None:
    """Warnings and errors of these libraries go the same way; events about objects do not."""
    for name in names:
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        logger.handlers = [_Bridge()]

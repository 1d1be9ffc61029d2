"""Every error dragoman raises on purpose.

::

    DraError
    ├── InvalidValue            input that can never work: names object, value, limit and fix
    │   ├── InvalidName         a name breaks the syntax of its kind
    │   ├── InvalidQuantity     text that is no resource.Quantity
    │   ├── InvalidVersion      text that is no semantic version
    │   └── InvalidObject       an API object that lacks what the API server guarantees
    ├── ClaimError              a claim cannot be prepared or unprepared (now)
    │   ├── ClaimGone           no such claim, or another one under the same name
    │   ├── ClaimNotAllocated   the scheduler has not allocated it (yet)          retryable
    │   └── UnknownDevice       the allocation names a device that this driver does not have
    ├── PreparationFailed       the driver's own work on a device failed          retryable
    ├── StorageError            a file could not be written, read or removed      retryable
    └── ApiError                the Kubernetes API refused or could not answer
        ├── ApiUnavailable      no answer, 429 or 5xx                             retryable
        │   └── ApiBusy         429: nothing was done                             retryable
        ├── ApiUnauthorized     401: the credentials are not (or no longer) good  retryable
        ├── ApiForbidden        403: a right is missing
        ├── ApiNotFound         404
        ├── ApiConflict         409: someone else was faster                      retryable
        ├── ApiExpired          410: the resourceVersion is too old, list again   retryable
        └── ApiInvalid          400 or 422: the server's validation said no

``retryable`` says whether the same call may succeed later without anyone changing the input.
"""

from __future__ import annotations

from typing import ClassVar


class DraError(Exception):
    """Root of the tree; never raised itself."""

    retryable: ClassVar[bool] = False


class InvalidValue(DraError):
    """Input that can never work."""


class InvalidName(InvalidValue):
    """A name breaks the syntax of its kind."""


class InvalidQuantity(InvalidValue):
    """Text that is no ``resource.Quantity``."""


class InvalidVersion(InvalidValue):
    """Text that is no semantic version."""


class InvalidObject(InvalidValue):
    """An API object lacks something that the API server guarantees."""


class ClaimError(DraError):
    """A claim cannot be prepared or unprepared (now)."""


class ClaimGone(ClaimError):
    """No such claim, or another one under the same name."""


class ClaimNotAllocated(ClaimError):
    """The scheduler has not allocated the claim (yet)."""

    retryable = True


class UnknownDevice(ClaimError):
    """The allocation names a device that this driver does not have."""


class PreparationFailed(DraError):
    """The driver's own work on a device failed."""

    retryable = True


class StorageError(DraError):
    """A file could not be written, read or removed."""

    retryable = True


class ApiError(DraError):
    """The Kubernetes API refused, or could not answer."""


class ApiUnavailable(ApiError):
    """No answer, 429 or 5xx. ``retry_after`` is the server's wish in seconds, 0 if it has none."""

    retryable = True

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ApiBusy(ApiUnavailable):
    """429: not now, and nothing was done."""


class ApiUnauthorized(ApiError):
    """401: the credentials are not, or no longer, good."""

    retryable = True


class ApiForbidden(ApiError):
    """403: a right is missing."""


class ApiNotFound(ApiError):
    """404."""


class ApiConflict(ApiError):
    """409: someone else was faster, or the name is taken."""

    retryable = True


class ApiExpired(ApiError):
    """410: the resourceVersion is too old; list again."""

    retryable = True


class ApiInvalid(ApiError):
    """400 or 422: the server's validation said no.

    ``causes`` are its field paths, each with what is wrong there.
    """

    def __init__(self, message: str, causes: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.causes = causes

"""What can go wrong with an expression, and where in its text."""

from __future__ import annotations

from dataclasses import dataclass

from dra_core.errors import DraError


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: a sentence, and the offset (in code points) where it stands."""

    offset: int
    text: str

    def brief(self, source: str) -> str:
        """``line:column: text``."""
        line, column = self._place(source)
        return f"{line + 1}:{column + 1}: {self.text}"

    def shown(self, source: str) -> str:
        """``line:column: text``, the line and a caret below the place."""
        line, column = self._place(source)
        shown = source.split("\n")[line] if source else ""
        return f"{self.brief(source)}\n | {shown}\n | {'.' * column}^"

    def _place(self, source: str) -> tuple[int, int]:
        before = source[: max(self.offset, 0)]
        return before.count("\n"), len(before) - (before.rfind("\n") + 1)


class CelError(DraError):
    """An expression that does not compile or cannot be evaluated; permanent."""


class CompileError(CelError):
    """The expression is refused before it runs: length, syntax, types, output type.

    ``faults`` say what and where; the text shows them with a caret.
    """

    def __init__(self, source: str, faults: tuple[Fault, ...]) -> None:
        self.source = source
        self.faults = faults
        super().__init__("\n".join(fault.shown(source) for fault in faults))

    @property
    def brief(self) -> str:
        """The first fault in one line, and how many more there are."""
        more = len(self.faults) - 1
        return self.faults[0].brief(self.source) + (f" (and {more} more)" if more else "")


class PlanError(CompileError):
    """A constant part of the expression has no value, which comes out when it is made ready to run.

    An API server calls this an internal error rather than an invalid value.
    """


class EvaluationFailed(CelError):
    """The expression has no value for this device. In the scheduler this ends the attempt for the
    whole claim: it is not "no match".

    ``node`` is the identifier of the expression that failed, 0 while it is not known.
    """

    def __init__(self, text: str, node: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.node = node


class EvalError(EvaluationFailed):
    """An error of the language: ``||``, ``&&`` and loops may still find an answer without it."""


class Aborted(EvaluationFailed):
    """The evaluation ended at once, whatever stands around the place."""


class CostExceeded(Aborted):
    """The evaluation used up its budget of cost units."""


class DeadlineExceeded(Aborted):
    """The evaluation ran out of time."""


def no_such_overload(function: str = "") -> EvalError:
    """An argument has a type for which the function does not exist."""
    return EvalError(f"no such overload: {function}" if function else "no such overload")

"""What is evaluated, and under which identifiers.

A checked tree becomes steps: constants are computed (literals of constants, conversions), paths
such as ``device.attributes["d"].x`` become one step, calls know which function they call. The
steps are the units in which costs are counted, so they are cut just where the reference cuts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dra_core.cel.values import Value

#: Does a call by changing its first argument, or else calls the function that it is given first.
Grow = Callable[..., Value]


@dataclass(slots=True, eq=False)
class Step:
    """Something with a value."""

    id: int


@dataclass(slots=True, eq=False)
class ConstStep(Step):
    """A value known beforehand."""

    value: Value


@dataclass(slots=True, eq=False)
class Qualifier:
    """One ``.name``, ``[key]``, ``.?name`` or ``[?key]`` of a path.

    The key is a constant, or an attribute that is read when it is needed. ``relative`` is a key
    that had to be computed: it counts as an attribute of its own.
    """

    id: int
    optional: bool
    value: Value = None
    attribute: Attribute | None = None
    relative: bool = False
    #: Only whether it is there is asked: ``has(…)``.
    test: bool = False


class Attribute:
    """A start and the path from there."""

    __slots__ = ("node", "qualifiers")

    def __init__(self, node: int) -> None:
        self.node = node
        self.qualifiers: list[Qualifier] = []

    @property
    def id(self) -> int:
        """The identifier of the last part."""
        return self.qualifiers[-1].id if self.qualifiers else self.node

    def extend(self, qualifier: Qualifier) -> None:
        """Go one further."""
        self.qualifiers.append(qualifier)


class Variable(Attribute):
    """A path from a variable. ``accu`` is the loop whose accumulator it is.

    ``rooted`` is ``.device`` where a loop has a variable ``device``: the path from there is read
    as outside all loops, where nothing is counted either.
    """

    __slots__ = ("accu", "rooted", "slot")

    def __init__(
        self, node: int, slot: int, accu: Slots | None = None, *, rooted: bool = False
    ) -> None:
        super().__init__(node)
        self.slot = slot
        self.accu = accu
        self.rooted = rooted


class Relative(Attribute):
    """A path from the value of another step."""

    __slots__ = ("operand",)

    def __init__(self, node: int, operand: Step) -> None:
        super().__init__(node)
        self.operand = operand


class Conditional(Attribute):
    """``condition ? truthy : falsy``, and the path from either."""

    __slots__ = ("condition", "falsy", "truthy")

    def __init__(self, node: int, condition: Step, truthy: Attribute, falsy: Attribute) -> None:
        super().__init__(node)
        self.condition = condition
        self.truthy = truthy
        self.falsy = falsy

    @property
    def id(self) -> int:
        """That of both branches once they go on to the same field, else its own."""
        return self.truthy.id if self.truthy.id == self.falsy.id else self.node

    def extend(self, qualifier: Qualifier) -> None:
        """Go one further in both branches."""
        self.truthy.extend(qualifier)
        self.falsy.extend(qualifier)


@dataclass(slots=True, eq=False)
class AttributeStep(Step):
    """The value of an attribute; with ``presence`` whether its last part is there."""

    attribute: Attribute
    presence: bool = False


@dataclass(slots=True, eq=False)
class LogicStep(Step):
    """``&&`` (decided by false) or ``||`` (decided by true) of any number of terms."""

    terms: list[Step]
    decided_by: bool


@dataclass(slots=True, eq=False)
class EqualStep(Step):
    """``==`` or ``!=``."""

    args: list[Step]
    negated: bool

    @property
    def function(self) -> str:
        """As in :class:`CallStep`."""
        return "_!=_" if self.negated else "_==_"

    @property
    def overload(self) -> str:
        """As in :class:`CallStep`."""
        return "not_equals" if self.negated else "equals"


@dataclass(slots=True, eq=False)
class CallStep(Step):
    """A call of a function; the identifier of the overload is empty while it is not settled.

    ``eager`` is whether the second of two arguments is evaluated even if the first has failed.
    """

    function: str
    overload: str
    args: list[Step]
    call: Callable[..., Value]
    eager: bool = False

    @property
    def copies(self) -> bool:
        """Whether it makes lists or texts at less than their size costs."""
        return self.function in ("_+_", "replace", "format", "flatten")


@dataclass(slots=True, eq=False)
class GrowStep(CallStep):
    """``accu + list`` or an entry more in ``accu``: changes the accumulator itself where the loop
    started with an empty one.
    """

    slots: Slots = field(kw_only=True)
    grow: Grow = field(kw_only=True)


@dataclass(slots=True, eq=False)
class NotFalseStep(Step):
    """Whether a condition of a loop is true or undecided (an error)."""

    function: str
    overload: str
    args: list[Step]


@dataclass(slots=True, eq=False)
class MemberStep(Step):
    """``x in [constants]``: the keys of what is in the list."""

    arg: Step
    keys: frozenset[object]


@dataclass(slots=True, eq=False)
class OrStep(Step):
    """``optional.or(other)``, or with ``unwrap`` the value: ``optional.orValue(other)``."""

    left: Step
    right: Step
    unwrap: bool


@dataclass(slots=True, eq=False)
class ListStep(Step):
    """A list."""

    items: list[Step]
    optional: frozenset[int]


@dataclass(slots=True, eq=False)
class MapStep(Step):
    """A map: keys, values, and the places of optional entries."""

    keys: list[Step]
    values: list[Step]
    optional: frozenset[int]


@dataclass(slots=True, eq=False)
class ObjectStep(Step):
    """An object of a well-known type, made from its fields."""

    names: list[str]
    values: list[Step]
    optional: frozenset[int]
    make: Callable[[dict[str, Value]], Value]


@dataclass(slots=True, eq=False)
class Slots:
    """The places of a loop's variables.

    They are the accumulator, whether it may be changed, the item and the second item. ``init`` is
    the step that gives the accumulator its first value when it is first read.
    """

    accu: int
    grows: int
    var: int
    var2: int
    init: Step


@dataclass(slots=True, eq=False)
class FoldStep(Step):
    """A loop; ``pairs`` if it goes over index and item, or key and value."""

    slots: Slots
    range: Step
    condition: Step
    step: Step
    result: Step
    pairs: bool


def identifier(step: Step) -> int:
    """Under which identifier the value of a step is known: for a path that of its last part."""
    if isinstance(step, AttributeStep) and not step.presence:
        return step.attribute.id
    return step.id


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """All of an expression. A run needs ``size`` places for variables; the first is ``device``.

    ``counted`` is whether counting the cost can change the outcome, so that it has to be done.
    """

    root: Step
    size: int
    counted: bool = False

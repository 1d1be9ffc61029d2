"""Writes typed CEL expressions from the templates of :mod:`dra_testing.cel_tables`.

::

    Writer(rng, device).make(parse_type("list(int)"), depth=3).text   # one expression of a type

Expressions are well typed for the checker of the reference, but nothing keeps them from failing
when they run: indexes out of range, texts that do not parse, attributes that are not there.
"""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass, replace
from typing import NamedTuple

from dra_testing.cel_device_words import DeviceWords
from dra_testing.cel_devices import NAMES, Device
from dra_testing.cel_literals import LITERALS, special
from dra_testing.cel_tables import KEYS, TEMPLATES
from dra_testing.cel_types import (
    PRIMARY,
    UNARY,
    Binding,
    Slot,
    Template,
    Type,
    parse_type,
    substitute,
    unify,
    variables,
)

BOOL = Type("bool")
DYN = Type("dyn")
#: What type variables become.
FREE = tuple(
    parse_type(text)
    for text in (
        "bool", "int", "int", "int", "uint", "double", "string", "string", "string", "bytes",
        "duration", "timestamp", "quantity", "semver", "ip", "cidr", "list(int)", "list(string)",
        "map(string, int)", "map(int, string)", "optional(int)",
    )
)  # fmt: skip
NAMES_OF_VARIABLES = (
    "x", "y", "i", "v", "k", "e", "item", "x", "y", "n", "_a", "X1", "min", "size", "get", "self",
    "device2", "string", "type", "optional", "attributes", "driver",
)  # fmt: skip


class Written(NamedTuple):
    """An expression, how tightly it binds, and whether the checker calls it dyn."""

    text: str
    precedence: int = PRIMARY
    dynamic: bool = False

    def within(self, needs: int) -> str:
        return f"({self.text})" if self.precedence < needs else self.text


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a macro around the expression."""

    name: str
    type: Type
    dynamic: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where an expression stands."""

    depth: int
    strict: bool = False
    """The checker must not call it dyn."""
    scope: tuple[Variable, ...] = ()

    def visible(self) -> dict[str, Variable]:
        return {variable.name: variable for variable in self.scope}


@functools.cache
def producers(wanted: Type) -> dict[str, tuple[Template, ...]]:
    """By library, the templates whose result can be ``wanted``."""
    found: dict[str, list[Template]] = {}
    for template in TEMPLATES:
        bound = unify(template.result, wanted, {})
        if bound is not None and _possible(template, bound):
            found.setdefault(template.library, []).append(template)
    return {library: tuple(templates) for library, templates in found.items()}


@functools.cache
def consumers(given: Type, result: Type | None) -> tuple[tuple[Template, int, Binding], ...]:
    """Templates with a slot for ``given``: (template, number of the slot, types)."""
    found = []
    for template in TEMPLATES:
        for number, slot in enumerate(template.slots):
            if slot.word or slot.strict or slot.uses or (slot.binds and not slot.whole):
                continue
            bound = unify(slot.type, given, {})
            if bound is None:
                continue
            if result is not None and (bound := unify(template.result, result, bound)) is None:
                continue
            if not _possible(template, bound):
                continue
            # A slot that takes anything says little about this type.
            found += [(template, number, bound)] * (1 if slot.type.variable else 3)
    return tuple(found)


class Writer:
    """Writes expressions about one device."""

    def __init__(self, rng: random.Random, device: Device, *, misfit: float = 0.0) -> None:
        self.rng = rng
        self.words = DeviceWords(rng, device)
        self._misfit = misfit
        """The chance that a slot gets an expression of a wrong type."""
        self.libraries: set[str] = set()
        """Those of all templates used so far."""

    # --- an expression of a type ---

    def make(self, wanted: Type, depth: int, place: Place | None = None) -> Written:
        """An expression of the type ``wanted``."""
        place = replace(place, depth=depth) if place else Place(depth)
        if place.depth <= 0 or self.rng.random() < 0.25:
            return self._leaf(wanted, place)
        by_library = producers(wanted)
        if not by_library:
            return self._leaf(wanted, place)
        template = self.rng.choice(by_library[self.rng.choice(list(by_library))])
        if place.strict and template.dynamic:
            return self._leaf(wanted, place)
        bound = unify(template.result, wanted, {})
        assert bound is not None
        return self.fill(template, bound, place)

    def fill(
        self,
        template: Template,
        bound: Binding,
        place: Place,
        given: tuple[int, Written] | None = None,
    ) -> Written:
        """The template with every slot filled, one of them perhaps with what is given."""
        self.libraries.add(template.library)
        bound = self.complete(template, bound)
        names = self._names(template, place)
        own: dict[str, Variable] = {}
        texts = []
        dynamic = template.dynamic
        number = -1
        for part in template.parts:
            if isinstance(part, str):
                texts.append(_named(part, names))
                continue
            number += 1
            if given is not None and given[0] == number:
                inner = given[1]
            else:
                inner = self._slot(part, bound, place, names, own)
            if part.binds:
                self._bind(part, substitute(part.type, bound), inner, names, own)
            dynamic |= inner.dynamic and part.type.open and template.result.open
            text = inner.within(part.needs)
            texts.append(text if part.word else self._dressed(text))
        return Written("".join(texts), template.precedence, dynamic)

    def complete(self, template: Template, bound: Binding) -> Binding:
        """``bound`` with types for the variables that are still open."""
        bound = dict(bound)
        kinds = [template.result, *(slot.type for slot in template.slots)]
        keys = _key_variables(template)
        attributes = {n for s in template.slots if s.word in _ATTRIBUTES for n in variables(s.type)}
        for name in (name for kind in kinds for name in variables(kind)):
            if name in bound:
                continue
            if name in keys:
                bound[name] = Type(self.rng.choice(KEYS))
            elif name in attributes:
                inner = any(f"list({name})" == str(slot.type) for slot in template.slots)
                bound[name] = parse_type(self.rng.choice(_SCALAR_NAMES if inner else list(NAMES)))
            else:
                bound[name] = self.rng.choice(FREE)
        return bound

    def _slot(
        self,
        slot: Slot,
        bound: Binding,
        place: Place,
        names: dict[str, str],
        own: dict[str, Variable],
    ) -> Written:
        wanted = substitute(slot.type, bound)
        if slot.word:
            return self._word(slot.word, wanted, names)
        used = tuple(own[name] for name in slot.uses if name in own)
        if self._misfit and self.rng.random() < self._misfit:
            wanted = self.rng.choice(FREE)
        strict = place.strict or slot.strict
        return self.make(wanted, place.depth - 1, Place(place.depth, strict, (*place.scope, *used)))

    def _word(self, word: str, wanted: Type, names: dict[str, str]) -> Written:
        if word in ("attr", "opt", "in_g"):
            text = self.words.attribute(word, str(wanted), names)
            if text is None:
                inner = self._leaf(wanted, Place(0, strict=True)).text
                text = f"optional.of(dyn({inner}))" if word == "opt" else f"dyn({inner})"
            return Written(text, dynamic=True)
        if (about_device := self.words.word(word)) is not None:
            return Written(about_device, UNARY if about_device.startswith("-") else PRIMARY)
        return _literal(special(self.rng, word))

    # --- leaves ---

    def _leaf(self, wanted: Type, place: Place) -> Written:
        rng = self.rng
        fitting = [
            v for v in place.visible().values()
            if v.type == wanted and not (place.strict and v.dynamic)
        ]  # fmt: skip
        if fitting and rng.random() < 0.7:
            variable = rng.choice(fitting)
            return Written(variable.name, dynamic=variable.dynamic)
        if not place.strict and str(wanted) in NAMES and rng.random() < 0.45:
            text = self.words.attribute("attr", str(wanted), {})
            if text is not None:
                return Written(text, dynamic=True)
        if wanted.name == "string" and rng.random() < 0.08:
            return Written("device.driver")
        if wanted.name == "quantity" and rng.random() < 0.4:
            return Written(self.words.capacity())
        if wanted.name in LITERALS:
            return _literal(LITERALS[wanted.name](rng))
        return self._compound(wanted, place)

    def _compound(self, wanted: Type, place: Place) -> Written:
        rng = self.rng
        strict = Place(0, strict=True, scope=place.scope)
        if wanted == DYN:
            kind = parse_type(rng.choice([*NAMES, "double", "uint", "bytes"]))
            text = self.words.attribute("attr", str(kind), {}) if rng.random() < 0.7 else None
            return Written(text or f"dyn({self._leaf(kind, strict).text})", dynamic=True)
        if wanted.name == "list":
            sizes = [1, 2, 3, 3, 4, 0] if wanted.args[0].name in LITERALS else [1, 2]
            items = [self._leaf(wanted.args[0], strict).text for _ in range(rng.choice(sizes))]
            return Written(f"[{', '.join(items)}]")
        if wanted.name == "map":
            return Written(self._map(wanted, strict))
        if wanted.name == "optional":
            if rng.random() < (0.02 if place.strict else 0.3):
                return Written("optional.none()")
            function = rng.choice(["of", "of", "ofNonZeroValue"])
            return Written(f"optional.{function}({self._leaf(wanted.args[0], strict).text})")
        raise ValueError(f"no value of the type {wanted}")

    def _map(self, wanted: Type, strict: Place) -> str:
        key, value = wanted.args
        keys = {
            "string": ['"a"', '"b"', "'fast'", '"x"'], "int": ["0", "1", "-7", "42"],
            "uint": ["0u", "1u", "2u"], "bool": ["true", "false"],
        }[key.name]  # fmt: skip
        chosen = self.rng.sample(keys, self.rng.randint(1, 2))
        items = [f"{name}: {self._leaf(value, strict).text}" for name in chosen]
        return "{" + ", ".join(items) + "}"

    # --- variables of macros, and dress ---

    def _names(self, template: Template, place: Place) -> dict[str, str]:
        taken: set[str] = set() if self.rng.random() < 0.1 else {v.name for v in place.scope}
        names: dict[str, str] = {}
        for placeholder in template.names:
            usual = placeholder if self.rng.random() < 0.5 else self.rng.choice(NAMES_OF_VARIABLES)
            while usual in taken or usual in names.values():
                usual += "2"
            names[placeholder] = usual
        return names

    def _bind(
        self,
        slot: Slot,
        kind: Type,
        inner: Written,
        names: dict[str, str],
        own: dict[str, Variable],
    ) -> None:
        if slot.whole:
            kinds: tuple[Type, ...] = (kind,)
        elif kind.name == "map":
            kinds = kind.args
        elif len(slot.binds) == 2:
            kinds = (Type("int"), kind.args[0])
        else:
            kinds = kind.args
        for placeholder, its in zip(slot.binds, kinds, strict=False):
            own[placeholder] = Variable(names[placeholder], its, inner.dynamic)

    def _dressed(self, text: str) -> str:
        """Now and then brackets, spaces or a comment that change nothing."""
        roll = self.rng.random()
        if roll < 0.02:
            return f"({text})"
        if roll < 0.03:
            return f" {text}\t"
        if roll < 0.034:
            why = self.rng.choice(["why", "", "*/ \u00fc"])
            return f"\n{text} // {why}\n"
        return text


_ATTRIBUTES = ("attr", "opt", "in_g")
_SCALAR_NAMES = [name for name in NAMES if not name.startswith("list")]


def _keys(kind: Type) -> set[str]:
    """Variables that stand for the key of a map somewhere in ``kind``."""
    found = {kind.args[0].name} if kind.name == "map" and kind.args[0].variable else set()
    return found.union(*(_keys(arg) for arg in kind.args))


def _key_variables(template: Template) -> set[str]:
    kinds = [template.result, *(slot.type for slot in template.slots)]
    return set().union(*map(_keys, kinds))


def _possible(template: Template, bound: Binding) -> bool:
    """Whether keys of maps are of types that may be keys."""
    return all(bound[n].name in KEYS for n in _key_variables(template) if n in bound)


def _named(text: str, names: dict[str, str]) -> str:
    for placeholder, name in names.items():
        text = text.replace(f"${placeholder}", name)
    return text


def _literal(text: str) -> Written:
    return Written(text, UNARY if text.startswith("-") else PRIMARY)

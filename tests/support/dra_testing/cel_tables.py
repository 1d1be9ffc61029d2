"""Templates for every function, operator and macro that a device selector may use.

The notation is that of :mod:`dra_testing.cel_types`. That nothing is left out is seen with the
oracle: see :func:`dra_testing.cel_report.unused_overloads`.
"""

from __future__ import annotations

from dra_testing.cel_table_library import LIBRARY_LINES
from dra_testing.cel_types import Template, parse_template

#: Types of which the generators make values.
SCALARS = ("bool", "int", "uint", "double", "string", "bytes", "duration", "timestamp")
#: Types with an order: <, min(), sort().
ORDERED = SCALARS
#: Types that + adds, and those that sum() adds.
ADDED = ("int", "uint", "double", "string", "bytes", "list(A)", "duration")
SUMMED = ("int", "uint", "double", "duration")
NUMBERS = ("int", "uint", "double")
OBJECTS = ("quantity", "semver", "url", "ip", "cidr", "format")
#: Types that may be the key of a map.
KEYS = ("bool", "int", "uint", "string")


def _operators() -> list[str]:
    lines = [f"arithmetic: {t} = {{{t}}} + {{{t}}}" for t in ADDED]
    lines += [f"arithmetic: {t} = {{{t}}} {o} {{{t}}}" for t in NUMBERS for o in ("-", "*", "/")]
    lines += [f"arithmetic: {t} = {{{t}}} % {{{t}}}" for t in ("int", "uint")]
    lines += [f"arithmetic: {t} = {{{t}}} / {{#some_{t}}}" for t in NUMBERS]
    lines += [f"arithmetic: {t} = {{{t}}} % {{#some_{t}}}" for t in ("int", "uint")]
    lines += ["arithmetic: int = -{int}", "arithmetic: double = -{double}"]
    orders = ("<", "<=", ">", ">=")
    lines += [f"comparison: bool = {{{t}}} {o} {{{t}}}" for t in ORDERED for o in orders]
    mixed = [(a, b) for a in NUMBERS for b in NUMBERS if a != b]
    lines += [f"crosstype: bool = {{{a}}} {o} {{{b}}}" for a, b in mixed for o in orders]
    lines += [f"crosstype: bool = dyn({{{a}}}) == dyn({{{b}}})" for a, b in mixed]
    lines += [f"crosstype: bool = dyn({{{a}}}) in [{{={b}}}, {{={b}}}]" for a, b in mixed]
    lines += [f"maps: A = {{{{={k}}}: {{=A}}}}[{{{k}}}]" for k in KEYS]
    lines += ["crosstype: bool = dyn({int}) in {'#x': 1}".replace("'#x'", "{#some_uint}")]
    lines += [f"lists: {t} = {{list({t})}}.{f}()" for t in ORDERED for f in ("min", "max")]
    lines += [f"lists: bool = {{list({t})}}.isSorted()" for t in ORDERED]
    lines += [f"lists: {t} = {{list({t})}}.sum()" for t in SUMMED]
    lines += [f"extlists: list({t}) = {{list({t})}}.sort()" for t in ORDERED]
    lines += [f"extlists: list(A) = {{@x:list(A)}}.sortBy($x, {{x|{t}}})" for t in ORDERED]
    return lines


CORE_LINES = """
comparison: bool = {A} == {A}
comparison: bool = {A} != {A}
comparison: bool = {dyn} == {A}
comparison: bool = {A} != dyn({B})
logic: bool = {bool} && {bool}
logic: bool = {bool} || {bool}
logic: bool = {bool} && {bool} && {bool}
logic: bool = {bool} || {bool} || {bool} || {bool}
logic: bool = !{bool}
logic: bool = !!{bool}
logic: A = {bool} ? {A} : {A}
logic: A = {bool} ? {A} : {bool} ? {A} : {A}
convert: int = int({int})
convert: int = int({uint})
convert: int = int({double})
convert: int = int({#number})
convert: int = int({timestamp})
convert: int = int({duration})
convert: uint = uint({int})
convert: uint = uint({uint})
convert: uint = uint({double})
convert: uint = uint({#number})
convert: double = double({int})
convert: double = double({uint})
convert: double = double({double})
convert: double = double({#number})
convert: bool = bool({#boolean})
convert: bool = bool({bool})
convert: string = string({bool})
convert: string = string({int})
convert: string = string({uint})
convert: string = string({double})
convert: string = string({string})
convert: string = string({bytes})
convert: string = string({timestamp})
convert: string = string({duration})
convert: bytes = bytes({string})
convert: bytes = bytes({bytes})
convert~: A = dyn({A})
dyn: bool = type({A}) == type({A})
dyn: bool = type({A}) != type({B})
dyn: bool = type({A}) == {#type}
dyn: bool = type({A}) in [dyn({#type}), dyn({#type})]
dyn: bool = type(type({A})) == type
dyn: bool = dyn({A}) == dyn({B})
dyn: bool = dyn({A}) == null
dyn: bool = [dyn({A}), dyn({B})] != [dyn({A}), dyn({B})]
dyn: int = [dyn({A}), {dyn}, dyn(null)].size()
dyn~: A = dyn(dyn({A}))
index: A = {list(A)}[{#index}]
index: A = {list(A)}[{int}]
index: A = [{=A}, {=A}, {=A}][{#index}]
index: bool = {A} in {list(A)}
index: bool = {A} in [{=A}, {=A}]
index: bool = !({A} in {list(A)})
index: int = size({list(A)})
index: int = {list(A)}.size()
index: list(A) = {list(A)} + {list(A)}
index: A = {list(A)}[{#double_index}]
maps: B = {map(A, B)}[{A}]
maps: A = {map(string, A)}.{#field}
maps: A = {{#some_string}: {=A}, {#some_string}: {=A}}[{#some_string}]
maps: A = {'a': {=A}, "b": {=A}}.a
maps: A = {'a': {=A}, "b": {=A}}["b"]
maps: A = {1: {=A}, 2: {=A}}[{#index}]
maps: bool = {A} in {map(A, B)}
maps: bool = {string} in {{#some_string}: {=A}, {#some_string}: {=A}}
maps: int = size({map(A, B)})
maps: int = {map(A, B)}.size()
maps: bool = {map(A, B)} == {map(A, B)}
strings: int = size({string})
strings: int = {string}.size()
strings: bool = {string}.contains({string})
strings: bool = {string}.contains({#part})
strings: bool = {string}.startsWith({#part})
strings: bool = {string}.endsWith({#part})
strings: string = {string}.charAt({#index})
strings: int = {string}.indexOf({#part})
strings: int = {string}.indexOf({#part}, {#index})
strings: int = {string}.lastIndexOf({#part})
strings: int = {string}.lastIndexOf({#part}, {#index})
strings: string = {list(string)}.join()
strings: string = {list(string)}.join({#part})
strings: string = {string}.lowerAscii()
strings: string = {string}.upperAscii()
strings: string = {string}.replace({#part}, {string})
strings: string = {string}.replace({#part}, {#part}, {#index})
strings: list(string) = {string}.split({#part})
strings: list(string) = {string}.split({#part}, {#index})
strings: string = {string}.substring({#index})
strings: string = {string}.substring({#index}, {#index})
strings: string = {string}.substring({#zero}, {#index})
strings: string = {string}.trim()
strings: string = strings.quote({string})
strings: string = {#text} + {string}
formatting: string = "%s".format([{A}])
formatting: string = {#clause_int}.format([{int}])
formatting: string = {#clause_uint}.format([{uint}])
formatting: string = {#clause_double}.format([{double}])
formatting: string = {#clause_string}.format([{string}])
formatting: string = {#clause_bool}.format([{bool}])
formatting: string = "%s and %s".format([dyn({A}), dyn({B})])
formatting: string = "%s|%d%%|%.2f".format([dyn({string}), dyn({int}), dyn({double})])
formatting: string = {#clause_bytes}.format([{bytes}])
unicode: int = {#unicode}.size()
unicode: string = {#unicode}.charAt({#index})
unicode: string = {#unicode}.substring({#index})
unicode: string = {#unicode}.lowerAscii()
unicode: string = {#unicode}.upperAscii()
unicode: int = {#unicode}.indexOf({#unicode_part})
unicode: int = {#unicode}.lastIndexOf({#unicode_part})
unicode: string = {#unicode}.replace({#unicode_part}, {#unicode_part})
unicode: list(string) = {#unicode}.split({#unicode_part})
unicode: string = {#unicode}.trim()
unicode: string = strings.quote({#unicode})
unicode: bytes = bytes({#unicode})
unicode: int = bytes({#unicode}).size()
unicode: bool = {#unicode} < {#unicode}
unicode: bool = {#unicode} == {#unicode}
unicode: string = {#unicode} + {string}
unicode: bool = {#unicode}.matches({#unicode_regex})
unicode: string = {#unicode}.find({#unicode_regex})
unicode: string = "%s %s".format([{#unicode}, {#unicode}])
bytes: int = size({bytes})
bytes: int = {bytes}.size()
bytes: bytes = {bytes} + {bytes}
bytes: bool = {bytes} < {bytes}
bytes: bool = {bytes} == bytes({string})
bytes: string = string({bytes})
bytes: bytes = {list(bytes)}.max()
bytes: bool = {bytes} in [{=bytes}, {=bytes}]
"""

TEMPLATES: tuple[Template, ...] = tuple(
    parse_template(line)
    for line in [*_operators(), *CORE_LINES.splitlines(), *LIBRARY_LINES.splitlines()]
    if line.strip()
)
LIBRARIES: tuple[str, ...] = tuple(sorted({template.library for template in TEMPLATES}))
BY_LIBRARY = {
    name: tuple(template for template in TEMPLATES if template.library == name)
    for name in LIBRARIES
}

"""More templates: the libraries of Kubernetes and the extensions of CEL. See cel_tables."""

from __future__ import annotations

LIBRARY_LINES = """
lists: int = {list(A)}.indexOf({A})
lists: int = {list(A)}.lastIndexOf({A})
includes: bool = {list(A)}.includes({A})
includes: bool = {A}.includes({A})
includes: bool = {#attrs}.includes({dyn})
includes: bool = {#attr:string}.includes({string})
includes: bool = {#attr:list(string)}.includes({#some_string})
includes: bool = {#attr:list(int)}.includes({int})
includes: bool = {#opt:list(string)}.orValue([]).includes({string})
includes: bool = {string}.includes({string})
includes: bool = {semver}.includes({semver})
extlists: list(A) = {list(A)}.distinct()
extlists: list(A) = [{=A}, {=A}, {=A}].distinct()
extlists: list(A) = {list(list(A))}.flatten()
extlists: list(A) = [[{=A}], [{=A}, {=A}]].flatten()
extlists: int = [[[{=A}]], [[{=A}], []]].flatten({#depth}).size()
extlists: list(int) = lists.range({#small})
extlists: list(A) = {list(A)}.reverse()
extlists: list(A) = {list(A)}.slice({#zero}, {#index})
extlists: list(A) = {list(A)}.slice({#index}, {#index})
extlists: optional(A) = {list(A)}.first()
extlists: optional(A) = {list(A)}.last()
sets: bool = sets.contains({list(A)}, {list(A)})
sets: bool = sets.equivalent({list(A)}, {list(A)})
sets: bool = sets.intersects({list(A)}, {list(A)})
sets: bool = sets.contains({list(A)}, [{=A}])
sets: bool = sets.contains({#attr:list(string)}, [{=string}, {=string}])
sets: bool = sets.intersects({#attr:list(int)}, [{=int}, {=int}])
regex: bool = {string}.matches({#regex})
regex: bool = matches({string}, {#regex})
regex: bool = {#attr:string}.matches({#regex})
regex: string = {string}.find({#regex})
regex: list(string) = {string}.findAll({#regex})
regex: list(string) = {string}.findAll({#regex}, {#index})
regex: bool = {string}.matches({string})
quantity: quantity = quantity({#quantity})
quantity: quantity = {#cap}
quantity: bool = isQuantity({#quantity})
quantity: bool = isQuantity({string})
quantity: int = sign({quantity})
quantity: bool = {quantity}.isInteger()
quantity: int = {quantity}.asInteger()
quantity: double = {quantity}.asApproximateFloat()
quantity: quantity = {quantity}.add({quantity})
quantity: quantity = {quantity}.add({int})
quantity: quantity = {quantity}.sub({quantity})
quantity: quantity = {quantity}.sub({int})
quantity: int = {quantity}.compareTo({quantity})
quantity: bool = {quantity}.isLessThan({quantity})
quantity: bool = {quantity}.isGreaterThan({quantity})
quantity: bool = {quantity} == {quantity}
quantity: bool = {#cap}.compareTo({quantity}) >= {int}
semver: semver = semver({#version})
semver: semver = semver({#loose_version}, {#truth})
semver~: semver = {#attr:semver}
semver: bool = isSemver({#version})
semver: bool = isSemver({#loose_version}, {#truth})
semver: int = {semver}.major()
semver: int = {semver}.minor()
semver: int = {semver}.patch()
semver: int = {semver}.compareTo({semver})
semver: bool = {semver}.isLessThan({semver})
semver: bool = {semver}.isGreaterThan({semver})
semver: bool = {semver} == {semver}
semver: bool = {#attr:semver}.isGreaterThan({semver})
url: url = url({#url})
url: bool = isURL({#url})
url: bool = isURL({string})
url: string = {url}.getScheme()
url: string = {url}.getHost()
url: string = {url}.getHostname()
url: string = {url}.getPort()
url: string = {url}.getEscapedPath()
url: map(string, list(string)) = {url}.getQuery()
url: list(string) = url({#url}).getQuery()[{#query_key}]
url: bool = {url} == {url}
ip: ip = ip({#ip})
ip: bool = isIP({#ip})
ip: bool = ip.isCanonical({#ip})
ip: int = {ip}.family()
ip: bool = {ip}.isUnspecified()
ip: bool = {ip}.isLoopback()
ip: bool = {ip}.isLinkLocalMulticast()
ip: bool = {ip}.isLinkLocalUnicast()
ip: bool = {ip}.isGlobalUnicast()
ip: string = string({ip})
ip: bool = {ip} == {ip}
cidr: cidr = cidr({#cidr})
cidr: bool = isCIDR({#cidr})
cidr: bool = {cidr}.containsIP({ip})
cidr: bool = {cidr}.containsIP({#ip})
cidr: bool = {cidr}.containsCIDR({cidr})
cidr: bool = {cidr}.containsCIDR({#cidr})
cidr: ip = {cidr}.ip()
cidr: cidr = {cidr}.masked()
cidr: int = {cidr}.prefixLength()
cidr: string = string({cidr})
cidr: bool = {cidr} == {cidr}
format: format = {#format}
format: optional(format) = format.named({#format_name})
format: optional(list(string)) = {#format}.validate({string})
format: bool = {#format}.validate({#name}).hasValue()
format: bool = !{#format}.validate({#formatted}).hasValue()
format: optional(list(string)) = {#format}.validate({#formatted})
format: bool = {#format} == {format}
format: list(string) = {#format}.validate({#name}).orValue([])
format: bool = format.named({#format_name}).optMap($f, $f.validate({#name})).hasValue()
format: optional(list(string)) = format.named({#format_name}).value().validate({#formatted})
optional: bool = {optional(A)}.hasValue()
optional: A = {optional(A)}.value()
optional: A = {optional(A)}.orValue({A})
optional: optional(A) = {optional(A)}.or({optional(A)})
optional: optional(A) = optional.of({A})
optional: optional(A) = optional.ofNonZeroValue({A})
optional: optional(A) = {bool} ? optional.of({A}) : optional.none()
optional: optional(A) = {list(A)}[?{#index}]
optional: optional(A) = [{=A}, {=A}][?{int}]
optional: optional(B) = {map(A, B)}[?{A}]
optional: optional(A) = {map(string, A)}.?{#field}
optional: optional(A) = {'a': {=A}, "b": {=A}}.?b
optional: optional(A) = optional.of({list(A)})[?{#index}]
optional: A = optional.of([{=A}, {=A}])[{#index}].orValue({A})
optional: A = optional.of({'a': {=A}})["a"].orValue({A})
optional: optional(A) = optional.of({'a': {=A}}).?a
optional: optional(A) = optional.of({'a': {=A}})[?{string}]
optional: list(A) = [?optional.of({=A}), {=A}]
optional: list(A) = [{=A}, ?{=optional(A)}, ?{=optional(A)}]
optional: map(string, A) = {?"a": {=optional(A)}, "b": {=A}}
optional: int = {?{=string}: {=optional(A)}, ?"z": {optional(A)}}.size()
optional: optional(B) = {@x:optional(A)}.optMap($x, {x|B})
optional: optional(B) = {@x:optional(A)}.optFlatMap($x, {x|optional(B)})
optional: list(A) = optional.unwrap([{=optional(A)}, {=optional(A)}])
optional: list(A) = [{=optional(A)}, {=optional(A)}].unwrapOpt()
optional: bool = {optional(A)} == {optional(A)}
optional: bool = {#opt:A}.orValue({A}) == {A}
optional: bool = {#opt:A}.hasValue()
optional~: A = {#opt:A}.orValue({A})
optional~: A = {#opt:A}.value()
macros: bool = {@x:list(A)}.all($x, {x|bool})
macros: bool = {@x:list(A)}.exists($x, {x|bool})
macros: bool = {@x:list(A)}.exists_one($x, {x|bool})
macros: list(A) = {@x:list(A)}.filter($x, {x|bool})
macros: list(B) = {@x:list(A)}.map($x, {x|B})
macros: list(B) = {@x:list(A)}.map($x, {x|bool}, {x|B})
macros: bool = {@x:map(A, B)}.all($x, {x|bool})
macros: bool = {@x:map(A, B)}.exists($x, {x|bool})
macros: bool = {@x:map(A, B)}.exists_one($x, {x|bool})
macros: bool = {@x:list(A)}.exists($x, $x == {A})
macros: bool = {@x:list(A)}.all($x, $x in {list(A)})
macros: bool = {@x:list(A)}.all($x, {@y:list(B)}.exists($y, {x,y|bool}))
macros: int = {@x:list(A)}.map($x, {x|bool} ? {x|int} : {x|int}).sum()
macros: int = {@x:map(A, B)}.filter($x, {x|bool}).size()
twovar: bool = {@i,x:list(A)}.all($i, $x, {i,x|bool})
twovar: bool = {@i,x:list(A)}.exists($i, $x, {i,x|bool})
twovar: bool = {@i,x:list(A)}.existsOne($i, $x, {i,x|bool})
twovar: list(B) = {@i,x:list(A)}.transformList($i, $x, {i,x|B})
twovar: list(B) = {@i,x:list(A)}.transformList($i, $x, {i,x|bool}, {i,x|B})
twovar: map(int, B) = {@i,x:list(A)}.transformMap($i, $x, {i,x|B})
twovar: map(int, B) = {@i,x:list(A)}.transformMap($i, $x, {i,x|bool}, {i,x|B})
twovar: map(string, B) = {@i,x:list(A)}.transformMapEntry($i, $x, {string($i): {i,x|B}})
twovar: map(int, A) = {@i,x:list(A)}.transformMapEntry($i, $x, $i > 0, {$i: $x})
twovar: map(string, int) = {@i,x:list(string)}.transformMapEntry($i, $x, {$x: $i})
twovar: bool = {@k,v:map(A, B)}.all($k, $v, {k,v|bool})
twovar: bool = {@k,v:map(A, B)}.exists($k, $v, {k,v|bool})
twovar: bool = {@k,v:map(A, B)}.existsOne($k, $v, {k,v|bool})
twovar: int = {@k,v:map(A, B)}.transformList($k, $v, {k,v|int}).sum()
twovar: map(A, C) = {@k,v:map(A, B)}.transformMap($k, $v, {k,v|C})
twovar: map(A, C) = {@k,v:map(A, B)}.transformMap($k, $v, {k,v|bool}, {k,v|C})
twovar: map(A, C) = {@k,v:map(A, B)}.transformMapEntry($k, $v, {$k: {k,v|C}})
bind: B = cel.bind($x, {@x=A}, {x|B})
bind: B = cel.bind($x, {@x=A}, cel.bind($y, {@y=C}, {x,y|B}))
bind: bool = cel.bind($x, {@x=A}, $x == {x|A})
bind: A = cel.bind($x, {@x=A}, $x)
bind~: A = cel.bind($g, {#attrs}, {#in_g:A})
bind: bool = cel.bind($g, {#attrs}, {#in_g:A} == {A} && {#in_g:B} == {B})
bind: bool = cel.bind($c, {#caps}, $c.{#cap_id}.isLessThan({quantity}))
has: bool = has({#selected})
has: bool = !has({#selected})
has: bool = has({map(string, A)}.{#field})
has: bool = has({'a': {A}}.a)
has: bool = has({#selected}) && {bool}
has: bool = has({#selected}) ? {bool} : {bool}
has: bool = [has({#selected}), has({#selected})].exists($x, $x)
has: bool = has(device.{#device_field})
time: duration = duration({#duration})
time: timestamp = timestamp({#timestamp})
time: timestamp = timestamp({int})
time: duration = {duration} + {duration}
time: timestamp = {duration} + {timestamp}
time: timestamp = {timestamp} + {duration}
time: timestamp = {timestamp} - {duration}
time: duration = {timestamp} - {timestamp}
time: duration = {duration} - {duration}
time: duration = duration({duration})
time: timestamp = timestamp({timestamp})
time: int = {timestamp}.getDate()
time: int = {timestamp}.getDate({#zone})
time: int = {timestamp}.getDayOfMonth()
time: int = {timestamp}.getDayOfMonth({#zone})
time: int = {timestamp}.getDayOfWeek()
time: int = {timestamp}.getDayOfWeek({#zone})
time: int = {timestamp}.getDayOfYear()
time: int = {timestamp}.getDayOfYear({#zone})
time: int = {timestamp}.getFullYear()
time: int = {timestamp}.getFullYear({#zone})
time: int = {timestamp}.getHours()
time: int = {timestamp}.getHours({#zone})
time: int = {timestamp}.getMilliseconds()
time: int = {timestamp}.getMilliseconds({#zone})
time: int = {timestamp}.getMinutes()
time: int = {timestamp}.getMinutes({#zone})
time: int = {timestamp}.getMonth()
time: int = {timestamp}.getMonth({#zone})
time: int = {timestamp}.getSeconds()
time: int = {timestamp}.getSeconds({#zone})
time: int = {duration}.getHours()
time: int = {duration}.getMinutes()
time: int = {duration}.getSeconds()
time: int = {duration}.getMilliseconds()
time: bool = {timestamp} < {timestamp}
time: bool = {duration} >= {duration}
device: string = device.driver
device: bool = device.driver == {#some_string}
device: bool = device.driver == {#driver}
device: bool = device.driver.startsWith({#part})
device: bool = device.allowMultipleAllocations
device: bool = {#domain} in device.attributes
device: bool = {#id} in {#attrs}
device: bool = {#id} in {#caps}
device: int = {#attrs}.size()
device: int = size({#caps})
device: int = device.attributes.size()
device: bool = device.attributes.exists($d, $d == {#domain})
device: bool = {#attrs}.all($k, $v, $k != {string})
device: bool = {#attrs}.exists($k, $k == {#id})
device: bool = {#attrs}.exists($k, $v, $k == {#id} && $v == {dyn})
device: bool = {#caps}.all($k, $v, $v.compareTo({quantity}) <= 0)
device: bool = device.capacity.exists($d, $m, {#id} in $m)
device~: A = {#attr:A}
device: bool = {#attr:A} == {A}
device: bool = {#attr:A} != {A}
device: bool = {#attr:int} >= {int}
device: bool = {#attr:string} in [{=string}, {=string}]
device: bool = {#attr:bool} && {#attr:bool}
device~: A = {#attr:list(A)}[{#index}]
device: int = {#attr:list(A)}.size()
device: bool = {A} in {#attr:list(A)}
device: bool = {#attr:list(A)}.exists($x, $x == {A})
device~: bool = {#attr:bool}
device: bool = {#attr:A} == {#attr:A}
device: bool = {#attrs} == {#attrs}
"""

"""``dra lint`` as a process: verdicts, exit statuses, JSON, and hostile input."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dra_testing.cases import case

ROOT = Path(__file__).parents[2]
GIB = 2**30


def dra(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    """A run with at most 1 GiB of address space beyond what Python needs."""

    done = subprocess.run(
        [sys.executable, "-m", "dra_cli", *arguments],
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def lint(content: str | bytes, *arguments: str) -> subprocess.CompletedProcess[str]:
    data = content.encode() if isinstance(content, str) else content
    return dra("lint", "-f", "-", *arguments, stdin=data)


CLASS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {}
"""


def test_the_manifests_of_this_project_are_clean() -> None:
    done = dra("lint", "-f", str(ROOT / "manifests"), "--strict")
    assert (done.stdout, done.returncode) == ("", 0)
    assert "0 errors, 0 warnings" in done.stderr


def test_an_error_has_the_path_and_type_of_the_api_server() -> None:
    done = lint(CLASS.replace("name: gpu", "name: Gpu_1"))
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert line.startswith("error: standard input: DeviceClass Gpu_1: metadata.name: ")
    assert line.endswith(" [FieldValueInvalid]")


def test_json_says_the_same() -> None:
    done = lint(CLASS.replace("name: gpu", "name: Gpu_1"), "-o", "json")
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 1
    (found,) = report["findings"]
    assert found["level"] == "error"
    assert (found["field"], found["type"]) == ("metadata.name", "FieldValueInvalid")
    assert report["objects"] == {"checked": 1, "passedOver": 0}
    assert report["server"]["version"] == "1.37"


def test_fields_that_a_server_drops_are_warned_of() -> None:
    data = json.loads((ROOT / "tests" / "data" / "wire" / "objects" / "slice.json").read_text())
    newest = lint(json.dumps(data), "-o", "json")
    older = lint(json.dumps(data), "-o", "json", "--kubernetes-version=1.36")

    def dropped(done: subprocess.CompletedProcess[str]) -> set[str]:
        findings = json.loads(done.stdout)["findings"]
        return {f["field"] for f in findings if f["type"] == "dropped-field"}

    assert "spec.devices[].nodeAllocatableResources" in dropped(newest), "its gate is off"
    assert "spec.partitionTypeAttribute" in dropped(older), "1.36 does not know it"
    gates = "--feature-gates=DRANodeAllocatableResources=true"
    on = dropped(lint(json.dumps(data), "-o", "json", gates))
    assert "spec.devices[].nodeAllocatableResources" not in on


def test_warnings_fail_with_strict_only() -> None:
    pool = "pool: {name: p, generation: 1, resourceSliceCount: 2}"
    text = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\n"
        f"spec: {{driver: gpu.example.com, nodeName: n1, {pool}, devices: [{{name: d}}]}}\n"
    )
    assert lint(text).returncode == 0
    done = lint(text, "--strict")
    assert done.returncode == 1
    assert "incomplete: 1 of 2 slices" in done.stdout


def test_lists_and_several_documents_and_other_kinds() -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
    listed = {"apiVersion": "v1", "kind": "List", "items": [json.loads('{"kind": "x"}')]}
    typed = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClassList",
        "items": [{"metadata": {"name": "Bad_1"}, "spec": {}}],
    }
    text = "\n---\n".join([CLASS, pod, json.dumps(listed), json.dumps(typed)])
    done = lint(text, "-o", "json")
    report = json.loads(done.stdout)
    assert report["objects"] == {"checked": 2, "passedOver": 2}
    assert [f["object"] for f in report["findings"]] == ["DeviceClass Bad_1"]


def bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    return "\n".join([*lines, CLASS])


HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "aliases that stand for billions": (bomb(), "aliases stand for more than"),
    "an alias to itself": (CLASS + "x: &x [*x]\n", ""),
    "deep nesting": ("[" * 100_000, "nest"),
    "deep mappings": ("{a: " * 100_000, "nest"),
    "nested mappings": ("{a: " * 200 + "1" + "}" * 200, "is nested deeper than 100 levels"),
    "binary": (bytes(range(256)) * 100, "is not text in UTF-8"),
    "a zero byte": (b"kind: \0\n", "is not valid YAML"),
    "a word": ("hello", "is not an object of the Kubernetes API"),
    "a list": ("[1, 2]", "is not an object of the Kubernetes API"),
    "a list without items": ("kind: List\napiVersion: v1", "must have a list of items"),
    "keys that are no text": ("1: 2", "is not an object of the Kubernetes API"),
    "a key twice": (CLASS + "kind: Pod\n", "the key 'kind' stands twice"),
    "a Python object": ("a: !!python/object/apply:os.system [id]", "is not valid YAML"),
    "half a document": (CLASS[:-5] + "[", "is not valid YAML"),
    "17 MiB": (b"# " + b"x" * (17 * 2**20), "larger than 16 MiB"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_one_line_in_bounded_time_and_memory(name: str) -> None:
    content, message = HOSTILE[name]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    began = time.monotonic()
    done = lint(content)
    assert time.monotonic() - began < 10.0
    assert max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024 < GIB
    assert "Traceback" not in done.stderr
    if message:
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("dra: standard input")
        assert message in done.stderr


def test_ten_megabytes_of_objects_take_bounded_time_and_memory() -> None:
    text = "---\n".join(CLASS.replace("gpu", f"gpu-{n}") for n in range(120_000))
    assert len(text) > 9 * 10**6
    began = time.monotonic()
    done = lint(text)
    assert time.monotonic() - began < 60.0
    assert done.returncode == 0, done.stderr
    assert "120000 objects" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lint"], "Missing option '-f' / '--filename' (see dra --help)"),
        (["lint", "-f", "/nowhere"], "/nowhere: No such file or directory"),
        (["lint", "-f", "-", "--kubernetes-version=1.20"], "known are: 1.36, 1.37"),
        (["lint", "-f", "-", "--feature-gates=X=true"], "has no feature gate 'X'"),
        (["lint", "-f", "-", "--feature-gates=X"], "is not NAME=true or NAME=false"),
        (["lint", "-f", "-", "-o", "yaml"], "Invalid value for '-o'"),
        (["nope"], "No such command 'nope'"),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(arguments: list[str], message: str) -> None:
    done = dra(*arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_an_object_that_cannot_be_decoded_does_not_hide_the_others() -> None:
    bad = CLASS.replace("spec: {}", "spec: {selectors: 5}")
    done = lint("\n---\n".join([bad, CLASS.replace("name: gpu", "name: Gpu_1")]))
    assert done.returncode == 1
    assert "spec.selectors: is the number 5 where the API has a list [Undecodable]" in done.stdout
    assert "metadata.name" in done.stdout


def slice_(name: str, driver: str, devices: list[dict[str, Any]]) -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": "n1", "pool": pool, "devices": devices}
    return wrapped("ResourceSlice", name, spec)


def claim(*expressions: str) -> dict[str, Any]:
    selectors = [{"cel": {"expression": text}} for text in expressions]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": selectors}}
    return wrapped("ResourceClaim", "c", {"devices": {"requests": [request]}})


def wrapped(kind: str, name: str, spec: object) -> dict[str, Any]:
    v1 = "resource.k8s.io/v1"
    return {"apiVersion": v1, "kind": kind, "metadata": {"name": name}, "spec": spec}


def together(*objects: dict[str, Any]) -> str:
    return "\n---\n".join(map(json.dumps, objects))


DRIVER = "gpu.example.com"
OWN = f'device.attributes["{DRIVER}"]'
AB = slice_("p", DRIVER, [{"name": "a", "attributes": {"model": {"string": "x"}}}, {"name": "b"}])
SELECTOR = "spec.devices.requests[0].exactly.selectors[0].cel.expression"


def findings(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> list[dict[str, str]]:
    done = lint(together(*objects), "-o", "json", *arguments)
    found: list[dict[str, str]] = json.loads(done.stdout)["findings"]
    return found


@case("CEL-01")
def test_a_selector_that_fails_on_a_device_is_reported_with_device_and_hint() -> None:
    """An error is not "no match": the scheduler would give up on the claim, on all nodes."""
    (found,) = findings(AB, claim(f"{OWN}.model == 'x'"))
    assert (found["level"], found["type"]) == ("warning", "selector-error")
    assert (found["object"], found["field"]) == ("ResourceClaim c", SELECTOR)
    for part in ("gpu.example.com/p/b", "no such key: model", "has(…)", "1 of 2 devices have"):
        assert part in found["message"]
    assert lint(together(AB, claim(f"{OWN}.model == 'x'"))).returncode == 0
    assert lint(together(AB, claim(f"{OWN}.model == 'x'")), "--strict").returncode == 1


@case("CEL-01")
@pytest.mark.parametrize("guard", [f"'model' in {OWN}", f"has({OWN}.model)"])
def test_a_guarded_selector_is_clean(guard: str) -> None:
    done = lint(together(AB, claim(f"{guard} && {OWN}.model == 'x'")), "--strict")
    assert (done.stdout, done.returncode) == ("", 0)


@case("CEL-01")
def test_a_class_must_guard_for_its_driver() -> None:
    nic = slice_("q", "nic.example.com", [{"name": "eth0"}])
    gpu = slice_("p", DRIVER, [{"name": "a", "attributes": {"model": {"string": "x"}}}])
    request = claim(f"{OWN}.model == 'x'")

    def class_(*expressions: str) -> dict[str, Any]:
        selectors = [{"cel": {"expression": text}} for text in expressions]
        return wrapped("DeviceClass", "gpu", {"selectors": selectors})

    (found,) = findings(gpu, nic, class_("true"), request)
    assert "fails on 1 of 2 devices, on nic.example.com/q/eth0" in found["message"]
    assert "for the driver first" in found["message"]
    assert findings(gpu, nic, class_(f"device.driver == '{DRIVER}'"), request) == []
    (found,) = findings(gpu, nic, class_(f"{OWN}.model == 'x'"))
    assert (found["object"], found["type"]) == ("DeviceClass gpu", "selector-error")


@case("CEL-01")
def test_a_misspelt_key_is_counted() -> None:
    (found,) = findings(AB, claim(f"'modle' in {OWN} && {OWN}.modle == 'x'"))
    assert found["type"] == "selector-matches-nothing"
    assert f"0 of 2 devices have {OWN}.modle, did you mean 'model'?" in found["message"]


def loops(depth: int) -> str:
    over = "".join(f"[1,2,3,4,5,6,7,8,9,10].all({name}, " for name in "abcdefgh"[:depth])
    return f"{over}true{')' * depth}"


@pytest.mark.parametrize(
    ("expression", "kind", "message"),
    [
        ("device.nope", "FieldValueInvalid", "1:7: undefined field 'nope'"),
        ("true &&\n  nope", "FieldValueInvalid", "2:3: undeclared reference to 'nope'"),
        ("1", "FieldValueInvalid", "must evaluate to bool"),
        (loops(6), "FieldValueForbidden", "costs up to 4555551 units, 1000000 are allowed"),
        ("true" + " " * 10_240, "FieldValueTooLong", "at most 10240 bytes"),
    ],
)
def test_bad_expressions_are_errors(expression: str, kind: str, message: str) -> None:
    """Also beside devices: what is an error is not asked about them."""
    for objects in ((claim(expression),), (AB, claim(expression))):
        (found,) = findings(*objects)
        assert (found["level"], found["field"], found["type"]) == ("error", SELECTOR, kind)
        assert message in found["message"]
    done = lint(together(claim(expression)))
    assert done.returncode == 1
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("expression", "arguments", "good"),
    [
        ("device.allowMultipleAllocations", (), True),
        (
            "device.allowMultipleAllocations",
            ("--feature-gates=DRAConsumableCapacity=false",),
            False,
        ),
        (f"{OWN}.x.exists(x, x == 'a')", (), False),
        (f"{OWN}.x.exists(x, x == 'a')", ("--feature-gates=DRAListTypeAttributes=true",), True),
        ("{'a-b': true}.`a-b`", (), True),
        ("{'a-b': true}.`a-b`", ("--kubernetes-version=1.36",), False),
        ("string(duration(size(device.driver))) == ''", (), False),
        ("string(duration(size(device.driver))) == ''", ("--kubernetes-version=1.36",), True),
    ],
)
def test_expressions_by_version_and_gates(
    expression: str, arguments: tuple[str, ...], good: bool
) -> None:
    found = findings(claim(expression), arguments=arguments)
    assert [f["type"] for f in found] == ([] if good else ["FieldValueInvalid"])


def test_derived_attributes_are_too_costly_together() -> None:
    data = claim()
    devices = data["spec"]["devices"]
    devices["constraints"] = [{"matchAttribute": f"derived/x{n}"} for n in range(3)]
    devices["requests"][0]["exactly"]["derivedAttributes"] = [
        {"name": f"derived/x{n}", "expression": loops(5)} for n in range(3)
    ]
    (found,) = findings(data, arguments=("--feature-gates=DRADerivedAttributes=true",))
    assert (found["field"], found["type"]) == ("spec.devices", "FieldValueForbidden")
    assert "together" in found["message"]


def test_costly_selectors_beside_many_devices_end() -> None:
    """Below the limit of costs, but for each of so many devices."""
    many = [slice_(f"p{n}", DRIVER, [{"name": f"d{i}"} for i in range(128)]) for n in range(40)]
    began = time.monotonic()
    found = findings(*many, claim(loops(5)), claim("false"))
    assert time.monotonic() - began < 30.0
    assert {f["type"] for f in found} == {"selector-undecided"}
    assert "of 5120 devices only: the time was over" in found[0]["message"]


LACKING: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "a generation": (
        wrapped(
            "ResourceSlice",
            "s",
            {
                "driver": DRIVER,
                "nodeName": "n1",
                "pool": {"name": "p", "resourceSliceCount": 1},
                "devices": [{"name": "a"}],
            },
        ),
        [],
    ),
    "a capacity's value": (slice_("s", DRIVER, [{"name": "a", "capacity": {"x": {}}}]), []),
    "a counter's value": (
        wrapped(
            "ResourceSlice",
            "s",
            {
                "driver": DRIVER,
                "nodeName": "n1",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "sharedCounters": [{"name": "c", "counters": {"x": {}}}],
            },
        ),
        [],
    ),
    "the name of a device": (
        slice_("s", DRIVER, [{"attributes": {}}]),
        [("spec.devices[0].name", "FieldValueInvalid")],
    ),
    "a pool": (
        wrapped("ResourceSlice", "s", {"driver": DRIVER, "nodeName": "n1"}),
        [
            ("spec.pool.name", "FieldValueRequired"),
            ("spec.pool.resourceSliceCount", "FieldValueInvalid"),
        ],
    ),
    "the name of a request": (
        wrapped(
            "ResourceClaim",
            "c",
            {"devices": {"requests": [{"exactly": {"deviceClassName": "gpu"}}]}},
        ),
        [("spec.devices.requests[0].name", "FieldValueInvalid")],
    ),
    "a class": (
        wrapped("ResourceClaim", "c", {"devices": {"requests": [{"name": "r", "exactly": {}}]}}),
        [("spec.devices.requests[0].exactly.deviceClassName", "FieldValueRequired")],
    ),
    "a spec": (wrapped("ResourceClaim", "c", None), []),
    "the effect of a taint": (
        slice_("s", DRIVER, [{"name": "a", "taints": [{"key": "k"}]}]),
        [("spec.devices[0].taints[0].effect", "FieldValueRequired")],
    ),
}


@pytest.mark.parametrize("what", LACKING)
def test_of_what_is_missing_the_verdict_is_that_of_the_server(what: str) -> None:
    data, expected = LACKING[what]
    found = [f for f in findings(data) if f["level"] == "error"]
    assert [(f["field"], f["type"]) for f in found] == expected
    if not expected:
        assert findings(data) == []


def test_what_the_server_fills_in_is_warned_about_as_well() -> None:
    data = slice_("s", DRIVER, [{"name": "a", "capacity": {"x": {}}}])
    del data["spec"]["pool"]["generation"]
    data["spec"]["pool"]["resourceSliceCount"] = 2
    (found,) = findings(data)
    assert "incomplete: 1 of 2 slices" in found["message"]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (wrapped("ResourceSlice", "s", {"driver": 5}), "spec.driver"),
        (wrapped("ResourceSlice", "s", 5), "spec"),
        ({**AB, "metadata": {"name": "s", "labels": {"a": 5}}}, "metadata.labels[a]"),
        ({**AB, "metadata": {"name": "s", "finalizers": [{}]}}, "metadata.finalizers[0]"),
        ({**claim(), "metadata": {"name": "s", "finalizers": [{}]}}, "metadata.finalizers[0]"),
        ({**claim(), "status": {"reservedFor": 5}}, "status.reservedFor"),
        (wrapped("ResourceClaim", "c", {"devices": {"requests": {}}}), "spec.devices.requests"),
    ],
)
def test_what_a_server_cannot_decode(data: dict[str, Any], place: str) -> None:
    done = lint(together(data))
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert line.endswith("[Undecodable]")
    assert f": {place}: " in line


def test_help_names_every_flag() -> None:
    done = dra("lint", "--help")
    for flag in ("--filename", "--kubernetes-version", "--feature-gates", "--output", "--strict"):
        assert flag in done.stdout
    assert "completion" in dra("--help").stdout.lower()

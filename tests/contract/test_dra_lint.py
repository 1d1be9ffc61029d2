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
    assert "spec.selectors: 5 is not a list [Undecodable]" in done.stdout
    assert "metadata.name" in done.stdout


def test_help_names_every_flag() -> None:
    done = dra("lint", "--help")
    for flag in ("--filename", "--kubernetes-version", "--feature-gates", "--output", "--strict"):
        assert flag in done.stdout
    assert "completion" in dra("--help").stdout.lower()

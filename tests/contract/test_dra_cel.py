"""``dra cel`` as a process: values, places of errors, batches, and hostile expressions."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from dra_testing import cel_golden, cel_hostile
from dra_testing.cel_compare import verdict

JSON = dict[str, Any]
GIB = 2**30
DRIVER = "gpu.example.com"
OWN = f'device.attributes["{DRIVER}"]'
CAPACITY = f'device.capacity["{DRIVER}"]'

DEVICE = """\
driver: gpu.example.com
name: gpu-0
allowMultipleAllocations: true
attributes:
  model: {string: A100}
  version: {version: 1.2.3}
  numa: {int: 1}
  tags: {strings: [fast, nvlink]}
  dra.example.com/root: {string: "pci0000:01"}
capacity:
  memory: {value: 40Gi}
  cores: 108
  share: 1.5
"""


def dra(*arguments: str, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
    """A run, in at most a minute."""
    done = subprocess.run(
        [sys.executable, "-m", "dra_cli", *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def cel(*arguments: str, device: str | None = None) -> subprocess.CompletedProcess[str]:
    """An expression about a device that is given on standard input."""
    more = [] if device is None else ["--device", "-"]
    return dra("cel", *arguments, *more, stdin=device or "")


def report(*arguments: str, device: str | None = None) -> JSON:
    found: JSON = json.loads(cel(*arguments, "-o", "json", device=device).stdout)
    return found


def answered(expression: str, device: str = DEVICE, *arguments: str) -> JSON:
    (found,) = report(expression, *arguments, device=device)["devices"]
    return {key: found[key] for key in found if key not in ("driver", "pool", "device")}


class TestText:
    def test_without_a_device(self) -> None:
        done = cel('device.driver == "x"')
        assert (done.stdout, done.returncode) == ("type bool, costs at most 3 units\n", 0)

    def test_value_and_cost(self) -> None:
        done = cel(f'{OWN}.model == "A100"', device=DEVICE)
        assert done.returncode == 0
        assert done.stdout.splitlines() == [
            "type bool, costs at most 5 units",
            "DEVICE                    COST  VALUE",
            "gpu.example.com/gpu-0        5  match",
        ]
        no = cel(f'{OWN}.model == "H100"', device=DEVICE)
        assert no.returncode == 0, "no match is an answer"
        assert no.stdout.endswith("  no match\n")

    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            (f"{OWN}.version", '{"version": "1.2.3"}'),
            (f"{OWN}.tags", '{"strings": ["fast", "nvlink"]}'),
            (f'{OWN}.model + "\u00fc"', '{"string": "A100\u00fc"}'),
            (f"{OWN}.numa + 1", '{"int": 2}'),
            ("device.allowMultipleAllocations", '{"bool": true}'),
        ],
    )
    def test_derived(self, expression: str, value: str) -> None:
        done = cel(expression, "--derived", device=DEVICE)
        assert done.returncode == 0
        assert done.stdout.endswith(f"  {value}\n")

    def test_compile_errors_have_a_caret_each(self) -> None:
        done = cel("device.driver == 1 ||\n  nope")
        assert done.returncode == 1
        assert done.stdout.splitlines() == [
            "does not compile",
            "1:15: found no matching overload for '_==_' applied to '(string, int)'",
            " | device.driver == 1 ||",
            " | ..............^",
            "2:3: undeclared reference to 'nope' (in container '')",
            " |   nope",
            " | ..^",
        ]

    @pytest.mark.parametrize(
        ("expression", "error", "shown", "dots"),
        [
            (f'{OWN}.modle == "x"', "no such key: modle", f'{OWN}.modle == "x"', len(OWN)),
            ("true &&\n 1 / 0 == 1", "division by zero", " 1 / 0 == 1", 3),
            ("[1].exists(x, x / 0 == 1)", "division by zero", "[1].exists(x, x / 0 == 1)", 16),
            (f"{OWN}.tags[7] == 'x'", "index out of bounds: 7", f"{OWN}.tags[7] == 'x'", 41),
            (
                f"{OWN}.numa.all(x, true)",
                "got 'int', expected iterable type",
                f"{OWN}.numa.all(x, true)",
                45,
            ),
            (f'"\u00fc" == {OWN}.x', "no such key: x", f'"\u00fc" == {OWN}.x', len(OWN) + 7),
        ],
    )
    def test_evaluation_errors_have_a_caret(
        self, expression: str, error: str, shown: str, dots: int
    ) -> None:
        done = cel(expression, device=DEVICE)
        assert done.returncode == 1
        table, tail = done.stdout.splitlines()[:3], done.stdout.splitlines()[3:]
        assert table[2].endswith("  error")
        assert tail == [f"gpu.example.com/gpu-0: {error}", f" | {shown}", f" | {'.' * dots}^"]

    def test_a_value_that_is_no_bool(self) -> None:
        done = cel(f"{OWN}.model", device=DEVICE)
        assert done.returncode == 1
        assert "CEL result of type string could not be converted to bool" in done.stdout

    def test_one_that_an_api_server_refuses(self) -> None:
        done = cel(loops(6))
        assert done.returncode == 0, "stored ones are run up to the limit"
        assert "costs at most 4555551 units\n" in done.stdout
        assert "an API server refuses it: the limit is 1000000 units" in done.stdout


def loops(depth: int, body: str = "true") -> str:
    over = "".join(f"[1,2,3,4,5,6,7,8,9,10].all({name}, " for name in "abcdefgh"[:depth])
    return f"{over}{body}{')' * depth}"


class TestJson:
    def test_a_match(self) -> None:
        text = f'{OWN}.model == "A100"'
        assert report(text, device=DEVICE) == {
            "kind": "selector",
            "expression": text,
            "outputType": "bool",
            "maxCost": 5,
            "aboveLimit": False,
            "devices": [{"driver": DRIVER, "device": "gpu-0", "match": True, "cost": 5}],
            "errors": 0,
        }

    def test_a_derived_attribute(self) -> None:
        assert report(f"{OWN}.tags", "--derived", device=DEVICE) == {
            "kind": "derived",
            "expression": f"{OWN}.tags",
            "outputType": "dyn",
            "maxCost": 4,
            "aboveLimit": False,
            "devices": [
                {
                    "driver": DRIVER,
                    "device": "gpu-0",
                    "attribute": {"strings": ["fast", "nvlink"]},
                    "cost": 4,
                }
            ],
            "errors": 0,
        }

    def test_errors(self) -> None:
        assert report("true && nope") == {
            "kind": "selector",
            "expression": "true && nope",
            "compileError": "1:9: undeclared reference to 'nope' (in container '')\n"
            " | true && nope\n | ........^",
            "faults": [
                {"offset": 8, "message": "undeclared reference to 'nope' (in container '')"}
            ],
        }
        failed = report(f"{OWN}.x == 1", device=DEVICE)
        assert failed["errors"] == 1
        (one,) = failed["devices"]
        assert (one["evalError"], one["offset"], one["cost"]) == ("no such key: x", len(OWN), 5)
        assert cel("nope", "-o", "json").returncode == 1
        assert cel(f"{OWN}.x == 1", "-o", "json", device=DEVICE).returncode == 1
        assert cel("false", "-o", "json", device=DEVICE).returncode == 0

    def test_without_a_device(self) -> None:
        assert sorted(report("true")) == [
            "aboveLimit",
            "expression",
            "kind",
            "maxCost",
            "outputType",
        ]

    def test_costs_that_a_number_cannot_hold_are_text(self) -> None:
        huge = "lists.range(9223372036854775807).all(x, x >= 0)"
        found = report(huge)
        assert int(found["maxCost"]) > 2**53
        assert isinstance(found["maxCost"], str)
        assert found["aboveLimit"]


class TestDevice:
    @pytest.mark.parametrize(
        ("expression", "match"),
        [
            (f'{CAPACITY}.memory == quantity("40Gi")', True),
            (f'{CAPACITY}.cores == quantity("108")', True),
            (f'{CAPACITY}.share == quantity("1500m")', True),
            (f'{OWN}.version.isGreaterThan(semver("1.2.2"))', True),
            ('device.attributes["dra.example.com"].root == "pci0000:01"', True),
            ('device.attributes["nope"].x == 1 || true', True),
            ("device.allowMultipleAllocations", True),
            ('device.driver == "nope"', False),
        ],
    )
    def test_yaml_and_json(self, tmp_path: Path, expression: str, match: bool) -> None:
        import yaml  # noqa: PLC0415 - to write the same as JSON

        assert answered(expression)["match"] is match
        file = tmp_path / "device.json"
        file.write_text(json.dumps(yaml.safe_load(DEVICE)))
        done = cel(expression, "--device", str(file), "-o", "json")
        assert json.loads(done.stdout)["devices"][0]["match"] is match

    def test_a_device_may_be_nearly_nothing(self) -> None:
        assert answered('device.driver == ""', "{}") == {"match": True, "cost": 2}

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "holds 0 documents, one device is expected"),
            ("{}\n---\n{}", "holds 2 documents, one device is expected"),
            ("kind: ResourceSlice", "holds a ResourceSlice, a device is expected; slices go to -f"),
            ("driver: 5", "driver and pool of a device are text"),
            ("atributes: {}", "a device has no field atributes"),
            ("attributes: {a: x}", "device.attributes[a]: 'x' is not an attribute"),
            ("attributes: {a: {int: 9223372036854775808}}", "does not fit into 64 bits"),
            ("capacity: {a: much}", "device.capacity[a].value"),
            ("capacity: {a: .nan}", "device.capacity[a].value"),
            ("capacity: {a: }", "device.capacity[a].value"),
            ("[1]", "is not an object"),
            ("a: [", "is not valid YAML"),
        ],
    )
    def test_what_is_no_device(self, content: str, message: str) -> None:
        done = cel("true", device=content)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert message in done.stderr
        assert "standard input" in done.stderr

    def test_a_broken_version_fails_every_expression(self) -> None:
        found = answered("true", "attributes: {v: {version: x}}")
        assert found["evalError"].startswith("attribute v: parse semantic version")


def slice_(pool: str, *devices: JSON, driver: str = DRIVER) -> JSON:
    spec = {
        "driver": driver,
        "nodeName": "n1",
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
        "devices": list(devices),
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{pool}-{driver}"},
        "spec": spec,
    }


def gpu(name: str, model: str | None = None) -> JSON:
    return {"name": name, "attributes": {"model": {"string": model}} if model else {}}


class TestSlices:
    def files(self, tmp_path: Path) -> list[str]:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
        first, second = tmp_path / "a.json", tmp_path / "b.json"
        listed = {"apiVersion": "v1", "kind": "List", "items": [slice_("p", gpu("a", "A100")), pod]}
        first.write_text(json.dumps(listed))
        second.write_text(
            json.dumps(slice_("q", gpu("a", "H100"), gpu("b"), gpu("c")))
            + "\n---\n"
            + json.dumps(slice_("r", gpu("eth0"), driver="nic.example.com"))
        )
        return ["-f", str(first), "-f", str(second)]

    def test_a_table_of_all_devices(self, tmp_path: Path) -> None:
        done = dra("cel", f'{OWN}.model == "A100"', *self.files(tmp_path))
        assert done.returncode == 1
        assert done.stdout.splitlines() == [
            "type bool, costs at most 5 units",
            "DEVICE                     COST  VALUE",
            "gpu.example.com/p/a           5  match",
            "gpu.example.com/q/a           5  no match",
            "gpu.example.com/q/b           5  error",
            "gpu.example.com/q/c           5  error",
            "nic.example.com/r/eth0        5  error",
            "gpu.example.com/q/b and 2 more: no such key: model",
            f' | {OWN}.model == "A100"',
            f" | {'.' * len(OWN)}^",
            "1 of 5 devices match, 3 errors",
        ]

    def test_a_guard_for_the_driver_and_the_attribute(self, tmp_path: Path) -> None:
        text = f'device.driver == "{DRIVER}" && {OWN}.?model.orValue("") == "A100"'
        done = dra("cel", text, *self.files(tmp_path))
        assert done.returncode == 0
        assert done.stdout.endswith("1 of 5 devices match, 0 errors\n")

    def test_json_and_a_folder(self, tmp_path: Path) -> None:
        self.files(tmp_path)
        done = dra("cel", f"has({OWN}.model)", "-f", str(tmp_path), "-o", "json")
        found = json.loads(done.stdout)
        assert found["errors"] == 0
        assert [(d["driver"], d["pool"], d["device"], d["match"]) for d in found["devices"]] == [
            (DRIVER, "p", "a", True),
            (DRIVER, "q", "a", True),
            (DRIVER, "q", "b", False),
            (DRIVER, "q", "c", False),
            ("nic.example.com", "r", "eth0", False),
        ]

    def test_derived_attributes_of_all_devices(self, tmp_path: Path) -> None:
        text = f'{OWN}.?model.orValue("none")'
        done = dra("cel", text, "--derived", *self.files(tmp_path))
        values = [line.split("  ")[-1] for line in done.stdout.splitlines()[2:]]
        expected = ["A100", "H100", "none", "none", "none"]
        assert values == [json.dumps({"string": value}) for value in expected]

    @pytest.mark.parametrize(
        "content", ["", "{apiVersion: v1, kind: Pod}", json.dumps(slice_("p"))]
    )
    def test_no_device_at_all(self, content: str) -> None:
        done = dra("cel", "true", "-f", "-", stdin=content)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "dra: standard input: no ResourceSlice with devices in it\n"

    def test_a_file_that_is_not_there_or_broken(self, tmp_path: Path) -> None:
        assert "No such file" in dra("cel", "true", "-f", str(tmp_path / "x.yaml")).stderr
        broken = slice_("p", {"name": "a", "attributes": 5})
        done = dra("cel", "true", "-f", "-", stdin=json.dumps(broken))
        assert done.returncode == 2
        assert "spec.devices[0].attributes" in done.stderr

    def test_thousands_of_devices_come_quickly_and_as_they_are_found(self) -> None:
        slices = [slice_(f"p{n}", *(gpu(f"d{i}") for i in range(128))) for n in range(40)]
        text = "\n---\n".join(map(json.dumps, slices))
        began = time.monotonic()
        done = dra("cel", f"{OWN}.model == 'x'", "-f", "-", stdin=text)
        assert time.monotonic() - began < 5120 / 1000 + 10  # the rest is reading YAML
        assert done.stdout.endswith("0 of 5120 devices match, 5120 errors\n")
        assert "and 5119 more: no such key: model" in done.stdout
        assert done.stdout.count("\n") == 5120 + 6


class TestEnvironments:
    @pytest.mark.parametrize(
        ("expression", "taken"),
        [
            # stored 1.36, new 1.36, stored 1.37, new 1.37
            ('device.driver == "x"', (True, True, True, True)),
            ("{'a-b': true}.`a-b`", (False, False, True, True)),
            ("string(duration(size(device.driver))) == ''", (True, True, False, False)),
            (f"{OWN}.tags.exists(t, t == 'fast')", (False, False, True, False)),
            ('["a"].includes("a")', (True, False, True, False)),
        ],
    )
    def test_versions(self, expression: str, taken: tuple[bool, ...]) -> None:
        asked = [
            cel(expression, f"--kubernetes-version={version}", *new)
            for version in ("1.36", "1.37")
            for new in ((), ("--new",))
        ]
        assert tuple(done.returncode == 0 for done in asked) == taken

    @pytest.mark.parametrize(
        ("expression", "gate", "default"),
        [
            (f"{OWN}.tags.exists(t, t == 'fast')", "DRAListTypeAttributes", False),
            ("device.allowMultipleAllocations", "DRAConsumableCapacity", True),
        ],
    )
    def test_gates_of_an_api_server(self, expression: str, gate: str, default: bool) -> None:
        def taken(*arguments: str) -> bool:
            return cel(expression, "--new", *arguments).returncode == 0

        assert taken() is default
        assert taken(f"--feature-gates={gate}=true")
        assert not taken(f"--feature-gates={gate}=false")
        assert cel(expression, f"--feature-gates={gate}=false").returncode == 0, "it is stored"


class TestCalls:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "give an expression, or --batch"),
            (["true", "--batch", "-"], "--batch takes no expression"),
            (["--batch", "-", "--derived"], "--batch takes no expression, --derived"),
            (["--batch", "/nowhere"], "/nowhere: No such file or directory"),
            (["--batch", "/"], "/: Is a directory"),
            (["true", "--device", "a", "-f", "b"], "give --device or --filename, not both"),
            (["true", "--device", "/nowhere"], "/nowhere: No such file or directory"),
            (["true", "--kubernetes-version", "1.35"], "known are: 1.36, 1.37"),
            (["true", "--feature-gates", "X=true"], "has no feature gate 'X'"),
            (["true", "--feature-gates", "X"], "is not NAME=true or NAME=false"),
            (["true", "--timeout", "0"], "--timeout is a number of seconds above zero"),
            (["true", "--timeout", "nan"], "--timeout is a number of seconds above zero"),
            (["true", "--timeout", "x"], "Invalid value for '--timeout'"),
            (["true", "-o", "yaml"], "Invalid value for '-o'"),
            (["true", "true"], "unexpected extra argument"),
            (["tr\udcffue"], "the expression is not text in UTF-8 (character 2)"),
        ],
    )
    def test_a_wrong_call_is_one_line_and_status_2(
        self, arguments: list[str], message: str
    ) -> None:
        done = dra("cel", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert message in done.stderr

    def test_help_names_every_flag(self) -> None:
        done = dra("cel", "--help")
        for flag in (
            "--derived", "--device", "--filename", "--batch", "--new", "--kubernetes-version",
            "--feature-gates", "--timeout", "--output",
        ):  # fmt: skip
            assert flag in done.stdout
        assert " cel " in dra("--help").stdout

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            ("dra ", {"cel", "lint"}),
            ("dra cel --d", {"--derived", "--device"}),
            ("dra cel -o ", {"text", "json"}),
            ("dra lint --kub", {"--kubernetes-version"}),
        ],
    )
    def test_completion_in_a_shell(self, words: str, found: set[str]) -> None:
        asked = words.split(" ")
        environment = os.environ | {
            "_DRA_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(asked) - 1),
        }
        program = [sys.executable, "-c", "import dra_cli.app as a; a.main()"]
        done = subprocess.run(program, env=environment, capture_output=True, check=True, timeout=60)
        assert {line.split(",")[1] for line in done.stdout.decode().split()} == found

    def test_a_reader_that_goes_away(self) -> None:
        """``dra cel … | head``: no complaint."""
        lines = "".join(f'{{"id": {n}, "expression": "true"}}\n' for n in range(20_000))
        command = f"{sys.executable} -m dra_cli cel --batch - | head -1"
        done = subprocess.run(
            ["bash", "-c", command], input=lines.encode(), capture_output=True, check=True
        )
        assert json.loads(done.stdout)["id"] == 0
        assert done.stderr == b""

    def test_an_interrupt_ends_it_without_a_trace(self) -> None:
        with Asking(before=("env", "--default-signal=INT")) as asked:
            asked.ask({"id": 1, "expression": "true"})
            asked.process.send_signal(signal.SIGINT)
            assert asked.process.wait(10) == 130
            assert asked.errors() == b"\n", "the prompt goes on on a new line"


class Asking:
    """A batch that is asked line by line."""

    def __init__(self, *arguments: str, before: Sequence[str] = ()) -> None:
        self._command = [*before, sys.executable, "-m", "dra_cli", "cel", "--batch", "-"]
        self._command += arguments

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        )
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        self.process.kill()
        self.process.wait()

    def ask(self, question: JSON | bytes) -> JSON:
        """The answer, which comes before anything else is asked."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        line = question if isinstance(question, bytes) else json.dumps(question).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        found: JSON = json.loads(self.process.stdout.readline())
        return found

    def errors(self) -> bytes:
        """What it complained of."""
        assert self.process.stderr is not None
        return self.process.stderr.read()


def batch(lines: Iterable[JSON | bytes], *arguments: str) -> tuple[list[JSON], int]:
    """All answers, and the exit status."""
    given = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    done = dra("cel", "--batch", "-", *arguments, stdin=b"\n".join(given) + b"\n")
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


class TestBatch:
    def test_questions_and_answers(self) -> None:
        device = {
            "driver": DRIVER,
            "allowMultipleAllocations": True,
            "attributes": {"model": {"string": "A100"}},
            "capacity": {"memory": "40Gi", "cores": {"value": "8"}},
        }
        answers, status = batch(
            [
                {"id": 1, "expression": f'{OWN}.model == "A100"', "device": device},
                {"id": "two", "kind": "derived", "expression": f"{OWN}.model", "device": device},
                {"id": 3, "kind": "selector", "expression": "nope", "device": device},
                {"id": 4, "expression": f"{OWN}.x == 1", "device": device},
                {"expression": f'{CAPACITY}.memory.isGreaterThan(quantity("39Gi"))'}
                | {"device": device},
                {"id": None, "kind": None, "device": None, "expression": loops(6)},
            ]
        )
        facts = {"outputType": "bool", "maxCost": 5, "aboveLimit": False}
        assert status == 1
        assert answers[0] == {"id": 1, "match": True, "cost": 5, **facts}
        assert answers[1] == {
            "id": "two",
            "attribute": {"string": "A100"},
            "cost": 4,
            "outputType": "dyn",
            "maxCost": 4,
            "aboveLimit": False,
        }
        assert answers[2]["compileError"].startswith("1:1: undeclared reference to 'nope'")
        assert sorted(answers[2]) == ["compileError", "faults", "id"]
        assert answers[3] == {"id": 4, "evalError": "no such key: x", "offset": len(OWN)} | {
            "cost": 5,
            **facts,
        }
        assert (answers[4]["id"], answers[4]["match"]) == (None, True)
        assert answers[5]["evalError"] == "operation cancelled: actual cost limit exceeded"
        assert (answers[5]["maxCost"], answers[5]["aboveLimit"]) == (4_555_551, True)

    def test_status_0_if_all_have_a_value(self) -> None:
        question = {"id": 1, "expression": "false"}
        assert batch([question, question])[1] == 0
        assert batch([])[1] == 0
        assert batch([question, {"id": 2, "expression": "1"}])[1] == 1
        assert batch([question, b"x", {"id": 2, "expression": "1"}])[1] == 2

    def test_the_204_cases(self, tmp_path: Path) -> None:
        data = json.loads((cel_golden.FOLDER / "cases.json").read_text())
        file = tmp_path / "questions.jsonl"
        questions = [{**c, "device": data["devices"][c["device"]]} for c in data["cases"]]
        file.write_text("".join(json.dumps(question) + "\n" for question in questions))
        done = dra("cel", "--batch", str(file))
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == 204
        assert done.returncode == 1
        for case, answer in zip(data["cases"], answers, strict=True):
            assert answer["id"] == case["id"]
            assert verdict(answer) == verdict(case["expect"]), case
            if "compileError" not in answer:
                assert answer["outputType"] == case["outputType"], case
                assert answer["cost"] == case["cost"] or case["id"] in RANDOM_ORDER, case

    def test_a_bad_line_never_ends_it(self) -> None:
        good = {"id": "good", "expression": "true"}
        with Asking() as asked:
            for name, (line, message) in BAD.items():
                answer = asked.ask(line)
                assert message in str(answer), name
                assert asked.ask(good)["match"] is True, name
            assert asked.process.stdin is not None
            asked.process.stdin.close()
            assert asked.process.wait(10) == 2
            assert asked.errors() == b""

    def test_blank_lines_are_passed_over_and_counted(self) -> None:
        lines = [b"", b"  \t\r", b"nope", b"", b'{"expression": "true"}\r', b"nope"]
        answers, _ = batch(lines)
        assert [(a.get("line"), "error" in a) for a in answers] == [
            (3, True),
            (None, False),
            (6, True),
        ]

    def test_a_last_line_without_an_end(self) -> None:
        done = dra("cel", "--batch", "-", stdin='{"expression": "true"}')
        assert json.loads(done.stdout)["match"] is True

    def test_characters_of_every_kind(self) -> None:
        text = "\u00fc\U0001f600\u2028"
        half = {
            "kind": "derived",
            "expression": 'device.attributes["a"].x',
            "device": {"driver": "a", "attributes": {"x": {"string": "\udfff"}}},
        }
        answers, status = batch(
            [
                {"id": text, "kind": "derived", "expression": f'"{text}"'},
                b'{"id": "\\ud800", "expression": "\\"\\ud800\\" == \\"\\ufffd\\""}',
                b'{"id": 1, "expression": "\\"\\\\U0001f600\\" == \\"\\ud83d\\ude00\\""}',
                json.dumps(half).encode(),
            ]
        )
        assert status == 0
        assert (answers[0]["id"], answers[0]["attribute"]) == (text, {"string": text})
        assert (answers[1]["id"], answers[1]["match"]) == ("\ufffd", True), "as Go reads it"
        assert answers[2]["match"] is True
        assert answers[3]["attribute"] == {"string": "\ufffd"}

    def test_a_thousand_lines_a_second(self) -> None:
        device = {"driver": DRIVER, "attributes": {"model": {"string": "A100"}}}
        questions = [
            {"id": n, "expression": f'{OWN}.model == "{n % 50}"', "device": device}
            for n in range(10_000)
        ]
        began = time.monotonic()
        answers, status = batch(questions)
        assert time.monotonic() - began < 10.0
        assert ([a["id"] for a in answers], status) == (list(range(10_000)), 0)


#: They walk over a map until something is found; the reference does that in random order.
RANDOM_ORDER = frozenset(("x-domain-macro", "x-exists-on-map-values", "x-transformlist-over-attrs"))


def question(**more: Any) -> bytes:
    return json.dumps({"id": 7, "expression": "true", **more}).encode()


#: Lines, and what is in the answer.
BAD: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"hello", "the line is not JSON"),
    "half of it": (b'{"id": 1, "expression": "tr', "the line is not JSON"),
    "two on a line": (question() + question(), "the line is not JSON"),
    "binary": (bytes(n for n in range(256) if n != 10), "is not text in UTF-8"),
    "zeros": (b"\0" * 1000, "the line is not JSON"),
    "UTF-16": ('{"id": 1}'.encode("utf-16"), "is not text in UTF-8"),
    "a byte order mark": (b"\xef\xbb\xbf" + question(), "the line is not JSON"),
    "no number": (b'{"id": NaN, "expression": "true"}', "NaN is no number of JSON"),
    "infinity": (b'{"id": -Infinity, "expression": "true"}', "-Infinity is no number"),
    "a number of 5,000 digits": (b'{"id": ' + b"9" * 5000 + b"}", "the line is not JSON"),
    "deep": (b"[" * 100_000, "the line is nested too deep"),
    "deep and whole": (b"[" * 50_000 + b"]" * 50_000, "the line is nested too deep"),
    "a deep id": (b'{"id":' + b"[" * 500 + b"]" * 500 + b"}", "id is text or a number"),
    "a deep device": (
        b'{"expression":"true","device":{"x":' + b"[" * 900 + b"]" * 900 + b"}}",
        "match",
    ),
    "a deep device with an escape": (
        b'{"expression":"tru\\u0065","device":{"x":' + b"[" * 900 + b"]" * 900 + b"}}",
        "nested too deep",
    ),
    "a deep attribute": (
        b'{"expression":"true","device":{"attributes":{"a":'
        + b'{"a":' * 700
        + b"1"
        + b"}" * 700
        + b"}}}",
        "unsupported attribute value",
    ),
    "huge": (b'{"id": 1, "expression": "' + b"x" * 30_000_000 + b'"}', "longer than 4 MiB"),
    "as long as allowed": (question(x="y" * (4 * 2**20 - 60)), "match"),
    "a list": (b"[]", "a question is an object"),
    "a text": (b'"true"', "a question is an object"),
    "nothing": (b"null", "a question is an object"),
    "no expression": (b'{"id": 7}', "a question has an expression"),
    "an expression that is a number": (question(expression=5), "a question has an expression"),
    "a kind that is not known": (question(kind="x"), "kind is one of selector, derived, not 'x'"),
    "a kind that is a list": (question(kind=[]), "kind is one of selector, derived, not a list"),
    "an id that is an object": (question(id={}), "id is text or a number, not an object"),
    "a device that is a list": (question(device=[]), "a device is an object, not a list"),
    "a device that is a number": (question(device=0), "a device is an object, not 0"),
    "a device that is a text": (question(device="x"), "a device is an object, not 'x'"),
    "a driver that is a number": (question(device={"driver": 5}), "driver and pool"),
    "attributes that are a list": (question(device={"attributes": []}), "device.attributes"),
    "an attribute that is a text": (
        question(device={"attributes": {"a": "x"}}),
        "not an attribute",
    ),
    "an attribute of a wrong type": (
        question(device={"attributes": {"a": {"int": "x"}}}),
        "device.attributes[a]",
    ),
    "a number of 70 bits": (
        question(device={"attributes": {"a": {"int": 2**70}}}),
        "does not fit into 64 bits",
    ),
    "a number of 400 digits": (
        question(device={"attributes": {"a": {"int": 10**400}}}),
        "does not fit into 64 bits",
    ),
    "a quantity of 5,000 digits": (
        question(device={"capacity": {"a": "9" * 5000}}),
        "device.capacity[a]",
    ),
    "a quantity beyond all": (question(device={"capacity": {"a": "1e999999999"}}), "match"),
    "a version of 5,000 digits": (
        question(device={"attributes": {"a": {"version": "9" * 5000 + ".0.0"}}}),
        "parse semantic version",
    ),
    "numbers of 70 bits": (
        question(device={"attributes": {"a": {"ints": [1, -(2**70)]}}}),
        "does not fit into 64 bits",
    ),
    "an attribute of no kind": (
        question(device={"attributes": {"a": {"x": 1}}}),
        "unsupported attribute value",
    ),
    "a capacity that is none": (question(device={"capacity": {"a": "x"}}), "device.capacity[a]"),
    "a capacity that is a list": (question(device={"capacity": {"a": []}}), "device.capacity[a]"),
    "capacities that are a text": (question(device={"capacity": "x"}), "device.capacity"),
    "a version that is none": (
        question(device={"attributes": {"a": {"version": "x"}}}),
        "parse semantic version",
    ),
    "an expression of nothing": (question(expression=""), "the expression ends where"),
    "an expression of zeros": (question(expression="\0" * 100), "compileError"),
    "a lone surrogate": (b'{"id": 7, "expression": "\\ud800"}', "does not belong"),
    "a key twice": (b'{"id": 7, "expression": "nope", "expression": "true"}', "match"),
}


#: A text of a million characters, which costs less than the limit.
LONG = 'lists.range(100000).map(x, "aaaaaaaaaa").join("")'


class TestHostile:
    def test_every_hostile_expression_ends(self) -> None:
        """Nested loops, texts and lists that grow, deep nesting, long ones, patterns: each has an
        answer within seconds, all of them in one process of less than 1 GiB.
        """
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        slowest, kinds = (0.0, ""), dict[str, int]()
        with Asking("--timeout", "5") as asked:
            for name, text in expressions():
                began = time.monotonic()
                answer = asked.ask({"id": name, "expression": text, "device": {"driver": "a.io"}})
                slowest = max(slowest, (time.monotonic() - began, name))
                kind = verdict(answer)[0]
                kinds[kind] = kinds.get(kind, 0) + 1
                if len(text.encode()) > 10 * 1024:
                    assert "bytes long, 10240 are allowed" in answer["compileError"], name
        assert slowest[0] < 10.0, slowest
        after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        assert max(before, after) * 1024 < GIB
        assert min(kinds[kind] for kind in ("match", "compileError", "evalError")) >= 10, kinds

    @pytest.mark.parametrize(
        ("expression", "error"),
        [
            (loops(7), "actual cost limit exceeded"),
            ("lists.range(1000000).map(x, x + 1).sum() > 0", "actual cost limit exceeded"),
            (
                'duration(lists.range(900000).map(x, "1s").join("")) > duration("1s")',
                "actual cost limit exceeded",
            ),
            (f'cel.bind(a, {LONG}, a.replace("a", a).size() > 0)', "actual cost limit exceeded"),
        ],
    )
    def test_the_limit_of_costs_ends_it(self, expression: str, error: str) -> None:
        began = time.monotonic()
        found = answered(expression)
        assert time.monotonic() - began < 10.0
        assert error in found["evalError"]

    @pytest.mark.parametrize("character", ["a", "\u00fc", "\U0001f600"])
    def test_the_limit_of_length_is_one_of_bytes(self, character: str) -> None:
        size, rest = len(character.encode()), 10 * 1024 - len('"" != "a"')
        text = f'"{character * (rest // size)}{"b" * (rest % size)}" != "a"'
        assert answered(text)["match"] is True
        assert "10241 bytes long" in report(f"{text} ")["compileError"]

    def test_the_timeout_ends_it(self) -> None:
        """An evaluation below the limit of costs, but longer than it may take."""
        text = "lists.range(100000).all(x, x >= 0)"
        assert answered(text)["match"] is True
        done = cel(text, "--timeout", "0.001", device=DEVICE)
        assert done.returncode == 1
        assert "operation interrupted: the deadline is over" in done.stdout
        with Asking("--timeout", "0.001") as asked:
            assert "operation interrupted" in asked.ask({"expression": text})["evalError"]
            assert asked.ask({"expression": "true"})["match"] is True, "each has its own time"


def expressions() -> Iterator[tuple[str, str]]:
    """Those that the reference is asked as well, and some that it should not be asked."""
    for name, text in cel_hostile.hostile():
        if not name.startswith(("edge", "pair")):
            yield name, text
    for number, text in enumerate(cel_hostile.NOT_ASKED):
        yield f"not-asked-{number}", text
    yield "format", '"%0900000d".format([1]).size() > 0'
    yield "sort", "lists.range(900000).map(x, string(x)).sort().size() > 0"
    yield "flatten", f"{loops(4, 'lists.range(1000).map(x, [x]).flatten().size() > 0')}"
    yield "binds", "cel.bind(a, " * 500 + "true" + ", true)" * 500

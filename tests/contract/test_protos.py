"""The gRPC messages and services are those of the kubelet, and the committed stubs are up to date.

The kubelet's side comes from a small Go program (``go/protos``) that prints the descriptors of
k8s.io/kubelet. Its output is committed, so that the comparison also runs without Go; a test of its
own shows that the committed output is still what the program prints.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import descriptor_pb2, json_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
GENERATE = ROOT / "protos" / "generate.py"
STUBS = ROOT / "protos" / "dra_protos"
GO_PROGRAM = Path(__file__).resolve().parent / "go" / "protos"
KUBELET = "0.37.2"
GOLDEN = ROOT / "tests" / "data" / "protos" / f"upstream-{KUBELET}.json"

PACKAGES = {
    "pluginregistration_v1": "pluginregistration",
    "dra_v1": "k8s.io.kubelet.pkg.apis.dra.v1",
    "dra_v1beta1": "k8s.io.kubelet.pkg.apis.dra.v1beta1",
    "dra_health_v1": "v1",
    "dra_health_v1alpha1": "v1alpha1",
}

File = descriptor_pb2.FileDescriptorProto


def ours(module: str) -> File:
    proto = File()
    importlib.import_module(f"dra_protos.{module}_pb2").DESCRIPTOR.CopyToProto(proto)
    return proto


def theirs(package: str) -> File:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return json_format.ParseDict(golden["files"][package], File())


def without_naming(file: File) -> dict[str, Any]:
    """The descriptor as a dictionary, less what does not change the protocol.

    Gone are the file's name and options (go_package), comments, JSON names (derived from the field
    names) and empty options. Everything else stays in, whatever it is.
    """
    copy = File()
    copy.CopyFrom(file)
    for field in ("name", "options", "source_code_info"):
        copy.ClearField(field)
    content: dict[str, Any] = json_format.MessageToDict(copy)
    return content


def facts(value: Any, path: str = "") -> Iterator[str]:
    """One line for each leaf; named elements stand under their name, whatever their order."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key != "jsonName":
                yield from facts(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            name = inner.get("name", index) if isinstance(inner, dict) else index
            yield f"{path}/{name}"
            yield from facts(inner, f"{path}/{name}")
    else:
        yield f"{path} = {value}"


def differences(left: File, right: File) -> list[str]:
    a, b = set(facts(without_naming(left))), set(facts(without_naming(right)))
    return sorted([f"- {line}" for line in a - b] + [f"+ {line}" for line in b - a])


def message(file: File, name: str) -> descriptor_pb2.DescriptorProto:
    return next(m for m in file.message_type if m.name == name)


def load_generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("protos_generate", GENERATE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- against the kubelet ---


@pytest.mark.parametrize("module", PACKAGES)
def test_descriptor_is_that_of_the_kubelet(module: str) -> None:
    assert differences(ours(module), theirs(PACKAGES[module])) == []


def test_every_proto_file_is_compared() -> None:
    assert {path.stem for path in STUBS.glob("*.proto")} == PACKAGES.keys()
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert golden["files"].keys() == set(PACKAGES.values())
    assert golden["kubelet"] == f"v{KUBELET}"


@pytest.mark.go
def test_golden_is_what_the_go_program_prints() -> None:
    result = subprocess.run(
        ["go", "run", "-mod=readonly", "."],
        cwd=GO_PROGRAM,
        env={**os.environ, "GOFLAGS": "", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == GOLDEN.read_text(encoding="utf-8")


# --- negative controls of the comparison ---


def renumber_a_field(file: File) -> None:
    message(file, "Device").field[1].number = 9


def rename_a_field(file: File) -> None:
    message(file, "Device").field[1].name = "pool"


def retype_a_field(file: File) -> None:
    message(file, "Claim").field[1].type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES


def make_a_list_single(file: File) -> None:
    label = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
    message(file, "NodePrepareResourcesRequest").field[0].label = label


def drop_presence(file: File) -> None:
    device = message(file, "Device")
    device.field[4].ClearField("proto3_optional")
    device.field[4].ClearField("oneof_index")
    device.ClearField("oneof_decl")


def drop_a_field(file: File) -> None:
    del message(file, "Device").field[4]


def drop_a_message(file: File) -> None:
    del file.message_type[0]


def reserve_a_number(file: File) -> None:
    message(file, "Claim").reserved_range.add(start=4, end=5)


def make_a_map_a_list(file: File) -> None:
    message(file, "NodePrepareResourcesResponse").nested_type[0].ClearField("options")


def rename_a_method(file: File) -> None:
    file.service[0].method[0].name = "NodePrepareResource"


def stream_a_method(file: File) -> None:
    file.service[0].method[0].server_streaming = True


def rename_the_service(file: File) -> None:
    file.service[0].name = "DRA"


def change_the_package(file: File) -> None:
    file.package = "k8s.io.kubelet.pkg.apis.dra.v2"


def add_an_enum(file: File) -> None:
    file.enum_type.add(name="State").value.add(name="UNKNOWN", number=0)


@pytest.mark.parametrize(
    "mutate",
    [
        renumber_a_field,
        rename_a_field,
        retype_a_field,
        make_a_list_single,
        drop_presence,
        drop_a_field,
        drop_a_message,
        reserve_a_number,
        make_a_map_a_list,
        rename_a_method,
        stream_a_method,
        rename_the_service,
        change_the_package,
        add_an_enum,
    ],
)
def test_comparison_sees_a_changed_descriptor(mutate: Callable[[File], None]) -> None:
    file = ours("dra_v1")
    mutate(file)
    assert differences(file, theirs(PACKAGES["dra_v1"])) != []


def test_comparison_sees_a_renumbered_enum_value() -> None:
    file = ours("dra_health_v1")
    file.enum_type[0].value[1].number = 7
    assert differences(file, theirs("v1")) == [
        "+ /enumType/HealthStatus/value/HEALTHY/number = 1",
        "- /enumType/HealthStatus/value/HEALTHY/number = 7",
    ]


def test_comparison_does_not_mind_name_comment_or_order() -> None:
    file = ours("dra_v1")
    file.name = "api.proto"
    file.options.go_package = "example.com/api"
    first = descriptor_pb2.DescriptorProto()
    first.CopyFrom(file.message_type[0])
    del file.message_type[0]
    file.message_type.append(first)
    assert differences(file, theirs(PACKAGES["dra_v1"])) == []


# --- the generated stubs ---


def test_stubs_are_what_the_generator_writes() -> None:
    result = subprocess.run(
        [sys.executable, str(GENERATE), "--check"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_check_shows_a_changed_a_missing_and_a_stale_stub() -> None:
    generate = load_generate()
    committed = {"a_pb2.py": "one\n", "stale_pb2.py": "x\n"}
    generated = {"a_pb2.py": "two\n", "new_pb2.py": "y\n"}
    diff = generate.differences(committed, generated)
    assert "-one\n+two\n" in diff
    assert "only committed: stale_pb2.py\n" in diff
    assert "only generated: new_pb2.py\n" in diff
    assert generate.differences(committed, committed) == ""


def test_writing_removes_stale_stubs_and_nothing_else(tmp_path: Path) -> None:
    generate = load_generate()
    for name in ("__init__.py", "old_pb2.py", "old_pb2_grpc.pyi", "a.proto"):
        (tmp_path / name).write_text("kept\n", encoding="utf-8")
    generate.write(tmp_path, {"new_pb2.py": "text\n"})
    assert {path.name for path in tmp_path.iterdir()} == {"__init__.py", "a.proto", "new_pb2.py"}


def test_a_tool_of_another_version_is_named_with_the_way_to_install() -> None:
    generate = load_generate()
    with pytest.raises(generate.ToolError) as caught:
        generate.check_tools({"grpcio-tools": "0.1", "no-such-tool": "1"})
    installed = generate.PINNED["grpcio-tools"]
    assert str(caught.value) == (
        f"grpcio-tools 0.1 is needed, installed is {installed}; "
        "no-such-tool 1 is needed, installed is none. "
        "Install with: pip install grpcio-tools==0.1 no-such-tool==1"
    )


def test_all_stubs_live_in_one_process_without_a_warning() -> None:
    modules = sorted(path.stem for path in STUBS.glob("*_pb2*.py"))
    assert len(modules) == 2 * len(PACKAGES)
    program = "".join(f"import dra_protos.{module}\n" for module in modules)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "PYTHONPATH": str(STUBS.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")

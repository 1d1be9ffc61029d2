"""Settings: where they come from, and what the driver says to wrong ones.

What it says is in ``tests/data/driver/refusals.json``, folders replaced by ``<tmp>``.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dra_driver.profiles.gpu import GpuProfile
from dra_testing.driver_process import DriverProcess
from dra_testing.forked_drivers import ForkedDrivers
from dra_testing.places import (
    HAND,
    HAND_PROGRAM,
    PROGRAM,
    Place,
    kubeconfig,
    plain_environment,
    run_to_end,
)
from dra_testing.polling import until

if TYPE_CHECKING:
    from testcluster.cluster import Cluster

Start = Callable[..., DriverProcess]

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "driver" / "refusals.json"
FLAGS = {
    "--cdi-dir",
    "--config",
    "--driver-name",
    "--generations",
    "--help",
    "--http-address",
    "--kubeconfig",
    "--identity",
    "--kubelet-root",
    "--leader-election",
    "--lease-name",
    "--lease-namespace",
    "--log-format",
    "--log-level",
    "--no-node",
    "--node-name",
    "--on-stop",
    "--option",
    "--pod-uid",
    "--profile",
    "--rescan-interval",
    "--version",
}


@dataclass(frozen=True)
class Wrong:
    """A wrong setting. ``<tmp>`` in texts is a folder; ``files`` are made in it (None: a folder).

    The other settings are right, as far as ``arguments`` does not give them. ``read_only`` is a
    folder below ``<tmp>`` on a file system that cannot be written.
    """

    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    without: Sequence[str] = ()
    read_only: str = ""


def _config(content: str | bytes) -> Wrong:
    data = content.encode() if isinstance(content, str) else content
    return Wrong(["--config=<tmp>/settings.yaml"], files={"settings.yaml": data})


def _credentials(content: bytes | None) -> Wrong:
    return Wrong(["--kubeconfig=<tmp>/admin.conf"], files={"admin.conf": content})


def _broken_credentials(**changes: Any) -> Wrong:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "d", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "d",
    }
    return _credentials(json.dumps(content | changes).encode())


def _no_node(*arguments: str) -> Wrong:
    return Wrong(["--no-node", *arguments], without=["--node-name", "--kubelet-root", "--cdi-dir"])


WRONG: dict[str, Wrong] = {
    "no node name": Wrong(without=["--node-name"]),
    "node settings without a node": Wrong(["--no-node"]),
    "node settings without a node, from the environment": Wrong(
        ["--no-node", "--lease-namespace=n"],
        environment={"DRA_DRIVER_CDI_DIR": "/cdi"},
        without=["--node-name", "--kubelet-root", "--cdi-dir"],
    ),
    "node settings without a node, from the file": Wrong(
        ["--config=<tmp>/settings.yaml"],
        files={"settings.yaml": b"no-node: true\nnode-name: n1\n"},
        without=["--node-name", "--kubelet-root", "--cdi-dir"],
    ),
    "a Lease on a node": Wrong(["--lease-name=l"]),
    "no leader election on a node": Wrong(["--no-leader-election"]),
    "no node and no namespace": _no_node(),
    "no node and a wrong namespace": _no_node("--lease-namespace=A_b"),
    "no node and a wrong lease name": _no_node("--lease-namespace=n", "--lease-name=A_b"),
    "no node for a profile that needs one": _no_node("--lease-namespace=n"),
    "node name in capitals": Wrong(["--node-name=Node_1"]),
    "driver name with underscore": Wrong(["--driver-name=gpu_driver"]),
    "driver name too long": Wrong([f"--driver-name={'a' * 64}"]),
    "pod UID that leads elsewhere": Wrong(["--pod-uid=../x"]),
    "unknown flag": Wrong(["--nod-name=n"]),
    "flag without value": Wrong(["--profile"]),
    "stray argument": Wrong(["start"]),
    "unknown profile": Wrong(["--profile=fpga"]),
    "unknown log level": Wrong(["--log-level=loud"]),
    "unknown log level in the environment": Wrong(environment={"DRA_DRIVER_LOG_LEVEL": "loud"}),
    "rescan interval that is no number": Wrong(["--rescan-interval=often"]),
    "HTTP address without a port": Wrong(["--http-address=localhost"]),
    "HTTP address with a port out of range": Wrong(["--http-address=127.0.0.1:65536"]),
    "HTTP address with a port that is no number": Wrong(["--http-address=127.0.0.1:http"]),
    "option without value": Wrong(["--option=count"]),
    "option without name": Wrong(["--option==3"]),
    "option without value in the environment": Wrong(environment={"DRA_DRIVER_OPTION": "count"}),
    "unknown option": Wrong(["--option=colour=red"]),
    "option count negative": Wrong(["--option=count=-1"]),
    "option count too large": Wrong(["--option=count=10001"]),
    "option count no number": Wrong(["--option=count=many"]),
    "option model empty": Wrong(["--option=model="]),
    "option model too long": Wrong([f"--option=model={'x' * 65}"]),
    "option driver-version no version": Wrong(["--option=driver-version=new"]),
    "option memory no quantity": Wrong(["--option=memory=80GB"]),
    "kubeconfig missing": Wrong(["--kubeconfig=<tmp>/nowhere"]),
    "kubeconfig missing, from the environment": Wrong(
        environment={"KUBECONFIG": "<tmp>/nowhere"}, without=["--kubeconfig"]
    ),
    "kubeconfig is a folder": _credentials(None),
    "kubeconfig is no YAML": _credentials(b"{{{\n}"),
    "kubeconfig is text": _credentials(b"hello\n"),
    "kubeconfig is binary": _credentials(b"\x00\xff\xfe"),
    "kubeconfig is empty": _credentials(b""),
    "kubeconfig without current context": _broken_credentials(**{"current-context": ""}),
    "kubeconfig with unknown context": _broken_credentials(**{"current-context": "prod"}),
    "kubeconfig with a certificate file that is missing": _broken_credentials(
        users=[{"name": "u", "user": {"client-certificate": "none.crt", "client-key": "no.key"}}]
    ),
    "no kubeconfig anywhere": Wrong(environment={"HOME": "<tmp>"}, without=["--kubeconfig"]),
    "in a pod without a token": Wrong(
        environment={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"},
        without=["--kubeconfig"],
    ),
    "kubelet root below a file": Wrong(["--kubelet-root=<tmp>/file/k"], files={"file": b""}),
    "kubelet root that is read-only": Wrong(["--kubelet-root=<tmp>/ro"], read_only="ro"),
    "socket path too long": Wrong([f"--kubelet-root=<tmp>/{'deep/' * 20}"]),
    "CDI folder is a file": Wrong(["--cdi-dir=<tmp>/file"], files={"file": b""}),
    "CDI folder below a file": Wrong(["--cdi-dir=<tmp>/file/cdi"], files={"file": b""}),
    "CDI folder that is read-only": Wrong(["--cdi-dir=<tmp>/ro"], read_only="ro"),
    "settings file missing": Wrong(["--config=<tmp>/nowhere"]),
    "settings file missing, from the environment": Wrong(
        environment={"DRA_DRIVER_CONFIG": "<tmp>/nowhere"}
    ),
    "settings file is a folder": Wrong(["--config=<tmp>/folder"], files={"folder": None}),
    "settings file is no YAML": _config("node-name: [\n"),
    "settings file is binary": _config(b"\x00\xff\xfe"),
    "settings file with a tag of Python": _config("node-name: !!python/object:os.system ls\n"),
    "settings file is a list": _config("- node-name\n- n1\n"),
    "settings file is a word": _config("hello\n"),
    "settings file too large": _config(f"# {'x' * 2**20}\n"),
    "settings file nested too deep": _config("[" * 100_000),
    "settings file with an unknown key": _config("nodename: n1\n"),
    "settings file that names another": _config("config: other.yaml\n"),
    "settings file that asks for the version": _config("version: true\n"),
    "settings file with options as a list": _config("options: [count]\n"),
    "settings file with an unknown option": _config("options: {colour: red}\n"),
    "settings file with a bad option": _config("options: {count: many}\n"),
    "settings file with a bad log level": _config("log-level: loud\n"),
}

#: Values in a settings file that are not of the setting's kind, and what the answer has to name.
WRONG_KINDS: dict[str, str] = {
    "rescan-interval: [1]": "rescan-interval",
    "rescan-interval: {a: 1}": "rescan-interval",
    "rescan-interval: .nan": "rescan-interval",
    "rescan-interval: .inf": "rescan-interval",
    "rescan-interval: 1e300": "rescan-interval",
    "log-level: {a: 1}": "log-level",
    "log-level: [debug]": "log-level",
    "kubelet-root: [a]": "kubelet-root",
    "cdi-dir: {a: b}": "cdi-dir",
    "kubeconfig: [a]": "kubeconfig",
    "driver-name: [a]": "driver",
    "driver-name: true": "driver",
    "profile: [gpu]": "profile",
    "pod-uid: [a]": "pod",
    "http-address: [a]": "http-address",
    "http-address: 8080": "http-address",
    "options: {count: [1, 2]}": "count",
}

#: Settings that are there and have no value are as if they were not there.
EMPTY = ["rescan-interval", "log-level", "log-format", "profile", "driver-name", "options"]

WRONG_ALONE: dict[str, Wrong] = {
    "folder whose name is not UTF-8": Wrong(["--kubelet-root=<tmp>/" + os.fsdecode(b"\xff")]),
    "folder with a line break": Wrong(["--kubelet-root=<tmp>/file\nx/k"], files={"file\nx": b""}),
    "rescan interval zero": Wrong(["--rescan-interval=0"]),
    "rescan interval nan": Wrong(["--rescan-interval=nan"]),
    "rescan interval inf": Wrong(["--rescan-interval=inf"]),
    "rescan interval huge": Wrong(["--rescan-interval=1e300"]),
}

ALL = WRONG | WRONG_ALONE | {f"file: {text}": _config(f"{text}\n") for text in WRONG_KINDS}


def outcome(wrong: Wrong, forked: ForkedDrivers) -> tuple[subprocess.CompletedProcess[str], str]:
    """What the driver does, and the folder it was given."""
    with tempfile.TemporaryDirectory(prefix="drv") as name:
        folder = Path(name)

        def fill(text: str) -> str:
            return text.replace("<tmp>", name)

        for file, content in wrong.files.items():
            if content is None:
                (folder / file).mkdir()
            else:
                (folder / file).write_bytes(content)
        usual = {
            "--node-name": "n1",
            "--kubeconfig": str(kubeconfig(folder / "kubeconfig")),
            "--kubelet-root": f"{name}/k",
            "--cdi-dir": f"{name}/cdi",
        }
        # What the file gives is not to be covered by a flag.
        in_file = wrong.files.get("settings.yaml") or b""
        covered = {flag for flag in usual if in_file.startswith(f"{flag[2:]}:".encode())}
        given = [f"{k}={v}" for k, v in usual.items() if k not in {*wrong.without, *covered}]
        given += [fill(argument) for argument in wrong.arguments]
        if wrong.read_only:
            (folder / wrong.read_only).mkdir()
            return run_to_end(given, program=read_only(folder / wrong.read_only)), name
        if wrong.environment:
            return run_to_end(given, {k: fill(v) for k, v in wrong.environment.items()}), name
        return forked.run(given), name


def read_only(folder: Path) -> list[str]:
    """The program with a read-only file system at ``folder``, which goes when it ends."""
    more = [] if os.geteuid() == 0 else ["--map-root-user"]
    mount = f"mount -t tmpfs -o ro none {shlex.quote(str(folder))}"
    return ["unshare", "--mount", *more, "sh", "-c", f'{mount} && exec "$@"', "sh", *PROGRAM]


@pytest.fixture(scope="module")
def forked() -> Iterator[ForkedDrivers]:
    drivers = ForkedDrivers(plain_environment(HAND_PROGRAM["environment"]))
    yield drivers
    drivers.close()


def refusal(wrong: Wrong, forked: ForkedDrivers) -> str:
    """The one line that the driver says, folders replaced."""
    done, folder = outcome(wrong, forked)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("dra-driver: ")
    assert len(done.stderr) < 1000
    words = done.stderr.removeprefix("dra-driver: ").split()
    text = " ".join(words).replace(folder, "<tmp>")
    return re.sub(r"it has \d+ bytes", "it has N bytes", text)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_one_line_and_status_2(name: str, forked: ForkedDrivers) -> None:
    assert refusal(ALL[name], forked) == json.loads(GOLDEN.read_text())[name]


def test_every_line_of_the_golden_file_is_checked() -> None:
    assert sorted(json.loads(GOLDEN.read_text())) == sorted(WRONG)


@pytest.mark.parametrize("name", WRONG_ALONE)
def test_a_setting_that_nobody_expects_is_one_line_and_status_2(
    name: str, forked: ForkedDrivers
) -> None:
    assert refusal(ALL[name], forked)


@pytest.mark.parametrize("text", WRONG_KINDS)
def test_a_value_of_the_wrong_kind_in_the_file_is_named(text: str, forked: ForkedDrivers) -> None:
    assert WRONG_KINDS[text] in refusal(ALL[f"file: {text}"], forked)


def test_settings_without_a_value_in_the_file_have_their_defaults(
    short_path: Path, start_driver: Start
) -> None:
    place = Place(short_path)
    file = short_path / "settings.yaml"
    file.write_text("".join(f"{name}:\n" for name in EMPTY))

    driver = start_driver(*place.arguments(f"--config={file}"))

    assert driver.wait_for("serving")["driver"] == GpuProfile.DRIVER_NAME
    assert driver.events("a thread ended unexpectedly") == []
    assert driver.stop() == 0


def test_without_its_extra_the_program_says_what_to_install() -> None:
    path = os.pathsep.join(str(ROOT / part) for part in ("core", "driver", "protos"))
    environment = {"PYTHONPATH": path, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-S", "-m", "dra_driver", "--node-name=n1"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    pattern = (
        r"dra-driver: the package '\w+' is missing; "
        r"install the extra: pip install 'dragoman\[driver\]'\n"
    )
    assert re.fullmatch(pattern, done.stderr), done.stderr


@pytest.fixture
def broken_package(tmp_path: Path) -> Mapping[str, str]:
    """Environment in which a package with a profile is installed that cannot be imported."""
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dragoman.profiles]\nbroken = no_such_module:X\n")
    return {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.getenv("PYTHONPATH")])])
    }


def test_a_profile_whose_package_is_broken_is_one_line_and_status_2(
    broken_package: Mapping[str, str],
) -> None:
    done = run_to_end(["--node-name=n1", "--profile=broken"], broken_package)
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "broken" in done.stderr
    assert "no_such_module" in done.stderr


def test_a_profile_whose_package_is_broken_does_not_spoil_the_help(
    broken_package: Mapping[str, str],
) -> None:
    done = run_to_end(["--help"], broken_package)
    assert done.returncode == 0
    assert "Profile gpu" in done.stdout


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_has_every_flag_and_every_option_of_every_profile(flag: str) -> None:
    done = run_to_end([flag])
    assert done.returncode == 0
    assert done.stderr == ""
    described = set(re.findall(r"^ +(?:-h, )?(--[a-z-]+)", done.stdout, re.MULTILINE))
    assert described == FLAGS
    for option in GpuProfile.OPTIONS:
        assert f"{option.name}={option.default}" in done.stdout
        assert option.help.split()[0] in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_help_of_a_vendors_program_has_the_vendors_profiles() -> None:
    done = run_to_end(["--help"], HAND_PROGRAM["environment"], HAND_PROGRAM["program"])
    assert done.returncode == 0
    for part in ("Profile hand (for tests)", "Profile plain", "colour=red", "Profile gpu"):
        assert part in done.stdout


def test_version_is_that_of_the_package() -> None:
    done = run_to_end(["--version"])
    assert done.returncode == 0
    assert done.stderr == ""
    assert importlib.metadata.version("dragoman") in done.stdout


@pytest.mark.parametrize("name", ["VERSION", "HELP"])
def test_variables_are_for_settings_only(short_path: Path, start_driver: Start, name: str) -> None:
    """DRA_DRIVER_VERSION is what a manifest may well set for purposes of its own."""
    environment = {f"DRA_DRIVER_{name}": "1"}
    driver = start_driver(*Place(short_path).arguments(), environment=environment)
    driver.wait_for("serving")


@pytest.mark.parametrize("given", ["default", "file", "environment", "flag"])
def test_flags_win_over_environment_over_file_over_defaults(
    short_path: Path, start_driver: Start, given: str
) -> None:
    place = Place(short_path)
    file = short_path / "settings.yaml"
    order = ["default", "file", "environment", "flag"]
    known = order[: order.index(given) + 1]
    lines = [f"kubelet-root: {place.kubelet_root}"]
    lines += ["driver-name: file.example.com"] if "file" in known else []
    file.write_text("\n".join(lines))
    environment = {
        "DRA_DRIVER_NODE_NAME": "node-of-the-environment",
        "DRA_DRIVER_CONFIG": str(file),
    }
    if "environment" in known:
        environment["DRA_DRIVER_DRIVER_NAME"] = "environment.example.com"
    arguments = [f"--kubeconfig={place.credentials}", f"--cdi-dir={place.cdi}"]
    if "flag" in known:
        arguments.append("--driver-name=flag.example.com")

    serving = start_driver(*arguments, environment=environment).wait_for("serving")

    expected = GpuProfile.DRIVER_NAME if given == "default" else f"{given}.example.com"
    assert serving["driver"] == expected
    assert serving["node"] == "node-of-the-environment"
    assert serving["socket"] == f"{place.kubelet_root}/plugins/{expected}/dra.sock"


@pytest.fixture
def on_node(short_path: Path, control_plane: Cluster) -> Iterator[tuple[Place, Cluster]]:
    """A place whose node the cluster knows, and the cluster."""
    place = Place(short_path, control_plane.kubeconfig)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": place.node}}
    control_plane.api("POST", "/api/v1/nodes", node)
    yield place, control_plane
    control_plane.api("DELETE", f"/api/v1/nodes/{place.node}")
    # The slices go with the node that owns them.
    until("the slices are gone", lambda: not slices(place, control_plane))


_SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def slices(place: Place, cluster: Cluster) -> list[dict[str, Any]]:
    listed = cluster.api("GET", f"{_SLICES}?fieldSelector=spec.nodeName={place.node}")
    found: list[dict[str, Any]] = listed["items"]
    return found


def published(place: Place, cluster: Cluster) -> list[tuple[str, str]]:
    """Model and memory of each published device."""
    return [
        (device["attributes"]["model"]["string"], device["capacity"]["memory"]["value"])
        for item in slices(place, cluster)
        for device in item["spec"]["devices"]
    ]


def test_options_come_from_the_file_name_by_name_where_no_flag_gives_them_and_sighup_reads_them(
    on_node: tuple[Place, Cluster], start_driver: Start, tmp_path: Path
) -> None:
    place, cluster = on_node
    file = tmp_path / "settings.yaml"
    file.write_text("options: {count: 2, model: FROM-FILE}\n")
    driver = start_driver(*place.arguments(f"--config={file}", "--option=count=3"))
    until("devices", lambda: published(place, cluster) == [("FROM-FILE", "80Gi")] * 3)

    file.write_text("options: {count: 5, model: NEW, memory: 40Gi}\n")
    driver.signal(signal.SIGHUP)

    driver.wait_for("settings read again")
    until("devices anew", lambda: published(place, cluster) == [("NEW", "40Gi")] * 3, timeout=5)
    assert driver.events("a reload takes the profile's options only; restart for the others") == []


def test_options_of_the_environment_stay_where_a_flag_gives_another(
    on_node: tuple[Place, Cluster], start_driver: Start
) -> None:
    place, cluster = on_node
    environment = {"DRA_DRIVER_OPTION": "model=FROM-ENV count=5"}
    start_driver(*place.arguments("--option=count=2"), environment=environment)
    until("devices", lambda: published(place, cluster))
    assert published(place, cluster) == [("FROM-ENV", "80Gi")] * 2


@pytest.mark.parametrize("content", ["options: {count: many}\n", "options: [\n", "nodename: x\n"])
def test_settings_that_became_wrong_leave_the_old_ones_in_force(
    short_path: Path, start_driver: Start, content: str
) -> None:
    place = Place(short_path, driver=HAND)
    file = short_path / "settings.yaml"
    file.write_text(f"options: {{folder: {short_path}}}\n")
    driver = start_driver(*place.arguments("--profile=hand", f"--config={file}"), **HAND_PROGRAM)
    driver.wait_for("serving")

    file.write_text(content)
    driver.signal(signal.SIGHUP)

    record = driver.wait_for("settings were not read again, the old ones stay")
    assert record["level"] == "error"
    assert place.kubelet().unprepare(("default", "claim", "some-uid"))["some-uid"].error == ""
    assert place.diary() == ["unprepare some-uid"]

    file.write_text(f"options: {{folder: {short_path}, count: 2}}\n")
    driver.signal(signal.SIGHUP)
    driver.wait_for("settings read again")


def test_the_profile_is_not_changed_by_a_reload_and_neither_are_its_options(
    short_path: Path, start_driver: Start
) -> None:
    place = Place(short_path, driver=HAND)
    file = short_path / "settings.yaml"
    file.write_text(f"profile: hand\noptions: {{folder: {short_path}}}\n")
    driver = start_driver(*place.arguments(f"--config={file}"), **HAND_PROGRAM)
    driver.wait_for("serving")

    file.write_text("profile: plain\noptions: {colour: blue}\n")
    driver.signal(signal.SIGHUP)

    driver.wait_for("a reload takes the profile's options only; restart for the others")
    # The next reload shows that this one is over.
    driver.signal(signal.SIGHUP)
    driver.wait_for("a reload takes the profile's options only; restart for the others", 2)
    assert place.kubelet().unprepare(("default", "claim", "some-uid"))["some-uid"].error == ""


def test_every_line_that_a_serving_driver_writes_is_json(
    short_path: Path, start_driver: Start
) -> None:
    """Also what it says about settings that it cannot read again."""
    place = Place(short_path)
    file = short_path / "settings.yaml"
    file.write_text("options: {count: 2}\n")
    driver = start_driver(*place.arguments(f"--config={file}"))
    driver.wait_for("serving")

    file.write_text("options: {count: many}\n")
    driver.signal(signal.SIGHUP)

    record = driver.wait_for("settings were not read again, the old ones stay")
    assert [line for line in driver.records() if "raw" in line] == []
    assert "count='many'" in str(record)

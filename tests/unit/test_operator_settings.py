"""config: flags over environment over file over defaults, and one sentence for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_core.errors import InvalidValue
from dra_operator import config
from dra_operator.config import Settings
from dra_operator.ports import Mode


def parsed(*arguments: str) -> Settings:
    found = config.parse(arguments)
    assert isinstance(found, Settings)
    return found


def test_the_defaults_are_gentle_and_never_a_second_evictor() -> None:
    s = parsed()
    assert s.mode is Mode.AUTO
    assert (s.pods_per_second, s.pool_share, s.hold_share) == (20.0, 0.25, 0.5)
    assert s.delete_after is None
    assert (s.leader_election, s.namespaces, s.empty_effect) == (True, (), "matches-all")
    assert s.identity
    assert parsed().identity != s.identity


def test_flags_win_over_the_environment_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(
        "mode: evict\npods-per-second: 1\npool-share: 0.1\nnamespace: [a, b]\n"
        "leader-election: false\n"
    )
    monkeypatch.setenv("DRA_OPERATOR_PODS_PER_SECOND", "2")
    monkeypatch.setenv("DRA_OPERATOR_POOL_SHARE", "0.2")
    s = parsed("--config", str(file), "--pool-share", "0.3")
    assert (s.mode, s.pods_per_second, s.pool_share) == (Mode.EVICT, 2.0, 0.3)
    assert (s.namespaces, s.leader_election) == (("a", "b"), False)


def test_attachers_and_their_options_by_driver(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(
        "attacher: [a.example.com=fabric]\n"
        "attacher-option: ['a.example.com:url=http://h:1/?x=y', 'a.example.com:pool=p']\n"
    )
    s = parsed("--config", str(file))
    assert s.attachers == {"a.example.com": "fabric"}
    assert s.attacher_options == {"a.example.com": {"url": "http://h:1/?x=y", "pool": "p"}}
    assert (s.attach_deadline, parsed().attachers) == (540.0, {})


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--mode=both"], "'both' is not one of 'auto', 'observe', 'evict'"),
        (["--pool-share=2"], "is not in the range 0.0<=x<=1.0"),
        (["--pods-per-second=nan"], "no finite number"),
        (["--pods-per-second=0"], "is not in the range"),
        (["--delete-after=-1"], "is not in the range"),
        (["--namespace=Not_One"], "namespace 'Not_One' is not valid: use a DNS label"),
        (["--http-address=8080"], "'8080' is not HOST:PORT"),
        (["--config=/does/not/exist"], "cannot read the settings file /does/not/exist"),
        (["--attacher=fabric"], "--attacher 'fabric' must be DRIVER=NAME"),
        (["--attacher=Bad_=fabric"], "'Bad_' is not valid"),
        (["--attacher-option=d:url"], "--attacher-option 'd:url' must be DRIVER:KEY=VALUE"),
        (["--attach-deadline=0"], "is not in the range"),
        (["--unheard"], "(see dra-operator --help)"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(arguments: list[str], sentence: str) -> None:
    with pytest.raises(InvalidValue) as error:
        config.parse(arguments)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("mode: [", "is not valid YAML"),
        ("- a", "must be a YAML mapping"),
        ("modes: evict", "unknown setting 'modes'; known are: attach-deadline, "),
        ("mode: [evict]", "mode must be one value"),
        ("mode: often", "'often' is not one of"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(content)
    with pytest.raises(InvalidValue) as error:
        config.parse(["--config", str(file)])
    assert sentence in str(error.value)


def test_every_setting_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operator.md").read_text()
    for parameter in config._parameters():
        for flag in parameter.opts:
            assert f"`{flag}`" in page, flag

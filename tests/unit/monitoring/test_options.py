"""The exporter's command line."""

from __future__ import annotations

import pytest

from monitoring.exporter import DEFAULT_SERVICES, main, named_services, parse_services
from workers.environment.declaration import DEFAULT_FLEET


def test_services_may_come_with_their_size() -> None:
    assert parse_services("forum_list=2, other ,") == {"forum_list": 2, "other": None}


def test_the_default_services_are_the_default_fleet() -> None:
    assert DEFAULT_SERVICES == DEFAULT_FLEET


def test_what_is_declared_is_looked_at_unless_services_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAWL_FLEET", raising=False)
    assert named_services(None) is None
    assert named_services({"a": 1}) == {"a": 1}
    monkeypatch.setenv("TRAWL_FLEET", "a=1")
    assert named_services({"a": 1}) is None, "that is the default"
    assert named_services({"a": None, "b": 2}) == {"a": None, "b": 2}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "80800"], "must be a whole number from 0 to 65535, got '80800'"),
        (["--port", "http"], "must be a whole number from 0 to 65535, got 'http'"),
        (["--spiders", "a b"], "'a b' is not a spider's name; an example: forum_list=1,forum_detail=1"),
        (["--spiders", ","], "names no spider; an example: forum_list=1,forum_detail=1"),
        (["--spider-s"], "unrecognized arguments: --spider-s"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_a_wrong_fleet_in_the_environment_is_refused_like_an_argument(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAWL_FLEET", "forum_list=many")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "'forum_list=many' is not a spider's name" in capsys.readouterr().err

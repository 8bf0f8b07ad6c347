"""The exporter's command line."""

from __future__ import annotations

import pytest

from monitoring.exporter import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "80800"], "must be a whole number from 0 to 65535, got '80800'"),
        (["--port", "http"], "must be a whole number from 0 to 65535, got 'http'"),
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


def test_a_wrong_fleet_in_the_environment_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAWL_FLEET", "forum_list=many")
    assert main([]) == 1
    assert "forum_list=many" in capsys.readouterr().err

"""Types, defaults and messages of the environment variables, and what `trawl config show` prints of them."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import main
from cli.views.environment import groups, rows
from forums.environment import Reading
from redis_components.errors import ConfigError
from workers.environment.declaration import Secret, Variables, variable_name
from workers.environment.variables import Crawlers, Exporter, Fleet, Flower, Logs, Tool


def test_every_default_is_valid() -> None:
    for group in groups():
        group.read()


@pytest.mark.parametrize(
    ("group", "field", "text", "value"),
    [
        (Fleet, "fleet", "a=2, b=0", {"a": 2, "b": 0}),
        (Fleet, "task_modules", " shop.tasks,, shop.reports ", ("shop.tasks", "shop.reports")),
        (Fleet, "broker_url", "", None),
        (Logs, "log_max_mb", "0.5", 0.5),
        (Logs, "log_stream", "off", "OFF"),
        (Crawlers, "allow_private", "yes", True),
        (Crawlers, "allow_private", " ", False),
        (Crawlers, "log_level", "debug", "DEBUG"),
        (Exporter, "exporter_hosts", "A,b", {"a", "b"}),
        (Tool, "debug", "0", False),
    ],
)
def test_a_text_becomes_a_value(
    monkeypatch: pytest.MonkeyPatch, group: type[Variables], field: str, text: str, value: object
) -> None:
    monkeypatch.setenv(variable_name(field), text)
    assert getattr(group.read(), field) == value


@pytest.mark.parametrize(
    ("group", "name", "text", "message"),
    [
        (
            Fleet,
            "TRAWL_NODE_CRAWLERS",
            "1001",
            "TRAWL_NODE_CRAWLERS='1001': the crawlers of one node are .* from 1 to 1000",
        ),
        (Fleet, "TRAWL_NODE_CRAWLERS", "1_0", "TRAWL_NODE_CRAWLERS='1_0': the .*"),
        (Fleet, "TRAWL_FLEET", ",", "TRAWL_FLEET is empty; .*"),
        (Fleet, "TRAWL_FLEET", "a=1001", "TRAWL_FLEET: a=1001: .* from 0 to 1000"),
        (Crawlers, "TRAWL_ALLOW_PRIVATE", "maybe", "TRAWL_ALLOW_PRIVATE='maybe': must be 1 or 0"),
        (
            Crawlers,
            "TRAWL_MAX_QUEUED_THREADS",
            "1e3",
            "TRAWL_MAX_QUEUED_THREADS='1e3': must be a whole number from 1 to .*",
        ),
        (Logs, "TRAWL_LOG_STREAM", "loud", "TRAWL_LOG_STREAM='loud': must be a level, DEBUG, .*, or OFF"),
        (Reading, "TRAWL_PARSE_TIMEOUT_S", "", "TRAWL_PARSE_TIMEOUT_S='': the seconds for .* are a number from 1 to 600"),
        (Flower, "TRAWL_FLOWER_AUTH", "geheim", "TRAWL_FLOWER_AUTH is not of the form user:password .*"),
    ],
)
def test_a_wrong_value_is_one_line(
    monkeypatch: pytest.MonkeyPatch, group: type[Variables], name: str, text: str, message: str
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigError, match=f"^{message}$") as wrong:
        group.read()
    assert "geheim" not in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_a_group_is_not_stopped_by_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_FLEET", "nonsense")
    assert Logs.read().log_files == 3


@pytest.mark.parametrize("text", ["redis://:geheim@host/0?password=geheim", "amqp://me:geheim@rabbit//", "me:geheim", "geheim"])
def test_a_secret_is_never_printed(text: str) -> None:
    secret = Secret(text)
    assert "geheim" not in f"{secret} {secret!r} {[secret]}"
    assert secret.get_secret_value() == pickle.loads(pickle.dumps(secret)).get_secret_value() == text


def shown(capsys: pytest.CaptureFixture[str], *options: str, code: int = 0) -> tuple[dict[str, dict[str, str]], str]:
    assert main(["config", "show", "--json", *options]) == code
    said = capsys.readouterr()
    return {row["variable"]: row for row in json.loads(said.out)}, said.err


def test_the_command_shows_values_and_origins_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scrapy.cfg").write_text("")
    (tmp_path / ".env").write_text("TRAWL_DATABASE_URL=postgresql://me:geheim@db/trawl\n")
    (tmp_path / "redis_url").write_text("redis://:geheim@host/0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAWL_ENV_FILE")
    monkeypatch.setenv("TRAWL_REDIS_URL_FILE", str(tmp_path / "redis_url"))
    monkeypatch.setenv("TRAWL_FLOWER_AUTH", "me:geheim")
    monkeypatch.setenv("TRAWL_FLEET", "a=1,b=2")
    monkeypatch.setenv("TRAWL_NODE_CRAWLER", "9")
    found, said = shown(capsys)
    assert {name: (found[name]["value"], found[name]["origin"]) for name in ("TRAWL_REDIS_URL", "TRAWL_FLEET")} == {
        "TRAWL_REDIS_URL": ("redis://:***@host/0", f"file {tmp_path / 'redis_url'}"),
        "TRAWL_FLEET": ("a=1,b=2", "environment"),
    }
    assert found["TRAWL_DATABASE_URL"] == {
        "variable": "TRAWL_DATABASE_URL",
        "value": "postgresql://me:***@db/trawl",
        "origin": str(tmp_path / ".env"),
        "fault": "",
    }
    assert found["TRAWL_SITES_DIR"]["value"] == str(tmp_path / "sites")
    assert found["TRAWL_LOG_FILES"]["origin"] == "default"
    assert "geheim" not in json.dumps(found)
    assert said == "trawl: TRAWL_NODE_CRAWLER is not a variable of Trawl; did you mean 'TRAWL_NODE_CRAWLERS'?\n"
    assert main(["config", "show"]) == 0
    assert "geheim" not in capsys.readouterr().out


def test_all_that_is_wrong_is_said_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRAWL_FLEET", "nonsense")
    monkeypatch.setenv("TRAWL_SHUTDOWN_GRACE_S", "soon")
    monkeypatch.setenv("TRAWL_BROKER_URL", "amqp://me:geheim@rabbit")
    monkeypatch.setenv("TRAWL_LOG_FILES", "0")
    found, said = shown(capsys, code=2)
    assert [line.partition(":")[2].split()[0] for line in said.splitlines()] == [
        "TRAWL_FLEET:",
        "TRAWL_SHUTDOWN_GRACE_S='soon':",
        "TRAWL_LOG_FILES='0':",
    ]
    assert found["TRAWL_SHUTDOWN_GRACE_S"]["fault"]
    assert "geheim" not in json.dumps(found) + said


def test_a_fleet_is_not_started_with_a_value_that_its_crawlers_would_refuse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAWL_LOG_LEVEL", "LOUD")
    monkeypatch.setenv("TRAWL_LOG_FILES", "0")
    assert main(["up"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("trawl: TRAWL_LOG_LEVEL='LOUD': must be a level, ")
    assert "; TRAWL_LOG_FILES='0': must be a whole number from 1 to 100" in said
    assert said.count("\n") == 1


def test_every_variable_is_shown_once() -> None:
    names = [row.variable for row in rows()]
    assert len(names) == len(set(names)) > 20


@pytest.mark.processes
def test_the_frontier_reads_its_variables_without_pydantic() -> None:
    script = "import sys, redis_components.embedded, redis_components.connection, redis_components.server.names as n;" \
        "n.fleet_namespace(); print(sorted({'pydantic', 'dotenv'} & set(sys.modules)))"  # fmt: skip
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "[]"


@pytest.mark.processes
def test_celery_reads_env_file_before_its_settings(tmp_path: Path) -> None:
    (tmp_path / "scrapy.cfg").write_text("")
    (tmp_path / ".env").write_text("TRAWL_REDIS_URL=redis://127.0.0.1:1/7\nTRAWL_NODE_CRAWLERS=6\n")
    script = "from tasks.app import app; print(app.conf.broker_url, app.conf.worker_concurrency)"
    environment = {name: text for name, text in os.environ.items() if name != "TRAWL_ENV_FILE"}
    said = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout.split() == ["redis://127.0.0.1:1/7", "11"]

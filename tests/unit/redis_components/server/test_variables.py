"""Where the value of a variable is found: environment, a file that `<name>_FILE` names, `.env`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from redis_components.embedded import redis_url
from redis_components.errors import ConfigError
from redis_components.server import variables
from redis_components.server.variables import changed_variables, example_secrets, load_env_file, origin, variable


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a `scrapy.cfg`; what `.env` brings is gone after the test."""
    (tmp_path / "scrapy.cfg").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAWL_ENV_FILE")
    return tmp_path


def env_file(folder: Path, text: str) -> Path:
    path = folder / ".env"
    path.write_text(text)
    return path


def test_a_value_may_lie_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "redis_url"
    secret.write_text("redis://:s3cret@host/1\n")
    monkeypatch.setenv("TRAWL_REDIS_URL_FILE", str(secret))
    assert redis_url() == "redis://:s3cret@host/1", "the frontier needs nothing else for it"
    secret.write_text("redis://:other@host/1\r\n")
    assert redis_url() == "redis://:other@host/1", "a secret that was changed is read again"


def test_a_value_and_a_file_at_once_are_refused() -> None:
    both = {"TRAWL_REDIS_URL": "redis://a", "TRAWL_REDIS_URL_FILE": "/b"}
    with pytest.raises(ConfigError, match=r"^TRAWL_REDIS_URL and TRAWL_REDIS_URL_FILE are both set: unset one of them$"):
        variable("TRAWL_REDIS_URL", both)
    assert variable("TRAWL_REDIS_URL", {"TRAWL_REDIS_URL": "redis://a", "TRAWL_REDIS_URL_FILE": ""}) == "redis://a"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for path, reason in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory"), (tmp_path / "bytes", "not UTF-8")):
        with pytest.raises(ConfigError, match=f"^TRAWL_REDIS_URL_FILE='{path}': the file cannot be read .{reason}.*: correct"):
            variable("TRAWL_REDIS_URL", {"TRAWL_REDIS_URL_FILE": str(path)})


def test_the_examples_password_is_found_in_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("redis://:change-me@redis")
    assert example_secrets({"TRAWL_REDIS_URL_FILE": str(tmp_path / "url")}) == ["TRAWL_REDIS_URL"]


def test_env_file_gives_what_is_not_set(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = env_file(project, "# ours\nTRAWL_NAMESPACE=job\nexport FORUM_TOKEN='a b'\nTRAWL_LOG_FILES=7\nTRAWL_TASK_MODULES=\n")
    monkeypatch.setenv("TRAWL_LOG_FILES", "2")
    (project / "inner").mkdir()
    monkeypatch.chdir(project / "inner")
    load_env_file()
    assert (variable("TRAWL_NAMESPACE"), variable("TRAWL_LOG_FILES"), variable("TRAWL_TASK_MODULES")) == ("job", "2", "")
    assert os.environ["FORUM_TOKEN"] == "a b", "site files may name it"
    assert (origin("TRAWL_NAMESPACE"), origin("TRAWL_LOG_FILES"), origin("TRAWL_FLEET")) == (str(path), "environment", "")
    monkeypatch.setenv("TRAWL_NAMESPACE", "another")
    assert origin("TRAWL_NAMESPACE") == "environment", "it was set since"


def test_the_environment_wins_in_either_form(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env_file(project, "TRAWL_REDIS_URL=redis://env\nTRAWL_BROKER_URL_FILE=/env\n")
    monkeypatch.setenv("TRAWL_REDIS_URL_FILE", "/run/secrets/url")
    monkeypatch.setenv("TRAWL_BROKER_URL", "amqp://host")
    load_env_file()
    assert "TRAWL_REDIS_URL" not in os.environ
    assert "TRAWL_BROKER_URL_FILE" not in os.environ
    assert origin("TRAWL_REDIS_URL") == "file /run/secrets/url"


@pytest.mark.parametrize(("text", "line"), [("A=1\nnonsense here\n", 2), ("TRAWL_FLEET\n", 1), ("A='open\n", 1)])
def test_a_malformed_line_is_named(project: Path, text: str, line: int) -> None:
    path = env_file(project, text)
    with pytest.raises(ConfigError, match=f"^{path}, line {line}: must be of the form NAME=value"):
        load_env_file()


def test_another_file_may_be_named_or_none(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env_file(project, "TRAWL_NAMESPACE=here\n")
    monkeypatch.setenv("TRAWL_ENV_FILE", "")
    load_env_file()
    assert variable("TRAWL_NAMESPACE") is None
    monkeypatch.setenv("TRAWL_ENV_FILE", "other.env")
    with pytest.raises(ConfigError, match=r"^TRAWL_ENV_FILE='other.env': the file cannot be read"):
        load_env_file()
    (project / "other.env").write_text("TRAWL_NAMESPACE=other\n")
    load_env_file()
    assert variable("TRAWL_NAMESPACE") == "other"


def test_a_file_of_another_user_is_used_only_by_name(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = env_file(project, "TRAWL_TASK_MODULES=evil\n")
    os.chown(path, 4711, -1) if os.getuid() == 0 else monkeypatch.setattr(os, "getuid", lambda: 4711)
    with pytest.raises(ConfigError, match=f"^{path} belongs to another user"):
        load_env_file()
    monkeypatch.setenv("TRAWL_ENV_FILE", str(path))
    load_env_file()
    assert variable("TRAWL_TASK_MODULES") == "evil"


def test_without_python_dotenv_only_a_named_file_is_missed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env_file(project, "TRAWL_NAMESPACE=job\n")
    monkeypatch.setitem(sys.modules, "dotenv", None)
    load_env_file()
    assert variable("TRAWL_NAMESPACE") is None
    monkeypatch.setenv("TRAWL_ENV_FILE", ".env")
    with pytest.raises(ConfigError, match="pip install python-dotenv"):
        load_env_file()


def test_an_old_name_is_read_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(variables, "_warned", set())
    (tmp_path / "grace").write_text("7\n")
    for old, new in variables.RENAMED.items():
        assert variable(new, {old: "5"}) == variable(new, {old: "5"}) == "5"
        assert variable(new, {new: "6", old: "5"}) == "6"
        assert variable(new, {f"{old}_FILE": str(tmp_path / "grace")}) == "7"
        assert origin(new, {old: "5"}) == "environment"
        assert caplog.messages == [f"{old} is read as {new}, its new name: rename it"]
        caplog.clear()


def test_a_program_gives_its_children_the_new_names(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = env_file(project, "TRAWL_TASKS=ours\nTRAWL_JOBS_KEEP=70\nTRAWL_MAX_TASKS=80\n")
    monkeypatch.setenv("TRAWL_JOB_RETENTION_S", "60")
    monkeypatch.setenv("TRAWL_SHUTDOWN_GRACE", "20")
    monkeypatch.setenv("TRAWL_MAX_TASKS", "90")
    load_env_file()
    assert not variables.RENAMED.keys() & os.environ.keys()
    new = ("TRAWL_TASK_MODULES", "TRAWL_JOB_RETENTION_S", "TRAWL_SHUTDOWN_GRACE_S", "TRAWL_MAX_QUEUED_THREADS")
    assert [os.environ[name] for name in new] == ["ours", "60", "20", "90"]
    assert (origin("TRAWL_TASK_MODULES"), origin("TRAWL_JOB_RETENTION_S")) == (str(path), "environment")


def test_changed_variables_are_named_in_each_program_that_inherits_the_old_ones(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOOK", "SAME", "GONE", "NEW", "TRAWL_LOG_LEVEL", "TRAWL_EVENTS_DAYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OVER", "of the environment")
    env_file(project, "HOOK=one\nSAME=x\nGONE=y\nOVER=file\n")
    (project / "trawl.toml").write_text('[fleet]\nlog_level = "INFO"\n')
    load_env_file()
    assert changed_variables() == []
    env_file(project, "HOOK=two\nSAME=x\nOVER=other\nNEW='a b'\n")
    (project / "trawl.toml").write_text('[fleet]\nlog_level = "DEBUG"\nevents_days = 3\n')
    changed = ["GONE", "HOOK", "NEW", "TRAWL_EVENTS_DAYS", "TRAWL_LOG_LEVEL"]
    assert changed_variables() == changed
    load_env_file()  # as a program does that has inherited this environment
    assert changed_variables() == [name for name in changed if name not in ("NEW", "TRAWL_EVENTS_DAYS")], "these are in use"
    assert "two" not in str({name: text for name, text in os.environ.items() if name != "HOOK"}), "digests, no values"
    env_file(project, "not a line of the form")
    with pytest.raises(ConfigError, match="line 1"):
        changed_variables()
    (project / ".env").unlink()
    assert {"GONE", "HOOK", "SAME"} <= set(changed_variables())

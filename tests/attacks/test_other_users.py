"""Attacks from beside: another user of the machine, who reads a journal, who knows the example's password, a URL that is odd."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import main as trawl
from cli.processes import FlowerAccess
from forums.storage import Database, parse
from redis_components.embedded.files import private_folder
from redis_components.errors import ConfigError
from redis_components.server.printable import masked
from redis_components.server.url import address_of
from redis_components.server.variables import example_secrets, refuse_example_secrets
from tests.support import warm_start
from tests.support.items import post, wire
from workers.logs.slot_log import LogLimits, SlotLog
from workers.node.host import NodeCapacity


@pytest.fixture
def open_umask() -> object:
    """What a machine has that hides nothing."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_what_is_stored_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    with Database.from_url(f"sqlite:///{data}/trawl.sqlite") as database:
        database.write([parse(wire(post()))])
        made = [*data.iterdir()]
        assert {path.name for path in made} == {"trawl.sqlite", "trawl.sqlite-wal", "trawl.sqlite-shm"}
    os.close(SlotLog(data / "logs" / "forum_list-0.log", LogLimits()).open())
    with NodeCapacity(data / "run", "a@host", 1).place():
        pass
    everything = [tmp_path / "new", data, *data.rglob("*"), *made]
    open_ones = {str(path): oct(path.stat().st_mode) for path in everything if path.exists() and path.stat().st_mode & 0o077}
    assert open_ones == {}


@pytest.mark.usefixtures("open_umask")
def test_a_folder_that_is_there_keeps_its_rights_and_doctor_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    (data / "trawl.sqlite").touch(mode=0o644)
    private_folder(data / "logs")
    assert stat.S_IMODE(data.stat().st_mode) == 0o755, "who made it so may want it so"
    monkeypatch.setenv("TRAWL_DATA_DIR", str(data))
    monkeypatch.setenv("TRAWL_REDIS_URL", "redis://127.0.0.1:1")
    trawl(["doctor"])
    said = capfd.readouterr().out
    assert f"chmod go= {data} {data / 'trawl.sqlite'}" in said


def test_a_password_that_was_given_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_FLOWER_AUTH", "me:s3cret-word")
    given = FlowerAccess.on(1)
    assert "s3cret" not in given.how_to_log_in + repr(given)
    assert "TRAWL_FLOWER_AUTH" in given.how_to_log_in
    monkeypatch.delenv("TRAWL_FLOWER_AUTH")
    made = FlowerAccess.on(1)
    assert made.password in made.how_to_log_in


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRAWL_REDIS_URL", "redis://:change-me@redis:6379/0"),
        ("TRAWL_REDIS_URL", "redis://:change%2Dme@redis:6379/0"),
        ("TRAWL_BROKER_URL", "amqp://me:CHANGE-ME@rabbit//"),
        ("FLOWER_BASIC_AUTH", "admin:change-me"),
        ("FLOWER_BASIC_AUTH", "ada:good,admin:change-me"),
        ("TRAWL_FLOWER_AUTH", "admin:change-me"),
        ("TRAWL_DATABASE_URL", "postgresql+psycopg://u:change-me@host/trawl"),
    ],
)
def test_the_examples_password_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name}.*openssl rand"):
        refuse_example_secrets({name: value})


def test_other_passwords_are_not_taken_for_it() -> None:
    good = {"TRAWL_REDIS_URL": "redis://:xchange-merry@h", "FLOWER_BASIC_AUTH": "admin:please-change-me-not", "HOME": "change-me"}
    assert example_secrets(good) == []


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "celery", "-A", "tasks", "worker"],
        ["-m", "celery", "-A", "tasks", "beat"],
        ["-m", "monitoring.exporter", "--port", "0"],
        ["-m", "cli.main", "up"],
    ],
    ids=["worker", "beat", "exporter", "up"],
)
def test_nothing_starts_with_the_examples_password(command: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "TRAWL_REDIS_URL": "redis://:change-me@127.0.0.1:1/0", "TRAWL_DATA_DIR": str(tmp_path)}
    done = warm_start.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (1, 2)
    assert "TRAWL_REDIS_URL" in done.stderr
    assert "openssl rand" in done.stderr
    assert "Traceback" not in done.stderr


SECRET = "pw5ecret"


@pytest.mark.parametrize(
    "url",
    [
        *("redis://:{}@h", "redis://u:{}@h:1/0", "redis/:{}@h", "redis:/:{}@h", "{}:{}@h", "redis://:a\n{}@h", "redis://:{}\n@h"),
        *("redis://:{}/x@h", "redis://:{}?x@h", "redis://:{}#x@h", "redis://:x@{}@h", "sentinel://:{}@a;sentinel://:{}@b"),
        *("redis+sentinel:///u:{}@h", "redis+sentinel://u:{}@h", "redis://u:{}", "redis://u:a/{}", "redis://h/0?password={}"),
        *("redis://u s e r:{}@h", "redis+cluster://:{}@h:1?db=3", "unix://:{}@/run/x", " redis://:{}@h", "\x1b[2J://:{}@h"),
    ],
)
def test_no_form_of_a_url_shows_its_password(url: str) -> None:
    written = url.replace("{}:{}", f"u:{SECRET}").replace("{}", SECRET)
    assert SECRET not in masked(written)
    assert "\n" not in masked(written)
    assert "\x1b" not in masked(written)
    said = ""
    try:
        address_of(written)
    except ConfigError as error:
        said = str(error)
    assert SECRET not in said


def test_a_sentinel_url_with_a_slash_in_its_login_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="is not a Redis URL"):
        address_of("redis+sentinel:///u:x@h")


def test_a_command_fails_soon_and_clearly_while_redis_is_away() -> None:
    """Measured by how often is asked, not by the clock: the default asks 20 times, with a second between two."""
    script = """
import time
waited = []
real = time.sleep
time.sleep = lambda seconds: waited.append(seconds)
from kombu.exceptions import OperationalError
from redis_components.errors import RedisUnavailable
from tasks import seed_forums, store_items
for task in (seed_forums, store_items):
    try:
        task.delay()
    except OperationalError as error:
        assert isinstance(error, RedisUnavailable)
        print(type(error).__name__, error)
print(sum(waited))
"""
    environment = {**os.environ, "TRAWL_REDIS_URL": "redis://127.0.0.1:1/0"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    *said, waited = done.stdout.splitlines()
    assert [line.split(":")[0] for line in said] == [
        "NotSent trawl.seed_forums was not sent",
        "NotSent trawl.store_items was not sent",
    ], done.stderr
    assert all("refused" in line for line in said)
    assert float(waited) < 4

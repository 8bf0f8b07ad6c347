"""`trawl.toml`: one file for services, events, limits, schedule and variables; the files of the release before."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import redis

from cli.main import main
from forums.events import rules
from redis_components.errors import ConfigError
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import BY_FILE, LaneLimits
from redis_components.server import fleet_file
from redis_components.server.variables import load_env_file, origin, variable
from tasks.beat.schedule import Schedule, ScheduledTask, effective
from workers.fleet.sizes import services_in_file, write_file_limits
from workers.process.config_digest import shared_digests
from workers.state.beats import StoredEntry
from workers.state.registry import Registry
from workers.state.services import Autoscaling, Policy, ServiceRecord, Services

BOOKS = "# ours\n[services.books]\nsize = 3 # in the evening\n"
EVENTS = '[rules.gpu]\nmatch = "gpu"\n[outputs.log]\nkind = "file"\npath = "log.jsonl"\nrules = ["gpu"]\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project, without variables that name files."""
    (tmp_path / "scrapy.cfg").write_text("")
    monkeypatch.chdir(tmp_path)
    for name in ("TRAWL_CONFIG", "TRAWL_SERVICES", "TRAWL_EVENTS_FILE", "TRAWL_FLEET", "TRAWL_SITES_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(fleet_file, "_warned", set())
    return tmp_path


def test_one_file_has_services_and_events(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "trawl.toml").write_text(BOOKS + EVENTS)
    found = rules.load()
    assert ({name: one.size for name, one in services_in_file().items()}, set(found.outputs if found else ())) == (
        {"books": 3},
        {"log"},
    )
    (project / "other.toml").write_text("[services.other]\n")
    monkeypatch.setenv("TRAWL_CONFIG", "other.toml")
    assert (set(services_in_file()), rules.load()) == ({"other"}, None)


@pytest.mark.parametrize("named", [False, True])
def test_the_old_files_are_read_with_one_warning_each(
    project: Path, named: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    services, events = ("s.toml", "e.toml") if named else ("services.toml", "events.toml")
    (project / services).write_text(BOOKS)
    (project / events).write_text(EVENTS)
    if named:
        monkeypatch.setenv("TRAWL_SERVICES", str(project / services))
        monkeypatch.setenv("TRAWL_EVENTS_FILE", str(project / events))
    for _ in range(2):
        found = rules.load()
        assert (services_in_file()["books"].size, set(found.outputs if found else ())) == (3, {"log"})
    assert [one.split()[0] for one in caplog.messages] == [str(project / events), str(project / services)]
    assert all("`trawl upgrade` moves it into trawl.toml" in one for one in caplog.messages)
    kinds = [one.partition("=")[0] for one in shared_digests()]
    assert kinds == ["trawl.toml", "services.toml", "events.toml", "site files"], "nodes that differ are noticed"


def test_a_table_in_both_files_is_refused(project: Path) -> None:
    (project / "services.toml").write_text(BOOKS)
    (project / "trawl.toml").write_text(EVENTS)
    assert set(services_in_file()) == {"books"}, "the other tables do not disturb"
    (project / "trawl.toml").write_text(BOOKS + EVENTS)
    with pytest.raises(ConfigError, match=r"trawl.toml and .*services.toml both declare services: keep them in trawl.toml"):
        services_in_file()


def test_convert_moves_the_tables_with_their_comments(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "services.toml").write_text(BOOKS)
    (project / "events.toml").write_text(EVENTS)
    (project / "trawl.toml").write_text('# fleet\n[limits."a.example"]\nrate = 2\n')
    assert main(["config", "convert"]) == 0
    text = (project / "trawl.toml").read_text()
    assert "# fleet" in text
    assert "size = 3 # in the evening" in text
    assert (set(services_in_file()), rules.load() is not None) == ({"books"}, True)
    assert {path.name for path in project.glob("*.toml*")} == {"trawl.toml", "services.toml.old", "events.toml.old"}
    capsys.readouterr()
    assert main(["upgrade"]) == 0
    assert capsys.readouterr().out == "there is no old file to convert\n"


def test_convert_keeps_the_meaning_or_refuses(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "services.toml").write_text("services.books.size = 3\n")
    (project / "trawl.toml").write_text(EVENTS)
    assert main(["config", "convert"]) == 0, "keys outside of a table come first"
    assert services_in_file()["books"].size == 3
    (project / "events.toml").write_text(EVENTS)
    assert main(["config", "convert"]) == 2
    assert "trawl.toml has [outputs] already" in capsys.readouterr().err
    (project / "events.toml").unlink()
    (project / "trawl.toml").write_text('limits = {"a.example" = {rate = 1}}\n' + BOOKS.replace("services", "schedule"))
    (project / "events.toml").write_text('rules = {}\n[outputs.log]\nkind = "file"\npath = "x"\n')
    before = (project / "trawl.toml").read_text()
    assert main(["config", "convert"]) == 2
    assert "keys outside of a table" in capsys.readouterr().err
    assert ((project / "trawl.toml").read_text(), (project / "events.toml").exists()) == (before, True)


WRONG = """\
[fleet]
log_levl = "INFO"
redis_url = "redis://x"
log_files = 0
[services.books]
sise = 2
memory_soft_mb = -1
[services.news]
consumer = "forum_writr"
[rules.a]
match = "("
[outputs.log]
kind = "file"
path = "x"
rules = ["b"]
[limits."a.example"]
rte = 1
rate = "fast"
[limits."b.example"]
rate = 0
[schedule.nightly]
task = "trawl.crwl"
cron = "0 3 * * *"
[schedule.seed_forums]
evry_s = 3
[schedule.store_items]
enabled = false
"""
FAULTS = (
    "trawl.toml: fleet.log_levl: unknown, or not for a file; did you mean 'log_level'?",
    "fleet.redis_url: unknown, or not for a file",
    "TRAWL_LOG_FILES='0': must be a whole number from 1 to 100",
    "trawl.toml: services.books.sise: unknown; there are spider",
    "services.books.memory_soft_mb: expected `float` > 0",
    "services.news.consumer: 'forum_writr' is not",
    "trawl.toml: rules.a.match: ",
    "trawl.toml: outputs.log.rules: there is no rule 'b'",
    "trawl.toml: limits.a.example.rte: unknown; there are rate",
    "limits.a.example.rate: expected `float | null`",
    "trawl.toml: limits.b.example: rate = 0 is out of range",
    "trawl.toml: schedule.seed_forums.evry_s: unknown; there are task",
    "nightly: unknown task 'trawl.crwl'",
    "store_items keeps the fleet going",
    "sites/shop.toml",
)


def test_check_reports_every_fault_in_a_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "trawl.toml").write_text(BOOKS + EVENTS)
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out == "variables, trawl.toml and site files are right\n"
    (project / "trawl.toml").write_text(WRONG)
    (project / "sites").mkdir()
    (project / "sites" / "shop.toml").write_text("name = 3")
    assert main(["config", "check", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["faults"]
    assert [[one for one in found if fault in one] != [] for fault in FAULTS] == [True] * len(FAULTS), found
    assert len(found) == len(FAULTS), found
    assert main(["config", "check"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == len(FAULTS) + 1
    assert main(["config", "show"]) == 2, "another command begins with no wrong file"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[services.books\nsize = 1\n", "is not TOML: Expected ']' at the end of a table declaration (at line 1"),
        ("[quotas.ops]\nper_minut = 5\n", "trawl.toml: quotas.ops.per_minut: unknown; there are places, memory_mb, per_minute"),
        ("[service.books]\n", "trawl.toml: service: unknown; there are [fleet], [services], [groups], [quotas], [rules]"),
        (
            '[outputs.log]\nkind = "file"\n\npth = "x"\n',
            "trawl.toml: outputs.log.pth: there is no such key; did you mean 'path'?",
        ),
        ('[limits]\n"a.example" = 3\n', "trawl.toml: limits.a.example: must be a table, as [limits.NAME]"),
        ("fleet = 3\n", "trawl.toml: fleet: must be a table, as [fleet]"),
    ],
)
def test_a_fault_names_file_line_key_and_fix(project: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "trawl.toml").write_text(text)
    assert main(["config", "check"]) == 1
    assert f"{project / 'trawl.toml'}" in (found := capsys.readouterr().err)
    assert said in found


def test_variables_of_the_file_are_below_environment_and_env_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "trawl.toml").write_text(
        "[fleet]\nlog_files = 5\nallow_private = true\nlog_max_mb = 0.5\n"
        'task_modules = ["a.b", "c"]\nmax_pending = 7\nlog_level = "DEBUG"\n'
    )
    (project / ".env").write_text("TRAWL_MAX_PENDING=8\n")
    for name in ("ENV_FILE", "LOG_FILES", "ALLOW_PRIVATE", "LOG_MAX_MB", "TASK_MODULES", "MAX_PENDING"):
        monkeypatch.delenv(f"TRAWL_{name}", raising=False)
    monkeypatch.setenv("TRAWL_LOG_LEVEL", "ERROR")
    before = dict(os.environ)
    try:
        load_env_file()
        names = ("LOG_FILES", "ALLOW_PRIVATE", "LOG_MAX_MB", "TASK_MODULES", "MAX_PENDING", "LOG_LEVEL")
        assert [variable(f"TRAWL_{name}") for name in names] == ["5", "1", "0.5", "a.b,c", "8", "ERROR"]
        places = [str(project / "trawl.toml")] * 4 + [str(project / ".env"), "environment"]
        assert [origin(f"TRAWL_{name}") for name in names] == places
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_the_schedule_of_the_file_is_over_the_defaults_and_under_run_time(project: Path) -> None:
    defaults = Schedule(
        entries={"seed_forums": ScheduledTask(name="seed_forums", task="trawl.seed_forums", every_s=60)}, refused={}
    )
    (project / "trawl.toml").write_text(
        '[schedule.seed_forums]\nevery_s = 30\n[schedule.nightly]\ntask = "trawl.crawl"\ncron = "0 3 * * *"\n'
    )
    found = effective(defaults, {}, lambda _: None).entries
    assert [(name, one.rhythm, one.origin) for name, one in found.items()] == [
        ("seed_forums", "every 30 s", "trawl.toml"),
        ("nightly", "cron 0 3 * * *", "trawl.toml"),
    ]
    found = effective(defaults, {"nightly": StoredEntry(enabled=False)}, lambda _: None).entries
    assert (found["nightly"].enabled, found["nightly"].task, found["nightly"].origin) == (False, "trawl.crawl", "changed")
    (project / "trawl.toml").write_text("[schedule")
    broken = effective(defaults, {}, lambda _: None)
    assert (broken.entries["seed_forums"].every_s, list(broken.refused)) == (30, ["trawl.toml"]), "as it was, while it is wrong"


def test_limits_of_the_file_are_over_site_files_and_under_run_time(project: Path, redis_client: redis.Redis) -> None:
    key = limits_key()
    limits.change(redis_client, key, "site", LaneLimits(rate=9, by=BY_FILE))
    limits.change(redis_client, key, "held", LaneLimits(rate=1, by="me@here"))
    file = project / "trawl.toml"
    file.write_text(
        '[limits.site]\nrate = 2\nquiet = "01:00-02:00"\n[limits.held]\nrate = 5\n[limits."a.example"]\nper_hour = 60\n'
    )
    assert write_file_limits(redis_client) == ["site", "a.example"]
    assert write_file_limits(redis_client) == []
    found = limits.read(redis_client, key)
    assert [(one.rate, one.by) for one in found.values()] == [(None, "trawl.toml"), (1, "me@here"), (2, "trawl.toml")]
    file.write_text("[limits.site]\nrate = 3\n")
    assert sorted(write_file_limits(redis_client)) == ["a.example", "site"]
    found = limits.read(redis_client, key)
    assert (found["a.example"], found["site"].rate) == (LaneLimits(), 3), "a site of which the file has nothing more is free"


def test_each_value_of_a_service_is_shown_with_its_source(
    project: Path,
    redis_client: redis.Redis,
    redis_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)

    def shown(service: str) -> dict[str, str]:
        assert main(["services", "show", service, "--json"]) == 0
        row = json.loads(capsys.readouterr().out)
        return {key: f"{row[key]} {row['origins'][key]}" for key in ("size", "consumer", "autoscale") if key in row["origins"]}

    assert shown("forum_list") == {"size": "1 default", "consumer": " default"}
    monkeypatch.setenv("TRAWL_FLEET", "books=7,notes=4")
    file = project / "trawl.toml"
    file.write_text('[services.books]\nsize = 3\nconsumer = "none"\n')
    assert shown("notes") == {"size": "4 TRAWL_FLEET", "consumer": " default"}
    assert shown("books") == {"size": f"3 {file}", "consumer": f"none {file}"}
    Services(redis_client).declare("books", ServiceRecord(size=2))
    assert shown("books") == {"size": "2 run time", "consumer": " default"}
    Registry(redis_client).set_desired("books", 5)
    assert shown("books")["size"] == "5 run time: trawl scale"
    Autoscaling(redis_client).set("books", Policy(min=1, max=6))
    assert shown("books") == {
        "size": "5 run time: trawl autoscale",
        "consumer": " default",
        "autoscale": "1 to 6 run time: trawl autoscale",
    }
    assert main(["services", "show", "books"]) == 0
    assert "size: 5 (run time: trawl autoscale)" in capsys.readouterr().out

"""`trawl config systemd`: units that systemd itself accepts."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.commands.init import Host, units
from cli.main import main


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = workers.settings\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAWL_REDIS_URL", "redis://127.0.0.1:6379/0")
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRAWL_SHUTDOWN_GRACE_S", "20")
    return tmp_path


def test_the_units_stop_gently_write_nowhere_else_and_hold_no_password(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project / "units"
    folder.mkdir()
    assert main(["config", "systemd", "--write", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {
        *(f"trawl-{role}.service" for role in ("worker", "beat", "flower", "exporter")),
        "trawl.target",
    }
    worker = (folder / "trawl-worker.service").read_text()
    for line in ("KillMode=mixed", "OOMPolicy=continue", "TimeoutStopSec=90", f"ReadWritePaths={project}/data"):
        assert f"\n{line}\n" in worker
    beat = (folder / "trawl-beat.service").read_text()
    for unit in (worker, beat):
        for line in ("NotifyAccess=main", "WatchdogSec=120", "WatchdogSignal=SIGKILL"):
            assert f"\n{line}\n" in unit
    assert "Watchdog" not in (folder / "trawl-exporter.service").read_text(), "it sends no datagrams"
    assert "--hostname" not in worker
    assert "trawl-beat.service" in (folder / "trawl.target").read_text()
    assert "BASIC_AUTH" not in "".join(path.read_text() for path in folder.iterdir())
    capsys.readouterr()
    assert main(["config", "systemd"]) == 0
    assert worker in capsys.readouterr().out


def test_the_api_is_a_unit_where_it_has_a_token(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = project / "token"
    token.write_text("a-token-of-some-length")
    monkeypatch.setenv("TRAWL_API_READ_TOKEN_FILE", str(token))
    assert main(["config", "systemd"]) == 0
    said = capsys.readouterr().out
    unit = said.partition("# trawl-api.service\n")[2].partition("\n# ")[0]
    assert "monitoring.api" in unit.partition("ExecStart=")[2].splitlines()[0]
    assert "a-token" not in said
    assert "trawl-api.service" in said.partition("Wants=trawl-")[2]


def test_a_timer_makes_backups_where_a_folder_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, backups = project / "units", project / "my backups"
    folder.mkdir()
    monkeypatch.setenv("TRAWL_DATABASE_URL", "postgresql+psycopg://db/trawl")
    monkeypatch.setenv("PATH", str(project))
    assert main(["config", "systemd", "--write", str(folder), "--backups", str(backups)]) == 0
    said = capsys.readouterr()
    assert "needs pg_dump" in said.err
    assert f"-m 700 {backups}" in said.err
    unit, timer = ((folder / f"trawl-backup.{kind}").read_text() for kind in ("service", "timer"))
    assert f'cli.main backup create "{backups}"\n' in unit
    assert f'find "{backups}" -name *.backup -mtime +14 -delete\n' in unit
    assert f'ReadWritePaths={project}/data "{backups}"\n' in unit
    assert "Restart" not in unit
    assert "[Install]" not in unit, "only its timer starts it"
    assert "Unit=trawl-backup.service" in timer
    assert "trawl-backup.timer" in (folder / "trawl.target").read_text()
    assert "trawl-backup.service" not in (folder / "trawl.target").read_text()


@pytest.mark.processes
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_systemd_accepts_them(project: Path) -> None:
    folder = project / "with space $and 100%"
    folder.mkdir()
    commands = {role: ["/bin/echo", role, f"--conf={folder}/x"] for role in ("worker", "beat", "flower", "exporter", "api")}
    host = Host(project=folder, data=folder / "data", user=getpass.getuser(), stop_s=60, commands=commands, backups=folder / "b")
    for name, content in units(host).items():
        (folder / name).write_text(content)
    done = subprocess.run(
        ["systemd-analyze", "verify", *map(str, sorted(folder.glob("trawl*")))],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "trawl" in line]
    assert ours == [], done.stderr


def test_without_a_redis_it_says_what_to_set(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TRAWL_REDIS_URL")
    assert main(["config", "systemd"]) == 2
    assert "TRAWL_REDIS_URL is not set" in capsys.readouterr().err

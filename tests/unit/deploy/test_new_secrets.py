"""deploy/new-secrets.sh makes what the compose file needs, once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import compose_file
from tests.support.compose_file import ROOT


@pytest.mark.processes
def test_it_makes_all_that_must_be_set_and_changes_nothing_that_is(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    for name in (".env.example", "new-secrets.sh"):
        shutil.copy(ROOT / "deploy" / name, tmp_path / "deploy")

    def run() -> str:
        command = ["sh", str(tmp_path / "deploy/new-secrets.sh")]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    assert run().splitlines() == ["made .env", "made deploy/signing.key"]
    made = {name: (tmp_path / name).read_text() for name in (".env", "deploy/signing.key")}
    given = dict(line.split("=", 1) for line in made[".env"].splitlines() if line and not line.startswith("#"))
    needed = {name for name, complaint in compose_file.variables().items() if complaint} | {
        "GRAFANA_PASSWORD",
        "POSTGRES_PASSWORD",
        "TRAWL_API_ACT_TOKEN",
    }
    assert given.keys() == needed
    assert len({value.rpartition(":")[2] for value in given.values()}) == len(needed), "each password is another one"
    assert all(value.rpartition(":")[2].isalnum() and "change" not in value for value in given.values())
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    assert len(bytes.fromhex(made["deploy/signing.key"].strip())) == 32
    assert run() == ""
    assert made == {name: (tmp_path / name).read_text() for name in made}
    (tmp_path / ".env").write_text("OTHER=1\nTRAWL_REDIS_PASSWORD=mine\nFLOWER_BASIC_AUTH=admin:change-me\nGRAFANA_PASSWORD=")
    assert run() == "completed .env: FLOWER_BASIC_AUTH GRAFANA_PASSWORD POSTGRES_PASSWORD TRAWL_API_ACT_TOKEN\n"
    completed = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines())
    assert completed.keys() == {*needed, "OTHER"}
    assert (completed["OTHER"], completed["TRAWL_REDIS_PASSWORD"]) == ("1", "mine")
    assert all(value and "change" not in value for value in completed.values())
    assert run() == ""

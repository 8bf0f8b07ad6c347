"""`trawl COMMAND` in this process: what it printed, and its exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import main

SITE = 'profile = "generic"\nbase_url = "http://127.0.0.1:1"\nforums = ["news", "help"]\n'


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


Trawl = Callable[..., Said]


def commands(redis_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    """Commands with this Redis, data below `folder`, and one site, `example`, in `folder/sites`."""
    sites = folder / "sites"
    sites.mkdir()
    (sites / "example.toml").write_text(SITE)
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("TRAWL_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("TRAWL_SITES_DIR", str(sites))
    for name in ("TRAWL_FLEET", "TRAWL_DEBUG", "TRAWL_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Said:
        code = main(arguments)
        out, err = capfd.readouterr()
        return Said(code=code, out=out, err=err)

    return run


def one_line(said: Said, code: int, *words: str) -> None:
    """The command failed with this code and one line on standard error, which has these words in it."""
    assert said.code == code
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("trawl: ")
    assert "Traceback" not in said.err
    for word in words:
        assert word in said.err

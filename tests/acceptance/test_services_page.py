"""docs/services.md from `scrapy startproject` to `trawl services check`, as the page prints it: commands and files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documented_commands import ROOT

PAGE = ROOT / "docs/services.md"
HEADING = "## From `scrapy startproject` to a supervised fleet"


def blocks() -> list[str]:
    """The indented blocks of the section, without the indentation."""
    section = PAGE.read_text("utf-8").partition(HEADING)[2].partition("\n## ")[0]
    return [
        re.sub(r"^    ", "", block, flags=re.MULTILINE)
        for block in re.findall(r"(?:^    .*\n)+(?:\n?(?:^    .*\n)+)*", section, re.MULTILINE)
    ]


@pytest.mark.usefixtures("no_process_left")
def test_what_the_page_prints_makes_a_project_that_the_fleet_can_crawl(redis_url: str, tmp_path: Path) -> None:
    start, settings, declared, last = blocks()[:4]
    environment = {**os.environ, "TRAWL_REDIS_URL": redis_url, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("TRAWL_FLEET", None)

    def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-e", "-c", text]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False)

    made = run(start, tmp_path)
    assert made.returncode == 0, made.stderr
    project, (check, *_) = tmp_path / "shop", last.splitlines()
    (project / "trawl.toml").write_text(declared)
    before = run(check, project)
    assert before.returncode == 0
    for missing in ("SCHEDULER", "STATS_CLASS", "ITEM_PIPELINES"):
        assert f"{missing} = " in before.stderr, "it says which of the settings is missing"
    with (project / "shop/settings.py").open("a") as file:
        file.write(settings)
    after = run(check, project)
    assert (after.returncode, after.stdout, after.stderr) == (0, "books: can crawl\n", "")
    assert "books" in run("trawl services list", project).stdout

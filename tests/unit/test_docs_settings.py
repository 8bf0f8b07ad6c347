"""`docs/settings.md` names every setting and variable that is read, and none that is not."""

from __future__ import annotations

import re
from pathlib import Path

import scrapy.settings.default_settings

ROOT = Path(__file__).parents[2]
PACKAGES = ("redis_components", "workers", "tasks", "cli", "monitoring")
FILES = [*ROOT.glob("*.py"), *(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))]
CODE = "\n".join(path.read_text("utf-8") for path in FILES)
SCRAPYS = set(dir(scrapy.settings.default_settings))
READ = re.compile(r"""(?:settings(?:\.get\w*\(|\[)|number_of\(settings, |object_of\((?:\w+\.)?\w+, )\s*"([A-Z_]+)\"""")
VARIABLE = re.compile(r"""environ(?:\.\w+\(|\[)"(TRAWL_[A-Z_]+)\"""")
ROW = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)


def documented() -> set[str]:
    """The names in the first column of the tables."""
    return {name for cell in ROW.findall((ROOT / "docs/settings.md").read_text("utf-8")) for name in re.findall(r"`(\w+)`", cell)}


def test_every_setting_and_variable_that_is_read_is_documented() -> None:
    ours = set(READ.findall(CODE)) - SCRAPYS
    assert len(ours) > 15, "the pattern still finds them"
    assert ours | set(VARIABLE.findall(CODE)) <= documented()


def test_every_documented_setting_exists() -> None:
    assert [name for name in sorted(documented() - SCRAPYS) if name not in CODE] == []

"""The map of `redis_components` in `docs/architecture.md` names every module, and none that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "redis_components"
TEXT = (ROOT / "docs/architecture.md").read_text("utf-8")
NAMED = set(re.findall(r"`(?:redis_components/)?(\w+)(?:\.py|/)`", TEXT))


def test_every_module_is_on_the_map() -> None:
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert modules - {"__init__"} - NAMED == set()


def test_every_file_that_is_named_exists() -> None:
    known = {path.stem for pattern in ("*", "*/*") for path in ROOT.glob(pattern)}
    assert NAMED - known == set()
    paths = set(re.findall(r"`((?:redis_components|workers|tasks|lua|decisions)/[\w./-]+\.\w+)`", TEXT))
    assert len(paths) > 8, "the pattern still finds them"
    folders = (ROOT, PACKAGE, ROOT / "docs")
    assert [path for path in sorted(paths) if not any((folder / path).exists() for folder in folders)] == []

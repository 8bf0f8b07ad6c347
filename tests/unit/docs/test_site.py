"""The documentation as a site: each page has its place, links hold, and what pages quote is what the code says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


@pytest.mark.processes
def test_the_strict_build_has_no_warning(tmp_path: Path) -> None:
    own = ROOT / ".venv-docs/bin/mkdocs"
    mkdocs = str(own) if own.exists() else shutil.which("mkdocs")
    if mkdocs is None:
        pytest.skip("mkdocs is not installed: `make docs-site` installs it into .venv-docs")
    done = subprocess.run(
        [mkdocs, "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "site/decisions/index.html").exists()


def test_there_is_little_to_read() -> None:
    assert len(list(DOCS.glob("*.md"))) <= 20, "a reference belongs under docs/reference/"
    lines = {name: len((ROOT / name).read_text("utf-8").splitlines()) for name in ("CHANGELOG.md", "CONTRIBUTING.md")}
    assert lines["CHANGELOG.md"] <= 100
    assert lines["CONTRIBUTING.md"] <= 80


def test_each_page_has_its_place_in_the_site_and_in_the_index() -> None:
    nav = (ROOT / "mkdocs.yml").read_text("utf-8")
    index = (DOCS / "README.md").read_text("utf-8")
    pages = [str(page.relative_to(DOCS)) for page in (*DOCS.glob("*.md"), *DOCS.glob("zh/*.md"), *DOCS.glob("reference/*.md"))]
    assert [page for page in pages if page not in nav] == []
    assert [page for page in pages if page != "README.md" and f"({page}" not in index] == []


@cache
def _sources() -> str:
    folders = ("cli", "forum_reader", "forums", "workers", "fleet_operations", "redis_components", "tasks")
    texts = [path.read_text("utf-8") for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return re.sub(r"\s+", " ", re.sub(r'"\s*\n\s*f?"', "", "\n".join(texts)))


def test_each_message_under_troubleshooting_is_in_the_code() -> None:
    page = (DOCS / "operations.md").read_text("utf-8").partition("\n## Troubleshooting\n")[2]
    rows = re.findall(r"^\| `([^`]+)`[^|]*\|", page, re.MULTILINE)
    messages = [one for one in rows if " " in one and not one.startswith("trawl ")]
    assert len(messages) > 15
    assert [one for one in messages if one not in _sources()] == []


def _blocks(text: str) -> list[str]:
    """Lines of code, without remarks: those are in the page's language."""
    lines, fenced = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            lines.append(re.sub(r"\s+#.*|, \"kept\".*", "", line).strip())
    return lines


def _settings(text: str) -> set[str]:
    return set(re.findall(r"TRAWL_[A-Z_]+|CONCURRENT_REQUESTS|`[a-z_]+\.[a-z_]+`", text))


@pytest.mark.parametrize("name", sorted(page.name for page in (DOCS / "zh").glob("*.md")))
def test_a_chinese_page_says_what_the_english_one_says(name: str) -> None:
    """The same headings in number and depth, the same commands and files, tables of the same length, the same settings."""
    english, chinese = ((folder / name).read_text("utf-8") for folder in (DOCS, DOCS / "zh"))
    english = english.partition("\n## Troubleshooting\n")[0]  # and the alerts below it are in English only
    assert _blocks(chinese) == _blocks(english)
    assert _settings(chinese) == _settings(english)
    for of_lines in (r"^#+(?= )", r"^\|", r"^- "):
        assert re.findall(of_lines, chinese, re.MULTILINE) == re.findall(of_lines, english, re.MULTILINE), of_lines

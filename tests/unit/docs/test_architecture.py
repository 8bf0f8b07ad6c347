"""`docs/architecture.md` names every folder of the packages, and no file or folder that does not exist; commands are whole."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.sources import PACKAGES as ALL
from tests.support.sources import sources

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/architecture.md").read_text("utf-8")
PACKAGES = ("redis_components", "workers", "fleet_operations", "forum_reader", "forums", "cli")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_is_described(package: str) -> None:
    folders = {path.name for path in (ROOT / package).iterdir() if (path / "__init__.py").exists()}
    described = TEXT[TEXT.index(f"**`{package}/`**") :].partition("\n**`")[0]
    assert folders - set(re.findall(r"`(\w+)/", described)) == set()


def test_every_file_that_is_named_exists() -> None:
    paths = set(
        re.findall(
            r"`((?:redis_components|workers|fleet_operations|forum_reader|forums|tasks|cli|monitoring|decisions)/[\w./-]+)`", TEXT
        )
    )
    assert len(paths) > 8, "the pattern still finds them"
    assert [path for path in sorted(paths) if not any((folder / path).exists() for folder in (ROOT, ROOT / "docs"))] == []


def test_every_file_of_the_frontier_is_described() -> None:
    files = {path.name for path in (ROOT / "redis_components/frontier").glob("*.py")} - {"__init__.py"}
    assert files - set(re.findall(r"`(\w+\.py)`", TEXT)) == set()


def test_it_is_one_page() -> None:
    assert len(TEXT.splitlines()) <= 120, "details belong into a decision or into docs/guarantees.md"


def test_what_a_module_does_as_a_command_comes_behind_all_that_it_defines() -> None:
    """`python -m demo.compare` ended with a NameError: its functions came behind the call of `main`."""
    early = []
    for path, text in sources((*ALL, "benchmarks", "packaging", "tests")).items():
        body = ast.parse(text).body if "__main__" in text else []
        calls = [place for place, one in enumerate(body) if isinstance(one, ast.If) and "'__main__'" in ast.unparse(one.test)]
        if calls and any(isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) for one in body[calls[-1] :]):
            early.append(path)
    assert early == []

"""The reader without the rest: it is imported and used where no other package of the tree, and no Scrapy, can be."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.fleet import ROOT

FORBIDDEN = (
    "scrapy",
    "twisted",
    "redis",
    "celery",
    "redis_components",
    "workers",
    "fleet_operations",
    "forums",
    "tasks",
    "cli",
    "monitoring",
    "demo",
)
ALONE = f"""
import importlib, pkgutil, sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {FORBIDDEN}:
            raise ImportError(f"forum_reader imports {{name}}")

sys.meta_path.insert(0, Refused())
import forum_reader

assert not {{"lxml", "pydantic", "msgspec"}} & set(sys.modules), "`import forum_reader` loads what it may not need"
for module in pkgutil.walk_packages(forum_reader.__path__, "forum_reader."):
    importlib.import_module(module.name)
"""


@pytest.mark.processes
def test_the_reader_imports_nothing_of_a_crawl() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr

"""The exporter's own image serves its pages with the packages that `packaging/exporter_part.py` copies."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.compose_file import ROOT

WITHOUT_THE_REST = """
import importlib, pkgutil, sys
from importlib import metadata
sys.path.insert(0, "packaging")
import exporter_part
from packaging.utils import canonicalize_name

there = exporter_part.closure(("trawl-fleet", *exporter_part.NEEDED))
owners = metadata.packages_distributions()

class Absent:
    def find_spec(self, name, path=None, target=None):
        of = owners.get(name.partition(".")[0], ())
        if of and not there & {canonicalize_name(one) for one in of}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import monitoring
for one in pkgutil.walk_packages(monitoring.__path__, "monitoring."):
    if not one.name.startswith("monitoring.api."):
        importlib.import_module(one.name)
from monitoring.api.access import Tokens
from monitoring.app import create_app
from monitoring.source import Source
print(len(create_app(Source("redis://127.0.0.1:1/0", {}), hosts=frozenset(), tokens=Tokens.that_are_set()).routes))
"""


@pytest.mark.processes
def test_the_exporter_is_made_without_the_packages_that_its_image_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_REST], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert int(done.stdout or 0) > 5, done.stderr[-1000:]

"""The fleet's packages load where the forum crawl and the reader of pages are not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOAD_ALL = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("forums", "forum_reader"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent())
from cli.command_table import COMMANDS, OF_FORUMS

failed, loaded = [], 0
names = [
    found.name
    for top in ("redis_components", "workers", "tasks")
    for found in pkgutil.walk_packages(importlib.import_module(top).__path__, f"{top}.")
    if not found.name.endswith("__main__") and found.name != "workers.settings"  # these are programs, or start a server
]
places = {place.rpartition(".")[0] for _, place, _ in COMMANDS.values() if place != OF_FORUMS}
for name in (*names, *(f"cli.commands.{one}" for one in sorted(places - {"backup"}))):  # a backup has the database
    try:
        importlib.import_module(name)
        loaded += 1
    except ModuleNotFoundError as error:
        failed.append(f"{name}: {error}")
print(loaded, failed)
"""


@pytest.mark.processes
def test_every_module_of_the_fleet_loads_without_forums_and_reader() -> None:
    environment = {**os.environ, "TRAWL_APPLICATION": "", "TRAWL_ENV_FILE": "", "TRAWL_REDIS_URL": "redis://127.0.0.1:1/0"}
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", LOAD_ALL], cwd=root, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    loaded, _, failed = done.stdout.strip().partition(" ")
    assert failed == "[]", done.stdout + done.stderr
    assert int(loaded) > 150

"""Packages load where those are missing that they must not need: the forum crawl, the reader of pages, a fleet's operations."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from cli.command_table import COMMANDS, OF_FORUMS

ROOT = Path(__file__).resolve().parents[3]
LOAD_ALL = """
import importlib, pkgutil, sys

absent, tops, commands = (words.split() for words in sys.argv[1:])

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent())
failed, loaded = [], 0
names = [
    found.name
    for top in tops
    for found in pkgutil.walk_packages(importlib.import_module(top).__path__, f"{top}.")
    if not found.name.endswith("__main__") and found.name != "workers.settings"  # these are programs, or start a server
]
for name in (*names, *commands):
    try:
        importlib.import_module(name)
        loaded += 1
    except ModuleNotFoundError as error:
        failed.append(f"{name}: {error}")
print(loaded, failed)
"""


ABOVE = ("cli", "demo", "forum_reader", "forums", "monitoring", "tasks")


def load_all(absent: Iterable[str], packages: Iterable[str], modules: Iterable[str] = ()) -> int:
    """Load every module of some packages, and more modules, where others are missing; return their number."""
    environment = {**os.environ, "TRAWL_APPLICATION": "", "TRAWL_ENV_FILE": "", "TRAWL_REDIS_URL": "redis://127.0.0.1:1/0"}
    command = [sys.executable, "-c", LOAD_ALL, *(" ".join(names) for names in (absent, packages, modules))]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    loaded, _, failed = done.stdout.strip().partition(" ")
    assert failed == "[]", done.stdout + done.stderr
    return int(loaded)


@pytest.mark.processes
def test_every_module_of_the_fleet_loads_without_forums_and_reader() -> None:
    places = {place.rpartition(".")[0] for _, place, _ in COMMANDS.values() if place != OF_FORUMS}
    commands = [f"cli.commands.{one}" for one in sorted(places - {"backup"})]  # a backup has the database
    packages = ("redis_components", "workers", "fleet_operations", "tasks")
    assert load_all(("forums", "forum_reader"), packages, commands) > 150


@pytest.mark.processes
def test_what_launches_and_supervises_crawlers_loads_without_the_operations_of_a_fleet() -> None:
    assert load_all(("fleet_operations", *ABOVE), ("redis_components", "workers")) > 100

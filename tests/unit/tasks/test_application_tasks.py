"""The application's registration: its tasks, rounds and settings are there when it is named, and none is there without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
import json, sys
import celeryconfig, tasks
from workers.application import application
from workers.targets import consumer_of
loaded = sorted(name for name in sys.modules if name.partition(".")[0] in ("forums", "forum_reader", "shop"))
tasks.app.loader.import_default_modules()
names = sorted(name for name in tasks.app.tasks if name.startswith(("trawl.", "shop.")))
from tasks import *
print(json.dumps({
    "loaded": loaded, "tasks": names, "beat": sorted(celeryconfig.beat_schedule), "seeds": "seed_forums" in globals(),
    "counts": "count" in globals(), "settings": dict(application().scrapy_settings()),
    "consumers": list(application().consumers()),
}))
"""
SHOP = {
    "shop.py": """
from workers.application import Round
def task_modules(): return ("shop_tasks",)
def schedule(): return {"count": Round(9.0, bounds=(1.0, 60.0))}
def scrapy_settings(): return {"SPIDER_MODULES": ["shop_spiders"]}
def consumers(): return {"till": ("books",)}
def commands(): return {"till": "shop_commands.till"}
""",
    "shop_commands.py": """
import sys
def till() -> int:
    'Count the till.'
    print(int("forums" in sys.modules))
    return 0
""",
    "shop_tasks.py": """
from tasks.app import app
__all__ = ["count"]
@app.task(name="trawl.count")
def count(): return 1
""",
}

pytestmark = pytest.mark.processes


def asked(folder: Path, application: str) -> dict[str, object]:
    for name, text in SHOP.items():
        (folder / name).write_text(text)
    environment = {**os.environ, "TRAWL_APPLICATION": application, "PYTHONPATH": str(folder), "TRAWL_ENV_FILE": ""}
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", ASK], cwd=root, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_forum_crawl_brings_its_tasks_rounds_settings_and_consumer(tmp_path: Path) -> None:
    found = asked(tmp_path, "forums.application")
    assert "forums.storage" not in found["loaded"], "a client that sends a task loads nothing of what tasks do"  # type: ignore[operator]
    assert {"trawl.seed_forums", "trawl.store_items", "trawl.publish_events"} <= set(found["tasks"])  # type: ignore[call-overload]
    assert {"seed_forums", "store_items", "reconcile_fleet"} <= set(found["beat"])  # type: ignore[call-overload]
    assert found["seeds"] is True
    assert found["settings"] == {"SPIDER_MODULES": ["forums.spiders"], "NEWSPIDER_MODULE": "forums.spiders"}
    assert found["consumers"] == ["forum_writer"]


def test_another_application_uses_the_same_registration(tmp_path: Path) -> None:
    found = asked(tmp_path, "shop")
    assert (found["seeds"], found["counts"]) == (False, True)
    assert found["beat"] == ["count", "probe_sites", "reconcile_fleet", "sample_fleet"]
    assert found["settings"] == {"SPIDER_MODULES": ["shop_spiders"]}
    assert found["consumers"] == ["till"]
    assert not [name for name in found["loaded"] if str(name).startswith("forum")]  # type: ignore[attr-defined]


def test_a_fleet_without_an_application_has_the_fleets_own_tasks_alone(tmp_path: Path) -> None:
    found = asked(tmp_path, "")
    assert found["loaded"] == []
    assert found["beat"] == ["probe_sites", "reconcile_fleet", "sample_fleet"]
    assert "trawl.run_crawler" in found["tasks"]  # type: ignore[operator]
    assert "trawl.seed_forums" not in found["tasks"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("words", "code", "printed"), [(["till"], 0, "0"), (["seed"], 2, "pip install trawl-fleet trawl-reader")]
)
def test_another_application_brings_commands_and_has_none_of_the_forum_crawl(
    tmp_path: Path, words: list[str], code: int, printed: str
) -> None:
    for name, text in SHOP.items():
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "TRAWL_APPLICATION": "shop", "PYTHONPATH": str(tmp_path), "TRAWL_ENV_FILE": ""}
    command = [sys.executable, "-m", "cli.main", *words]
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    assert printed in done.stdout + done.stderr
    assert len((done.stdout + done.stderr).splitlines()) == 1

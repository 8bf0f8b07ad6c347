"""The one command of the guide for projects on scrapy-redis, run on names that contain the word."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GUIDES = ("docs/migrating-from-scrapy-redis.md", "docs/tutorial.md")
STAY = """SPIDER_MODULES = ["shop_scrapy_redis.spiders"]
SCHEDULER = "scrapy_redis_bloomfilter.scheduler.Scheduler"
"""
CHANGE = """from scrapy_redis.spiders import RedisSpider
import scrapy_redis
QUEUE = "scrapy_redis.queue.FifoQueue"
"""


@pytest.mark.processes
@pytest.mark.parametrize("guide", GUIDES)
def test_the_command_replaces_the_word_and_no_part_of_a_name(tmp_path: Path, guide: str) -> None:
    (command,) = [line.strip() for line in (ROOT / guide).read_text().splitlines() if "sed -i" in line and "scrapy_redis" in line]
    files = ("shop/settings.py", "templates/spider.tmpl", "scrapy.cfg")
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(STAY + CHANGE)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    for name in files:
        assert (tmp_path / name).read_text() == STAY + CHANGE.replace("scrapy_redis", "redis_components")

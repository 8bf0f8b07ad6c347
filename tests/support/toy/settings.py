"""Scrapy's settings for the toy project."""

from __future__ import annotations

SPIDER_MODULES = ["tests.support.toy.spiders"]
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
LOG_LEVEL = "INFO"
LOG_VERSIONS: list[str] = []
STATS_DUMP = False
ROBOTSTXT_OBEY = False

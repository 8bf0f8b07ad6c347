"""Scrapy's settings for the toy project."""

from __future__ import annotations

from tests.support.light_scrapy import *  # noqa: F403 - settings are the module's names

SPIDER_MODULES = ["tests.support.toy.spiders"]
LOG_LEVEL = "INFO"
LOG_VERSIONS: list[str] = []
STATS_DUMP = False
ROBOTSTXT_OBEY = False
DOWNLOAD_HANDLERS = {"data": "scrapy.core.downloader.handlers.datauri.DataURIDownloadHandler"}  # pages that need no site

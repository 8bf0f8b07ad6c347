"""Settings of Scrapy for the forum crawl, over those of any spider in `workers/settings.py`."""

SPIDER_MODULES = ["forums.spiders"]
NEWSPIDER_MODULE = "forums.spiders"

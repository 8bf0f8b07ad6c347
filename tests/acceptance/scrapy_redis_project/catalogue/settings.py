"""Settings as scrapy-redis's own documentation gives them."""

import os

BOT_NAME = "catalogue"
SPIDER_MODULES = ["catalogue.spiders"]
NEWSPIDER_MODULE = "catalogue.spiders"

SITE = os.environ["CATALOGUE_SITE"]
REDIS_URL = os.environ["CATALOGUE_REDIS"]

SCHEDULER = "scrapy_redis.scheduler.Scheduler"
SCHEDULER_PERSIST = True
SCHEDULER_QUEUE_CLASS = "scrapy_redis.queue.PriorityQueue"
DUPEFILTER_CLASS = "scrapy_redis.dupefilter.RFPDupeFilter"
ITEM_PIPELINES = {
    "catalogue.pipelines.StampPipeline": 300,
    "scrapy_redis.pipelines.RedisPipeline": 400,
}
MAX_IDLE_TIME_BEFORE_CLOSE = 1

CONCURRENT_REQUESTS = 8
CONCURRENT_REQUESTS_PER_DOMAIN = 8
DOWNLOAD_DELAY = 0
LOG_LEVEL = "INFO"
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

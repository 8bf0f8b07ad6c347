"""Settings as a scrapy-redis project has them; the spider names the rest."""

SPIDER_MODULES = ["collector.spiders"]
ALLOW_PRIVATE_ADDRESSES = True  # its sites are on this machine
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
ROBOTSTXT_OBEY = False
CONCURRENT_REQUESTS_PER_DOMAIN = 16

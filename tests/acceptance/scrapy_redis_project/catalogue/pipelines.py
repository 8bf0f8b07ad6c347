"""Item pipelines: one of Scrapy's kind, one that chooses the key in Redis."""

from scrapy_redis.pipelines import RedisPipeline


class StampPipeline:
    """Writes into each item who took it."""

    def process_item(self, item):
        item["stamp"] = "catalogue"
        return item


class OddEvenPipeline(RedisPipeline):
    """Odd and even pages into keys of their own."""

    def item_key(self, item, spider):
        return f"{spider.name}:items:{'odd' if item['number'] % 2 else 'even'}"

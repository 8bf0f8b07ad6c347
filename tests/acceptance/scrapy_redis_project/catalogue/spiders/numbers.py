"""The mixin beside another base class, with a format of start messages of its own."""

from scrapy import Request, Spider
from scrapy_redis.spiders import RedisMixin

from catalogue.pages import page_of


class NumbersSpider(RedisMixin, Spider):
    """Reads page numbers, "7" or "7-9", from the set `numbers:ranges`; follows nothing."""

    name = "numbers"
    redis_key = "%(name)s:ranges"
    redis_batch_size = 4
    max_idle_time = 1
    custom_settings = {"REDIS_START_URLS_AS_SET": True, "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.FifoQueue"}

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.setup_redis(crawler)
        return spider

    def make_request_from_data(self, data):
        first, _, last = data.decode().partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield Request(f"{self.settings['SITE']}/{number}", dont_filter=True)

    def parse(self, response):
        yield page_of(response, self)


class BatchesSpider(NumbersSpider):
    """Reads its messages itself, from a list, the newest first."""

    name = "batches"
    custom_settings = {"SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.LifoQueue"}

    def next_requests(self):
        for _ in range(self.redis_batch_size):
            data = self.server.rpop(self.redis_key)
            if data is None:
                break
            yield from self.make_request_from_data(data)

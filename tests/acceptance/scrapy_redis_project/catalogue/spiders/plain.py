"""Scrapy's own Spider on the shared queue, with everything replaced that can be."""

from scrapy import Spider

from catalogue.pages import page_of


class PlainSpider(Spider):
    """Follows links from page 1; each link has a new session in it."""

    name = "plain"
    custom_settings = {
        "DUPEFILTER_CLASS": "catalogue.dupefilters.SessionlessDupeFilter",
        "SCHEDULER_QUEUE_CLASS": "catalogue.queues.ShortestFirst",
        "SCHEDULER_SERIALIZER": "catalogue.json_requests",
        "ITEM_PIPELINES": {"catalogue.pipelines.StampPipeline": 300, "catalogue.pipelines.OddEvenPipeline": 400},
    }
    sessions = 0

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.start_urls = [f"{crawler.settings['SITE']}/1"]
        return spider

    def parse(self, response):
        yield page_of(response, self)
        for href in response.css("a::attr(href)").getall() * 2:
            self.sessions += 1
            yield response.follow(f"{href}?session={self.sessions}", self.parse, meta={"hops": response.meta.get("hops", 0) + 1})

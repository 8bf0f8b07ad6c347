"""Rules instead of callbacks."""

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import Rule
from scrapy_redis.spiders import RedisCrawlSpider

from catalogue.pages import page_of


class RulesSpider(RedisCrawlSpider):
    """Reads `rules:begin`."""

    name = "rules"
    redis_key = "rules:begin"
    rules = (Rule(LinkExtractor(allow=r"/\d+$"), callback="parse_page", follow=True),)

    def parse_page(self, response):
        yield page_of(response, self)

    parse_start_url = parse_page

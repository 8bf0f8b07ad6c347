"""The usual one: URLs from Redis, links followed."""

from scrapy_redis.spiders import RedisSpider

from catalogue.pages import page_of


class FollowSpider(RedisSpider):
    """Reads `follow:start_urls`: URLs, or JSON with `url` and `meta`."""

    name = "follow"

    def parse(self, response):
        yield page_of(response, self)
        hops = response.meta.get("hops", 0) + 1
        for link in response.css("a"):
            yield response.follow(
                link, callback=self.parse_linked, meta={"hops": hops}, priority=-hops, cb_kwargs={"shown": link.attrib["href"]}
            )

    def parse_linked(self, response, shown):
        assert response.url.endswith(shown)
        yield from self.parse(response)

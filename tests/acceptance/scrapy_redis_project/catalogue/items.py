"""What is scraped."""

from scrapy import Field, Item


class Page(Item):
    """One page of the site."""

    number = Field()
    found_by = Field()
    depth = Field()
    stamp = Field()

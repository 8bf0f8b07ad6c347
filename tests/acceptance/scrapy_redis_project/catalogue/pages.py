"""What all spiders know about the site: page n has links to further pages."""

from catalogue.items import Page


def page_of(response, spider):
    """The item of a response."""
    path = response.url.partition("?")[0]
    return Page(number=int(path.rpartition("/")[2]), found_by=spider.name, depth=response.meta.get("hops", 0))

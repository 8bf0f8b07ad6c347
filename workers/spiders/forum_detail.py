"""Fetches posts and their comments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy import Request

from redis_components.spiders import RedisSpider
from workers.sites import Site, load_site

from .task_data import PostTask
from .timestamp import utc_now

if TYPE_CHECKING:
    from scrapy.http import Response


class Post(msgspec.Struct):
    """A post as the site's API gives it."""

    id: str
    forum_id: str
    title: str
    body: str
    author: str | None = None
    created_at: str | None = None
    views: int | None = None
    reply_count: int | None = None
    last_reply_at: str | None = None


class Comment(msgspec.Struct):
    """A comment as the site's API gives it."""

    id: str
    post_id: str
    body: str
    parent_id: str | None = None
    author: str | None = None
    created_at: str | None = None


class CommentPage(msgspec.Struct):
    """One page of comments."""

    pages: int
    comments: list[Comment]


class ForumDetailSpider(RedisSpider):
    """Start task: `{"site": "demo", "post": "p1"}`."""

    name = "forum_detail"

    def make_request_from_data(self, data: bytes) -> Request:
        """The post's page. Raises for a task without site or post, SiteError for an unknown site."""
        task = msgspec.json.decode(data, type=PostTask)
        site = load_site(task.site)
        return self._page(site.post_url(task.post), self.parse_post, {"site_name": site.name})

    def _page(self, url: str, callback: Any, cb_kwargs: dict[str, Any]) -> Request:
        # dont_filter: a changed thread is fetched again. set_aside: what cannot be fetched is kept with the reason, not
        # forgotten.
        meta = {"site": cb_kwargs["site_name"]}  # the name by which `trawl pause --site` knows it
        return Request(url, callback=callback, errback=self.set_aside, cb_kwargs=cb_kwargs, meta=meta, dont_filter=True)

    def parse_post(self, response: Response, site_name: str) -> Iterator[Any]:
        """The post, and the first page of its comments."""
        post = msgspec.json.decode(response.body, type=Post)
        yield {"kind": "post", "site": site_name, **msgspec.structs.asdict(post), "url": response.url, "fetched_at": utc_now()}
        yield self._comments(load_site(site_name), post.id, 1)

    def _comments(self, site: Site, post: str, page: int) -> Request:
        return self._page(
            site.comments_url(post, page), self.parse_comments, {"site_name": site.name, "post": post, "page": page}
        )

    def parse_comments(self, response: Response, site_name: str, post: str, page: int) -> Iterator[Any]:
        """The comments; the first page tells how many there are, and the others are fetched side by side."""
        listing = msgspec.json.decode(response.body, type=CommentPage)
        fetched_at = utc_now()
        for comment in listing.comments:
            yield {
                "kind": "comment",
                "site": site_name,
                **msgspec.structs.asdict(comment),
                "url": response.url,
                "fetched_at": fetched_at,
            }
        if page == 1:
            site = load_site(site_name)
            for number in range(2, listing.pages + 1):
                yield self._comments(site, post, number)

"""Posts by the profile of the software that made the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from lxml import etree

from forum_reader.dates import post_calendar
from forum_reader.dates.post_calendar import known_language, writes_day_first
from forum_reader.definition.fields import Fields
from forum_reader.errors import SiteError
from forum_reader.fields import post_marks
from forum_reader.page.records import SeenLink, SeenPost, Software

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import TextResponse
    from forum_reader.reading.page_records import CommentsPage
    from forum_reader.recognise.page_marks import PageMarks
    from forum_reader.recognise.recognise import Recognition

_CLOSE = 30 / 10_000  # posts of one month, in order, leave no doubt of their dates
_TINY = 1e-9
_NUMBER = re.compile(r"(?<!\d)\d+$")


SomeFields = TypeVar("SomeFields", bound=Fields)


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a page: threads, or forums."""

    rows: tuple[SeenLink, ...]
    of_threads: bool
    next: str | None = None


class ProfileReader:
    """A parsed page with its marks: the software that made it, and its posts by the profile of that software."""

    def __init__(self, response: TextResponse, root: Any, marks: PageMarks, now: datetime) -> None:
        from forum_reader.recognise.recognise import recognise

        self._response, self._root, self._marks, self._now = response, root, marks, now
        self._found: Recognition = recognise(response, marks)

    @property
    def software(self) -> Software | None:
        """Return the software; None where the evidence is not enough."""
        found = self._found
        if found.software is None or found.html_profile is None:
            return None
        return Software(
            name=found.software, version=found.version, profile=found.html_profile, marks=found.marks, score=found.score
        )

    def posts(self) -> tuple[SeenPost, ...]:
        """Return the posts; none where the profile does not fit the page, or the software is not sure."""
        page = self._day_or_month_first(self._comments(None))
        if page is None:
            return ()
        posts = []
        if page.post is not None:
            post = page.post
            text = post.body or self._title() or ""  # a link or a picture: the title is the post's text
            own_id = None if any(comment.id == page.post_id for comment in page.comments) else page.post_id
            posts.append(SeenPost(text=text, id=own_id, author=post.author, published=post.created_at, edited=post.edited_at))
        posts += [
            SeenPost(
                text=comment.body, id=comment.id, author=comment.author, published=comment.created_at, edited=comment.edited_at,
                parent=comment.parent_id,
            )
            for comment in page.comments
        ]  # fmt: skip
        return self._with_profiles(posts)

    def links(self) -> Listed | None:
        """Return the threads or else the forums that the page lists; None where the profile finds none, or the software is not
        sure.
        """
        from forum_reader.reading.read_page import read_index, read_list

        profile = self._found.html_profile
        site = _site(profile, urlsplit(self._response.url).netloc, None) if profile else None
        if site is None or self.software is None:
            return None
        for of_threads, page in ((True, site.pages.list), (False, site.pages.index)):
            if page is None or page.format != "html":
                continue
            try:
                if of_threads:
                    listed = read_list(site, self._response, "0", None, root=self._root)
                    named = [(thread.url, thread.title) for thread in listed.threads]
                    following = listed.next
                else:
                    named = [(forum.url, forum.name) for forum in read_index(site, self._response, None, root=self._root).forums]
                    following = None
            except SiteError:
                continue
            rows = tuple(SeenLink(url=url, title=title) for url, title in named if url and title)
            if rows:
                return Listed(rows=rows, of_threads=of_threads, next=following)
        return None

    def comments_on(self, posts: Sequence[SeenPost]) -> frozenset[int]:
        """Return the indexes of posts that are comments on a question or an answer."""
        path = self._found.comment_ids
        ids = {_last_number(str(value)) for value in _compiled(path)(self._root)} if path else set()
        return frozenset(n for n, post in enumerate(posts) if post.id is not None and _last_number(post.id) in ids)

    def _title(self) -> str | None:
        page = self._comments(None, with_title=True)
        return page.post.title if page and page.post else None

    def _comments(self, language: str | None, *, with_title: bool = False) -> CommentsPage | None:
        """Read the page by the profile, with dates in `language` (None: the profile's); None where it does not fit."""
        from forum_reader.reading.read_page import read_comments

        profile = self._found.html_profile
        site = _site(profile, urlsplit(self._response.url).netloc, language, of_posts=not with_title) if profile else None
        if site is None or site.pages.comments.format != "html":
            return None
        root = deepcopy(self._root) if site.pages.comments.shape else self._root  # it is arranged
        try:
            return read_comments(site, self._response, "0", None, root=root, classes=self._marks.of("class"), whole=False)
        except SiteError:
            return None

    def _day_or_month_first(self, page: CommentsPage | None) -> CommentsPage | None:
        """Read `04-03-2023` with the day first, where the page's language writes it so or the posts are then closer to each
        other: a profile names the order of its software's default language.
        """
        profile = self._found.html_profile
        site = _site(profile, urlsplit(self._response.url).netloc, None) if page is not None and profile is not None else None
        if page is None or site is None or not page.has_numeric_dates or writes_day_first(site.language):
            return page
        own = known_language(str(self._root.get("lang") or "")) or ""
        other = own if writes_day_first(own) else post_calendar.ENGLISH
        doubt = post_calendar.disorder_of(page, self._now)
        is_other = other != post_calendar.ENGLISH and not own.startswith("en")
        if not is_other and doubt < _CLOSE:
            return page
        again = self._comments(other)
        if again is None or _dated(again) < _dated(page):
            return page
        return again if post_calendar.disorder_of(again, self._now) < doubt + (_TINY if is_other else 0.0) else page

    def _with_profiles(self, posts: list[SeenPost]) -> tuple[SeenPost, ...]:
        """Add the addresses of the authors' profiles: for each name the first link with it that leads to a profile."""
        names = {post.author for post in posts if post.author}
        known: dict[str, str] = {}
        for name, href in self._marks.links:
            if name in names and name not in known and href and post_marks.is_profile_link(href):
                known[name] = href
        return tuple(msgspec.structs.replace(post, author_url=known.get(post.author or "")) for post in posts)


def _dated(page: CommentsPage) -> int:
    return sum(moment is not None for moment in post_calendar.moments_of(page))


_SHOWN = frozenset({"id", "body", "parent_id", "number", "parent_number", "author", "created_at", "edited_at"})
"""Fields of a post that a page is read for."""


def _of_posts(site: Site) -> Site:
    """Return the site without the searches that find no post: of other fields, and of signs that a page is one of its kind, as
    the posts are graded.
    """
    page = site.pages.comments
    post = page.post and _shown(page.post)
    given: dict[str, Any] = {"fields": _shown(page.fields), "post": post, "gone": None, "block_page": None, "container": None}
    if post is None and not page.repeats_post:
        given["current"] = None
    return site.model_copy(update={"pages": site.pages.model_copy(update={"comments": page.model_copy(update=given)})})


def _shown(fields: SomeFields) -> SomeFields | None:
    declared = tuple(one for one in fields.declared if one[0] in _SHOWN)
    return fields.model_copy(update={"declared": declared}) if declared else None


@lru_cache(maxsize=64)
def _compiled(path: str) -> etree.XPath:
    return etree.XPath(path)


def _last_number(text: str) -> str:
    found = _NUMBER.search(text)
    return found[0] if found else text


def _site(profile: str, host: str, language: str | None, *, of_posts: bool = False) -> Site | None:
    site = _built(profile, language, of_posts=of_posts)
    return site.model_copy(update={"base_url": f"https://{host}"}) if site else None


@lru_cache(maxsize=128)
def _built(profile: str, language: str | None, *, of_posts: bool) -> Site | None:
    from pathlib import Path

    from forum_reader.definition import load
    from forum_reader.definition.fields import OWN_PROFILE
    from forum_reader.definition.load import site_of

    if of_posts:
        site = _built(profile, language, of_posts=False)
        return site and _of_posts(site)
    try:
        own = {"profile": profile, "base_url": "https://forum.example", "forums": ["?"]}
        return site_of(load.read(Path("read.toml"), own | ({"language": language} if language else {})), OWN_PROFILE)
    except SiteError:
        return None

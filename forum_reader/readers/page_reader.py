"""Reads any page without a site file: its kind and, of a thread, its posts.

Readers in layers, each checked: the profile of the software that made the page, marks for search engines (schema.org), and
inference from the structure that posts repeat. The reader that passes the checks best is taken; notes report where others
disagree. Where a profile reads all posts that the page can hold, the other readers are skipped, and the page's arrays, which
cost twice its parse, are not made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cached_property
from typing import Any

import msgspec

from forum_reader.dates.post_calendar import Calendar
from forum_reader.errors import NotAPage, UnreadablePage
from forum_reader.fields import post_marks
from forum_reader.fields.date_field import may_be_dates
from forum_reader.fields.post_marks import Marks, find_marks
from forum_reader.page.arranged import arranged_posts
from forum_reader.page.page_kind import Kind, PageFrame, frame_of, has_posts, kind_of, paging
from forum_reader.page.page_tree import PageTree, asks_for_password
from forum_reader.page.records import PageKind, Reader, SeenPage, SeenPost
from forum_reader.page.response import FetchedPage
from forum_reader.page.soft_block import ASKS_FOR_LOGIN, why_nothing
from forum_reader.reading.html_text import shown_characters
from forum_reader.reading.markup_limits import check_attributes
from forum_reader.reading.parse_body import parsed
from forum_reader.recognise.page_marks import PageMarks

from .arrangement import arrange_unsure, arrange_wiki
from .checks import agreement, completed, finished, grade, has_all_posts, is_complete, with_their_posts
from .list_rows import are_listed, are_no_posts, titled_rows
from .marked_places import inferred
from .profile_reader import Listed, ProfileReader
from .schema_org import marked_posts, most_marked
from .structure import PostPattern

MOST_CHARACTERS = 8_000_000
"""Of a page. `fetch` refuses larger pages first."""
_ARCHIVE = "web.archive.org/web/"
_ARCHIVED = re.compile(r"(?:https?:)?(?://web\.archive\.org)?/web/\d{4,14}(?:[a-z]{2}_)?/(?=https?:)")
"""Prefix of the addresses in a page saved from the archive."""
_CLOSE = 0.9  # of the best grade
_EXACT = {Reader.PROFILE: 0.4, Reader.SCHEMA_ORG: 0.5}  # of the best grade, that is enough for a complete reading
_AS_MANY = 0.15  # the same, where a profile finds as many posts: their texts may be shorter
_NEARLY_ALL = 0.9  # of the posts
_FEW = 3  # posts
_SURE = 0.4  # a grade of posts on a page whose profile finds none
_UNLIKE = 0.4  # agreement of readers whose texts are not the same
_AGREED = 0.8


@dataclass
class _Page:
    """A page while it is read: the posts of each reader, and how well they pass the checks (`grades`)."""

    html: str
    url: str
    root: Any
    own: PageMarks
    frame: PageFrame
    calendar: Calendar
    profile: ProfileReader | None  # None also where no software is sure
    found: dict[Reader, tuple[SeenPost, ...]] = field(default_factory=dict)
    grades: dict[Reader, float] = field(default_factory=dict)
    comments: frozenset[int] = frozenset()  # of the posts by schema.org those that are comments on others
    marks: Marks | None = None
    learned: PostPattern | None = None

    @cached_property
    def tree(self) -> PageTree:
        """Return the page's arrays, which cost twice the parse: a page that its profile reads needs none."""
        return PageTree(self.root)

    @property
    def base(self) -> str:
        """Return the address that relative addresses refer to."""
        return self.frame.base_of(self.url)


def read_page(html: str, url: str, *, now: datetime | None = None, profiles: bool = True, links: bool = True) -> SeenPage:
    """Read a page. `now` (aware): the time of the page, to which relative dates refer. `profiles` = False skips the readers by
    profile, `links` = False the links to other pages. Raises NotAPage for anything but HTML, and PageTooLarge.
    """
    page = _opened(html, url, now or datetime.now(UTC), profiles=profiles)
    if arrange_wiki(page.root, page.own.hrefs):
        return _arranged(page)
    _ask_readers(page)
    if page.learned is not None and are_no_posts(page.learned, of_forum=page.profile is not None):
        page.grades.pop(Reader.LEARNED, None)
    reader = _best(page.grades, page.found)
    kind = _kind(page, reader)
    following, pages = paging(page.tree, page.frame, url) if links else (None, ())
    seen = SeenPage(
        url=url, kind=kind.kind, title=page.frame.title, language=page.frame.language,
        software=page.profile.software if page.profile else None, rows=kind.rows, next=following or kind.next, pages=pages,
    )  # fmt: skip
    posts = page.found[reader] if reader else ()
    is_unsure = kind.kind is not PageKind.THREAD or reader is Reader.LEARNED
    if is_unsure and arrange_unsure(page.root, page.tree, page.frame, url, kind, posts):
        return _arranged(page)
    if kind.kind is PageKind.OTHER:
        why = why_nothing(page.html, url) or (ASKS_FOR_LOGIN if asks_for_password(page.tree) else None)
        return msgspec.structs.replace(seen, notes=(why,) if why else ())
    return seen if reader is None or kind.kind is not PageKind.THREAD else _with_posts(seen, page, reader)


def _opened(html: str, url: str, now: datetime, *, profiles: bool) -> _Page:
    if _ARCHIVE in html and _ARCHIVE not in url:
        html = _ARCHIVED.sub("", html)
    _check(html, url)
    response = FetchedPage.of_text(url, html, (("Content-Type", "text/html"), ("Date", format_datetime(now))))
    root = parsed(response.body)
    own = PageMarks(response, root)
    frame = frame_of(root, own.elements)
    profile = ProfileReader(response, root, own, now) if profiles else None
    profile = profile if profile and profile.software else None
    return _Page(html, url, root, own, frame, Calendar(now, frame.language), profile)


def _arranged(page: _Page) -> SeenPage:
    """Return the page with the posts that were put into elements."""
    posts = arranged_posts(page.root, page.calendar)
    return SeenPage(
        url=page.url, kind=PageKind.THREAD, title=page.frame.title, language=page.frame.language, reader=Reader.LEARNED,
        software=page.profile.software if page.profile else None, posts=tuple(finished(posts, page.base)),
        confidence=round(grade(posts, sum(len(post.text) for post in posts)), 2),
    )  # fmt: skip


def _ask_readers(page: _Page) -> None:
    found = page.found
    if page.profile:
        found[Reader.PROFILE] = page.profile.posts()
        words = max(1, shown_characters(page.root, page.own.elements) - sum(len(text) for text, _ in page.own.links))
        if _is_enough(page, words):
            page.grades = {Reader.PROFILE: grade(found[Reader.PROFILE], words)}
            return
    words = max(1, page.tree.chars[-1] - page.tree.link_chars[-1])
    if "schema.org" in page.html:
        found[Reader.SCHEMA_ORG], page.comments = marked_posts(_scripts(page.root), page.calendar)
    page.marks = find_marks(page.tree)
    page.learned = inferred(page.tree, page.marks, page.calendar)
    if page.learned is not None:
        found[Reader.LEARNED] = page.learned.posts
        if Reader.PROFILE in found:  # a style may show dates where its profile does not look for them
            found[Reader.PROFILE] = completed(found[Reader.PROFILE], page.learned.posts)
    page.grades = {reader: grade(posts, words) for reader, posts in found.items() if posts}
    if page.learned is not None:
        page.grades[Reader.LEARNED] = min(page.grades.get(Reader.LEARNED, 0.0), page.learned.quality)


def _kind(page: _Page, reader: Reader | None) -> Kind:
    """Return the kind of a page: by the posts of the reader, the titles of learned rows, and the links that a profile finds."""
    learned = page.learned
    posts, best = (page.found[reader], page.grades[reader]) if reader else ((), 0.0)
    is_sure = reader is Reader.PROFILE or (reader is Reader.LEARNED and learned is not None and _are_comments(learned))
    if reader is Reader.PROFILE and has_posts(posts, best, sure=True):
        return Kind(kind=PageKind.THREAD)
    tree = page.tree
    kind = kind_of(tree, page.frame, page.url, posts, best, sure=is_sure, marks=page.marks)
    if reader is Reader.LEARNED and learned is not None:
        of_titles = are_listed(learned, tree)
        titles = () if of_titles else titled_rows(learned, tree, page.url, page.base)
        if titles or of_titles:
            of_links = kind_of(tree, page.frame, page.url, (), 0.0, titles=titles, marks=page.marks)
            kind = of_links if of_links.rows else kind
    if page.profile and not page.grades.get(Reader.PROFILE) and (links := page.profile.links()) is not None:
        is_thread = kind.kind is PageKind.THREAD and best >= _SURE and not (learned and _are_of(learned, links, tree))
        kind = kind if is_thread else _listed(links, kind)
    return kind


def _with_posts(seen: SeenPage, page: _Page, reader: Reader) -> SeenPage:
    """Return the page with the posts of a reader, completed by the others."""
    posts, comments = page.found[reader], page.comments
    if reader is not Reader.SCHEMA_ORG or not comments:
        comments = page.profile.comments_on(posts) if page.profile else frozenset()
    for other in page.grades:
        posts = completed(posts, page.found[other]) if other is not reader else posts
    return msgspec.structs.replace(
        seen,
        reader=reader,
        posts=tuple(finished(with_their_posts(posts, comments), page.base)),
        confidence=round(min(1.0, page.grades[reader]), 2),
        notes=tuple(_notes(reader, page)),
    )


def _are_of(learned: PostPattern, links: Listed, tree: PageTree) -> bool:
    """Return True if half of the blocks hold the title of a row: the rows were learned as posts."""
    titles = {row.title for row in links.rows}
    blocks = learned.fields.paths.blocks
    titled = sum(any(tree.tag[i] == "a" and tree.string(i) in titles for i in range(one.start, one.end)) for one in blocks)
    return 2 * titled >= len(blocks)


def _listed(links: Listed, kind: Kind) -> Kind:
    """Return a profile's rows, as it selects the threads among the links of a page; keep other rows if these are few."""
    if kind.rows and len(links.rows) < _FEW:
        return kind
    named = PageKind.LIST if links.of_threads else PageKind.INDEX
    return Kind(kind=named, rows=links.rows, next=links.next)


def _check(html: str, url: str) -> None:
    if len(html) > MOST_CHARACTERS:
        raise NotAPage(f"{url}: {len(html):,} characters: no page of a forum is so long")
    if not html or html.isspace():
        raise NotAPage(f"{url}: the page is empty")
    if "<" not in html:
        raise NotAPage(f"{url}: no HTML: it begins with {html[:60]!r}")
    try:
        check_attributes(html)
    except UnreadablePage as error:
        raise NotAPage(f"{url}: {error}") from None


def _is_enough(page: _Page, words: int) -> bool:
    """Return True if a profile's posts are complete, so that no other reader could be chosen: they are as many as the page marks
    for search engines, with the thread as one more or without, or seem to be all where it marks fewer.
    """
    posts = page.found[Reader.PROFILE]
    if not is_complete(posts, pictures=True) or 2 * sum(not post.text for post in posts) > len(posts):
        return False
    marked = most_marked(page.html)
    if len(posts) > 1 and 0 <= marked - len(posts) <= 1:
        return True
    return (marked == 1 or len(posts) > 1) and marked <= len(posts) and has_all_posts(posts, page.own.ids, words)


def _are_comments(learned: PostPattern) -> bool:
    """Return True if the learned posts are comments on an article, which may be much longer: complete, and marked by their
    class.
    """
    if not is_complete(learned.posts):
        return False
    tree, blocks = learned.fields.paths.tree, learned.fields.paths.blocks
    around = (i for block in blocks for i in (block.start, tree.parent[block.start]))
    names = map(tree.names, around)
    return sum(map(post_marks.suggests_comment, names)) >= len(blocks)


def _scripts(root: Any) -> Iterable[str]:
    for script in root.iter("script"):
        if "ld+json" in (script.get("type") or "") and script.text:
            yield script.text


def _best(grades: dict[Reader, float], found: dict[Reader, tuple[SeenPost, ...]]) -> Reader | None:
    """Return the reader of the highest grade, or a more exact reader that is complete and not far behind: a grade also rises with
    text that was taken for a post by mistake.
    """
    best = max(grades, key=lambda reader: grades[reader], default=None)
    if best is None or grades[best] <= 0:
        return None
    count = len(found[best])
    for reader in (Reader.PROFILE, Reader.SCHEMA_ORG):
        posts = found.get(reader, ())
        least = min(_NEARLY_ALL * count, count - 1)  # one more may be a heading
        exact = _AS_MANY if len(posts) == count and reader is Reader.PROFILE and is_complete(posts) else _EXACT[reader]
        enough = grades.get(reader, 0.0) >= exact * grades[best] and len(posts) >= least
        if (
            enough
            and is_complete(posts, pictures=reader is Reader.PROFILE)
            and (reader is Reader.PROFILE or agreement(found[best], posts) < _UNLIKE)
        ):
            return reader
    if grades.get(Reader.LEARNED, 0.0) >= _CLOSE * grades[best]:  # its texts have the lines of the page
        return Reader.LEARNED
    return best


def _notes(reader: Reader, page: _Page) -> Iterable[str]:
    posts = page.found[reader]
    for other in (one for one in page.grades if one is not reader):
        count, share = len(page.found[other]), agreement(posts, page.found[other])
        if share < _AGREED or count > len(posts):
            yield f"{other.value} finds {count} posts, {reader.value} {len(posts)}: {share:.0%} are the same"
    for name in ("author", "published"):
        missing = sum(getattr(post, name) is None for post in posts)
        if missing:
            fields = page.learned.fields if page.learned and name == "published" and missing == len(posts) else None
            texts = may_be_dates(fields.paths, fields.authors) if fields else []
            hint = f"; these may be dates: {', '.join(map(repr, texts))}" if texts else ""
            yield f"{missing} of {len(posts)} posts have no {'date' if name == 'published' else name}{hint}"

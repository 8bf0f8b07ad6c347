"""A page fetched to explore its site: what the readers without a profile find, and its elements."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urlsplit

from forum_reader.dates.post_calendar import ENGLISH, Calendar, known_language, writes_day_first
from forum_reader.errors import PageTooLarge
from forum_reader.fields.post_marks import Marks, find_marks
from forum_reader.fields.text_field import size_of
from forum_reader.page.arranged import Shape, arranged_posts
from forum_reader.page.page_kind import PageFrame, frame_of, kind_of, paging
from forum_reader.page.page_tree import PageTree
from forum_reader.page.records import PageKind
from forum_reader.readers.arrangement import arrange_unsure, arrange_wiki
from forum_reader.readers.marked_places import inferred
from forum_reader.readers.structure import PostPattern
from forum_reader.reading.markup_limits import extraordinary
from forum_reader.reading.parse_body import FRAME_TAGS, by_tag, read_at, root_of

from .address_shape import target_of

if TYPE_CHECKING:
    from forum_reader.page.records import SeenPost
    from forum_reader.page.response import TextResponse


_LEAST_PROSE = 0.4  # of the text of posts outside of links


@dataclass(slots=True)
class OpenedPage:
    """A page, its tree, and the posts inferred from its structure; `is_thread`: they look like posts."""

    response: TextResponse
    root: Any
    tree: PageTree
    frame: PageFrame
    marks: Marks
    calendar: Calendar
    learned: PostPattern | None
    is_thread: bool
    next: str | None
    pages: tuple[str, ...]
    shape: Shape | None = None
    """Shape of its posts, where they have no elements; `shaped` are the posts."""
    shaped: tuple[SeenPost, ...] = ()

    @property
    def url(self) -> str:
        """Return the page's address."""
        return self.response.url

    @property
    def base(self) -> str:
        """Return the address that its links are relative to."""
        return self.frame.base_of(self.url)

    @property
    def language(self) -> str | None:
        """Return the language of its dates: the page's, or English that writes the day first, where its dates do."""
        named = known_language(self.frame.language or "")
        places = self.learned.fields.dates.elements.values() if self.learned else self.marks.dates
        dates = [date for place in places if (date := self.marks.dates.get(place)) is not None and date.a is not None]
        return ENGLISH if dates and not writes_day_first(named) and self.calendar.is_day_first(dates) else named

    def links(self) -> Iterator[tuple[int, str]]:
        """Yield each link to another page of the same host, in the page's order: its place in the tree, and the address."""
        tree, base, own, host = self.tree, self.base, urldefrag(self.url).url, urlsplit(self.url).netloc
        for i, tag in enumerate(tree.tag):
            href = tree.attributes[i].get("href") if tag == "a" else None
            target = target_of(base, href) if href else None
            if target is not None and target != own and urlsplit(target).netloc == host:
                yield i, target

    @property
    def posts(self) -> tuple[SeenPost, ...]:
        """Return the posts; none where it is not a thread."""
        if self.shape is not None:
            return self.shaped
        return self.learned.posts if self.learned and self.is_thread else ()

    @property
    def text_size(self) -> int:
        """Return the number of characters of its posts."""
        return sum(len(post.text) for post in self.posts)


def _is_prose(learned: PostPattern) -> bool:
    """Return True if posts are more than links: the rows of a list have an author and a date each, too."""
    fields = learned.fields
    unlinked = sum(size_of(fields.paths, body) for body in fields.bodies)
    return unlinked >= _LEAST_PROSE * sum(len(post.text) for post in learned.posts)


def opened(response: TextResponse) -> OpenedPage | None:
    """Parse the page; None where it is not HTML, or like no page of a forum."""
    if extraordinary(response.text) is not None or "<" not in response.text:
        return None
    root = root_of(response.text)
    try:
        tree = PageTree(root, keep=True)
    except PageTooLarge:
        return None
    frame = frame_of(root, by_tag(root, *FRAME_TAGS))
    made = read_at(response)
    calendar = Calendar(min(made, datetime.now(UTC)), frame.language)
    marks = find_marks(tree)
    learned = inferred(tree, marks, calendar)
    posts, quality = (learned.posts, learned.quality) if learned else ((), 0.0)
    kind = kind_of(tree, frame, response.url, posts, quality, marks=marks)
    following, pages = paging(tree, frame, response.url)
    copy = deepcopy(root)
    is_wiki = arrange_wiki(copy, (one.get("href", "") for one in copy.iter("a")))
    shape = "signed" if is_wiki else arrange_unsure(copy, tree, frame, response.url, kind, posts)
    return OpenedPage(
        response=response,
        root=root,
        tree=tree,
        frame=frame,
        marks=marks,
        calendar=calendar,
        learned=None if shape else learned,
        is_thread=shape is not None or (kind.kind is PageKind.THREAD and learned is not None and _is_prose(learned)),
        next=following,
        pages=pages,
        shape=shape,
        shaped=arranged_posts(copy, calendar) if shape else (),
    )

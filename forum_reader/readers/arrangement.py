"""Decides whether a page's posts have to be put into elements first: comments of a talk page, the only message of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from forum_reader.dates.dates_in_text import spotted
from forum_reader.fields.author_names import REPLY_TITLE
from forum_reader.page.arranged import Shape, may_be_signed, signed
from forum_reader.page.one_message import find_message, message
from forum_reader.page.page_kind import Kind, PageFrame
from forum_reader.page.page_tree import PageTree, asks_for_password
from forum_reader.page.records import PageKind, SeenPost
from forum_reader.reading.html_text import letters_of

from .checks import is_complete

_SIGNED = re.compile(r"\s*(?:--|[—–―])\s*[^\W\d][\w .'’-]{0,60}? \d{1,4}\b")  # a name and, right behind it, a date
_FEW = 3  # posts
_SHORT = 60  # characters of a title
_MOST_TITLES = 4  # lengths of a title with its author and date
_DATE = 40  # characters
_A_DAY = 3  # precision of a date
_REPLIES = re.compile(
    r"\brepl(?:y|ies|ied)\b|\banswers?\b|\brespon(?:d|ses?)\b|antwort|répon|respuesta|respond|risp(?:ondi|ost)|resposta|"
    r"reageer|reactie|\bsvar|odpowied|odpověd|ответ|відпов|yanıt|cevap|回复|回覆|回應|回帖|跟帖|返信|レス|답글|댓글|"
    r"trả lời|balas",
    re.IGNORECASE,
)
_OF_A_THREAD = re.compile(
    r"thread|topic|forum|comment|reply|quote|discuss|message|question|answer|beitrag|thema|(?:^|[^a-z])(?:post|msg|ticket|issue|bug)",
    re.IGNORECASE,
)
_LEAST_CUES = 3  # elements whose class, id or address mentions posts
_ADDRESS_OF_A_THREAD = re.compile(
    r"thread|topic|discuss|question|beitrag|thema|(?:^|[^a-z])(?:ticket|issue|bug)s?(?:[^a-z]|$)|(?:^|/)(?:t|d|p|posts?|messages?)/|[?&](?:t|tid)=\d",
    re.IGNORECASE,
)
_HOST_OF_FORUMS = re.compile(r"forum|board|communit|discuss|talk|bbs", re.IGNORECASE)
_LONGEST_CUE = 60


def arrange_wiki(root: Any, links: Iterable[str]) -> bool:
    """Return True, and arrange the page, if its comments are signed by links to users' pages. `links`: addresses of its links."""
    return may_be_signed(links) and signed(root, least=2, of_wiki=True)


def arrange_unsure(root: Any, tree: PageTree, frame: PageFrame, url: str, kind: Kind, posts: Sequence[SeenPost]) -> Shape | None:
    """Return the shape of a page, and arrange it, where no posts were found, or these are few or short: they may be the rows of a
    thread's messages.
    """
    sizes = sorted(len(post.text) for post in posts)
    are_many = len(sizes) > _FEW or (len(sizes) > 1 and is_complete(posts))
    is_thread = kind.kind is PageKind.THREAD and are_many and sizes[len(sizes) // 2] >= _SHORT
    if is_thread and not _are_titles(posts, frame.title):
        are_signed = sum(_SIGNED.match(text) is not None for text in tree.texts) >= len(posts)
        return "signed" if are_signed and signed(root, least=len(posts)) else None
    if _is_message(root, tree, frame, url, kind, posts):
        return "message"
    return "signed" if kind.kind is not PageKind.LIST and signed(root, least=2) else None


def _are_titles(posts: Sequence[SeenPost], title: str | None) -> bool:
    """Return True if half of the texts behind the first are the page's title, or end with a date: a tree of messages."""
    own = letters_of(REPLY_TITLE.sub("", title or ""))
    texts = [post.text for post in posts[1:]]
    named = sum(own in (letters := letters_of(text)) and len(letters) <= _MOST_TITLES * len(own) for text in texts if own)
    dates = [spotted(text[-_DATE:]) for text in texts]
    return 2 * max(named, sum(date is not None and date.precision > _A_DAY for date in dates)) >= len(posts)


def _is_message(root: Any, tree: PageTree, frame: PageFrame, url: str, kind: Kind, posts: Sequence[SeenPost]) -> bool:
    """Return True, and arrange the page, if it has one message, and its thread as a list of titles or a form for answers; not
    where one of these posts is read so already.
    """
    titles = (frame.title, *_titles(root))
    own = {letters_of(title) for title in titles if title}
    found = find_message(root, titles)
    if found is None or found.others or found.author in titles or (found.rows and not found.is_of_rows):
        return False
    if not found.rows:
        if kind.kind not in (PageKind.OTHER, PageKind.THREAD) or not _mentions_replies(tree, url):
            return False
        text, texts = letters_of(found.text), [letters_of(post.text) for post in posts]
        is_read = any(one.startswith(text) for one in texts) or (len(texts) == 1 and text not in texts[0])
        is_read = is_read and not any(letters_of(post.author or "") in own for post in posts)
        if asks_for_password(tree) or (kind.kind is PageKind.THREAD and is_read):
            return False
    return message(root, found)


def _titles(root: Any) -> Iterable[str]:
    return (" ".join("".join(one.itertext()).split()) for one in root.iter("h1", "h2", "h3"))


def _mentions_replies(tree: PageTree, url: str) -> bool:
    """Return True if a button or a line mentions replies, or class names and addresses mention posts."""
    if any(len(text) <= _LONGEST_CUE and _REPLIES.search(text) for text in tree.texts):
        return True
    address = urlsplit(url)
    cues = 2 * bool(_ADDRESS_OF_A_THREAD.search(f"{address.path}?{address.query}"))
    cues += bool(_HOST_OF_FORUMS.search(address.hostname or ""))
    for attributes in tree.attributes:
        if attributes:
            named = (attributes.get(name) for name in ("class", "id", "href"))
            cues += any(value and _OF_A_THREAD.search(value) for value in named)
            if cues >= _LEAST_CUES:
                return True
    return False

"""Links of a page that stand at the same place in its markup: links to forums, or to threads.

Addresses may have any form: an id may be a number, a word, a hash or a message id. It is found as the part in which the
addresses of a group differ.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from forum_reader.fields import post_marks
from forum_reader.fields.author_names import REPLY_TITLE
from forum_reader.page.page_tree import PageTree
from forum_reader.readers.repeated_blocks import alone
from forum_reader.reading.html_text import letters_of

from .element_selectors import words_of
from .page_sample import OpenedPage

_LEAST = 2
ANSWER = re.compile(r"^(?:re|aw|sv|отв|antw)\s*[:：]\s*", re.IGNORECASE)
"""Prefix of a title where a link leads to an answer."""
_MOST_LINKS = 500
_LOOKED_AT = 20  # links of a group
_LONGEST_LABEL, _LONGEST_TITLE = 200, 300  # characters
_LEVELS_OF_ROW = 4
_NESTED = 10  # of so many rows one holds the next, in a tree
_MOST_ALIKE = 0.5  # of a group
_NOT_CONTENT = re.compile(
    r"(?:^|[/?&=_.-])(?:log-?in|log-?out|register|sign-?up|search|rss|feed|atom|help|faq|report|reply|quote|print|edit|new|post_new|"
    r"advanced|terms|privacy|contact|sort|order|markread|subscribe)(?:[/?&=_.-]|$)|\.(?:png|jpe?g|gif|css|js|xml)(?:$|\?)",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"(?:\d[\d.,]*[km]?|no|keine?|aucun|sin|нет)?\s*(?:comments?|replies|reply|answers?|discuss\w*|kommentare?|antwort(?:en)?|"
    r"commentaires?|réponses?|comentarios?|respuestas?|комментари\w*|ответ\w*|评论|回复|コメント|댓글)$",
    re.IGNORECASE,
)
_MOST_COUNT = 0.8  # of a group
PAGE_WORD = re.compile(r"^(?:\W*+(?:\d{1,4}|next|prev\w*+|last|first|older|newer)|[^\w«»›‹<>]*+[«»›‹<>])\W*+$", re.IGNORECASE)


@dataclass(slots=True)
class LinkGroup:
    """Links to different addresses: their elements in the tree (`places` by index), addresses and titles. The title is the text
    of a link, or that of the element `named` in its row, where links have only a number of comments.
    """

    page: OpenedPage
    places: list[int]
    urls: list[str]
    titles: list[str]
    named: list[int] | None = None
    shows_posts: bool = False
    """A row shows its thread: the first post and the newest, or the titles of all messages."""

    @property
    def elements(self) -> list[Any]:
        """Return the links."""
        return [self.page.tree.elements[i] for i in self.places]

    @property
    def headings(self) -> list[Any]:
        """Return the elements that have the titles."""
        return [self.page.tree.elements[i] for i in self.named or self.places]

    def rows(self) -> list[int]:
        """Return, for each link, the largest element around it that holds no other link of the group; in a tree of titles, whose
        rows stand within rows, the smallest.
        """
        return self._nested() or alone(self.page.tree, self.places)

    def _nested(self) -> list[int]:
        """Return the ancestors of the links, as many levels above each, where some stand within others; else nothing."""
        tree, found, level = self.page.tree, list[int](), self.places
        for _ in range(_LEVELS_OF_ROW):
            level = [tree.parent[i] for i in level]
            if len(set(level)) < len(level) or min(level) <= 0 or len({tree.tag[i] for i in level}) > 1:
                break
            found = level
        holding = sum(tree.end[one] > after for one, after in itertools.pairwise(found))
        return found if holding * _NESTED >= len(found) > 0 else []

    def spans(self) -> list[tuple[int, int]]:
        """Return the range of each row, up to the next row where they are siblings."""
        tree, rows = self.page.tree, self.rows()
        found = []
        for n, row in enumerate(rows):
            last = rows[n + 1] if n + 1 < len(rows) and tree.parent[rows[n + 1]] == tree.parent[row] else tree.end[row]
            if n + 1 == len(rows) and n and tree.parent[rows[n - 1]] == tree.parent[row]:
                last = min(tree.end[tree.parent[row]], row + (rows[n] - rows[n - 1]))
            found.append((row, max(tree.end[row], last)))
        return found

    def size(self) -> int:
        """Return the number of characters in the rows."""
        tree = self.page.tree
        return sum(tree.chars[last] - tree.chars[first] for first, last in map(tree.text_range, self.spans()))


def link_groups(page: OpenedPage, most: int = 5) -> list[LinkGroup]:
    """Return the groups of a page that may lead to forums or threads, the likeliest first: many links, each with a long text."""
    tree = page.tree
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    targets: dict[int, str] = {}
    doubtful: list[tuple[tuple[int, ...], int]] = []  # a board may be named Help
    for i, target in page.links():
        is_profile = post_marks.is_profile_link(tree.attributes[i]["href"])
        if not 0 < tree.size(i) < _LONGEST_TITLE or is_profile or PAGE_WORD.match(tree.string(i)):
            continue
        targets[i] = target
        up = tree.parent[i]
        above = tree.parent[up] if up >= 0 else -1
        key: tuple[int, ...] = (tree.sign[i], tree.sign[up] if up >= 0 else -1, tree.sign[above] if above >= 0 else -1)
        if is_other_page(target):
            doubtful.append((key, i))
        else:
            groups[key].append(i)
    for kind, i in doubtful:
        if any(_is_made_like(targets[i], targets[j]) for j in groups.get(kind, ())):
            groups[kind].append(i)
    found = []
    for members in (part for whole in _interleaved(tree, groups, targets) for part in _alike(whole, targets)):
        by_url: dict[str, int] = {}
        for i in members:
            known = by_url.get(targets[i])
            if known is None or tree.size(i) > tree.size(known):
                by_url[targets[i]] = i
        places = sorted(by_url.values())[:_MOST_LINKS]
        if len(places) >= _LEAST:
            found.append(_with_titles(LinkGroup(page, places, [targets[i] for i in places], [tree.string(i) for i in places])))
    found.sort(key=lambda one: (-sum(len(ANSWER.sub("", title)) for title in one.titles), sum(map(len, one.urls))))
    return found[:most]


def _with_titles(group: LinkGroup) -> LinkGroup:
    """Return the group with its rows' titles, where its links only count the answers: a link aggregator's titles lead to other
    sites.
    """
    if sum(bool(_COUNT.match(title)) for title in group.titles) < _MOST_COUNT * len(group.titles):
        return group
    tree, named = group.page.tree, []
    for place, row in zip(group.places, group.rows(), strict=True):
        links = (i for i in range(row, tree.end[row]) if tree.tag[i] == "a" and tree.size(i) and i != place)
        others = [i for i in links if not post_marks.is_profile_link(tree.attributes[i].get("href") or "")]
        if not others:
            return group
        named.append(max(others, key=tree.size))
    if Counter(tree.sign[i] for i in named).most_common(1)[0][1] < _MOST_COUNT * len(named):
        return group
    return LinkGroup(group.page, group.places, group.urls, [tree.string(i) for i in named], named)


_MOST_TITLES = 4


def by_title(group: LinkGroup) -> list[LinkGroup]:
    """Return the group's links by their titles, which each row has (`Reply`, `No. 254`, `Last 50`); nothing for other titles."""
    titles = [re.sub(r"\d+", "", title) for title in group.titles]
    numbers = [[n for n, one in enumerate(titles) if one == title] for title in dict.fromkeys(titles)]
    if len(numbers) > _MOST_TITLES or any(len(of_title) < _LEAST for of_title in numbers):
        return []
    return [
        LinkGroup(group.page, [group.places[n] for n in part], [group.urls[n] for n in part], [group.titles[n] for n in part])
        for part in numbers
    ]


def beginning_with(group: LinkGroup, threads: Sequence[tuple[int, OpenedPage]]) -> LinkGroup | None:
    """Return the group with the texts of its rows as titles; None unless each of some threads (by the number of the link) begins
    with the text in its row.
    """
    tree, rows, signs = group.page.tree, group.rows(), set()
    for number, thread in threads:
        text, row = letters_of(thread.posts[0].text), rows[number]
        inside = [i for i in range(row, tree.end[row]) if text and letters_of(tree.string(i)) == text]
        if not inside:
            return None
        signs.add(tree.sign[inside[0]])
    found = [next((i for i in range(row, tree.end[row]) if tree.sign[i] in signs), -1) for row in rows]
    if len(signs) > 1 or -1 in found:
        return None
    return LinkGroup(group.page, group.places, group.urls, [tree.string(i) for i in found], found, shows_posts=True)


_WHOLE = re.compile(
    r"(?:whole|entire|complete|full|all of the) (?:thread|topic|discussion)|all (?:messages|posts|replies)|thread view|flat view|"
    r"(?:ganze|komplette|gesamte)[rns]? (?:thread|thema|diskussion|strang)|alle (?:beiträge|nachrichten)|fil (?:complet|entier)|"
    r"tous les messages|hilo completo|todos los mensajes|tutti i messaggi|весь тред|вся тема|все сообщения|"
    r"全部(?:帖子|回复)|全件表示",
    re.IGNORECASE,
)


def whole_threads(listed: LinkGroup) -> LinkGroup | None:
    """Return the links of a list that lead to whole threads (`Open the whole thread`, a picture with such a name), with the
    titles before them; None where it has none.
    """
    tree = listed.page.tree
    titles = sorted(i for group in link_groups(listed.page) for i in group.places)
    places: list[int] = []
    urls: dict[str, int] = {}
    for i, target in listed.page.links():
        before = bisect_left(titles, i) - 1
        if before >= 0 and target not in urls and _WHOLE.search(_label_of(tree, i)):
            urls[target] = titles[before]
            places.append(i)
    if len(places) < _LEAST or len(set(urls.values())) < len(urls):
        return None
    named = list(urls.values())
    return LinkGroup(listed.page, places, list(urls), [tree.string(i) for i in named], named, shows_posts=True)


def _label_of(tree: PageTree, i: int) -> str:
    parts = [tree.string(i)]
    parts += [tree.attributes[j].get(name, "") for j in range(i, tree.end[i]) for name in ("title", "alt", "aria-label")]
    return " ".join(parts)[:_LONGEST_LABEL]


def _interleaved(tree: PageTree, groups: dict[tuple[int, ...], list[int]], targets: dict[int, str]) -> list[list[int]]:
    """Join groups that alternate on the page and lead to addresses of one form: in a tree of titles, those of threads and those
    of answers have different classes.
    """
    joined: list[list[int]] = []
    for members in sorted(groups.values(), key=len, reverse=True):
        for other in joined:
            both = sorted([*other, *members])
            own = set(members)
            changes = sum((one in own) != (after in own) for one, after in itertools.pairwise(both))
            alike = {(tree.tag[tree.parent[i]], make_of(targets[i])) for i in (*members[:_LOOKED_AT], *other[:_LOOKED_AT])}
            if len(members) >= _LEAST and len(alike) == 1 and changes >= len(members):
                other[:] = both
                break
        else:
            joined.append(list(members))
    return joined


def make_of(target: str) -> tuple[str, tuple[str, ...]]:
    """Return the form of an address: its path without numbers, the names in its query."""
    parts = urlsplit(target)
    names = tuple(one.partition("=")[0] for one in re.split("[&;]", parts.query) if "=" in one)
    return re.sub(r"\d+", "0", parts.path), names


def _alike(members: list[int], targets: dict[int, str]) -> list[list[int]]:
    """Split a group by the form of its addresses, where most have one form: a menu may be a list of the same elements."""
    by_make: dict[tuple[int, tuple[str, ...]], list[int]] = defaultdict(list)
    for i in members:
        path, names = make_of(targets[i])
        by_make[path.rstrip("/").count("/"), names].append(i)
    largest = max(map(len, by_make.values()))
    return [members] if largest == len(members) or largest < _MOST_ALIKE * len(members) else list(by_make.values())


def is_other_page(target: str) -> bool:
    """Return True if an address has a word of pages without posts."""
    parts = urlsplit(target)
    return bool(_NOT_CONTENT.search(f"{parts.path}?{parts.query}"))


def _is_made_like(target: str, other: str) -> bool:
    """Return True if a word of pages without posts stands where another address has a name: `/topic/need-help/5`."""
    parts, others = (urlsplit(url).path.split("/") for url in (target, other))
    place = next((n for n, part in enumerate(parts) if _NOT_CONTENT.search(f"/{part}/")), len(parts))
    return len(parts) == len(others) and 1 < place < len(parts) and parts[:place] == others[:place]


_MOSTLY = 0.7
_LEAST_BLOCKS = 3  # that look like posts
_HELD = 0.5
_LEAST_LETTERS = 5  # of a title that identifies a thread
_TITLE, _LEAST_TITLE = 40, 6  # letters of a title that distinguish it


def is_of(group: LinkGroup, lists: list[LinkGroup]) -> bool:
    """Return True if threads of a page are those of lists that it leads to: the newest of all forums. Lists that have the same
    threads are one list in different orders, and so is a list that has all of the page's.
    """
    titles, others = titles_of(group), [titles_of(one) for one in lists]
    if any(shared(titles, one) >= _MOSTLY * max(len(one), len(titles)) for one in others):
        return False
    if any(shared(one, other) > _HELD * len(one) for n, one in enumerate(others) for other in others[:n]):
        return False
    return any(shared(titles, one) for one in others)


def titles_of(group: LinkGroup) -> list[str]:
    """Return the letters of the titles of a list's links, each once."""
    found = (letters_of(ANSWER.sub("", title).lower()) for title in group.titles)
    return sorted({letters for letters in found if len(letters) >= _LEAST_LETTERS})


def shared(some: list[str], others: list[str]) -> int:
    """Count the titles that are among the others, whole or cut."""
    return sum(any(one.startswith(other) or other.startswith(one) for other in others) for one in some)


def is_titled(page: OpenedPage, title: str) -> bool:
    """Return True if a page has its link's title, or the beginning of it; a link may also have a number or a count."""
    words = letters_of(title.lower())
    shown = page.frame.title or ""
    headings = map(words_of, page.root.iter("h1", "h2", "h3"))
    named = [post.section or "" for post in page.shaped[:1]]
    heads = [letters_of(head.lower()) for head in (shown, *named, page.root.findtext(".//title") or "", *headings)]
    whole = any(words[:_TITLE] in head for head in heads) if words else False
    return whole or any(len(head) >= _LEAST_TITLE and head in words and len(head) >= _MOSTLY * len(words) for head in heads)


def is_in_posts(group: LinkGroup, page: OpenedPage) -> bool:
    """Return True if most of the page's likely posts hold a link of the group, with a title that only answers repeat."""
    blocks = page.learned.fields.found.blocks if page.learned else []
    own = [title for title in group.titles if not REPLY_TITLE.match(title)]
    if len(blocks) < _LEAST_BLOCKS or not own or len(set(own)) < _MOSTLY * len(own):
        return False
    held = sum(any(block.start <= place < block.end for place in group.places) for block in blocks)
    return held >= _MOSTLY * len(blocks) and group.size() >= _HELD * page.text_size

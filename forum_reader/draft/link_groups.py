"""Links of a page that stand at the same place in its markup: links to forums, or to threads.

Addresses may have any form: an id may be a number, a word, a hash or a message id. It is found as the part in which the
addresses of a group differ.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from forum_reader.fields import post_marks
from forum_reader.page.page_kind import is_same_thing

from .page_sample import OpenedPage

_LEAST = 2
ANSWER = re.compile(r"^(?:re|aw|sv|отв|antw)\s*[:：]\s*", re.IGNORECASE)
"""Prefix of a title where a link leads to an answer."""
_MOST_LINKS = 500
_MOST_ALIKE = 0.5  # of a group
_NOT_CONTENT = re.compile(
    r"(?:^|[/?&=_.-])(?:log-?in|log-?out|register|sign-?up|search|rss|feed|atom|help|faq|report|reply|quote|print|edit|new|post_new|"
    r"advanced|terms|privacy|contact|sort|order|markread|subscribe)(?:[/?&=_.-]|$)|\.(?:png|jpe?g|gif|css|js|xml)(?:$|\?)",
    re.IGNORECASE,
)
_SESSION = re.compile(r";jsessionid=[^?#/]*", re.IGNORECASE)
_PARTS = re.compile(r"([/?&=;])")
_YEAR = re.compile(r"(?:19|20)\d\d$")
_MONTH_OR_DAY = re.compile(r"\d{1,2}$")
_PART = r"([^/?&=;#]+)"
_ENDING = re.compile(r"(?:\.\w+|/)$")
_CODE = re.compile(r"[0-9a-zA-Z_~-]+$")
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
    """A row holds the first post of its thread, and the newest."""

    @property
    def elements(self) -> list[Any]:
        """Return the links."""
        return [self.page.tree.elements[i] for i in self.places]

    @property
    def headings(self) -> list[Any]:
        """Return the elements that have the titles."""
        return [self.page.tree.elements[i] for i in self.named or self.places]

    def rows(self) -> list[int]:
        """Return, for each link, the largest element around it that holds no other link of the group."""
        tree, found = self.page.tree, []
        for n, place in enumerate(self.places):
            before = self.places[n - 1] if n else -1
            after = self.places[n + 1] if n + 1 < len(self.places) else len(tree)
            top = place
            while (up := tree.parent[top]) > max(0, before) and tree.end[up] <= after:
                top = up
            found.append(top)
        tops = Counter(tree.parent[top] for top in found)
        common = tops.most_common(1)[0][0]
        return [self._below(top, common) for top in found]

    def _below(self, top: int, common: int) -> int:
        """Return the ancestor below `common`, of which most rows are children: the first link's row may reach to the page's
        head.
        """
        tree = self.page.tree
        if tree.parent[top] == common or not top < common < tree.end[top]:
            return top
        place = next((one for one in self.places if top <= one < tree.end[top]), top)
        while tree.parent[place] != common and tree.parent[place] > top:
            place = tree.parent[place]
        return place

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
    tree, here, base = page.tree, urlsplit(page.url), page.base
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    targets: dict[int, str] = {}
    doubtful: list[tuple[tuple[int, ...], int]] = []  # a board may be named Help
    for i, tag in enumerate(tree.tag):
        href = tree.attributes[i].get("href") if tag == "a" else None
        if not href or not 0 < tree.size(i) < 300 or post_marks.is_profile_link(href):
            continue
        target = target_of(base, href)
        if (
            target is None
            or urlsplit(target).netloc != here.netloc
            or target == urldefrag(page.url).url
            or PAGE_WORD.match(tree.string(i))
        ):
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
    for members in (part for whole in groups.values() for part in _alike(whole, targets)):
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


def beginning_with(group: LinkGroup, threads: Sequence[tuple[int, OpenedPage]]) -> LinkGroup | None:
    """Return the group with the texts of its rows as titles; None unless each of some threads (by the number of the link) begins
    with the text in its row.
    """
    tree, rows, signs = group.page.tree, group.rows(), set()
    for number, thread in threads:
        text, row = _letters(thread.posts[0].text), rows[number]
        inside = [i for i in range(row, tree.end[row]) if text and _letters(tree.string(i)) == text]
        if not inside:
            return None
        signs.add(tree.sign[inside[0]])
    found = [next((i for i in range(row, tree.end[row]) if tree.sign[i] in signs), -1) for row in rows]
    if len(signs) > 1 or -1 in found:
        return None
    return LinkGroup(group.page, group.places, group.urls, [tree.string(i) for i in found], found, shows_posts=True)


def _alike(members: list[int], targets: dict[int, str]) -> list[list[int]]:
    """Split a group by the form of its addresses, where most have one form: a menu may be a list of the same elements."""
    by_make: dict[tuple[int, tuple[str, ...]], list[int]] = defaultdict(list)
    for i in members:
        parts = urlsplit(targets[i])
        names = tuple(one.partition("=")[0] for one in re.split("[&;]", parts.query) if "=" in one)
        by_make[parts.path.rstrip("/").count("/"), names].append(i)
    largest = max(map(len, by_make.values()))
    return [members] if largest == len(members) or largest < _MOST_ALIKE * len(members) else list(by_make.values())


def target_of(base: str, href: str) -> str | None:
    """Return the address that a link leads to, without a session's id; None where it leads to no web page."""
    try:
        target = _SESSION.sub("", urldefrag(urljoin(base, href.strip())).url)
        return target if urlsplit(target).scheme in ("http", "https") else None
    except ValueError:
        return None


def is_other_page(target: str) -> bool:
    """Return True if an address has a word of pages without posts."""
    parts = urlsplit(target)
    return bool(_NOT_CONTENT.search(f"{parts.path}?{parts.query}"))


def _is_made_like(target: str, other: str) -> bool:
    """Return True if a word of pages without posts stands where another address has a name: `/topic/need-help/5`."""
    parts, others = (urlsplit(url).path.split("/") for url in (target, other))
    place = next((n for n, part in enumerate(parts) if _NOT_CONTENT.search(f"/{part}/")), len(parts))
    return len(parts) == len(others) and 1 < place < len(parts) and parts[:place] == others[:place]


@dataclass(frozen=True, slots=True)
class AddressShape:
    """Form of the addresses of a group: `template` with `{id}` for the part that differs, `{url}` where more than ids differ;
    `pattern`, whose first group is the id in an address; `inner`, the part of it that begins with the id; the links' `ids`.
    """

    template: str
    pattern: str
    inner: str
    ids: tuple[str, ...]

    def is_of_another(self, url: str, own: str) -> bool:
        """Return True if an address has another thread's id than `own` has: a link to the next thread, not to the next page."""
        found, known = (re.search(self.pattern, unquote(address_of(one))) for one in (url, own))
        path, here = urlsplit(url).path, urlsplit(own).path
        if found is None or known is None or found[1] == known[1] or re.match(rf"{re.escape(_ENDING.sub('', here))}\b", path):
            return False
        return found[1] in self.ids or not is_same_thing(path, here)


def shape_of(urls: list[str], *, besides: frozenset[str] = frozenset(), whole: bool = False) -> AddressShape | None:
    """Find the form of these addresses; None where no part distinguishes them. Parts in `besides` count as differing, even where
    they are equal in these addresses. `whole`: the id is all that differs, with the title that many addresses have.
    """
    split = [_PARTS.split(unquote(address_of(url))) for url in urls]
    length = Counter(map(len, split)).most_common(1)[0][0]
    alike = [parts for parts in split if len(parts) == length]
    if len(alike) < 0.6 * len(split) or len(alike) < 2:
        return None
    varying = [n for n in range(length) if len({parts[n] for parts in alike}) > 1 or alike[0][n] in besides]
    varying = sorted({*varying, *_day_of(alike[0])} if varying else {})
    if whole and len(varying) > 1 and set(alike[0][varying[0] + 1 : varying[-1] : 2]) == {"/"}:
        return _of_path(urls, alike, varying)
    best: tuple[float, int, str] | None = None
    for n in varying:
        for score, pattern in _patterns([parts[n] for parts in alike], whole=whole):
            if best is None or score > best[0]:
                best = (score, n, pattern)
    if best is None:
        return None
    _, n, inner = best
    start = max(0, n - 2)  # links may be relative: the word before the id is enough, where no word before it ends so
    while start > 0 and (
        start in varying or not alike[0][start] or any(word.endswith(alike[0][start]) for word in alike[0][:start:2])
    ):
        start -= 2
    words = (r"[^/?&=;#]+" if m in varying else re.escape(alike[0][m]) for m in range(start, n))
    pattern = f"{''.join(words)}{inner}"
    if start == 0 and not alike[0][0]:
        pattern = f"^(?:(?:https?:)?//[^/]++)?(?:\\.{{0,2}}/)*+{pattern.removeprefix('/')}"
    ids = []
    for url in urls:
        match = re.search(pattern, unquote(address_of(url)))
        ids.append(match[1] if match else "")
    is_all = varying == [n] and inner == _PART
    template = "".join([*alike[0][:n], "{id}", *alike[0][n + 1 :]]) if is_all else "{url}"
    return AddressShape(template, pattern, inner, tuple(ids))


def _day_of(parts: list[str]) -> list[int]:
    """Return the year's index in a path, with month and day behind it: `/2026/11/how-to-prune` differs in other years."""
    years = (n for n in range(2, len(parts) - 2, 2) if _YEAR.match(parts[n]) and parts[n - 1] == "/" == parts[n + 1])
    if (year := next(years, None)) is None:
        return []
    numbers = range(year + 2, min(year + 6, len(parts) - 1), 2)
    return [year, *itertools.takewhile(lambda n: _MONTH_OR_DAY.match(parts[n]), numbers)]


def _of_path(urls: list[str], alike: list[list[str]], varying: list[int]) -> AddressShape:
    """Return the form of paths with several differing parts: together they are the id."""
    first, last = varying[0], varying[-1]
    inner = "".join(r"[^/?&=;#]+" if m in varying else re.escape(alike[0][m]) for m in range(first, last + 1))
    before = "".join(map(re.escape, alike[0][max(0, first - 2) : first]))
    matches = [re.search(f"{before}({inner})", unquote(address_of(url))) for url in urls]
    template = "".join([*alike[0][:first], "{id:path}", *alike[0][last + 1 :]])
    return AddressShape(template, f"{before}({inner})", f"({inner})", tuple(match[1] if match else "" for match in matches))


def _patterns(parts: list[str], *, whole: bool) -> list[tuple[float, str]]:
    """Return patterns that take an id out of a part of the addresses, different for each address, with a score of likeness to
    ids.
    """
    found = []
    for score, pattern in (
        (3.0, r"(\d+)(?=[-._,/?&;#]|$)"), (2.5, r"[^/?&=;#]*[-._](\d+)(?=\.html?|\.php|[/?&;#]|$)"), (2.0, _PART),
    )[2 if whole else 0 :]:  # fmt: skip
        matches = [re.match(pattern, part) for part in parts]
        ids = [match[1] for match in matches if match]
        if len(ids) == len(parts) == len(set(ids)):
            if score < 3 and any(char.isdigit() for char in "".join(ids)) and all(_CODE.match(one) for one in ids):
                score += 0.2
            if score == 3.0 and all(part.isdigit() for part in parts):
                pattern = _PART
            found.append((score, pattern))
    return found


def address_of(url: str) -> str:
    """Return the part of an address behind the host."""
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


_MOSTLY = 0.7
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
    found = (_letters(ANSWER.sub("", title)) for title in group.titles)
    return sorted({letters for letters in found if len(letters) >= _LEAST_LETTERS})


def shared(some: list[str], others: list[str]) -> int:
    """Count the titles that are among the others, whole or cut."""
    return sum(any(one.startswith(other) or other.startswith(one) for other in others) for one in some)


def is_titled(page: OpenedPage, title: str) -> bool:
    """Return True if a page has its link's title, or the beginning of it; a link may also have a number or a count."""
    words = _letters(title)
    shown = page.frame.title or ""
    headings = ["".join(map(str, one.itertext())) for one in page.root.iter("h1", "h2", "h3")]
    heads = [_letters(head) for head in (shown, page.root.findtext(".//title") or "", *headings)]
    whole = any(words[:_TITLE] in head for head in heads) if words else False
    return whole or any(len(head) >= _LEAST_TITLE and head in words and len(head) >= _MOSTLY * len(words) for head in heads)


def _letters(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())
